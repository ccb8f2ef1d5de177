"""Long tapes by the real runtime, in milliseconds: a roundtable whose crew answers in-process.

**Invariant:** the same arguments give the same tape, byte for byte: time, names and keys come from a seed.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from steersman.app.runs import RunService
from steersman.contracts.config import Budget, Config, Role
from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.workspace import RunBase
from steersman.engine.driver import Driver
from steersman.engine.effects import EffectCall
from steersman.engine.ports import Ports
from steersman.engine.start import StartRequest
from steersman.kernel.canonical import digest_of
from steersman.machines.roundtable import MACHINE
from steersman.ports.anchors import Anchors
from steersman.ports.journal import Head, Journal
from steersman.testing.clock import FakeChance, FakeClock
from steersman.testing.files import MemoryArtifacts
from steersman.testing.ownership import FakeLocks, NoProcesses, SilentWakeup

CREW_ROLES = ("coder", "reviewer", "tester")
SAMPLE_PERSON = "ann"
SAMPLE_BASE = RunBase("b" * 40, "a" * 40, "main")


class BaseOnlyWorkspace:
    """A workspace that says where a run starts; the crew below needs no more."""

    def recorded_refs(self, run: str = "") -> dict[str, Any]:  # noqa: ARG002  there is none
        return {}

    def find_start_problem(self) -> str | None:
        return None

    def base(self, ref: str | None) -> RunBase:  # noqa: ARG002  there is one
        return SAMPLE_BASE

    def base_commit(self, ref: str | None) -> str:
        return self.base(ref).commit

    def find_delivery_problem(self, form: str, target: str | None) -> str | None:  # noqa: ARG002  nothing is delivered
        return None

    def paths(self, commit: str) -> tuple[str, ...]:  # noqa: ARG002  the commit is empty
        return ()

    links = paths

    def read_texts(self, *_: Any) -> tuple[Any, ...]:
        return ()

    def remove(self, run: str) -> None:
        """There is none to remove."""


def instant_ports(journal: Journal, *, seed: str = "0", large: int = 0, **instead: Any) -> Ports:
    """Ports with which every effect is answered at once; `large` is the size of one text that becomes a file."""
    clock = FakeClock()
    given: dict[str, Any] = {
        "journal": journal,
        "machines": {MACHINE.name: MACHINE},
        "clock": clock,
        "chance": FakeChance(seed),
        "locks": FakeLocks(),
        "processes": NoProcesses(),
        "bell": SilentWakeup(),
        "workspace": lambda _: BaseOnlyWorkspace(),
        "commands": lambda _: None,
        "agent": lambda _role, _config: None,
        "prompt": lambda _machine, name: name,
        "artifacts": MemoryArtifacts(),
        "performers": scripted_crew(clock, large),
        **instead,
    }
    return Ports(**given)


def scripted_crew(clock: FakeClock, large: int = 0) -> Mapping[str, Callable[[EffectCall], Any]]:
    """Performers whose facts are a function of what they are asked: the first review wants changes, the second none."""

    async def agent(call: EffectCall) -> AgentFacts:
        clock.forward(1_500)  # time passes while an agent works, and only then
        return _crew_agent_facts(call, large)

    return {
        "agent": agent, "setup": _crew_setup_facts, "baseline": _crew_baseline_facts,
        "checks": _crew_check_facts, "deliver": _crew_delivery_facts,
    }  # fmt: skip


def _crew_agent_facts(call: EffectCall, large: int) -> AgentFacts:
    put_payload, job, round_ = call.payloads.add_text, call.item.job, call.given("round", 1)
    words = f"{job} {round_} of {call.effect}"
    match job:
        case "implement":
            tree = digest_of(words)[:40]
            first = round_ == 1 and "followup" not in call.given("texts")
            patch = put_payload(words + " patch" + "x" * (large if first else 0))
            more: dict[str, Any] = {
                "tree": tree, "commit": tree[::-1], "files": 1, "added": 3, "patch_ref": patch,
            }  # fmt: skip
        case "review":
            wanted = [{"id": "f1", "text": put_payload(f"mend {round_}")}] if round_ == 1 else []
            more = {"reply": {"decision": "changes_requested" if wanted else "approve", "must_fix": wanted}}
        case "ask_tester":
            more = {"reply": {"commands": 1, "commands_ref": put_payload('[["true"]]')}}
        case _:
            more = {}
    return AgentFacts(
        text_ref=put_payload(words), provider="fake", model="fake-1", tokens=100, micro_usd=10, **more
    )


async def _crew_setup_facts(call: EffectCall) -> SetupFacts:
    return SetupFacts(ready=True, tree=SAMPLE_BASE.tree, commit=call.given("commit"))


async def _crew_baseline_facts(call: EffectCall) -> BaselineFacts:
    return BaselineFacts(
        tree=call.given("tree"), checks=1, failed=1, results_ref=call.payloads.add_text("[]")
    )


async def _crew_check_facts(call: EffectCall) -> CheckFacts:
    if "unit" not in call.item.parts:
        await call.part("unit", {"verdict": "passed", "ref": call.payloads.add_text(f"ok {call.effect}")})
    results = call.payloads.add_text(f"1 passed {call.effect}")
    return CheckFacts(tree=call.given("tree"), passed=1, tests=3, results_ref=results)


async def _crew_delivery_facts(call: EffectCall) -> DeliveryFacts:
    return DeliveryFacts(
        done=True, form="branch", ref=f"steersman/{call.run}", commit=call.given("commit"),
        tree=call.given("tree"),
    )  # fmt: skip


def drive_sample_run(
    ports: Ports, followups: int = 1, title: str = "Mend the rudder", budget: Budget | None = None
) -> Head:
    """A run from its proposal through approval to delivery, and as many follow-ups, each to its delivery."""
    config = Config(roles={name: Role(agent="fake") for name in CREW_ROLES}, budget=budget or Budget())
    return asyncio.run(_drive_sample_run(RunService(ports), followups, title, config))


async def _drive_sample_run(bridge: RunService, followups: int, title: str, config: Config) -> Head:
    driver, lock, live = await bridge.start(StartRequest(MACHINE.name, title, SAMPLE_PERSON, config))
    run, driver.patience_ms = live.run, 0
    await driver.drive(run, held=lock, live=live)
    await _settle_post(bridge, run, bridge.answer(bridge.gate(run), "approve", SAMPLE_PERSON))
    for n in range(followups):
        followup = {"choice": "rework", "person": SAMPLE_PERSON, "text": bridge.text(run, f"and then {n}")}
        posted = bridge.send(run, "task_followup_received", followup, SAMPLE_PERSON)
        await _settle_post(bridge, run, posted)
    return bridge.head(run)


async def _settle_post(bridge: RunService, run: str, posted: int) -> None:
    """Drives without patience: the clock stands still, so that a drive that waits for a timer would never end."""
    await bridge.settle(run, posted, driver=Driver(bridge.ports, patience_ms=0))
    assert bridge.head(run).status != "waiting until", "a timer waits, the clock stands still"


def anchor_ports(places: Mapping[str, Anchors]) -> dict[str, Any]:
    """The two ports of runs that are anchored at the first of these places."""
    first = next(iter(places.values()))
    return {"anchors": places, "sealed": first.store_anchor}
