"""A task in memory, and for each of its jobs facts with which everything is well."""

from typing import Any

from steersman.contracts.facts import (
    AgentFacts,
    BaseFacts,
    BaselineFacts,
    CheckFacts,
    DeliveryFacts,
    SetupFacts,
)
from steersman.kernel.definition import ChildEnded, GateAnswer, Origin
from steersman.kernel.record import StepMeta, record_override
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import override_guard
from steersman.machines.task import MACHINE
from steersman.machines.task.context import PersonWords, TaskContext, TaskReceived
from steersman.machines.task.facts import InspectFacts, PrerequisiteFacts, RecordFacts, RevertFacts
from tests.support.simulated_roundtable import SIMULATED_RUN, SimulatedRun

# What the documents of each phase are called.
PHASE_DOCUMENTS = {
    "planning": ("planning/planning.ai.json", "plan.files.json"), "plan_review": ("review/plan-review.json",),
    "codegen": ("code/diff.patch", "code/files", "code/files.json"), "review": ("review/code-review.json",),
    "test": ("test/report.json",), "accept": ("accept/decision.json",), "revert": ("revert/record.json",),
}  # fmt: skip
ALL_DOCUMENTS = tuple(name for names in PHASE_DOCUMENTS.values() for name in names)
GATE_CHOICES = {
    "others": "retry", "questions": "answer", "evidence": "approve", "decide": "approve",
    "rewrite": "approve", "next": "approve", "damage": "restore", "damaged_plan": "restore", "again": "retry",
}  # fmt: skip
INSPECTION_FACTS: dict[str, dict[str, Any]] = {
    "planning": {"files": 2}, "plan_review": {"ok": True, "decision": "accepted"},
    "codegen": {"copies": 1, "patch": 10}, "review": {"ok": True, "decision": "passes"},
    "test": {"overall_pass": True}, "accept": {}, "revert": {"status": "reverted"},
}  # fmt: skip


def task_context(**given: Any) -> TaskContext:
    """What a task knows that is in the middle of its life."""
    known: dict[str, Any] = {
        "task_ref": "p-task",
        "base_commit": "c0",
        "base_tree": "t0",
        "commit": "c1",
        "tree": "t1",
        "workspace": "measured",
        "checks": {"tree": "t1", "passed": 1, "tests": 3},
        "artifacts": {name: f"d-{name}" for name in ALL_DOCUMENTS},
        "documents": {name: f"p-{name}" for name in ALL_DOCUMENTS if name != "code/files"},
    }
    return TaskContext(**{**known, **given})


def task_at(state: str, counts: dict[str, int] | None = None, **given: Any) -> Snapshot:
    """A task put into a state by hand."""
    return Snapshot(
        SIMULATED_RUN, "task", MACHINE.digest, state, task_context(**given), seq=7, visit=7,
        counts=counts or {},
    )  # fmt: skip


def reply_facts(role: str, **reply: Any) -> AgentFacts:
    """An agent's reply that fits."""
    told = {"role": role, "reply": f"p-{role}", **reply}
    return AgentFacts(text_ref="p-said", provider="scripted", session=f"s-{role}", reply=told)


def failed_agent_facts(**more: Any) -> AgentFacts:
    """An agent that never answered."""
    return AgentFacts(**{"error": "provider_crashed", "detail_ref": "p-detail", **more})


def coder_facts(tree: str = "t1", status: str = "done", **more: Any) -> AgentFacts:
    """What a coder has left."""
    made = {"tree": tree, "commit": f"c-{tree}", "patch_ref": f"p-{tree}", **more}
    told = {"role": "coder", "reply": "p-coder", "status": status}
    return AgentFacts(text_ref="p-said", provider="scripted", reply=told, **made)


def record_facts(phase: str, mark: str = "d", **more: Any) -> RecordFacts:
    """The documents of a phase, laid down."""
    names = PHASE_DOCUMENTS[phase]
    refs = {name: f"p-{mark}-{name}" for name in names if name != "code/files"}
    return RecordFacts(written={n: f"{mark}-{n}" for n in names}, refs=refs, told_ref="p-told", **more)


def inspection_facts(c: TaskContext, phase: str, **more: Any) -> InspectFacts:
    """Everything is on disk as it was recorded, and the phase's documents say what they should."""
    tree = {"tree": c.tree} if phase in ("codegen", "review", "test", "accept") else {}
    decided = {"decision": c.decision} if phase == "accept" else {}
    told = {"seen": dict(c.artifacts), "told_ref": "p-told", **tree, **decided, **INSPECTION_FACTS[phase]}
    return InspectFacts(**{**told, **more})


def suite_facts(tree: str, **more: Any) -> CheckFacts:
    return CheckFacts(**{"tree": tree, "passed": 1, "tests": 3, "results_ref": "p-results", **more})


