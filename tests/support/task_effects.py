"""A task's effects one at a time: what a phase asks for is what its machine asks for, and what comes back is folded."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from steersman.adapters.storage.artifacts import DirectoryArtifacts
from steersman.contracts.config import Role
from steersman.engine.effects import EffectCall, load_performer
from steersman.engine.start import StartRequest, start_run
from steersman.kernel.ops import apply_ops
from steersman.kernel.snapshot import JobItem, Snapshot
from steersman.kernel.step import name_facts
from steersman.machines.task import MACHINE, folds, work
from steersman.machines.task import replies as r
from steersman.testing import fake_config, fake_ports
from tests.support.packages import PACKAGES

BASE_FILES = {"README": "hello\n", "calc.py": "def add(a, b):\n    return a - b\n", "old.py": "gone soon\n"}
INSPECTION_EFFECTS = {
    "planning": "inspect_plan", "plan_review": "inspect_plan_review", "codegen": "inspect_code",
    "review": "inspect_review", "test": "inspect_tests", "accept": "inspect_decision",
    "revert": "inspect_revert",
}  # fmt: skip
INSPECTION_INPUTS = {
    "planning": work.plan_inspection_input, "plan_review": work.plan_review_inspection_input,
    "codegen": work.code_inspection_input, "review": work.code_review_inspection_input,
    "test": work.test_inspection_input, "accept": work.decision_inspection_input,
    "revert": work.revert_inspection_input,
}  # fmt: skip
RECORD_INPUTS = {
    "planning": work.plan_record_input, "plan_review": work.plan_review_record_input,
    "codegen": work.code_record_input, "review": work.code_review_record_input,
    "test": work.test_record_input, "accept": work.decision_record_input, "revert": work.revert_record_input,
}  # fmt: skip


def plan_reply(**more: Any) -> r.TaskPlannerReply:
    """A planner's reply that is complete."""
    told: dict[str, Any] = {
        "nonce": "n", "title": "Add", "brief": "It subtracts.", "requirements": ("it adds",), "in_scope": (), "out_of_scope": (),
        "steps": ("mend it",), "risks": (), "assumptions": (), "acceptance_criteria": ("1 + 1 is 2",), "files": (planned_file("calc.py"), planned_file("old.py", "delete"), planned_file("new/", "create")),
        "test_strategy": "by example", "test_cases": (), "questions": (),
    }  # fmt: skip
    return r.TaskPlannerReply(**{**told, **more})


def planned_file(path: str, intent: Any = "update") -> r.ProposedFile:
    return r.ProposedFile(path=path, intent=intent, summary="")


def plan_question(text: str, *, blocking: bool = True) -> r.ProposedQuestion:
    return r.ProposedQuestion(text=text, blocking=blocking)


def plan_review_reply(decision: Any = "accept", *issues: str) -> r.PlanReviewerReply:
    return r.PlanReviewerReply(
        nonce="n", decision=decision, summary="read", blocking_issues=issues, suggestions=()
    )


def code_review_reply(
    decision: Any = "approve", *issues: str, plan: tuple[str, ...] = ()
) -> r.CodeReviewerReply:
    return r.CodeReviewerReply(
        nonce="n", decision=decision, summary="read", blocking_issues=issues, plan_issues=plan, suggestions=()
    )


async def _take_part(key: str, _facts: Any) -> None:
    raise AssertionError(key)


