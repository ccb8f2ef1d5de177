"""Whole tasks with fake ports: waived, moved, edited by hand, on a full disk; each ends delivered, with all of it on tape."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from tests.support.packages import PACKAGES
from tests.support.task_effects import plan_reply, planned_file

from steersman.app.runs import RunService
from steersman.contracts.agent import AgentReply
from steersman.contracts.config import Role
from steersman.engine.active_run import load_active_run
from steersman.engine.driver import Driver
from steersman.engine.projections import read_run_view
from steersman.engine.start import StartRequest, start_run
from steersman.machines.task import MACHINE
from steersman.testing import FakeAgent, ScriptedCommands, fake_config, fake_ports, fake_reply
from steersman.testing.files import MemoryArtifacts, fake_command_result

PLAN, SCOPE, DECISION = "planning/planning.ai.json", "plan.files.json", "accept/decision.json"
REVIEW = {"summary": "read", "blocking_issues": [], "suggestions": []}


class Task:
    """A task and the hands around it."""

    def __init__(
        self, place, *, judge=None, answer=None, artifacts=None, deliver="merge", begins=True, **options
    ):
        self.artifacts = artifacts or MemoryArtifacts()
        self.plan, self.answer = plan_reply(files=(planned_file("README"),)), answer
        commands = ScriptedCommands(judge or (lambda command, _: fake_command_result(command)))
        agent = FakeAgent(self.reply)
        self.ports = fake_ports(
            place, {"task": MACHINE}, agent=agent, commands=commands, artifacts=self.artifacts,
            files={"README": "hello\n", "other": "other\n"}, packages=PACKAGES)  # fmt: skip
        roles = {name: Role(agent="fake") for name in ("planner", "coder", "reviewer", "second", "tester")}
        self.config = fake_config(roles=roles, deliver=deliver)
        self.run = asyncio.run(self._begin(options))
        if begins:
            self.go()

    async def _begin(self, options):
        live, lock = await start_run(self.ports, StartRequest("task", "Mend it", "ann", self.config, options))
        lock.release()
        return live.run

    def reply(self, request):
        """What everybody says who does what is wanted."""
        told = self.answer(request) if self.answer else None
        if told is not None:
            return told
        match request.role, request.mode:
            case "planner", _:
                return fake_reply(
                    request, {k: v for k, v in msgspec.to_builtins(self.plan).items() if k != "nonce"}
                )
            case "coder", _:
                Path(request.workdir, "README").write_text(f"hello you, {request.round}\n")
                return fake_reply(request, {"status": "done", "summary": "done", "missing": []})
            case _, "proposal":
                return fake_reply(request, {"decision": "accept", **REVIEW})
            case _:
                return fake_reply(request, {"decision": "approve", "plan_issues": [], **REVIEW})

    def go(self):
        """Somebody drives it until it waits."""
        asyncio.run(Driver(self.ports).drive(self.run))

    @property
    def where(self):
        snapshot = load_active_run(self.ports, self.run).snapshot
        return snapshot.state, snapshot.context.step

    @property
    def context(self):
        return load_active_run(self.ports, self.run).snapshot.context

    @property
    def entries(self):
        return [json.loads(body) for _, body, _ in self.ports.journal.rows(self.run)]

    @property
    def events(self):
        return [e["event"] for e in self.entries if e["kind"] in ("created", "transition")]

    def gate(self):
        (found,) = [g for g in self.ports.journal.gates(self.run) if not g.answer]
        return found

    def say(self, choice, **more):
        gate = self.gate()
        RunService(self.ports).answer(gate, choice, "ann", digest=gate.digest, **more)
        self.go()

    def waive(self, to, reason="no time"):
        posted = RunService(self.ports).override(self.run, to, "ann", reason)
        self.go()
        return self.ports.journal.verdict(posted)

    def move(self, text):
        """Somebody else's change goes into the branch."""
        workspace = self.ports.workspace(self.config)
        base = workspace.base("main")
        tree = workspace.checkout("260101-others", base.commit, "260101-others:1:1")
        Path(tree.path, "other").write_text(text)
        change = workspace.capture("260101-others", tree.path, base.commit, "code-1")
        workspace.deliver("260101-others", change.commit, base.commit, "merge", "main", "others")

    def delivered(self):
        """What is in the branch now."""
        workspace = self.ports.workspace(self.config)
        commit = workspace.base("main").commit
        return {
            name: data.decode()
            for name, data in workspace.read_contents(commit, workspace.paths(commit)).items()
        }


