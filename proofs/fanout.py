"""Many in flight: five parts at once, three suffice, two come late; killed before and after every commit.

    python proofs/fanout.py [--quick]

No part that finished is done again, those that come late are journaled and not folded, and the parts inside one effect
are kept across a kill like those that are effects of their own.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import msgspec
from figures import main, stamp
from interrupted_run import KILLED, proof_folder, run_in_child
from tests.support.packages import PACKAGES

from steersman.adapters.process.run_locks import FileLocks
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.engine.audit import verify_run
from steersman.engine.driver import Driver
from steersman.engine.effects import EffectCall
from steersman.engine.start import StartRequest, start_run
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    STAY,
    Events,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    final,
    fold,
    naming,
    otherwise,
    row,
    state,
    table,
)
from steersman.kernel.replay import BadEntry, verify_chain
from steersman.kernel.tape import Entry
from steersman.ports.journal import Head
from steersman.testing import FakeChance, FakeClock, fake_config, fake_ports

RUN = "260101-fan000"
SEED = 20260102
PARTS, ENOUGH = 5, 3
LEGS = ("a", "b", "c")  # the parts inside one effect


class Asked(msgspec.Struct, frozen=True):
    """What the run begins with."""

    parts: int = PARTS


class Heard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one part brings back."""

    n: int = -1
    legs: int = 0


class Context(msgspec.Struct, kw_only=True):
    """What the run knows."""

    heard: dict[str, int] = {}
    legs: int = 0
    config_ref: str = ""


PART = effect("part", Heard, "part", outlives=True)
SURVEY = effect("survey", Heard, "survey")
SUFFICES = Guard("suffices", "enough parts are there", lambda c, _: len(c.heard) >= ENOUGH)
CAME = Guard("came", "a part came back", lambda _, e: e.n >= 0)
SURVEYED = Guard("surveyed", "every leg was walked", lambda _, e: e.legs == len(LEGS))


class S(State):
    gathering = state(
        "Five are asked.",
        do(PART, each=lambda _: [(str(n), {"n": n}) for n in range(PARTS)]),
        initial=True,
    )
    deciding = state("Three have answered; the others may still come.", do(SURVEY))
    decided = final("It is decided.")
    failed = final("It is not.")


class E(Events):
    asked = event("A question.", Origin.PERSON, Asked)
    part_came = event("One has answered.", Origin.EFFECT, Heard)
    part_lost = event("One has not.", Origin.EFFECT, Heard)
    enough = event("Three suffice.", Origin.MACHINE)
    surveyed = event("All legs are walked.", Origin.EFFECT, Heard)
    survey_lost = event("They are not.", Origin.EFFECT, Heard)


FAN = machine(
    "fan",
    "Five parts of which three suffice.",
    states=S,
    events=E,
    rows=table(
        row(None, E.asked, otherwise, S.gathering, None, "ask five", "toy"),
        row(S.gathering, E.part_came, otherwise, STAY, None, "keep it", "toy"),
        row(S.gathering, E.part_lost, otherwise, STAY, None, "go on", "toy"),
        row(S.gathering, E.enough, otherwise, S.deciding, None, "three suffice", "toy"),
        row(S.deciding, E.surveyed, otherwise, S.decided, None, "decide", "toy"),
        row(S.deciding, E.survey_lost, otherwise, S.failed, None, "give up", "toy"),
    ),
    context=Context,
    namings=(
        naming(PART, (CAME, E.part_came), (otherwise, E.part_lost)),
        naming(SURVEY, (SURVEYED, E.surveyed), (otherwise, E.survey_lost)),
    ),
    computes=(computed(S.gathering, (SUFFICES, E.enough)),),
    folds=(
        fold(E.part_came, lambda _c, e: (("put", "heard", str(e.n), e.n),)),
        fold(E.surveyed, lambda _c, e: (("set", "legs", e.legs),)),
    ),
    successes=("decided",),
    begin=lambda request: (E.asked, Asked(), Context(config_ref=request.get("config_ref", ""))),
)


