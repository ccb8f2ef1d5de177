"""`steersman chat …`: talk with agents beside the machines. **Invariant:** only what a person types is ever carried out."""

import asyncio
from typing import TYPE_CHECKING, Any

import click
import msgspec

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, ENDED, REFUSED, Deck, verb

if TYPE_CHECKING:
    from steersman.contracts.chat import Message
    from steersman.runtime.chat import Talks

HERE = "chat"
KNOWN = {
    "send": (f"{HERE}:send", "Say something in a thread and wait for the answers."),
    "new": (f"{HERE}:new", "Begin a thread."),
    "threads": (f"{HERE}:threads", "List threads."),
    "show": (f"{HERE}:show", "What was said in a thread, and what it cost."),
    "again": (f"{HERE}:again", "Ask once more who has not answered."),
    "drop": (f"{HERE}:drop", "Forget a thread and everything said in it."),
    "talk": (f"{HERE}:talk", "Talk line by line: what `steersman chat` does."),
}
EXITS = "0 everybody asked has answered · 1 somebody has not · 2 wrong usage · 4 refused · 5 store trouble"
LOOKS = "0 done · 2 wrong usage · 5 store trouble"
CHANGES = "0 done · 2 wrong usage · 4 refused · 5 store trouble"
_thread = click.argument("thread")


@click.group(
    "chat",
    cls=Lazy,
    known=KNOWN,
    invoke_without_command=True,
    no_args_is_help=False,
    epilog=f"Exit codes: {EXITS}",
)
@click.pass_context
def chat(ctx: click.Context) -> int | None:
    """Talk with agents beside the machines: threads, @name, history, cost. Nothing in an answer is ever carried out.

    Who can be talked to is in steersman.toml: [chat.agents.NAME] with agent = "claude", or agent = "command" and
    command = ["program", …]; the agent's own options are written as in a role's table."""
    if ctx.invoked_subcommand is not None:
        return None
    result: int | None = ctx.invoke(talk, project=None, as_json=False, thread=None)
    return result


@verb(
    "send",
    'steersman chat send "@bob what does prices.py do?"',
    'steersman chat send "@猫猫 @bob 你们怎么看？" --thread 261116-abc',
    exits=EXITS,
)
@click.argument("text")
@click.option(
    "--thread", default=None, help="A thread, by a unique beginning of its name (default: a new one)."
)
def send(deck: Deck, *, text: str, thread: str | None) -> int:
    """Say TEXT and wait for the answers. @name calls an agent of [chat.agents]; without one the last one answers."""
    if text.lstrip().startswith("/"):
        raise UserError(
            "commands such as /run are typed in `steersman chat`; to send such a line, put a word before it"
        )
    if refused(deck):
        return REFUSED
    talks = of(deck, create=True)
    _routable(talks, thread, text)
    name = talks.find(thread).id if thread else talks.new().id
    deck.say(f"thread {name}")
    return exchange(deck, talks, name, text)


def _routable(talks: "Talks", thread: str | None, text: str) -> None:
    """A new thread is made only for a question that somebody can be asked."""
    from steersman.contracts.chat import Thread

    talks.ready(talks.route(talks.find(thread) if thread else Thread("", "", 0, 0), text).agents)


def exchange(deck: Deck, talks: "Talks", thread: str, text: str) -> int:
    """A question and its answers, each shown as soon as it is there; Ctrl-C leaves the question open."""
    question, route = talks.say(thread, deck.person, text)
    for name in route.unknown:
        deck.warn(
            f"nobody here is called {name}; asked are {', '.join(f'@{n}' for n in route.agents)}", fg="yellow"
        )
    return asked(deck, talks, [(question, list(question.asked))])


def asked(deck: Deck, talks: "Talks", questions: "list[tuple[Message, list[str]]]") -> int:
    """Asks each question's agents; says and tells what came back."""
    from steersman.views.chat import message

    told = talks.ready([name for _, names in questions for name in names])
    if told:
        deck.warn(told, fg="yellow")
    answers: list[Message] = []

    def heard(answer: "Message") -> None:
        answers.append(answer)
        for line in message(answer):
            deck.say(line)

    async def go() -> None:
        for question, names in questions:
            await talks.ask(question, names, heard)

    first = questions[0][0]
    try:
        asyncio.run(go())
    except KeyboardInterrupt:
        deck.warn(f"stopped; the question is kept: {deck.me} chat again {first.thread}", fg="yellow")
        raise
    return _summed_up(deck, talks, first, questions, answers)


def _summed_up(
    deck: Deck,
    talks: "Talks",
    first: "Message",
    questions: "list[tuple[Message, list[str]]]",
    answers: "list[Message]",
) -> int:
    from steersman.views.chat import total

    spent = talks.chats.spent(first.thread)
    wanted = sum(len(names) for _, names in questions)
    good = len(answers) == wanted and not any(answer.error for answer in answers)
    code = DONE if good else ENDED
    deck.say(total(spent, talks.limits()), dim=True)
    if not good:
        deck.say(f"ask again with: {deck.me} chat again {first.thread}")
    plain = [msgspec.to_builtins(question) for question, _ in questions]
    deck.tell(
        {
            "thread": first.thread,
            "questions": plain,
            "answers": [msgspec.to_builtins(answer) for answer in sorted(answers, key=lambda a: a.seq)],
            "spent": spent,
            "exit_code": code,
        }
    )
    return code