def test_a_task_is_delivered(tmp_path):
    """From its plan to the merged commit; a person decides about exactly what was shown."""
    task = Task(tmp_path)
    assert task.where == ("accept", "decide")
    task.say("approve", reason="good")
    assert (task.where[0], task.context.outcome) == ("done", "accepted")
    assert task.delivered() == {"README": "hello you, 1\n", "other": "other\n"}


def test_what_was_waived_is_in_the_decision(tmp_path):
    """Guards that a person waived are named wherever the change is accepted: who, why, which edge."""

    def blocks(request):
        if request.role == "reviewer" and request.mode == "proposal":
            return fake_reply(request, {"decision": "blocked", **REVIEW, "blocking_issues": ["not ours"]})
        return None

    task = Task(tmp_path, answer=blocks, pace="step")
    task.say("approve")
    assert task.where == ("plan_review", "ready")
    assert task.waive("codegen", "")["result"] == "refused"
    assert task.waive("test")["result"] == "refused"
    assert task.waive("codegen", "I accept the risk")["result"] == "taken"
    while task.where[0] != "accept":
        task.say("approve")
    task.say("approve", reason="good")
    assert task.context.outcome == "accepted"
    decision = json.loads(task.artifacts.read(task.run, DECISION).data)
    assert decision["overrides"] == [
        {"source": "plan_review", "to": "codegen", "person": "ann", "reason": "I accept the risk"}
    ]


def test_a_branch_that_moves_while_it_is_tested(tmp_path):
    """The change follows it, is reviewed and tested again, and what is merged has both."""
    runs = []

    def judge(command, _workdir):
        runs.append(command.name)
        if len(runs) == 2:  # the base tree was checked, and now the change is
            task_now[0].move("other people's\n")
        return fake_command_result(command)

    task_now = [None]

    class Moving(Task):
        def go(self):
            task_now[0] = self
            super().go()

    task = Moving(tmp_path, judge=judge)
    assert task.where == ("accept", "decide")
    assert task.events.count("review_passes") == 2
    assert task.events.count("tests_complete") == 2
    assert task.events.count("base_moved") == 1
    task.say("approve")
    assert task.delivered() == {"README": "hello you, 1\n", "other": "other people's\n"}


def test_a_branch_that_moves_after_the_decision(tmp_path):
    """The delivery refuses to make a tree that nobody has looked at: it is made, reviewed and tested, and asked about."""
    task = Task(tmp_path)
    task.move("other people's\n")
    task.say("approve")
    assert task.where == ("accept", "decide")
    assert (task.events.count("delivery_failed"), task.events.count("tests_complete")) == (1, 2)
    task.say("approve")
    assert task.delivered()["other"] == "other people's\n"


def test_a_plan_that_was_edited_goes_on_as_it_was_edited(tmp_path):
    """Between the gate and next: noticed, taken over, shown again; the coder is held to it."""
    task = Task(tmp_path, pace="step")
    body = json.loads(task.artifacts.read(task.run, PLAN).data)
    wider = [*body["file_plan"], {"path": "other", "intent": "update", "summary": ""}]
    task.artifacts.write(task.run, PLAN, json.dumps({**body, "file_plan": wider}).encode())
    task.say("approve")
    assert (task.where, task.gate().choices) == (("planning", "damaged"), ("restore", "adopt"))
    task.say("adopt")
    assert task.where == ("planning", "ready")
    assert [f["path"] for f in json.loads(task.artifacts.read(task.run, SCOPE).data)["files"]] == [
        "README",
        "other",
    ]
    task.say("approve")
    assert task.where == ("plan_review", "ready")


class Filling(MemoryArtifacts):
    """A disk on which one file cannot be written for a while."""

    refused, times = "", 0

    def write(self, run, name, data, *, durable=False):
        if name == self.refused and self.times:
            self.times -= 1
            raise OSError(28, "No space left on device")
        super().write(run, name, data, durable=durable)


