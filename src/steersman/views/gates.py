"""Gates in words: what is asked, about what, and the exact commands that answer."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from steersman.judges.text import clip, one_line, printable
from steersman.ports.journal import Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.moments import stamp
from steersman.views.planning.questions import in_words

ASKED = {
    "confirm": "Shall this proposal be implemented?",
    "merge": "Shall this change be merged?",
    "moving": "The branch has moved too often in a row. Look at it again? Reject stops the run.",
    "rewrite": "The branch no longer has commits that this change was made on. Put the change alone on the branch as it is now?",
    "recheck": "The branch moved after your approval, which is void. Check the change on the branch as it is now?",
    "evidence": "All checks pass, but the change touches files that a person has to look at. Accept these results for this tree?",
    "answers": "The plan is not sure of everything. What shall hold?",
    "budget": "The budget is used up. Raise it, or stop?",
    "others": "Another task comes first, and its change is not in the branch. Look again, or begin without it?",
    "next": "The phase is over. Shall it go on?",
    "questions": "The plan asks first. What is the answer?",
    "decide": "Shall this change be accepted?",
    "damage": "What is on disk is not what was recorded. Put it back?",
    "damaged_plan": "The plan on disk is not what was recorded. Put it back, or take it over?",
    "again": "It cannot go on by itself. Try again?",
}
DOUBTED = "All checks pass, but a person has to look at their results. Accept these results for this tree?"
EVIDENCE = "evidence"  # its approval has a verb of its own, with the beginning of the digest
PREFIX = 8  # characters of a digest that show which one was looked at
COMMANDS = {  # of the gates of a task
    (EVIDENCE, "approve"): "accept-evidence {run} {digest}",
    ("next", "approve"): "tasks next {run}",
    ("others", "retry"): "tasks next {run}",
    ("others", "begin"): 'tasks begin {run} --reason "why"',
    ("questions", "answer"): "tasks answer {run}",
    ("decide", "approve"): "tasks accept {run}",
    ("decide", "rework"): 'tasks redo {run} codegen "what to change"',
    ("decide", "review"): "tasks redo {run} review",
    ("decide", "replan"): "tasks redo {run} planning",
    ("decide", "revert"): "tasks revert {run}",
    ("damage", "restore"): "tasks restore {run}",
    ("damaged_plan", "restore"): "tasks restore {run}",
    ("damaged_plan", "adopt"): "tasks adopt {run}",
    ("again", "retry"): "tasks retry {run}",
}
SHOWN, EXCERPT = 4_000, 600  # characters of one text: of one run, and in a list of all
GUTTER = "│ "  # in front of every line from outside: none can pose as a line of ours
FIGURES = {"micro_usd": "--usd", "tokens": "--tokens", "turns": "--turns", "ms": "--hours"}


def question(gate: Gate) -> str:
    """What a gate asks, in one sentence."""
    asked = ASKED.get(gate.job, f"{gate.job}: {' | '.join(gate.choices)}?")
    if gate.job == EVIDENCE and gate.shown.get("questions"):
        return DOUBTED
    figure = gate.shown.get("figure")
    return f"{asked} ({figure})" if figure else asked


def evidence_reason(shown: Mapping[str, str], text: Callable[[str], str]) -> str:
    """Why the evidence gate is open, in one sentence: the first reason, and how many more there are."""
    changed = [line.rpartition(" (")[0] or line for line in text(shown.get("changed", "")).splitlines()]
    lines = (*text(shown.get("questions", "")).splitlines(), *changed)
    reasons = [
        one_line(line) for line in lines if line and not line[0].isspace()
    ]  # names of tests are indented
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{clip(reasons[0], 300).rstrip('.')}{more}."


def gate_reason(gate: Gate, text: Callable[[str], str]) -> str:
    """The one sentence that says why an evidence gate is open; nothing of other gates."""
    return evidence_reason(gate.shown, text) if gate.job == EVIDENCE else ""


def asked(
    gate: Gate,
    text: Callable[[str], str],
    me: str,
    *,
    most: int | None = SHOWN,
    not_isolated: str = "",
    cause: str = "",
    more: Sequence[str] = (),
    waived: Sequence[str] = (),
) -> list[str]:
    """The gate as lines: the question, what it is about, what was `waived`, what stands against trusting it, and how to
    answer; of a run that cannot go on also the cause, and what `more` could be typed."""
    lines = [f"{question(gate)}   (gate {gate.id})"]
    why = cause or gate_reason(gate, text)
    lines += [f"{GUTTER}{why}"] if why else []
    for name, ref in gate.shown.items():
        told = text(ref) if isinstance(ref, str) and ref.startswith("p-") else ""
        if told:
            words = printable(_within(gate, name, told.strip(), most, me))
            lines += ["", f"── {name} " + "─" * max(4, 60 - len(name))]
            lines += [f"{GUTTER}{line}".rstrip() for line in words.split("\n")]
    lines += ["", "overrides:", *(f"{GUTTER}{told}" for told in waived)] if waived else []
    if gate.due is not None:
        lines += ["", f"without an answer by {stamp(gate.due)} UTC: {gate.default or 'it waits on'}"]
    if not_isolated:
        lines += ["", f"{NOT_ISOLATED}: {not_isolated}; agents of this run could reach what keeps the answer"]
    return [*lines, "", "answer with:", *(f"  {command}" for command in (*commands(gate, me), *more))]


def _within(gate: Gate, name: str, told: str, most: int | None, me: str) -> str:
    """A text as far as there is room; of a plan's questions all are shown to whoever answers, and none by halves."""
    items = in_words(name, told) if gate.job == "answers" else []
    if not items:
        return told if most is None else clip(told, most)
    whole = items if most != EXCERPT else items[: max(1, _fitting(items, EXCERPT))]
    rest = len(items) - len(whole)
    more = f"\n… {rest} more: {me} gates {gate.run}" if rest else ""
    return "\n".join(whole) + more


def _fitting(items: list[str], most: int) -> int:
    lengths = accumulate(len(item) for item in items)
    return sum(length <= most for length in lengths)


def commands(gate: Gate, me: str) -> list[str]:
    """One command for each choice, ready to be typed."""
    return [_command(gate, choice, me) for choice in gate.choices]


def _command(gate: Gate, choice: str, me: str) -> str:
    own = COMMANDS.get((gate.job, choice))
    if own is not None:
        return f"{me} {own.format(run=gate.run, digest=gate.digest[:PREFIX])}"
    match choice:
        case "approve" | "reject":
            return f"{me} {choice} {gate.run}"
        case "rework":
            return f'{me} rework {gate.run} "what to change"'
        case "raise":
            return f"{me} answer {gate.run} raise {FIGURES.get(gate.shown.get('figure', ''), '--tokens')} N"
        case "answer":
            return f"{me} plan answer {gate.run}"
        case _:
            return f"{me} answer {gate.run} {choice}"
