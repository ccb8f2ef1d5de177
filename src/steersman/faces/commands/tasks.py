"""`steersman tasks …`: a task's life from the command line. **Invariant:** every verb is a person's; none approves for one."""

import click

from steersman.contracts.task.words import PHASES
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, Deck, verb
from steersman.faces.issue_text import HELP

HERE = "tasks"
KNOWN = {
    "list": (f"{HERE}:listing", "The tasks here: phase, what each waits for, what is legal next."),
    "new": (f"{HERE}:new", "Begin a task."),
    "begin": (f"{HERE}:begin_", "Have a task begin without those that come first, with a reason."),
    "next": (f"{HERE}:next_", "Go on to the next phase, or past a guard with a reason."),
    "redo": (f"{HERE}:redo", "Do a phase again, or reopen a task that is done."),
    "say": (f"{HERE}:say", "Say something to whoever works next."),
    "answer": (f"{HERE}:answer", "Answer what the plan asks."),
    "restore": (f"{HERE}:restore", "Put recorded documents back."),
    "adopt": (f"{HERE}:adopt", "Take a plan over that was changed by hand."),
    "retry": (f"{HERE}:retry", "Have a task that stands still try again."),
    "accept": (f"{HERE}:accept", "See exactly what is accepted, and accept it."),
    "revert": (f"{HERE}:revert", "Take a task's change back."),
    "show": (f"{HERE}:show", "A task's documents, or one of them."),
    "diff": (f"{HERE}:diff", "A task's change."),
}
LOOKS = "0 done · 2 wrong usage · 5 store trouble"
_run = click.argument("run")
_reason = click.option("--reason", default="", help="Why; it stays on tape.")


@click.group("tasks", cls=Lazy, known=KNOWN, invoke_without_command=True, no_args_is_help=False)
@click.pass_context
def tasks(ctx: click.Context) -> int | None:
    """A task's life: planning, plan_review, codegen, review, test, accept, revert, done. Without a verb: the list."""
    if ctx.invoked_subcommand is not None:
        return None
    result: int | None = ctx.invoke(listing, project=None, as_json=False, everything=False)
    return result


@verb("list", "steersman tasks", "steersman tasks list --json", exits=LOOKS)
@click.option("--all", "everything", is_flag=True, help="Not only the last 20.")
def listing(deck: Deck, *, everything: bool) -> None:
    """The tasks of this project, the last one that moved first."""
    from steersman.faces.deeds import listed, plain
    from steersman.judges.text import one_line

    typed = plain(deck)
    found = listed(deck, everything=everything) if deck.has_store() else []
    deck.tell(found)
    if not found:
        deck.say(f'there is no task here yet: start with `{deck.me} tasks new "…"`')
    for task in found:
        where = f"{task.phase}:{task.step}" if task.step else task.phase
        waived = f"  {task.overrides} overridden" if task.overrides else ""
        deck.say(
            f"{task.run}  {where}  {task.outcome or task.status}{waived}  {one_line(task.title)}", bold=True
        )
        if task.after:
            deck.say(f"    after: {', '.join(task.after)}")
        if task.waits:
            deck.say(f"    waits: {task.waits}")
        for told in task.files:
            deck.say(f"    {told}", fg="red")
        legal = (typed(way.word, task.run).removeprefix(f"{deck.me} ") for way in task.next)
        deck.say(f"    legal: {' | '.join(legal) or 'nothing'}")


@verb(
    "new",
    'steersman tasks new "Fix the rounding bug"',
    'steersman tasks new "Add a flag" --step',
    'steersman tasks new "Use the new rounding" --after 261116-abc',
    'steersman tasks new "Fix the rounding bug" --plan ../plan --key ../their/anchor.pub',
    "steersman tasks new --issue report.md",
)
@click.argument("words", metavar="TASK", required=False, default="")
@click.option("--issue", default="", metavar="FILE", help=HELP)
@click.option(
    "--step", is_flag=True, help="Wait for `tasks next` after each phase (default: only where it must)."
)
@click.option("--after", multiple=True, metavar="RUN", help="Begin when this task is accepted and its change is in the branch; may be given several times.")  # fmt: skip
@click.option("--plan", default="", metavar="DIR", help="A frozen plan that bounds it: files and commands outside are refused.")  # fmt: skip
@click.option("--key", default="", metavar="FILE", help="The public key of whoever froze the plan, where it is not this project's.")  # fmt: skip
def new(
    deck: Deck, *, words: str, issue: str, step: bool, after: tuple[str, ...], plan: str, key: str
) -> int:
    """Begin TASK: the same as `run --as task`, with --step one phase at a time."""
    from steersman.faces.deeds import begin

    return begin(deck, words, step=step, plan=plan, key=key, after=after, issue=issue)[1]


@verb("begin", 'steersman tasks begin 261116-abc --reason "it does not need the other one after all"')
@_run
@_reason
def begin_(deck: Deck, *, run: str, reason: str) -> int:
    """Have RUN begin on the branch as it was, though a task that comes first is missing. `tasks next` looks again."""
    return _deeds(deck, run).begin(reason)


