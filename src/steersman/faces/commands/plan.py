"""`steersman plan`: an intent becomes a frozen plan. **Invariant:** nothing of a plan is executed by any of these."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.cli import Lazy
from steersman.faces.deck import DONE, ENDED, REFUSED, Deck, verb

HERE = "plan"
KNOWN = {
    "make": (f"{HERE}:make", "Plan an intent, or a goal in words."),
    "answer": (f"{HERE}:answer", "Answer the questions of a plan that waits."),
    "explain": (f"{HERE}:explain", "What a plan says, or why there is none."),
    "verify": (f"{HERE}:verify", "Hold every byte of a frozen plan against its manifest."),
    "diff": (f"{HERE}:diff", "What differs between two frozen plans, and which input made it so."),
}
EXITS = "0 the plan is frozen · 1 blocked or aborted · 2 wrong usage · 3 questions wait · 4 refused: the file holds no intent, policy or answers that can be taken · 5 store trouble"


class Plans(Lazy):
    """A first word that is no command of the group is what to plan."""

    default = "make"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.known:
            return super().resolve_command(ctx, [self.default, *args])
        return super().resolve_command(ctx, args)


@click.group(
    "plan",
    cls=Plans,
    known=KNOWN,
    no_args_is_help=False,
    context_settings={"ignore_unknown_options": True},
    epilog=f"Exit codes: {EXITS}",
)
def plan() -> None:
    """Plan an intent, or a goal in words; nothing is executed.

    \b
      steersman plan intent.yaml --policy semi_auto --out plan/
      steersman plan "Fix the rounding of invoices"
      steersman plan verify plan/
    """


@verb(
    "make",
    "steersman plan intent.yaml",
    "steersman plan intent.yaml --policy full_auto --out plan/",
    'steersman plan "Fix the rounding of invoices"',
    exits=EXITS,
)
@click.argument("what", metavar="INTENT_OR_GOAL")
@click.option("--policy", default="", metavar="NAME_OR_FILE",
              help="interactive, semi_auto, full_auto, or a file (default: as the intent's own mode).")  # fmt: skip
@click.option(
    "--out", default="", metavar="DIR", help="Where the frozen plan goes (default: beside the run)."
)
def make(deck: Deck, *, what: str, policy: str, out: str) -> int:
    """Plan INTENT_OR_GOAL: a file with an intent (- is standard input), or a goal in words for which one is drafted."""
    from steersman.faces.planning import drafted, order_for, policy_of, read_intent
    from steersman.faces.voyage import launch

    written = read_intent(deck, what) or drafted(deck, what)
    chosen = policy_of(deck, policy, written.value)
    order = order_for(deck, written, chosen, out)
    deck.new_bridge()
    return launch(deck, order)


@verb(
    "answer",
    "steersman plan answer 261116-abc --template > answers.json",
    "steersman plan answer 261116-abc answers.json",
    "steersman plan answer 261116-abc   # asks you, one question at a time",
    "steersman plan answer 261116-abc --defaults",
    exits=EXITS,
)
@click.argument("run")
@click.argument("file", required=False, metavar="[ANSWERS]")
@click.option("--template", is_flag=True, help="Print an answer pack to fill in; nothing is answered.")
@click.option("--defaults", is_flag=True, help="Let every question take its default now.")
def answer(deck: Deck, *, run: str, file: str | None, template: bool, defaults: bool) -> int:
    """Answer the questions of RUN from a file with an AnswerPack (- is standard input), or one by one at a prompt."""
    from steersman.faces.questions import answer_with, ask_each, template_of, waiting_pack
    from steersman.faces.speech import insider

    if sum((bool(file), template, defaults)) > 1:
        raise UserError("choose one: a file, --template or --defaults")
    gate, pack = waiting_pack(deck, run)
    if template:
        deck.say(template_of(pack))
        deck.tell(template_of(pack, plain=True))
        return DONE
    refused = insider(deck, gate.run, "answer")
    if refused is not None:
        return refused
    if defaults:
        return answer_with(deck, gate, None)
    return answer_with(deck, gate, _given(deck, file, pack) if file else ask_each(deck, pack))


class _RefusedError(UserError):
    """What was given cannot be taken as it is."""

    exit_code = REFUSED


def _given(deck: Deck, file: str, pack: Any) -> Any:
    from steersman.faces.planning import standard_input
    from steersman.machines.coordinator.answers import problems

    documents, send = (
        deck.helm.documents(),
        "send answers, such as: steersman plan answer RUN - < answers.json",
    )
    if file == "-":
        file = "standard input"
        written = documents.parse(standard_input(send), file, "answer_pack")
    else:
        written = documents.read(file, "answer_pack")
    wrong = problems(pack, written.value, written.lines)
    if wrong:
        _told(deck, wrong, file)
        raise _RefusedError(f"{file} was not taken, the questions stay open: mend what is named above")
    return written.value


@verb("explain", "steersman plan explain 261116-abc", "steersman plan explain plan/", exits=EXITS)
@click.argument("what", metavar="RUN_OR_DIR")
def explain(deck: Deck, *, what: str) -> int:
    """What the plan of a run, or in a directory, says: objective, steps, risks, reviews, what was left out and why."""
    from steersman.faces.planning import explanation

    lines, value, code = explanation(deck, what)
    for line in lines:
        deck.say(line)
    deck.tell(value)
    return code


@verb(
    "verify",
    "steersman plan verify plan/",
    "steersman plan verify plan/ --key their-anchor.pub   # of another project",
    exits="0 every byte fits · 1 something differs, or the signature is missing or by another key · 2 there is no plan",
)
@click.argument("place", metavar="DIR")
@click.option("--key", default="", metavar="FILE", help="The maker's public key (anchor.pub), where it is not this project's.")  # fmt: skip
def verify(deck: Deck, *, place: str, key: str) -> int:
    """Hold every byte of the frozen plan in DIR against its manifest, lineage and signature."""
    from steersman.faces.planning import verified

    problems, signed = verified(deck, place, key)
    _told(deck, problems, place)
    deck.tell(
        {
            "place": place,
            "whole": not problems,
            "signature": signed,
            "problems": [_plain(p) for p in problems],
        }
    )
    if problems:
        told = (
            "cannot be trusted"
            if signed.startswith(("by a key", "missing"))
            else "is not the plan that was frozen"
        )
        deck.say(f"{place} {told}: signature {signed}, {len(problems)} differences", fg="red")
        return ENDED
    deck.say(f"{place}: every file is as it was frozen; signature: {signed}", fg="green")
    return DONE


@verb(
    "diff",
    "steersman plan diff plan-a/ plan-b/",
    exits="0 the same plan · 1 they differ · 2 there is no plan",
)
@click.argument("one", metavar="DIR")
@click.argument("other", metavar="DIR")
def diff(deck: Deck, *, one: str, other: str) -> int:
    """What differs between two frozen plans: the inputs first, then the files, then what of the plan itself."""
    from steersman.faces.planning import compared

    inputs, files, changes = compared(deck, one, other)
    for name, lines in (("inputs", inputs), ("files", files), ("plan", changes)):
        if lines:
            deck.say(f"{name}:")
            for line in lines:
                deck.say(f"  {line}")
    same = not (inputs or files or changes)
    if same:
        deck.say("the same plan, byte for byte")
    deck.tell({"same": same, "inputs": list(inputs), "files": list(files), "plan": list(changes)})
    return DONE if same else ENDED


def _told(deck: Deck, problems: Any, where: str) -> None:
    from steersman.faces.intents import lines_of

    for line in lines_of(problems, where):
        deck.warn(line)


def _plain(problem: Any) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(problem)
    return found
