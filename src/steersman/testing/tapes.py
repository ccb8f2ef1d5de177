"""Long tapes by the real runtime, in milliseconds: a roundtable whose crew answers in-process.

**Invariant:** the same arguments give the same tape, byte for byte: time, names and keys come from a seed.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from steersman.contracts.config import Budget, Config, Role
from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.workspace import Base
from steersman.kernel.canonical import digest_of
from steersman.machines.roundtable import MACHINE
from steersman.ports.anchors import Anchors
from steersman.ports.journal import Head, Journal
from steersman.runtime.bridge import Bridge
from steersman.runtime.call import Call
from steersman.runtime.start import Order
from steersman.runtime.world import World
from steersman.testing.clock import FakeChance, FakeClock
from steersman.testing.files import MemoryArtifacts
from steersman.testing.ownership import FakeLocks, NoProcesses, SilentBell

CREW = ("coder", "reviewer", "tester")
PERSON = "ann"
BASE = Base("b" * 40, "a" * 40, "main")


class NoTree:
    """A workspace that says where a run starts; the crew below needs no more."""

    def recorded_refs(self, run: str = "") -> dict[str, Any]:  # noqa: ARG002  there is none
        return {}

    def problem(self) -> str | None:
        return None

    def base(self, ref: str | None) -> Base:  # noqa: ARG002  there is one
        return BASE

    def base_commit(self, ref: str | None) -> str:
        return self.base(ref).commit

    def undeliverable(self, form: str, target: str | None) -> str | None:  # noqa: ARG002  nothing is delivered
        return None

    def paths(self, commit: str) -> tuple[str, ...]:  # noqa: ARG002  the commit is empty
        return ()

    links = paths

    def texts(self, *_: Any) -> tuple[Any, ...]:
        return ()

    def remove(self, run: str) -> None:
        """There is none to remove."""


def calm_world(journal: Journal, *, seed: str = "0", large: int = 0, **instead: Any) -> World:
    """A world in which every effect is answered at once; `large` is the size of one text that becomes a file."""
    clock = FakeClock()
    ports: dict[str, Any] = {
        "journal": journal,
        "machines": {MACHINE.name: MACHINE},
        "clock": clock,
        "chance": FakeChance(seed),
        "locks": FakeLocks(),
        "processes": NoProcesses(),
        "bell": SilentBell(),
        "workspace": lambda _: NoTree(),
        "commands": lambda _: None,
        "agent": lambda _role, _config: None,
        "prompt": lambda _machine, name: name,
        "artifacts": MemoryArtifacts(),
        "performers": crew(clock, large),
        **instead,
    }
    return World(**ports)


def crew(clock: FakeClock, large: int = 0) -> Mapping[str, Callable[[Call], Any]]:
    """Performers whose facts are a function of what they are asked: the first review wants changes, the second none."""

    async def agent(call: Call) -> AgentFacts:
        clock.forward(1_500)  # time passes while an agent works, and only then
        return _answer(call, large)

    return {"agent": agent, "setup": _setup, "baseline": _baseline, "checks": _checks, "deliver": _deliver}


def _answer(call: Call, large: int) -> AgentFacts:
    put, job, round_ = call.payloads.put, call.item.job, call.given("round", 1)
    words = f"{job} {round_} of {call.effect}"
    match job:
        case "implement":
            tree = digest_of(words)[:40]
            first = round_ == 1 and "followup" not in call.given("texts")
            patch = put(words + " patch" + "x" * (large if first else 0))
            more: dict[str, Any] = {
                "tree": tree,
                "commit": tree[::-1],
                "files": 1,
                "added": 3,
                "patch_ref": patch,
            }
        case "review":
            wanted = [{"id": "f1", "text": put(f"mend {round_}")}] if round_ == 1 else []
            more = {"reply": {"decision": "changes_requested" if wanted else "approve", "must_fix": wanted}}
        case "ask_tester":
            more = {"reply": {"commands": 1, "commands_ref": put('[["true"]]')}}
        case _:
            more = {}
    return AgentFacts(text_ref=put(words), provider="fake", model="fake-1", tokens=100, micro_usd=10, **more)


async def _setup(call: Call) -> SetupFacts:
    return SetupFacts(ready=True, tree=BASE.tree, commit=call.given("commit"))


async def _baseline(call: Call) -> BaselineFacts:
    return BaselineFacts(tree=call.given("tree"), checks=1, failed=1, results_ref=call.payloads.put("[]"))


async def _checks(call: Call) -> CheckFacts:
    if "unit" not in call.item.parts:
        await call.part("unit", {"verdict": "passed", "ref": call.payloads.put(f"ok {call.effect}")})
    results = call.payloads.put(f"1 passed {call.effect}")
    return CheckFacts(tree=call.given("tree"), passed=1, tests=3, results_ref=results)


async def _deliver(call: Call) -> DeliveryFacts:
    return DeliveryFacts(
        done=True,
        form="branch",
        ref=f"steersman/{call.run}",
        commit=call.given("commit"),
        tree=call.given("tree"),
    )


def voyage(
    world: World, followups: int = 1, title: str = "Mend the rudder", budget: Budget | None = None
) -> Head:
    """A run from its proposal through approval to delivery, and as many follow-ups, each to its delivery."""
    config = Config(roles={name: Role(agent="fake") for name in CREW}, budget=budget or Budget())
    return asyncio.run(_voyage(Bridge(world), followups, title, config))


async def _voyage(bridge: Bridge, followups: int, title: str, config: Config) -> Head:
    driver, lock, live = await bridge.start(Order(MACHINE.name, title, PERSON, config))
    run = live.run
    await driver.drive(run, held=lock, live=live)
    await bridge.settle(run, bridge.answer(bridge.gate(run), "approve", PERSON))
    for n in range(followups):
        said = {"choice": "rework", "person": PERSON, "text": bridge.text(run, f"and then {n}")}
        await bridge.settle(run, bridge.send(run, "task_followup_received", said, PERSON))
    return bridge.head(run)


def anchored(places: Mapping[str, Anchors]) -> dict[str, Any]:
    """The two ports of a world whose runs are anchored at the first of these places."""
    first = next(iter(places.values()))
    return {"anchors": places, "sealed": first.keep}