@verb(
    "next",
    "steersman tasks next 261116-abc",
    'steersman tasks next 261116-abc --override "I accept the risk of skipping review"',
)
@_run
@click.option(
    "--override", default=None, metavar="REASON", help="Go on all the same: waives the guard, never a gate."
)
@click.option(
    "--to",
    type=click.Choice(PHASES),
    default=None,
    help="Where to, with --override (default: the phase that follows).",
)
def next_(deck: Deck, *, run: str, override: str | None, to: str | None) -> int:
    """Go on: answers the open gate after a phase. Elsewhere it says what RUN waits for and which command fits."""
    from steersman.errors import UserError

    if to is not None and override is None:
        raise UserError("--to goes with --override")
    deeds = _deeds(deck, run)
    return deeds.next() if override is None else deeds.override(override, to or "")


@verb(
    "redo",
    "steersman tasks redo 261116-abc planning",
    'steersman tasks redo 261116-abc codegen "keep the old name"',
)
@_run
@click.argument("phase", type=click.Choice(PHASES[:-2]))
@click.argument("words", required=False, default="")
def redo(deck: Deck, *, run: str, phase: str, words: str) -> int:
    """Do PHASE of RUN again, with WORDS for whoever works on it. Reopens a task that is done."""
    return _deeds(deck, run).redo(phase, words)


@verb("say", 'steersman tasks say 261116-abc "use the decimal module"')
@_run
@click.argument("words")
def say(deck: Deck, *, run: str, words: str) -> int:
    """Say WORDS to whoever works next; while RUN is planned, it is planned again with them."""
    return _deeds(deck, run).say(words)


@verb(
    "answer",
    "steersman tasks answer 261116-abc",
    'steersman tasks answer 261116-abc "yes, both"',
    'steersman tasks answer 261116-abc \'{"q-1f0c": "yes"}\'',
)
@_run
@click.argument("text", required=False, default="")
def answer(deck: Deck, *, run: str, text: str) -> int:
    """Answer what the plan of RUN asks: one by one, or TEXT for all of it, or a JSON object by question id."""
    return _deeds(deck, run).answer(text)


@verb("restore", "steersman tasks restore 261116-abc")
@_run
@_reason
def restore(deck: Deck, *, run: str, reason: str) -> int:
    """Put the documents of RUN back as they were recorded, and make again what is made from its tape."""
    return _deeds(deck, run).restore(reason)


@verb("adopt", "steersman tasks adopt 261116-abc")
@_run
@_reason
def adopt(deck: Deck, *, run: str, reason: str) -> int:
    """Take over the plan of RUN that was changed by hand, if it is one."""
    return _deeds(deck, run).choose("adopt", reason=reason)


@verb("retry", "steersman tasks retry 261116-abc")
@_run
@_reason
def retry(deck: Deck, *, run: str, reason: str) -> int:
    """Have RUN try again what it could not do."""
    return _deeds(deck, run).choose("retry", reason=reason)


@verb("accept", 'steersman tasks accept 261116-abc --reason "looks right"')
@_run
@_reason
@click.option(
    "--digest", default=None, help="Accept only if this is what is asked about: the digest you looked at."
)
def accept(deck: Deck, *, run: str, reason: str, digest: str | None) -> int:
    """Show exactly what is accepted (diff, verdicts, evidence, overrides, digests), accept it and deliver it."""
    return _deeds(deck, run).accept(reason, digest)


@verb(
    "revert",
    'steersman tasks revert 261116-abc --reason "breaks the import"',
    exits="0 taken back · 2 wrong usage · 3 it could not be: nothing was changed · 4 refused · 5 store trouble",
)
@_run
@_reason
def revert(deck: Deck, *, run: str, reason: str) -> int:
    """Take back what RUN has delivered, by a commit of its own; the decision is reopened for it."""
    return _deeds(deck, run).revert(reason)


@verb(
    "show", "steersman tasks show 261116-abc", "steersman tasks show 261116-abc plan.files.json", exits=LOOKS
)
@_run
@click.argument("file", required=False, default="")
def show(deck: Deck, *, run: str, file: str) -> int:
    """The documents of RUN and whether the disk still has them; with FILE, one as it was recorded, or as the tape says."""
    from steersman.faces.papers import tell_paper, tell_papers

    found = deck.sight.find(run)
    if file:
        tell_paper(deck, found, file)
    else:
        tell_papers(deck, found)
    return DONE


@verb("diff", "steersman tasks diff 261116-abc", exits=LOOKS)
@_run
def diff(deck: Deck, *, run: str) -> None:
    """The change of RUN, as git shows it."""
    from steersman.faces.papers import tell_diff

    tell_diff(deck, deck.sight.find(run))


def _deeds(deck: Deck, run: str):  # noqa: ANN202  imported when it is needed
    from steersman.faces.deeds import Deeds

    return Deeds(deck, deck.bridge.find(run))
