"""Gates in words: what is asked, about what, and the exact commands that answer."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from steersman.judges.text import clip_text, printable_line, printable_text
from steersman.kernel.definition import Choice
from steersman.kernel.machine import Machine
from steersman.ports.journal import Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.time_format import format_timestamp

DOUBTED_EVIDENCE_QUESTION = (
    "All checks pass, but a person has to look at their results. Accept these results for this tree?"
)
EVIDENCE_GATE = "evidence"  # its approval has a verb of its own, with the beginning of the digest
DIGEST_PREFIX_LENGTH = 8  # characters of a digest that show which one was looked at
MAX_GATE_TEXT, MAX_GATE_EXCERPT = 4_000, 600  # characters of one text: of one run, and in a list of all
OUTSIDE_TEXT_GUTTER = "│ "  # in front of every line from outside: none can pose as a line of steersman
BUDGET_GATE = "budget"  # steersman's own: no machine declares it
BUDGET_QUESTION = "The budget is used up. Raise it, or stop?"
BUDGET_RAISE_OPTIONS = {"micro_usd": "--usd", "tokens": "--tokens", "turns": "--turns", "ms": "--hours"}


GENERAL_CHOICES = {  # the words of a gate that declares none
    "approve": Choice("approve", "answer the open gate: yes"),
    "rework": Choice(
        "rework",
        "answer the open gate: again, and this is what to change",
        takes="text",
        required="rework needs words: say what to change",
    ),
    "reject": Choice("reject", "answer the open gate: no", ends=True),
    "stop": Choice("stop", "answer the open gate: end here", ends=True),
}

GateTextSplitter = Callable[[str, str], list[str]]  # name and text of what is shown -> items that stay whole


def no_gate_items(_name: str, _text: str) -> list[str]:
    """The splitter of gates whose texts are shown as they are."""
    return []


class GateView(Gate, frozen=True, kw_only=True):
    """A gate with the words that its machine declares for it."""

    asks: str = ""
    words: Mapping[str, Choice] = {}


def describe_gate(machine: Machine | None, gate: Gate) -> GateView:
    """The gate with its words; without a machine, or for a gate that it does not declare, in general words."""
    job = machine.jobs.get(gate.job) if machine is not None else None
    fields = {name: getattr(gate, name) for name in Gate.__struct_fields__}
    if job is not None:
        return GateView(**fields, asks=job.asks, words=job.choices)
    return GateView(**fields, asks=BUDGET_QUESTION if gate.job == BUDGET_GATE else "")


def gate_question(gate: GateView) -> str:
    """What a gate asks, in one sentence."""
    question_text = gate.asks or f"{gate.job}: {' | '.join(gate.choices)}?"
    if gate.job == EVIDENCE_GATE and gate.shown.get("questions"):
        return DOUBTED_EVIDENCE_QUESTION
    figure = gate.shown.get("figure")
    return f"{question_text} ({figure})" if figure else question_text


def evidence_reason(shown_refs: Mapping[str, str], text: Callable[[str], str]) -> str:
    """Why the evidence gate is open, in one sentence: the first reason, and how many more there are."""
    changed = [line.rpartition(" (")[0] or line for line in text(shown_refs.get("changed", "")).splitlines()]
    lines = (*text(shown_refs.get("questions", "")).splitlines(), *changed)
    # Names of tests are indented.
    reasons = [printable_line(line) for line in lines if line and not line[0].isspace()]
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{clip_text(reasons[0], 300).rstrip('.')}{more}."


def choice_word(gate: GateView, choice: str) -> str:
    """What a person types at a prompt for one of a gate's choices; empty where another word says it."""
    return gate.words[choice].word if choice in gate.words else choice


def find_choice(gate: GateView, choice: str) -> Choice:
    """The words of one of a gate's choices: its own, else the general ones."""
    return gate.words.get(choice) or GENERAL_CHOICES.get(choice) or Choice(choice, f"answer: {choice}")


