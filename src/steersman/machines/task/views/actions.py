"""What a person can do with a task now, beside what its gate and its events offer."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from steersman.contracts.machine_names import TASK_PHASES, TaskPhase
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import StepTaken, name_facts, override_guard, take_step
from steersman.machines.task.context import TaskContext
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    COPIES_DIRECTORY,
    COPIES_LIST_FILE,
    DECISION_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    REVERT_FILE,
    SCOPE_FILE,
    TEST_REPORT_FILE,
)
from steersman.machines.task.facts import InspectFacts
from steersman.views.gates import GateView
from steersman.views.legal_actions import LegalAction, gate_answer_actions, person_event_actions

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
_REDO_WORDS = ("codegen", "review code", "plan")  # that do a phase again at the decision


def find_task_actions(
    machine: Machine, snapshot: Snapshot, gates: Iterable[GateView]
) -> tuple[LegalAction, ...]:
    """Everything that is legal now, the nearest first, and each once: a phase's own word does it again as `redo` does."""
    every = (
        *(_name_next_state(machine, snapshot, a) for a in gate_answer_actions(gates)),
        *_override_actions(machine, snapshot),
        *_task_event_actions(machine, snapshot),
    )
    actions_by_word = {action.word: action for action in reversed(every)}
    own = {
        f"redo {p}" for word, p in PHASE_BY_WORD.items() if word in actions_by_word and word in _REDO_WORDS
    }
    return tuple(action for action in reversed(actions_by_word.values()) if action.word not in own)


def find_side_actions(
    machine: Machine, snapshot: Snapshot, gates: Iterable[GateView]
) -> tuple[LegalAction, ...]:
    """Where a task stands still: what is legal beside the answer that its gate asks for."""
    if not any(g.job == "again" and not g.answer for g in gates):
        return ()
    actions = (*_override_actions(machine, snapshot), *_task_event_actions(machine, snapshot))
    return tuple(a for a in actions if a.word.startswith(("next --override", "redo ")))


def _name_next_state(machine: Machine, snapshot: Snapshot, action: LegalAction) -> LegalAction:
    """`next` after a phase says where it leads."""
    if action.word != "next" or action.what != "go on":
        return action
    return replace(action, what=f"{action.what}: to {predict_next_state(machine, snapshot)}")


def _task_event_actions(machine: Machine, snapshot: Snapshot) -> Iterator[LegalAction]:
    for action in person_event_actions(machine, snapshot):
        yield action
        if action.word == "redo accept":
            yield LegalAction("revert", "take the delivered change back", f"tasks revert {snapshot.run}")


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
    # Where a person is asked first.
    return "evidence" if transition.context.step == "evidence" else transition.to


def _override_actions(machine: Machine, snapshot: Snapshot) -> Iterator[LegalAction]:
    after = {
        r.to.name
        for r in machine.rows
        if r.waivable is not None and isinstance(r.to, type(machine.states[snapshot.state]))
    }
    for to in () if snapshot.ended else after:
        if isinstance(override_guard(machine, snapshot, to, "why"), StepTaken):
            what = f"go on to {to} all the same, with a reason"
            yield LegalAction("next --override", what, f'tasks next {snapshot.run} --override "why"')


def kept_document_lines(snapshot: Snapshot, phase: str) -> list[str]:
    """What a phase that is done again goes by, with digests: everything that came before it."""
    context: TaskContext = snapshot.context
    before = TASK_PHASES[: TASK_PHASES.index(phase)] if phase in TASK_PHASES else ()
    names = [name for p in before for name in DOCUMENTS_BY_PHASE.get(p, ())]
    document_lines = [f"{name} {context.artifacts[name][:12]}" for name in names if name in context.artifacts]
    if phase in ("codegen", "test") and context.workspace == "measured":
        document_lines.append("the checks of the base tree")
    return document_lines
