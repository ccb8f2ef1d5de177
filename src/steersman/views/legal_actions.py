"""What a person can do with a run now, in the words of the prompt: the open gates' choices and the legal events.

**Invariant:** read from the machine, the snapshot and the gates; a word that is not here would be refused.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.facts import InspectFacts
from steersman.contracts.task.words import (
    CODE_REVIEW_FILE,
    COPIES_DIRECTORY,
    COPIES_LIST_FILE,
    DECISION_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    REVERT_FILE,
    SCOPE_FILE,
    TASK_PHASES,
    TEST_REPORT_FILE,
    TaskPhase,
)
from steersman.kernel.definition import Origin
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.kernel.step import StepTaken, legal_events, name_facts, override_guard, take_step
from steersman.ports.journal import Gate
from steersman.views.gates import DIGEST_PREFIX_LENGTH, EVIDENCE_GATE, gate_question
from steersman.views.time_format import format_duration

TASK_MACHINE = "task"
PHASE_BY_WORD = {  # §8: the word that starts a phase
    "plan": "planning",
    "review plan": "plan_review",
    "codegen": "codegen",
    "review code": "review",
    "test": "test",
    "accept": "accept",
    "revert": "revert",
}
WORD_BY_PHASE = {phase: word for word, phase in PHASE_BY_WORD.items()}
NEXT_PHASE: dict[str, TaskPhase] = {
    **dict(pairwise(TASK_PHASES)),
    "accept": "done",
    "revert": "done",
    "done": "done",
}
DECISION_BY_PHASE = {
    "codegen": "rework",
    "review": "review",
    "planning": "replan",
    "revert": "revert",
    "accept": "approve",
}
DOCUMENTS_BY_PHASE = {
    "planning": (PLAN_FILE, SCOPE_FILE),
    "plan_review": (PLAN_REVIEW_FILE,),
    "codegen": (PATCH_FILE, COPIES_DIRECTORY, COPIES_LIST_FILE),
    "review": (CODE_REVIEW_FILE,),
    "test": (TEST_REPORT_FILE,),
    "accept": (DECISION_FILE,),
    "revert": (REVERT_FILE,),
}
_GATE_CHOICE_WORDS = {  # a choice of a task's gate that has a word of its own; one with none is said by `redo`
    ("next", "approve"): ("next", "go on"),
    ("next", "rework"): ("", ""),
    ("others", "retry"): ("next", "look at the others again"),
    ("others", "begin"): ("begin", "begin without them, with a reason"),
    ("questions", "answer"): ("answer", "answer what the plan asks"),
    (EVIDENCE_GATE, "approve"): ("accept-evidence", "accept these results on this very tree"),
    (EVIDENCE_GATE, "rework"): ("rework", "send the change back"),
    ("decide", "approve"): ("accept", "accept exactly this change"),
    ("decide", "rework"): ("codegen", "have it changed further"),
    ("decide", "review"): ("review code", "have it reviewed again"),
    ("decide", "replan"): ("plan", "the plan is the problem"),
    ("decide", "revert"): ("revert", "take it back"),
    ("damage", "restore"): ("restore", "put the recorded documents back"),
    ("damaged_plan", "restore"): ("restore", "put the recorded documents back"),
    ("damaged_plan", "adopt"): ("adopt", "take the plan over as it is on disk"),
    ("again", "retry"): ("retry", "try again"),
}
_REDO_WORDS = {"codegen": "redo codegen", "review code": "redo review", "plan": "redo planning"}
_EVENT_WORDS = {
    "words_given": "say",
    "task_followup_received": "followup",
    "revert_requested": "revert",
    "delivery_requested": "deliver",
}


class Action(msgspec.Struct, frozen=True):
    """One thing that can be done now."""

    word: str
    what: str


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is and what it waits for."""

    run: str
    machine: str
    title: str
    phase: str
    step: str
    status: str
    outcome: str
    waits: str
    next: tuple[Action, ...]
    after: tuple[str, ...] = ()  # tasks that come first
    overrides: int = 0  # guards that people have waived so far
    files: tuple[str, ...] = ()  # what hands did to those that are made from the tape


def action_command(word: str, run: str, command_prefix: str) -> str:
    """How the command line says what the prompt says in a word."""
    first, _, rest = _REDO_WORDS.get(word, word).partition(" ")
    if first in ("approve", "rework", "reject", "abort", "followup", "resume"):
        return f"{command_prefix} {first} {run}"
    if first == "accept-evidence":
        return f"{command_prefix} {first} {run} {rest}"
    if first in ("raise", "stop"):
        return f"{command_prefix} answer {run} {first}"
    more = '--override "why"' if rest == "--override" else '--reason "why"' if first == "begin" else rest
    return f"{command_prefix} tasks {first} {run} {more}".rstrip()