def choice_help(choice: Choice) -> str:
    """What may be written with a choice, and what it does."""
    takes = "words" if choice.takes == "text" else "reason"
    return f"{takes if choice.required else f'[{takes}]'}: {choice.help}"


def gate_reason(gate: Gate, text: Callable[[str], str]) -> str:
    """The one sentence that says why an evidence gate is open; nothing of other gates."""
    return evidence_reason(gate.shown, text) if gate.job == EVIDENCE_GATE else ""


def render_gate_lines(
    gate: GateView,
    text: Callable[[str], str],
    command_prefix: str,
    *,
    split_text: GateTextSplitter = no_gate_items,
    most: int | None = MAX_GATE_TEXT,
    not_isolated: str = "",
    cause: str = "",
    more: Sequence[str] = (),
    waived: Sequence[str] = (),
) -> list[str]:
    """The gate as lines: the question, its texts, what was `waived`, warnings, and how to answer. Of a run that cannot go
    on also the cause, and what `more` could be typed."""
    lines = [f"{gate_question(gate)}   (gate {gate.id})"]
    why = cause or gate_reason(gate, text)
    lines += [f"{OUTSIDE_TEXT_GUTTER}{why}"] if why else []
    for name, ref in gate.shown.items():
        payload_text = text(ref) if isinstance(ref, str) and ref.startswith("p-") else ""
        if payload_text:
            words = printable_text(
                _clip_gate_text(
                    gate, split_text(name, payload_text.strip()), payload_text.strip(), most, command_prefix
                )
            )
            lines += ["", f"── {name} " + "─" * max(4, 60 - len(name))]
            lines += [f"{OUTSIDE_TEXT_GUTTER}{line}".rstrip() for line in words.split("\n")]
    lines += (
        ["", "overrides:", *(f"{OUTSIDE_TEXT_GUTTER}{payload_text}" for payload_text in waived)]
        if waived
        else []
    )
    if gate.due is not None:
        lines += [
            "",
            f"without an answer by {format_timestamp(gate.due)} UTC: {gate.default or 'it waits on'}",
        ]
    if not_isolated:
        lines += ["", f"{NOT_ISOLATED}: {not_isolated}. An agent of this run could change the stored answer."]
    return [
        *lines,
        "",
        "answer with:",
        *(f"  {command}" for command in (*gate_commands(gate, command_prefix), *more)),
    ]


def _clip_gate_text(gate: Gate, items: list[str], text: str, most: int | None, command_prefix: str) -> str:
    """A text as far as there is room; of one that its machine splits into items, whole items."""
    if not items:
        return text if most is None else clip_text(text, most)
    shown_items = (
        items if most != MAX_GATE_EXCERPT else items[: max(1, _count_fitting_items(items, MAX_GATE_EXCERPT))]
    )
    rest = len(items) - len(shown_items)
    more = f"\n… {rest} more: {command_prefix} gates {gate.run}" if rest else ""
    return "\n".join(shown_items) + more


def _count_fitting_items(items: list[str], most: int) -> int:
    lengths = accumulate(len(item) for item in items)
    return sum(length <= most for length in lengths)


def gate_commands(gate: GateView, command_prefix: str) -> list[str]:
    """One command for each choice, ready to be typed."""
    return [f"{command_prefix} {gate_choice_command(gate, choice)}" for choice in gate.choices]


def gate_choice_command(gate: GateView, choice: str) -> str:
    """The command that gives one of a gate's answers, behind the name of the program."""
    own = gate.words[choice].command if choice in gate.words else ""
    if own:
        return own.format(run=gate.run, digest=gate.digest[:DIGEST_PREFIX_LENGTH])
    match choice:
        case "approve" | "reject":
            return f"{choice} {gate.run}"
        case "rework":
            return f'rework {gate.run} "what to change"'
        case "raise":
            return f"answer {gate.run} raise {BUDGET_RAISE_OPTIONS.get(gate.shown.get('figure', ''), '--tokens')} N"
        case _:
            return f"answer {gate.run} {choice}"