class Fan:
    """One run below one folder; `lives` counts the processes that have had it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = SqliteJournal(folder / "state" / "store.db")
        performers = {"part": self._part, "survey": self._survey}
        self.ports = fake_ports(
            folder,
            {FAN.name: FAN},
            journal=self.journal,
            clock=FakeClock(step=1),
            chance=FakeChance("fan"),
            locks=FileLocks(folder / "locks"),
            performers=performers,
            packages=PACKAGES,
        )
        self.finished = self._finished()

    async def _part(self, call: EffectCall) -> Heard:
        n = call.given("n")
        self._note(f"part {n}")
        # The order differs from life to life: who is late is not decided by who was asked first.
        await asyncio.sleep(0.004 * ((n * 3 + call.item.starts) % PARTS))
        return Heard(n=n)

    async def _survey(self, call: EffectCall) -> Heard:
        for leg in LEGS:
            if leg not in call.item.parts:
                self._note(f"leg {leg}")
                await asyncio.sleep(0.002)
                await call.part(leg, {"walked": leg})
        return Heard(legs=len(LEGS))

    def _note(self, what: str) -> None:
        again = " again" if what in self.finished else ""
        fd = os.open(self.folder / "begun", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, f"{what}{again}\n".encode())
        os.close(fd)

    def _finished(self) -> set[str]:
        """What the tape says is done when this process begins: none of it may be begun any more."""
        done = set()
        for entry in self.entries():
            if entry.event == "part_came" or (entry.kind == "effect_finished" and entry.late):
                done.add(f"part {entry.data['n']}")
            if entry.kind == "part_finished":
                done.add(f"leg {entry.data['walked']}")
        return done

    def entries(self) -> list[Entry]:
        links = list(verify_chain(self.journal.rows(RUN), RUN))
        assert not any(isinstance(link, BadEntry) for link in links), links[-1:]
        return [entry for entry, _ in links]  # type: ignore[misc]  no Bad among them

    async def go(self) -> Head:
        """Drives the run to its end, starting it where there is none."""
        if self.journal.head(RUN) is None:
            live, lock = await start_run(
                self.ports, StartRequest("fan", "Ask", "ann", fake_config()), run=RUN
            )
            return await Driver(self.ports).drive(RUN, held=lock, live=live)
        return await Driver(self.ports).drive(RUN)

    def judged(self) -> list[str]:
        """What is wrong with the run at its end."""
        entries, head = self.entries(), self.journal.head(RUN)
        folded = [e.data["n"] for e in entries if e.event == "part_came"]
        late = [e.data["n"] for e in entries if e.kind == "effect_finished" and e.late]
        legs = [e.data["walked"] for e in entries if e.kind == "part_finished"]
        lines = (self.folder / "begun").read_text().splitlines()
        starts = Counter(i.input["n"] for e in entries for i in e.planned if i.job == "part")
        starts.update(
            i.input["n"] for e in entries if e.kind == "effect_started" for i in e.held if i.job == "part"
        )
        checks = {
            "it has its outcome": head is not None and head.outcome == "decided",
            "three are folded": len(folded) == ENOUGH,
            "the others are late": sorted(folded + late) == list(range(PARTS)),
            "every leg is kept once": sorted(legs) == list(LEGS),
            "nothing finished is done again": not [line for line in lines if line.endswith(" again")],
            "what was begun again is marked": all(
                lines.count(f"part {n}") <= starts[n] for n in range(PARTS)
            ),
            "the tape is whole": verify_run(self.journal, self.ports.machines, RUN).ok,
        }
        return [claim for claim, holds in checks.items() if not holds]


def lived(folder: Path, nth: int = 0) -> int:
    """One process that has the run, killed at its nth moment around a commit, or never."""

    def work() -> None:
        blade = [nth, 0]

        def moment(told: dict[str, Any]) -> None:
            if told.get("sql") == "COMMIT":
                blade[0], blade[1] = blade[0] - 1, blade[1] + 1
                if blade[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        mask = apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE
        apsw.connection_hooks.append(lambda db: db.trace_v2(mask, moment))
        fan = Fan(folder)
        asyncio.run(fan.go())
        (folder / "judged.json").write_text(json.dumps({"faults": fan.judged(), "moments": blade[1]}))

    return run_in_child(work)


def tried(folder: Path, cuts: list[int]) -> tuple[int, list[str]]:
    """The run killed at these moments, one life after the other, then let go: kills and faults."""
    codes = [lived(folder, nth) for nth in cuts]
    assert all(code in (0, KILLED) for code in codes), codes
    if lived(folder) != 0:
        return 0, [f"cuts {cuts}: it could not be gone on with"]
    told = json.loads((folder / "judged.json").read_text())
    return codes.count(KILLED), [f"cuts {cuts}: {fault}" for fault in told["faults"]]


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault."""
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    kills, wrong = 0, []
    with proof_folder("fanout") as parent_folder:
        assert lived(parent_folder / "whole") == 0
        whole = json.loads((parent_folder / "whole" / "judged.json").read_text())
        wrong += whole["faults"]
        cuts = [[nth] for nth in range(1, whole["moments"] + 1, 5 if quick else 1)]
        many = [
            [dice.randint(1, whole["moments"]) for _ in range(dice.randint(2, 6))]
            for _ in range(3 if quick else 100)
        ]
        for n, one in enumerate(cuts + many):
            killed, faults = tried(parent_folder / str(n), one)
            kills, wrong = kills + killed, wrong + faults
    return {
        "ok": not wrong and kills > 0,
        **stamp(quick, SEED),
        "moments": whole["moments"],
        "points": len(cuts),
        "lives_killed_several_times": len(many),
        "kills": kills,
        "faults": wrong,
        "not_tried": ["more than five in flight", "parts that start processes of their own"],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    figures = (
        f"{result['points']} of {result['moments']} moments around commits",
        f"{result['lives_killed_several_times']} runs killed several times",
        f"{result['kills']} kills",
        f"{len(result['faults'])} faults",
    )
    faults = [f"   FAULT {fault}" for fault in result["faults"][:10]]
    return [f"   five in flight, three suffice: {', '.join(figures)}", *faults]


if __name__ == "__main__":
    sys.exit(main(__name__))
