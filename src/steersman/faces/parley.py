"""The line loop of `steersman chat`: what a person types, one line at a time.

**Invariant:** commands come from the person's own lines alone; an answer is shown and never read as a line.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from steersman.errors import SteersmanError, UserError
from steersman.faces.deck import DONE, Deck
from steersman.judges.text import visible

if TYPE_CHECKING:
    from steersman.runtime.chat import Talks

PROMPT = "you> "
HELP = """@name …               ask an agent; without a name the last one answers
/run TASK             start a run, as `steersman run` does
/followup RUN TEXT    ask a run for more, as `steersman followup` does
/again                ask once more who has not answered
/show                 this thread, with its cost
/threads              all threads
/thread NAME          go on in another thread
/new [TITLE]          begin another thread
/quit                 end it (so does Ctrl-D)"""


class Parley:
    """One sitting."""

    def __init__(self, deck: Deck, talks: "Talks", thread: str | None) -> None:
        self._deck, self._talks = deck, talks
        self._thread = talks.find(thread).id if thread else ""
        self._commands: dict[str, Callable[[str], object]] = {
            "help": lambda _: [deck.say(line) for line in HELP.splitlines()],
            "run": self._run,
            "followup": self._followup,
            "again": lambda _: self._again(),
            "show": lambda _: self._show(),
            "threads": lambda _: self._threads(),
            "thread": self._go_on,
            "new": self._new,
        }

    def line(self, text: str) -> bool:
        """One line of the person's; whether the sitting goes on."""
        if text.startswith("/"):
            word, _, rest = text[1:].partition(" ")
            if word in ("quit", "exit"):
                return False
            command = self._commands.get(word)
            if command is None:
                raise UserError(f"there is no /{word}: /help says what there is")
            command(rest.strip())
        elif text:
            self._ask(text)
        return True

    def _ask(self, text: str) -> None:
        from steersman.faces.commands.chat import exchange

        if not self._thread:
            self._thread = self._talks.new().id
            self._deck.say(f"thread {self._thread}", dim=True)
        exchange(self._deck, self._talks, self._thread, text)

    def _run(self, task: str) -> None:
        from steersman.faces.outlook import machine_named
        from steersman.faces.voyage import launch
        from steersman.runtime.start import Order

        if not visible(task):
            raise UserError("a run needs a task: /run what to do")
        machine_named(self._deck, "roundtable")
        launch(self._deck, Order("roundtable", task, self._deck.person, self._deck.load_config().config))

    def _followup(self, words: str) -> None:
        from steersman.faces.commands.speak import follow

        run, _, text = words.partition(" ")
        if not visible(text):
            raise UserError("a follow-up needs a run and words: /followup RUN what else")
        follow(self._deck, self._deck.bridge.find(run), text.strip())

    def _again(self) -> None:
        from steersman.faces.commands.chat import asked

        still = [o for o in self._talks.open(self._here()) if o.by is None]
        if not still:
            raise UserError("nobody owes an answer here now")
        last = still[-1].question
        asked(self._deck, self._talks, [(last, [o.agent for o in still if o.question.seq == last.seq])])

    def _show(self) -> None:
        from steersman.views.chat import message, total

        for said in self._talks.chats.messages(self._here()):
            for line in message(said):
                self._deck.say(line)
        self._deck.say(total(self._talks.chats.spent(self._here()), self._talks.limits()))

    def _threads(self) -> None:
        from steersman.views.chat import threads

        found = [(t, self._talks.chats.count(t.id)) for t in self._talks.chats.threads(20)]
        for line in threads(found, self._deck.bridge.world.clock.now()):
            self._deck.say(line)

    def _go_on(self, name: str) -> None:
        self._thread = self._talks.find(name).id
        self._deck.say(f"thread {self._thread}", dim=True)

    def _new(self, title: str) -> None:
        self._thread = self._talks.new(title).id
        self._deck.say(f"thread {self._thread}", dim=True)

    def _here(self) -> str:
        if not self._thread:
            raise UserError("nothing was said here yet: ask something first, or choose with /thread NAME")
        return self._thread


def parley(deck: Deck, talks: "Talks", thread: str | None) -> int:
    """Reads lines until there are no more; what goes wrong is said, and the next line is read."""
    sitting = Parley(deck, talks, thread)
    read = _reader(deck)
    while True:
        try:
            text = read()
            if text is None or not sitting.line(text.strip()):
                return DONE
            deck.answer(DONE)
        except KeyboardInterrupt:
            deck.say("\n(Ctrl-D ends the conversation)")
        except SteersmanError as error:
            deck.warn(str(error), fg="red")


def _reader(deck: Deck) -> Callable[[], str | None]:
    """From a terminal with editing and this sitting's own history, which no file keeps; else plain lines."""
    if sys.stdin is None:
        return lambda: None
    if deck.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return lambda: sys.stdin.readline() or None
    import readline

    readline.set_auto_history(True)
    deck.say("talk with @name; /help says what else can be typed, Ctrl-D ends it", dim=True)

    def ask() -> str | None:
        try:
            return input(PROMPT)
        except EOFError:
            deck.say()
            return None

    return ask