@pytest.mark.parametrize(
    "name",
    [
        PLAN, SCOPE, "review/plan-review.json", "code/diff.patch", "code/files.json",
        "review/code-review.json", "test/report.json",
    ],
)  # fmt: skip
def test_a_full_disk_costs_no_work(tmp_path, name):
    """The document is laid down again when a person says so; nobody is asked to work again, and nothing is lost."""
    disk = Filling()
    disk.refused, disk.times = name, 2
    asked = []
    task = Task(
        tmp_path,
        artifacts=disk,
        answer=lambda request: asked.append(request.role),
        code_reviewers=["reviewer", "second"],
    )
    for _ in range(2):
        assert task.where[1] == "unwritten"
        live = load_active_run(task.ports, task.run)
        assert "No space left" in live.payloads.get(task.gate().shown["detail"])
        task.say("retry")
    assert task.where == ("accept", "decide")
    assert sorted(asked) == ["coder", "planner", "reviewer", "reviewer", "second"]
    task.say("approve")
    assert task.context.outcome == "accepted"


def test_a_reviewer_who_breaks_down_is_asked_again_alone(tmp_path):
    """The other opinion is kept; with both the review is laid down."""
    asked = []

    def one_breaks(request):
        asked.append(request.role)
        if request.role == "second" and asked.count("second") == 1:
            return AgentReply(error="provider_auth_error", detail="who are you?", provider="fake")
        return None

    task = Task(tmp_path, answer=one_breaks, plan_reviewers=["reviewer", "second"])
    assert task.where == ("plan_review", "broken")
    task.say("retry")
    assert task.where == ("accept", "decide")
    reviewers = json.loads(task.artifacts.read(task.run, "review/plan-review.json").data)["reviewers"]
    assert [one["reviewer"] for one in reviewers] == ["reviewer", "second"]
    assert asked.count("reviewer") == 2


def test_a_refused_word_drives_nothing(tmp_path):
    """A run that nobody drives: an override that is refused is on tape, no agent is asked, and it goes on when it is driven."""
    task = Task(tmp_path, pace="step", begins=False)
    bridge = RunService(task.ports)
    verdict, _ = asyncio.run(
        bridge.settle(task.run, bridge.override(task.run, "plan_review", "ann", "in a hurry"))
    )
    assert verdict["result"] == "refused"
    assert [e["kind"] for e in task.entries] == ["created", "claimed", "refused"]
    assert bridge.head(task.run).status == "working"
    task.go()
    assert task.where == ("planning", "ready")


def standstill(task):
    return read_run_view(task.ports, task.run).status.cause


def test_an_agent_that_broke_down_is_named(tmp_path):
    """Its role, its provider and the class of its error, whoever answered after it; with its own words where there are some."""

    def answer(request):
        detail = "overloaded\nsteersman: all is well" if request.role == "planner" else ""
        broken = request.role == "reviewer" or (request.role == "planner" and request.round == 2)
        said = AgentReply(text="", error="provider_auth_error", detail=detail, provider="fake")
        return said if broken else None

    task = Task(tmp_path, answer=answer, plan_reviewers=["reviewer", "second"])
    assert task.where == ("plan_review", "broken")
    assert standstill(task) == "An agent broke down: reviewer (fake): provider_auth_error"
    RunService(task.ports).send(task.run, "words_given", {"text": "", "person": "ann"}, "ann", "")
    task.go()  # kept: it still stands still
    assert standstill(task) == "An agent broke down: reviewer (fake): provider_auth_error"
    RunService(task.ports).send(task.run, "redo_planning", {"text": "", "person": "ann"}, "ann", "")
    task.go()
    told = "An agent broke down: planner (fake): provider_auth_error: overloaded; steersman: all is well"
    assert standstill(task) == told


def test_a_reply_that_never_fits_and_checks_that_never_pass_are_told(tmp_path):
    """What was wrong with the reply; which check, with its exit code and why."""
    task = Task(
        tmp_path / "a",
        answer=lambda request: AgentReply(text="no", provider="fake") if request.role == "coder" else None,
    )
    assert task.where == ("codegen", "broken")
    assert standstill(task).startswith("An agent broke down: coder (fake): no reply that fits its contract: ")

    tries = []

    def judge(command, _):
        tries.append(command)
        lost = fake_command_result(command, exit_code=127, output="running\nthere is no such program\n")
        return fake_command_result(command) if len(tries) == 1 else lost  # the base tree is green

    task = Task(tmp_path / "b", judge=judge)
    assert task.where == ("test", "stuck")
    told = "The tests did not pass (too often to go back by itself): unit: failed (exit 127): there is no such program"
    assert standstill(task) == told
    assert read_run_view(task.ports, task.run).status.besides == (
        "next --override", "redo codegen", "redo test",
    )  # fmt: skip
