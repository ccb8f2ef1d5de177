"""Gates in words: what is asked, about what, and the exact commands that answer."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from steersman.judges.text import clip_text, printable_line, printable_text
from steersman.ports.journal import Gate
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.planning.questions import render_answer_gate_items
from steersman.views.time_format import format_timestamp

GATE_QUESTIONS = {
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
DOUBTED_EVIDENCE_QUESTION = (
    "All checks pass, but a person has to look at their results. Accept these results for this tree?"
)
EVIDENCE_GATE = "evidence"  # its approval has a verb of its own, with the beginning of the digest
DIGEST_PREFIX_LENGTH = 8  # characters of a digest that show which one was looked at
GATE_COMMANDS = {  # of the gates of a task
    (EVIDENCE_GATE, "approve"): "accept-evidence {run} {digest}",
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
MAX_GATE_TEXT, MAX_GATE_EXCERPT = 4_000, 600  # characters of one text: of one run, and in a list of all
OUTSIDE_TEXT_GUTTER = "│ "  # in front of every line from outside: none can pose as a line of ours
BUDGET_RAISE_OPTIONS = {"micro_usd": "--usd", "tokens": "--tokens", "turns": "--turns", "ms": "--hours"}


def gate_question(gate: Gate) -> str:
    """What a gate asks, in one sentence."""
    question_text = GATE_QUESTIONS.get(gate.job, f"{gate.job}: {' | '.join(gate.choices)}?")
    if gate.job == EVIDENCE_GATE and gate.shown.get("questions"):
        return DOUBTED_EVIDENCE_QUESTION
    figure = gate.shown.get("figure")
    return f"{question_text} ({figure})" if figure else question_text


def evidence_reason(shown_refs: Mapping[str, str], text: Callable[[str], str]) -> str:
    """Why the evidence gate is open, in one sentence: the first reason, and how many more there are."""
    changed = [line.rpartition(" (")[0] or line for line in text(shown_refs.get("changed", "")).splitlines()]
    lines = (*text(shown_refs.get("questions", "")).splitlines(), *changed)
    reasons = [
        printable_line(line) for line in lines if line and not line[0].isspace()
    ]  # names of tests are indented
    if not reasons:
        return ""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{clip_text(reasons[0], 300).rstrip('.')}{more}."


def gate_reason(gate: Gate, text: Callable[[str], str]) -> str:
    """The one sentence that says why an evidence gate is open; nothing of other gates."""
    return evidence_reason(gate.shown, text) if gate.job == EVIDENCE_GATE else ""


def render_gate_lines(
    gate: Gate,
    text: Callable[[str], str],
    command_prefix: str,
    *,
    most: int | None = MAX_GATE_TEXT,
    not_isolated: str = "",
    cause: str = "",
    more: Sequence[str] = (),
    waived: Sequence[str] = (),
) -> list[str]:
    """The gate as lines: the question, what it is about, what was `waived`, what stands against trusting it, and how to
    answer; of a run that cannot go on also the cause, and what `more` could be typed."""
    lines = [f"{gate_question(gate)}   (gate {gate.id})"]
    why = cause or gate_reason(gate, text)
    lines += [f"{OUTSIDE_TEXT_GUTTER}{why}"] if why else []
    for name, ref in gate.shown.items():
        payload_text = text(ref) if isinstance(ref, str) and ref.startswith("p-") else ""
        if payload_text:
            words = printable_text(_clip_gate_text(gate, name, payload_text.strip(), most, command_prefix))
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
        lines += ["", f"{NOT_ISOLATED}: {not_isolated}; agents of this run could reach what keeps the answer"]
    return [
        *lines,
        "",
        "answer with:",
        *(f"  {command}" for command in (*gate_commands(gate, command_prefix), *more)),
    ]


def _clip_gate_text(gate: Gate, name: str, payload_text: str, most: int | None, command_prefix: str) -> str:
    """A text as far as there is room; of a plan's questions all are shown to whoever answers, and none by halves."""
    items = render_answer_gate_items(name, payload_text) if gate.job == "answers" else []
    if not items:
        return payload_text if most is None else clip_text(payload_text, most)
    shown_items = (
        items if most != MAX_GATE_EXCERPT else items[: max(1, _count_fitting_items(items, MAX_GATE_EXCERPT))]
    )
    rest = len(items) - len(shown_items)
    more = f"\n… {rest} more: {command_prefix} gates {gate.run}" if rest else ""
    return "\n".join(shown_items) + more


def _count_fitting_items(items: list[str], most: int) -> int:
    lengths = accumulate(len(item) for item in items)
    return sum(length <= most for length in lengths)


def gate_commands(gate: Gate, command_prefix: str) -> list[str]:
    """One command for each choice, ready to be typed."""
    return [_gate_choice_command(gate, choice, command_prefix) for choice in gate.choices]


def _gate_choice_command(gate: Gate, choice: str, command_prefix: str) -> str:
    own = GATE_COMMANDS.get((gate.job, choice))
    if own is not None:
        return f"{command_prefix} {own.format(run=gate.run, digest=gate.digest[:DIGEST_PREFIX_LENGTH])}"
    match choice:
        case "approve" | "reject":
            return f"{command_prefix} {choice} {gate.run}"
        case "rework":
            return f'{command_prefix} rework {gate.run} "what to change"'
        case "raise":
            return f"{command_prefix} answer {gate.run} raise {BUDGET_RAISE_OPTIONS.get(gate.shown.get('figure', ''), '--tokens')} N"
        case "answer":
            return f"{command_prefix} plan answer {gate.run}"
        case _:
            return f"{command_prefix} answer {gate.run} {choice}"