@verb("new", "steersman chat new", 'steersman chat new "the parser"', exits=CHANGES)
@click.argument("title", required=False, default="")
def new(deck: Deck, *, title: str) -> int:
    """Begin a thread, with TITLE or the first line said in it as its name."""
    if refused(deck):
        return REFUSED
    thread = of(deck, create=True, looks=True).new(title)
    deck.say(thread.id)
    deck.tell(thread)
    return DONE


@verb("threads", "steersman chat threads", "steersman chat threads --json", exits=LOOKS)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="At most so many."
)
def threads(deck: Deck, *, limit: int) -> None:
    """List threads, the one in which something was said last first."""
    from steersman.views.chat import threads as lines

    if not deck.has_store():
        deck.tell([])
        deck.say(f'nothing has been said here yet: start with `{deck.me} chat send "@name …"`')
        return
    talks = of(deck, looks=True)
    found = [(thread, talks.chats.count(thread.id)) for thread in talks.chats.threads(limit)]
    deck.tell([{**msgspec.to_builtins(thread), "messages": count} for thread, count in found])
    for n, line in enumerate(lines(found, deck.bridge.world.clock.now())):
        deck.say(line, bold=n == 0)


@verb("show", "steersman chat show 261116-abc", "steersman chat show 261116-abc --last 5 --json", exits=LOOKS)
@_thread
@click.option("--last", type=click.IntRange(1), default=None, help="Only the last so many messages.")
def show(deck: Deck, *, thread: str, last: int | None) -> None:
    """What was said in THREAD, what each answer cost, the total, and who has not answered."""
    from steersman.contracts.chat import Conversation, Owed
    from steersman.views.chat import message, total, waiting

    talks = of(deck, looks=True)
    found = talks.find(thread)
    said, spent, still = (
        talks.chats.messages(found.id, last=last),
        talks.chats.spent(found.id),
        talks.open(found.id),
    )
    owed = tuple(Owed(o.question.seq, o.agent, o.by, o.error) for o in still)
    about = msgspec.structs.asdict(found)
    deck.tell(Conversation(**about, messages=tuple(said), spent=spent, limits=talks.limits(), open=owed))
    for m in said:
        for line in message(m):
            deck.say(line)
        deck.say()
    deck.say(total(spent, talks.limits()))
    for o in still:
        deck.say(waiting(o.question.seq, o.agent, o.by, o.error), fg="yellow")
    if any(o.by is None for o in still):
        deck.say(f"ask again with: {deck.me} chat again {found.id}")


@verb("again", "steersman chat again 261116-abc", "steersman chat again 261116-abc --question 7", exits=EXITS)
@_thread
@click.option(
    "--question", type=click.IntRange(1), default=None, help="This one (default: the last that is open)."
)
def again(deck: Deck, *, thread: str, question: int | None) -> int:
    """Ask once more who has not answered in THREAD, or has failed."""
    if refused(deck):
        return REFUSED
    talks = of(deck)
    found = talks.find(thread)
    still = [o for o in talks.open(found.id) if o.by is None and question in (None, o.question.seq)]
    if not still:
        raise UserError(f"nobody owes an answer there now: see `{deck.me} chat show {found.id}`")
    last = still[-1].question
    return asked(deck, talks, [(last, [o.agent for o in still if o.question.seq == last.seq])])


@verb("drop", "steersman chat drop 261116-abc --yes", exits=CHANGES)
@_thread
@click.option("--yes", is_flag=True, help="Do not ask: it cannot be had back.")
def drop(deck: Deck, *, thread: str, yes: bool) -> int:
    """Forget THREAD and everything said in it."""
    if refused(deck):
        return REFUSED
    talks = of(deck, looks=True)
    found = talks.find(thread)
    question = f"forget thread {found.id} and everything said in it? It cannot be had back"
    if not yes and not deck.agreed(question, f"{deck.me} chat drop {found.id} --yes"):
        raise UserError("nothing was dropped")
    talks.drop(found.id)
    deck.say(f"thread {found.id} is gone")
    deck.tell({"thread": found.id, "exit_code": DONE})
    return DONE


@verb("talk", "steersman chat", "steersman chat talk --thread 261116-abc", exits=EXITS)
@click.option(
    "--thread", default=None, help="Go on in this thread (default: a new one with the first question)."
)
def talk(deck: Deck, *, thread: str | None) -> int:
    """Talk line by line. /help says what else can be typed; Ctrl-D ends it."""
    from steersman.faces.parley import parley

    if refused(deck):
        return REFUSED
    return parley(deck, of(deck, create=True), thread)


def of(deck: Deck, *, create: bool = False, looks: bool = False) -> "Talks":
    """The project's conversations; who only looks at them starts no agent and needs no trust."""
    from steersman.runtime.chat import Talks

    config = (deck.read_config() if looks else deck.load_config()).config
    return Talks((deck.new_bridge() if create else deck.bridge).world, config)


def refused(deck: Deck) -> bool:
    """Whatever works for a run or for a chat does not speak here."""
    effect: Any = deck.helm.inside(deck.top)
    if effect:
        deck.warn(
            f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person",
            fg="red",
        )
        deck.tell({"result": "refused", "inside": effect, "exit_code": REFUSED})
    return bool(effect)
