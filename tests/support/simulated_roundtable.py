"""A roundtable in memory: its tape grows by facts and answers, no clock, no store, no agent."""

from typing import Any

from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.kernel.definition import GateAnswer, Origin, TimerDue
from steersman.kernel.record import StepMeta, advance_run, create_run_entries
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import EventOccurrence, name_facts
from steersman.kernel.tape import read_entry
from steersman.machines.roundtable import MACHINE
from steersman.machines.roundtable.context import RoundtableContext, RoundtableTaskReceived

SIMULATED_RUN = "260101-aaaaaa"
START_TIME = 1_000


class SimulatedRun:
    """A run and everything that was recorded of it."""

    def __init__(self, m=MACHINE, **request: Any) -> None:
        self.m = m
        event, data, context = m.begin(
            {"task_ref": "p-task", "base_commit": "c0", "base_tree": "t0", **request}
        )
        made = create_run_entries(
            m, SIMULATED_RUN, EventOccurrence(event, data, Origin.PERSON), context,
            StepMeta(START_TIME, "person:ann"), epoch=1,
        )  # fmt: skip
        self.stored = list(made.entries)
        self.snapshot = made.snapshot

    @property
    def context(self):
        return self.snapshot.context

    @property
    def entries(self):
        """The entries as they are read back."""
        return [(read_entry(s.body), s.hash) for s in self.stored]

    @property
    def rows(self):
        """The entries as a store keeps them."""
        return [(s.entry.seq, s.body, s.hash) for s in self.stored]

    @property
    def events(self):
        return [s.entry.event for s in self.stored if s.entry.kind in ("created", "transition")]

    def item(self, job: str):
        return next(i for i in self.snapshot.items.values() if i.job == job)

    def open_jobs(self):
        return sorted({i.job for i in self.snapshot.items.values()})

    def finish(self, job: str, facts: Any):
        """A job's facts come back."""
        item = self.item(job)
        return self._take(name_facts(self.m, self.snapshot, job, facts), cause=item.id, closes=(item.id,))

    def let_timer_fire(self, job: str):
        """The time of a timer comes: its event is taken at the moment that is on the tape."""
        item = self.item(job)
        facts = name_facts(self.m, self.snapshot, job, TimerDue(item.due))
        return self._take(facts, at=item.due, cause=item.id, closes=(item.id,))

    def send(self, event: str, data: Any, origin: Origin = Origin.PERSON):
        """Somebody makes an event happen."""
        return self._take(
            EventOccurrence(self.m.events[event], data, origin), actor="person:ann", cause="inbox:1"
        )

    def _take(self, happened: EventOccurrence, *, at: int | None = None, **meta: Any):
        at = max(START_TIME + self.snapshot.seq, self.snapshot.at) if at is None else at
        done = advance_run(self.m, self.snapshot, happened, StepMeta(at, **meta))
        self.stored += done.entries
        self.snapshot = done.snapshot
        return done


def agent_facts(ref: str = "p-said", **more: Any) -> AgentFacts:
    return AgentFacts(text_ref=ref, provider="scripted", **more)


def change_facts(tree: str, **more: Any) -> AgentFacts:
    return agent_facts(tree=tree, commit=f"c-{tree}", patch_ref=f"p-{tree}", **more)


def infrastructure_change_facts(tree: str) -> AgentFacts:
    """A change that touches test infrastructure."""
    return change_facts(tree, infrastructure=1, infrastructure_ref="p-conftest")


def approval_facts() -> AgentFacts:
    return agent_facts(reply={"decision": "approve", "must_fix": []})


def change_request_facts(*ids: str, fixed: tuple[str, ...] = ()) -> AgentFacts:
    wanted = [{"id": i, "text": f"p-{i}"} for i in ids]
    return agent_facts(reply={"decision": "changes_requested", "must_fix": wanted, "fixed": list(fixed)})


def command_facts(count: int = 1) -> AgentFacts:
    return agent_facts(reply={"commands": count, "commands_ref": "p-argv"})


def check_facts(tree: str, **more: Any) -> CheckFacts:
    return CheckFacts(**{"tree": tree, "passed": 1, "tests": 3, "results_ref": "p-results", **more})


def failed_check_facts(tree: str, *keys: str, **more: Any) -> CheckFacts:
    names = {"failed_commands": keys, "failure_keys": tuple(f"{k}!" for k in keys)}
    return check_facts(tree, **{"failed": len(keys) or 1, "first_ref": "p-first", **names, **more})


def gate_answer(choice: str, digest: str = "", **more: Any) -> GateAnswer:
    return GateAnswer(choice, "ann", digest, **more)


def setup_facts(tree: str = "t0") -> SetupFacts:
    return SetupFacts(ready=True, tree=tree, commit="c0")


def baseline_facts(**more: Any) -> BaselineFacts:
    return BaselineFacts(**{"tree": "t0", "checks": 1, "results_ref": "p-base", **more})


def delivery_facts() -> DeliveryFacts:
    return DeliveryFacts(done=True, ref="refs/heads/steersman/x", commit="c-x")


def finish_setup(tape: SimulatedRun) -> SimulatedRun:
    """A run whose base tree is ready and checked."""
    tape.finish("prepare", setup_facts())
    tape.finish("measure", baseline_facts())
    return tape


def proposed_run(**request: Any) -> SimulatedRun:
    """A run whose proposal waits for the operator."""
    tape = finish_setup(SimulatedRun(**request))
    tape.finish("propose", agent_facts("p-proposal"))
    tape.finish("discuss_review", agent_facts("p-review"))
    tape.finish("discuss_test", agent_facts("p-test"))
    return tape


def building_run(**request: Any) -> SimulatedRun:
    """A run in its first round, the coder at work."""
    tape = SimulatedRun(mode="implementation", **request)
    tape.finish("prepare", setup_facts())
    tape.finish("measure", baseline_facts())
    return tape


def checking_run(
    tree: str = "t1", tape: SimulatedRun | None = None, left: AgentFacts | None = None, **request: Any
) -> SimulatedRun:
    """A run whose checks are running."""
    tape = tape or building_run(**request)
    tape.finish("implement", left or change_facts(tree))
    tape.finish("review", approval_facts())
    tape.finish("ask_tester", command_facts())
    return tape


def roundtable_at(state: str, **fields: Any) -> Snapshot:
    """A run put into a state by hand."""
    context = RoundtableContext(mode=fields.pop("mode", "implementation"), task_ref="p-task", **fields)
    return Snapshot(
        run=SIMULATED_RUN, machine="roundtable", definition=MACHINE.digest, state=state, context=context,
        seq=7,
    )  # fmt: skip


def roundtable_payload(event: str) -> Any:
    """Something this event may carry."""
    kind = MACHINE.events[event].carries
    if kind is RoundtableTaskReceived:
        return RoundtableTaskReceived("p-task", "ann")
    return gate_answer("more") if kind is GateAnswer else kind()