class TaskEffects:
    """One task: its files, its payloads, what it knows."""

    def __init__(self, place: Path, *, disk: bool = False, files: Any = None, **instead: Any) -> None:
        if disk:
            instead["artifacts"] = DirectoryArtifacts(place / "runs")
        self.ports = fake_ports(
            place, {"task": MACHINE}, files=files or BASE_FILES, **instead, packages=PACKAGES
        )
        config = fake_config(
            roles={name: Role(agent="fake") for name in ("planner", "coder", "reviewer", "tester")}
        )
        self.live, lock = asyncio.run(
            start_run(self.ports, StartRequest("task", "Mend it", "ann", config, {"deliver": "merge"}))
        )
        lock.release()
        self.run, self.payloads = self.live.run, self.live.payloads
        self.know(**msgspec.structs.asdict(self.live.snapshot.context))

    @property
    def artifacts(self) -> Any:
        return self.ports.artifacts

    @property
    def workspace(self) -> Any:
        return self.ports.workspace(self.live.config)

    def know(self, **fields: Any) -> None:
        """Something that earlier phases have brought."""
        before = getattr(self, "c", self.live.snapshot.context)
        self.c = msgspec.structs.replace(before, **fields)

    def put(self, reply: msgspec.Struct) -> dict[str, str]:
        """A reply as the tape keeps it."""
        said = {k: v for k, v in msgspec.to_builtins(reply).items() if k != "nonce"}
        return {"reply": self.payloads.add_text(msgspec.json.encode(said).decode())}

    def do(self, does: str, given: dict[str, Any]) -> Any:
        """One effect, performed."""
        item = JobItem(f"{self.run}:9:1", does, "effect", does, given, 1)
        perform = load_performer(PACKAGES["task"], does)
        assert perform is not None
        return asyncio.run(
            perform(
                EffectCall(self.ports, self.run, "task", item, self.live.config, self.payloads, _take_part)
            )
        )

    def fold(self, facts: Any) -> Any:
        self.c = apply_ops(self.c, folds.fold_recorded_documents(self.c, facts))
        return facts

    def record(self, phase: str) -> Any:
        """The documents of a phase, laid down and known."""
        facts = self.do("task_record", RECORD_INPUTS[phase](self.c))
        return facts if facts.error_ref else self.fold(facts)

    def inspect(self, phase: str) -> Any:
        return self.do("task_inspect", INSPECTION_INPUTS[phase](self.c))

    def event(self, phase: str) -> str:
        """What the machine calls what is on disk."""
        here = Snapshot(self.run, "task", MACHINE.digest, phase, self.c)
        return name_facts(MACHINE, here, INSPECTION_EFFECTS[phase], self.inspect(phase)).event.name

    def restore(self) -> Any:
        facts = self.do("task_restore", work.document_restore_input(self.c))
        return facts if facts.error_ref else self.fold(facts)

    def adopt(self, seen: dict[str, str] | None = None) -> Any:
        found = self.inspect("planning").seen if seen is None else seen
        self.know(seen=found)
        facts = self.do("task_adopt", work.plan_adoption_input(self.c))
        return facts if facts.error_ref else self.fold(facts)

    def read(self, name: str) -> bytes:
        found = self.artifacts.read(self.run, name)
        assert found.kind == "file", found
        data: bytes = found.data
        return data

    def document(self, name: str) -> Any:
        return msgspec.json.decode(self.read(name))

    def said(self, ref: str) -> str:
        return self.payloads.get(ref)

    # ── the phases, one after the other ─────────────────────────────────────────────────────────────────────────────

    def plan(self, reply: r.TaskPlannerReply | None = None) -> Any:
        self.know(draft=self.put(reply or plan_reply()))
        return self.record("planning")

    def code(self, files: dict[str, str | None]) -> Any:
        """A change of these files (None: deleted), made by hand in a tree of the run and laid down."""
        tree = self.workspace.checkout(self.run, self.c.commit or self.c.base_commit, f"{self.run}:5:1")
        for name, text in files.items():
            path = Path(tree.path, name)
            if path.is_dir():
                for inner in sorted(path.rglob("*"), reverse=True):
                    inner.rmdir() if inner.is_dir() else inner.unlink()
                path.rmdir()
            if text is None:
                path.unlink()
                continue
            if path.parent.is_file():
                path.parent.unlink()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        change = self.workspace.capture(self.run, tree.path, self.c.base_commit, "code-1")
        self.know(commit=change.commit, tree=change.tree, coder_status="done")
        return self.record("codegen")

    def through(self, phase: str) -> "TaskEffects":
        """Everything up to the end of a phase is on disk."""
        order = tuple(RECORD_INPUTS)
        for step in order[: order.index(phase) + 1]:
            self.pass_(step)
        return self

    def pass_(self, phase: str) -> Any:
        """One phase in which everything is well."""
        match phase:
            case "planning":
                return self.plan()
            case "plan_review":
                self.know(
                    plan_opinions={"reviewer": self.put(plan_review_reply())}, providers={"reviewer": "fake"}
                )
            case "codegen":
                return self.code(
                    {"calc.py": "def add(a, b):\n    return a + b\n", "old.py": None, "new/b.py": "new\n"}
                )
            case "review":
                self.know(code_opinions={"reviewer": self.put(code_review_reply())})
            case "test":
                self.test(suite_result("unit"))
            case "accept":
                self.know(decision="accepted", decided_by="ann", reason="good")
            case _:
                self.know(revert={"status": "nothing_delivered", "detail": ""}, decided_by="ann", reason="no")
        return self.record(phase)

    def test(self, *suites: dict[str, Any], **counted: Any) -> None:
        """What running the suites has brought."""
        told = self.payloads.add_text(msgspec.json.encode(suites).decode())
        self.know(results_ref=told, checks={"tree": self.c.tree, "passed": 1, "tests": 3, **counted})

    def elsewhere(self, files: dict[str, str], run: str = "260101-others") -> None:
        """Somebody else's change, merged into the branch meanwhile."""
        base = self.workspace.base("main")
        tree = self.workspace.checkout(run, base.commit, f"{run}:1:1")
        for name, text in files.items():
            Path(tree.path, name).write_text(text)
        change = self.workspace.capture(run, tree.path, base.commit, "code-1")
        self.workspace.deliver(run, change.commit, base.commit, "merge", "main", f"others {run}")

    def look_at_base(self) -> Any:
        return self.do("task_base", work.task_base_input(self.c))


def suite_result(name: str, verdict: str = "passed", **more: Any) -> dict[str, Any]:
    """What one command gave."""
    told = {"name": name, "argv": [name], "source": "project", "verdict": verdict, "exit_code": 0, "tests": 3}
    return {**told, **more}