def moved_base_facts(**more: Any) -> BaseFacts:
    """The branch has moved, and the change is on top of it."""
    names = PHASE_DOCUMENTS["codegen"]
    told = {
        "moved": True,
        "base": "c9",
        "base_tree": "t9",
        "commit": "c-t8",
        "tree": "t8",
        "patch_ref": "p-t8",
        "written": {n: f"r-{n}" for n in names},
        "refs": {n: f"p-r-{n}" for n in names if n != "code/files"},
        "told_ref": "p-moved",
    }
    return BaseFacts(**{**told, **more})


def base_conflict_facts(**more: Any) -> BaseFacts:
    """The branch has moved, and both have changed the same."""
    told = {"moved": True, "conflicts": 1, "base": "c9", "base_tree": "t9", "told_ref": "p-clash"}
    return BaseFacts(**{**told, **more})


def prerequisite_facts(**more: Any) -> PrerequisiteFacts:
    """The branch has the change of every task that comes first."""
    return PrerequisiteFacts(**{"missing": 0, "base": "c5", "base_tree": "t5", **more})


def task_gate_answer(choice: str, digest: str = "", **more: Any) -> GateAnswer:
    return GateAnswer(choice, "ann", digest, **more)


def successful_facts(c: TaskContext, phase: str, job: str, given: dict[str, Any]) -> Any:
    """What a job brings back when everything is well."""
    match job:
        case "look_at_others":
            return prerequisite_facts()
        case "draft":
            return reply_facts(given["role"], files=1, questions=0, blocking=0)
        case "comment":
            return reply_facts(given["role"], ready=True, concerns=0, blocking=0)
        case "review_plan":
            return reply_facts(given["role"], decision="accept")
        case "review_code":
            return reply_facts(given["role"], decision="approve")
        case "prepare":
            return SetupFacts(ready=True, tree=c.tree or c.base_tree, commit=c.commit or c.base_commit)
        case "measure" | "measure_again":
            return BaselineFacts(tree=c.base_tree, checks=1, results_ref="p-base")
        case "code":
            return coder_facts(f"t{c.turn}")
        case "crew":
            return ChildEnded("r.1", "approved", True, f"t{c.turn}", f"c-t{c.turn}")
        case "run_suites":
            return suite_facts(c.tree)
        case "look_at_base":
            return BaseFacts()
        case "deliver":
            return DeliveryFacts(done=True, ref="refs/heads/main", commit="c-delivered")
        case "take_back":
            return RevertFacts(status="reverted", commit="c-undone")
        case "record":
            return record_facts(phase)
        case "restore" | "adopt":
            return RecordFacts(written=dict(c.artifacts), refs=dict(c.documents), told_ref="p-told")
        case _ if job.startswith("inspect"):
            return inspection_facts(c, phase)
        case _:
            return task_gate_answer(GATE_CHOICES[job], given["digest"])


class SimulatedTask(SimulatedRun):
    """A task that goes on, job by job."""

    def __init__(self, m: Any = MACHINE, **request: Any) -> None:
        super().__init__(m, **request)

    @property
    def state(self) -> str:
        return self.snapshot.state

    @property
    def position(self) -> tuple[str, str]:
        return self.snapshot.state, self.context.step

    def successful_facts(self, job: str = "") -> Any:
        """What an open job brings back when everything is well."""
        name = job or self.open_jobs()[0]
        return successful_facts(self.context, self.state, name, self.item(name).input)

    def advance(self, *jobs: str, **more: Any) -> "SimulatedTask":
        """Open jobs end well; the last one with these changes."""
        for job in jobs or (self.open_jobs()[0],):
            told = self.successful_facts(job)
            changed = {name: getattr(told, name) for name in told.__struct_fields__}
            last = more if job == (jobs or (job,))[-1] else {}
            self.finish(job, type(told)(**{**changed, **last}))
        return self

    def advance_to(self, state: str, step: str | None = None) -> "SimulatedTask":
        """Goes on until it is there."""
        for _ in range(80):
            if self.state == state and step in (None, self.context.step):
                return self
            self.advance()
        raise AssertionError(f"it never got to {state} {step}: it is in {self.position}")

    def tell(self, event: str, text: str = "p-words") -> Any:
        """A person says something."""
        return self.send(event, PersonWords(text, "ann"))

    def waive(self, to: str, reason: str = "because") -> Any:
        """A person waives the guard of the edge to another phase."""
        taken = override_guard(self.m, self.snapshot, to, reason)
        done = record_override(self.m, self.snapshot, taken, StepMeta(self.snapshot.seq, "person:ann"))
        self.stored += done.entries
        self.snapshot = done.snapshot
        return taken


def task_payload(event: str) -> Any:
    """Something this event may carry."""
    kind = MACHINE.events[event].carries
    if kind is TaskReceived:
        return TaskReceived("p-task", "ann")
    if kind is GateAnswer:
        return task_gate_answer("approve")
    if kind is ChildEnded:
        return ChildEnded("r.1", "approved")
    if kind is AgentFacts:
        return reply_facts("reviewer", decision="accept")
    return kind()


__all__ = [
    "ALL_DOCUMENTS", "MACHINE", "PHASE_DOCUMENTS", "SIMULATED_RUN", "Origin", "SimulatedTask", "task_at",
    "task_context",
]  # fmt: skip
