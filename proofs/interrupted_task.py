"""A whole task that can be killed anywhere and resumed: its phases, its ways back, a hand in its files, a merge.

It goes planning, plan_review, codegen, review, test; back to codegen, for a test fails; back to planning, for a reviewer
finds the plan flawed; and on into the branch. On the way somebody spoils documents and has them put back. The agents
write real files, and so do the phases. What is the same in the end: every document byte for byte, the commit in the
branch, what was decided. What may differ is in `DIFFERS`, and only there.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from interrupted_run import RUN, InterruptedRun
from tests.support.packages import PACKAGES

from steersman.adapters.storage.artifacts import DirectoryArtifacts
from steersman.app.runs import RunService
from steersman.contracts.agent import AgentRequest
from steersman.contracts.config import Role, Rules
from steersman.engine import projections
from steersman.engine.active_run import load_active_run
from steersman.engine.effects import EffectCall, load_performer
from steersman.engine.start import StartRequest
from steersman.machines.task import MACHINE
from steersman.ports.journal import Gate, Head
from steersman.testing import fake_config, fake_reply
from steersman.testing.files import fake_command_result

# Made from the tape, which has one entry more for every claim and every effect begun again, and the times of them all.
DIFFERS = {
    "state.json": "the number of entries, and the digest over it",
    "transcript.jsonl": "it is the tape",
    "timeline.json": "times and numbers of entries",
    "report.md": "times, numbers of entries, and what may have run twice",
}
WAY = [
    *("planning", "plan_review", "codegen", "review", "test"),
    *("codegen", "review"),  # the tests failed
    *("planning", "plan_review", "codegen", "review", "test", "accept", "done"),  # the plan was wrong
]
PLAN = {
    "title": "Add",
    "brief": "It subtracts.",
    "requirements": ["it adds"],
    "in_scope": [],
    "out_of_scope": [],
    "steps": ["mend it"],
    "risks": [],
    "assumptions": [],
    "acceptance_criteria": ["1 + 1 is 2"],
    "files": [{"path": "calc.py", "intent": "update", "summary": "the sign"}],
    "test_strategy": "by example",
    "test_cases": [],
    "questions": [],
}
WIDER = [
    *PLAN["files"],
    {"path": "README", "intent": "delete", "summary": ""},
    {"path": "notes/", "intent": "create", "summary": ""},
]
OPINION = {"summary": "read", "blocking_issues": [], "suggestions": []}
FLAWED = {**OPINION, "decision": "plan_flawed", "plan_issues": ["nothing says why"]}
TIMES, RIGHT = "def add(a, b):\n    return a * b\n", "def add(a, b):\n    return a + b\n"
SPOILT = ("plan.files.json", "code/files/calc.py")  # one is emptied, one deleted


class InterruptedTask(InterruptedRun):
    """One task below one folder; its person goes from phase to phase."""

    machine = MACHINE
    turns = 60  # of the person: an undisturbed one needs sixteen

    def port_overrides(self) -> dict[str, Any]:
        self.artifacts = DirectoryArtifacts(self.folder / "repo" / ".steersman" / "runs")
        doing = {
            job.does
            for job in self.machine.jobs.values()
            if job.does and load_performer(PACKAGES["task"], job.does)
        }
        return {"artifacts": self.artifacts, "performers": {does: self._noted(does) for does in doing}}

    def _noted(self, does: str) -> Callable[[EffectCall], Any]:
        """Every effect is noted when it begins, outside the store."""
        perform = load_performer(PACKAGES["task"], does)
        assert perform is not None

        async def noted(call: EffectCall) -> Any:
            self.note("begun", call.effect)
            return await perform(call)

        return noted

    def order(self) -> StartRequest:
        roles = {name: Role(agent="fake") for name in ("planner", "coder", "reviewer", "second", "tester")}
        options = {"pace": "step", "code_reviewers": ["reviewer", "second"]}
        rules = Rules(red_base="fix")
        config = fake_config(roles=roles, deliver="merge", checks={"unit": ("pytest", "-q")}, rules=rules)
        return StartRequest(self.machine.name, "Fix add", "ann", config, options)

    def answer(self, request: AgentRequest) -> Any:
        match request.role, request.mode:
            case "planner", _:
                return fake_reply(request, {**PLAN, "files": WIDER if request.round > 1 else PLAN["files"]})
            case "coder", _:
                _code(Path(request.workdir), request.round)
                return fake_reply(request, {"status": "done", "summary": "done", "missing": []})
            case "reviewer", "implementation" if request.round == 2:
                return fake_reply(request, FLAWED)
            case _, "proposal":
                return fake_reply(request, {**OPINION, "decision": "accept"})
            case _:
                return fake_reply(request, {**OPINION, "decision": "approve", "plan_issues": []})

    def checked(self, command: Any, workdir: str) -> Any:
        self.note("ran", command.name)
        return fake_command_result(command, 0 if Path(workdir, "calc.py").read_text() == RIGHT else 1)

    def choice(self, gate: Gate) -> str:
        if gate.job == "damage":
            return "restore"
        if gate.job not in ("next", "decide"):
            raise AssertionError(f"the task asks about {gate.job}")
        here = load_active_run(self.ports, RUN).snapshot
        if (here.state, here.context.turn) == ("codegen", 2):
            self._spoil()
        return "approve"

    def _spoil(self) -> None:
        """Once; a hand that was cut off in the middle does the same again."""
        if self.lines("spoilt"):
            return
        emptied, deleted = (Path(self.artifacts.folder(RUN), name) for name in SPOILT)
        emptied.write_bytes(b"")
        deleted.unlink(missing_ok=True)
        self.note("spoilt", " ".join(SPOILT))

    def seen(self) -> None:
        for trouble in projections.write_projections(self.ports, RUN):
            self.note("troubles", trouble)

    # ── afterwards ──────────────────────────────────────────────────────────────────────────────────────────────────

    def judged(self) -> dict[str, Any]:
        told = super().judged()
        folder = Path(self.artifacts.folder(RUN))
        files = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if not p.is_dir()}
        workspace = self.ports.workspace(self.order().config)
        events = [e for _, e, _ in told["transitions"]]
        return {
            **told,
            "way": phases(to for _, _, to in told["transitions"]),
            "answers": events.count("next_requested"),
            "put_back": events.count("restore_requested"),
            "documents": {n: _digest(p.read_bytes()) for n, p in files.items() if n not in DIFFERS},
            "state": lasting((folder / "state.json").read_bytes()),
            "delivered": workspace.base(
                "main"
            ).tree,  # the commit names an entry of the tape, and a crash adds entries
            "moves": self._moves(),
            "begun": len(self.lines("begun")),
            "stale": self._stale(files),
            "troubles": self.lines("troubles"),
        }

    @staticmethod
    def faults(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
        """What is wrong with a disturbed task, held against an undisturbed one; nothing: it is the same task."""
        same = ("way", "put_back", "documents", "state", "delivered", "moves")
        wrong = [f"{k}: {told[k]!r}" for k in same if told[k] != reference[k]]
        wrong += [f"{k}: {told[k]}" for k in ("stale", "troubles") if told[k]]
        return [*InterruptedRun.faults(told, reference), *wrong]

    def _moves(self) -> int:
        """How often the branch was moved, as git has noted it."""
        log = self.folder / "repo" / ".git" / "logs" / "refs" / "heads" / "main"
        return log.read_text().count("steersman: deliver") if log.exists() else 1

    def _stale(self, files: dict[str, Path]) -> list[str]:
        """Files that are not what the tape says now."""
        p = projections.read_run_view(self.ports, RUN)
        lines = [json.loads(line) for line in files["transcript.jsonl"].read_text().splitlines()]
        fresh = {
            "transcript.jsonl": lines == [json.loads(msgspec.json.encode(e)) for e in p.entries],
            "report.md": files["report.md"].read_text() == projections.render_view_report(self.ports, p),
            **{n: _digest(f.read_bytes()) == _known(p, n) for n, f in files.items() if _known(p, n)},
        }
        return [name for name, holds in fresh.items() if not holds]


class RevertedTask(InterruptedTask):
    """The same task, taken back after it was delivered."""

    async def drive_to_end(self) -> Head:
        head = await super().drive_to_end()
        if head.outcome != "accepted":
            return head
        RunService(self.ports).send(RUN, "redo_accept", {}, "ann")
        return await super().drive_to_end()

    def choice(self, gate: Gate) -> str:
        delivered = load_active_run(self.ports, RUN).snapshot.context.delivered == "yes"
        return "revert" if gate.job == "decide" and delivered else super().choice(gate)


def _code(tree: Path, turn: int) -> None:
    (tree / "calc.py").write_text(TIMES if turn == 1 else RIGHT)
    if turn > 2:
        (tree / "README").unlink(missing_ok=True)
        (tree / "notes").mkdir(exist_ok=True)
        (tree / "notes" / "why.md").write_text("A sum adds.\n")


def phases(states: Any) -> list[str]:
    """The phases that a task went through, by the states that its steps led to."""
    went = ["planning", *states]
    return [phase for n, phase in enumerate(went) if n == 0 or went[n - 1] != phase]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _known(p: projections.RunView, name: str) -> str:
    known: dict[str, str] = p.snapshot.context.artifacts
    return known.get(name, "")


def lasting(data: bytes) -> dict[str, Any]:
    """Of state.json what does not depend on how often the run was taken up."""
    return {k: v for k, v in json.loads(data).items() if k not in ("entries", "digest")}
