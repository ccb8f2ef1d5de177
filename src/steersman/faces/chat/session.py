"""The line loop of `steersman chat`: what a person types, one line at a time.

**Invariant:** commands come from the person's own lines alone; an answer is shown and never read as a line.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from steersman.contracts.machine_names import DEFAULT_MACHINE
from steersman.errors import SteersmanError, UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext
from steersman.judges.text import has_visible_text

if TYPE_CHECKING:
    from steersman.app.conversations import ChatService

CHAT_PROMPT = "you> "
CHAT_HELP = """@name …               ask an agent; without a name the last one answers
/run TASK             start a run, as `steersman run` does
/followup RUN TEXT    ask a run for more, as `steersman followup` does
/again                ask once more who has not answered
/show                 this thread, with its cost
/threads              all threads
/thread NAME          go on in another thread
/new [TITLE]          begin another thread
/quit                 end it (so does Ctrl-D)"""


class ChatSession:
    """One sitting."""

    def __init__(self, context: CommandContext, chat_service: "ChatService", thread: str | None) -> None:
        self._context, self._chats = context, chat_service
        self._thread = chat_service.find(thread).id if thread else ""
        self._commands: dict[str, Callable[[str], object]] = {
            "help": lambda _: self._print_help(),
            "run": self._run,
            "followup": self._followup,
            "again": lambda _: self._again(),
            "show": lambda _: self._show(),
            "threads": lambda _: self._threads(),
            "thread": self._go_on,
            "new": self._new,
        }

    def _print_help(self) -> None:
        for line in CHAT_HELP.splitlines():
            self._context.print(line)

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
        from steersman.faces.cli.commands.chat import send_chat_question

        if not self._thread:
            self._thread = self._chats.new().id
            self._context.print(f"thread {self._thread}", dim=True)
        send_chat_question(self._context, self._chats, self._thread, text)

    def _run(self, task: str) -> None:
        from steersman.app.start import StartRequest
        from steersman.faces.cli.drive import drive_new_run

        if not has_visible_text(task):
            raise UserError("a run needs a task: /run what to do")
        config = self._context.load_config().config
        drive_new_run(self._context, StartRequest(DEFAULT_MACHINE, task, self._context.person, config))

    def _followup(self, words: str) -> None:
        from steersman.faces.cli.commands.speak import send_followup

        run, _, text = words.partition(" ")
        if not has_visible_text(text):
            raise UserError("a follow-up needs a run and words: /followup RUN what else")
        send_followup(self._context, self._context.runs.find(run), text.strip())

    def _again(self) -> None:
        from steersman.app.conversations import find_unanswered_question
        from steersman.faces.cli.commands.chat import ask_chat_agents

        unanswered = find_unanswered_question(self._chats, self._here())
        if unanswered is None:
            raise UserError("no question is pending in this thread")
        ask_chat_agents(self._context, self._chats, [unanswered])

    def _show(self) -> None:
        from steersman.views.chat import chat_message_lines, thread_cost_words

        for chat_message in self._chats.chats.messages(self._here()):
            for line in chat_message_lines(chat_message):
                self._context.print(line)
        self._context.print(thread_cost_words(self._chats.chats.spent(self._here()), self._chats.limits()))

    def _threads(self) -> None:
        from steersman.views.chat import thread_table_lines

        thread_counts = [
            (thread, self._chats.chats.count(thread.id)) for thread in self._chats.chats.threads(20)
        ]
        for line in thread_table_lines(thread_counts, self._context.runs.ports.clock.now()):
            self._context.print(line)

    def _go_on(self, name: str) -> None:
        self._thread = self._chats.find(name).id
        self._context.print(f"thread {self._thread}", dim=True)

    def _new(self, title: str) -> None:
        self._thread = self._chats.new(title).id
        self._context.print(f"thread {self._thread}", dim=True)

    def _here(self) -> str:
        if not self._thread:
            raise UserError("nothing was said here yet: ask something first, or choose with /thread NAME")
        return self._thread


def run_chat_session(context: CommandContext, chat_service: "ChatService", thread: str | None) -> int:
    """Reads and answers lines until the end of input; an error is printed, and the next line is read."""
    session = ChatSession(context, chat_service, thread)
    read_line = _build_chat_reader(context)
    while True:
        try:
            text = read_line()
            if text is None or not session.line(text.strip()):
                return EXIT_DONE
            context.flush_result(EXIT_DONE)
        except KeyboardInterrupt:
            context.print("\n(Ctrl-D ends the conversation)")
        except SteersmanError as error:
            context.warn(str(error), fg="red")


def _build_chat_reader(context: CommandContext) -> Callable[[], str | None]:
    """From a terminal with editing and this sitting's own history, which no file keeps; else plain lines."""
    if sys.stdin is None:
        return lambda: None
    if context.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return lambda: sys.stdin.readline() or None
    import readline

    readline.set_auto_history(True)
    context.print("talk with @name; /help says what else can be typed, Ctrl-D ends it", dim=True)

    def ask() -> str | None:
        try:
            return input(CHAT_PROMPT)
        except EOFError:
            context.print()
            return None

    return ask