def find_side_actions(machine: Machine, snapshot: Snapshot, gates: Iterable[Gate]) -> tuple[str, ...]:
    """Where a task stands still: what is legal beside the answer that its gate asks for."""
    is_blocked = any(g.job == "again" and not g.answer for g in gates)
    actions = (
        (*_override_actions(machine, snapshot), *_event_actions(machine, snapshot)) if is_blocked else ()
    )
    return tuple(action.word for action in actions if action.word.startswith(("next --override", "redo ")))


def find_legal_actions(machine: Machine, snapshot: Snapshot, gates: Iterable[Gate]) -> tuple[Action, ...]:
    """Everything that is legal now, the nearest first, and each once: a phase's own word does it again as `redo` does."""
    every = (
        *_gate_answer_actions(machine, snapshot, gates),
        *_override_actions(machine, snapshot),
        *_event_actions(machine, snapshot),
    )
    actions_by_word = {action.word: action for action in reversed(every)}
    own = {
        f"redo {phase}"
        for word, phase in PHASE_BY_WORD.items()
        if word in actions_by_word and word in _REDO_WORDS
    }
    return tuple(action for action in reversed(actions_by_word.values()) if action.word not in own)


def _gate_answer_actions(machine: Machine, snapshot: Snapshot, gates: Iterable[Gate]) -> Iterator[Action]:
    for gate in gates:
        for choice in () if gate.answer else gate.choices:
            word, what = _GATE_CHOICE_WORDS.get((gate.job, choice), (choice, f"answer: {choice}"))
            if (gate.job, word) == ("next", "next") and snapshot.machine == TASK_MACHINE:
                yield Action(word, f"{what}: to {predict_next_state(machine, snapshot)}")
            elif word:
                yield Action(
                    f"{word} {gate.digest[:DIGEST_PREFIX_LENGTH]}" if word == "accept-evidence" else word,
                    what,
                )


def predict_next_state(machine: Machine, snapshot: Snapshot) -> str:
    """Where `next` would lead by what the documents said when they were last looked at, as the machine decides it; it
    looks again before it goes."""
    context = snapshot.context
    job = next(d.job.name for d in machine.states[snapshot.state].work if d.job.does == "task_inspect")
    patch = 1 if PATCH_FILE in context.artifacts else 0
    facts = InspectFacts(**{**context.says, "seen": context.seen, "tree": context.tree, "patch": patch})
    then = replace(snapshot, context=replace(context, step="confirmed"), counts={})
    transition = take_step(machine, then, name_facts(machine, then, job, facts))
    if not isinstance(transition, StepTaken):
        return snapshot.state
    return (
        "evidence" if transition.context.step == "evidence" else transition.to
    )  # where a person is asked first


def _override_actions(machine: Machine, snapshot: Snapshot) -> Iterator[Action]:
    after = {
        r.to.name
        for r in machine.rows
        if r.waivable is not None and isinstance(r.to, type(machine.states[snapshot.state]))
    }
    for to in () if snapshot.ended else after:
        if isinstance(override_guard(machine, snapshot, to, "why"), StepTaken):
            yield Action("next --override", f"go on to {to} all the same, with a reason")


def _event_actions(machine: Machine, snapshot: Snapshot) -> Iterator[Action]:
    for name in (
        () if snapshot.ended else legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context)
    ):
        abort = machine.abort is not None and name == machine.abort.name
        word = "abort" if abort else _EVENT_WORDS.get(name, name.replace("redo_", "redo ", 1))
        yield Action(word, machine.events[name].meaning)
        if name == "redo_accept":
            yield Action("revert", "take the delivered change back")


def describe_run_wait(snapshot: Snapshot, gates: Iterable[Gate], owner: str | None, now: int) -> str:
    """What a run waits for, in one line."""
    questions = [gate_question(g) for g in gates if not g.answer]
    if questions:
        return " ".join(questions)
    working = [i for i in snapshot.items.values() if i.kind != "gate"]
    if not working:
        return ""
    worker_names = ", ".join(dict.fromkeys(i.input.get("role") or i.job for i in working))
    due = [i.due for i in working if i.due is not None and i.due > now]
    later = f" in {format_duration(min(due) - now)}" if due else ""
    return (
        f"{worker_names}{later}; {owner} drives it"
        if owner
        else f"{worker_names}{later}, but nobody drives it"
    )


def kept_document_lines(snapshot: Snapshot, phase: str) -> list[str]:
    """What a phase that is done again goes by, with digests: everything that came before it."""
    context = context_fields(snapshot.context)
    before = TASK_PHASES[: TASK_PHASES.index(phase)] if phase in TASK_PHASES else ()
    names = [name for p in before for name in DOCUMENTS_BY_PHASE.get(p, ())]
    document_lines = [
        f"{name} {context['artifacts'][name][:12]}" for name in names if name in context.get("artifacts", {})
    ]
    if phase in ("codegen", "test") and context.get("workspace") == "measured":
        document_lines.append("the checks of the base tree")
    return document_lines
