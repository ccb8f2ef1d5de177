"""Several processes on one store: one owner per run, stale writes refused, gates answered once, nobody starved.

    python proofs/races.py [--quick]

In each round four processes meet at the same moment: a server and a worker that want to drive the same run, and two
people who want to answer its gate differently, each with a command that would drive the run itself.
"""

import asyncio
import json
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from fairness import alone, fairness, together
from figures import main, stamp
from interrupted_run import git_repository, proof_folder
from tests.support.packages import PACKAGES

from steersman.adapters.git.workspace import GitWorkspace
from steersman.adapters.process import program_runner
from steersman.adapters.process.run_locks import FileLocks, SystemClock, WakeupSockets
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.engine.audit import verify_run
from steersman.engine.driver import Driver, RunBusy
from steersman.engine.effects import EffectCall
from steersman.engine.start import StartRequest, start_run
from steersman.errors import StaleError
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    do,
    effect,
    event,
    final,
    gate,
    naming,
    otherwise,
    row,
    state,
    table,
)
from steersman.kernel.replay import BadEntry, verify_chain
from steersman.testing import FakeChance, fake_config, fake_ports

ROUNDS, TAKE_OVERS, WRITES = 120, 25, 400
forks = multiprocessing.get_context("fork")


class Asked(msgspec.Struct, frozen=True):
    """What a run begins with."""


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an effect brings back."""

    ok: bool = False


class Context(msgspec.Struct, kw_only=True):
    """What a run knows."""

    config_ref: str = ""
    base_commit: str = ""


WORK, FINISH, ASK = effect("work", Done, "work"), effect("finish", Done, "work"), gate("ask")
WELL = Guard("well", "it went well", lambda _, e: e.ok)
YES = Guard("yes", "a person says yes", lambda _, e: e.choice == "approve")


class S(State):
    working = state("Somebody works.", do(WORK, lambda c: {"commit": c.base_commit}), initial=True)
    asking = state(
        "Somebody is asked.", do(ASK, lambda _: {"digest": "it", "choices": ["approve", "reject"]})
    )
    finishing = state("It was granted.", do(FINISH, lambda c: {"commit": c.base_commit}))
    granted = final("Yes.")
    declined = final("No.")


class E(Events):
    asked = event("It begins.", Origin.PERSON, Asked)
    worked = event("It went well.", Origin.EFFECT, Done)
    broke = event("It did not.", Origin.EFFECT, Done)
    agreed = event("Yes.", Origin.GATE, GateAnswer)
    refused = event("No.", Origin.GATE, GateAnswer)
    finished = event("It is finished.", Origin.EFFECT, Done)


RACE = machine(
    "race",
    "Work, a question, more work.",
    states=S,
    events=E,
    rows=table(
        row(None, E.asked, otherwise, S.working, None, "begin", "toy"),
        row(S.working, E.worked, otherwise, S.asking, None, "ask", "toy"),
        row((S.working, S.finishing), E.broke, otherwise, S.declined, None, "broken", "toy"),
        row(S.asking, E.agreed, otherwise, S.finishing, None, "yes", "toy"),
        row(S.asking, E.refused, otherwise, S.declined, None, "no", "toy"),
        row(S.finishing, E.finished, otherwise, S.granted, None, "done", "toy"),
    ),
    context=Context,
    namings=(
        naming(WORK, (WELL, E.worked), (otherwise, E.broke)),
        naming(FINISH, (WELL, E.finished), (otherwise, E.broke)),
        naming(ASK, (YES, E.agreed), (otherwise, E.refused)),
    ),
    successes=("granted",),
    begin=lambda r: (E.asked, Asked(), Context(config_ref=r["config_ref"], base_commit=r["base_commit"])),
)


class Party:
    """One process on the shared store."""

    def __init__(self, folder: Path, kind: str, pause: float = 0.003, *, git: bool = False) -> None:
        self.folder, self.kind, self._pause = folder, kind, pause
        trees = GitWorkspace(git_repository(folder), folder / "state") if git else None
        self.journal = SqliteJournal(folder / "state" / "store.db")
        self.ports = fake_ports(
            folder,
            {RACE.name: RACE},
            journal=self.journal,
            clock=SystemClock(),
            chance=FakeChance(kind),
            locks=FileLocks(folder / "locks", kind),
            bell=WakeupSockets(folder / "bell"),
            processes=program_runner,
            performers={"work": self._work},
            **({"workspace": lambda _config: trees} if git else {}),
            packages=PACKAGES,
        )
        self.bridge = RunService(self.ports)
        self.entered: Callable[[], Any] = lambda: None

    async def _work(self, call: EffectCall) -> Done:
        """Takes the working tree for itself: two at once in one tree are noted as a fault."""
        tree = self.ports.workspace(call.config).checkout(call.run, call.given("commit"), call.effect)
        mark = self.folder / "held" / tree.path.replace("/", "+")
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            self.note("fault", f"two in one tree: {call.effect}")
        self.note("performed", f"{call.effect} {call.item.starts}")
        self.entered()
        await asyncio.sleep(self._pause)
        mark.unlink(missing_ok=True)
        return Done(ok=True)

    def note(self, kind: str, words: str) -> None:
        fd = os.open(self.folder / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, f"{kind} {words}\n".encode())
        os.close(fd)

    async def drive(self, run: str) -> None:
        try:
            await Driver(self.ports, kind=self.kind).drive(run)
            self.note("drove", f"{self.kind} {run}")
        except RunBusy:
            self.note("busy", f"{self.kind} {run}")
        except StaleError:
            self.note("stale", f"{self.kind} {run}")

    async def answer(self, run: str, choice: str) -> None:
        """Answers as soon as the gate is there; drives the run on unless somebody does."""
        for _ in range(2_000):
            gates = self.journal.gates(run)
            if gates or self.journal.head(run).status in ("done", "stopped"):
                break
            await asyncio.sleep(0.001)
        try:
            posted = self.bridge.answer(gates[0], choice, self.kind)
        except (RunBusy, IndexError) as error:
            self.note(
                "loser", f"{self.kind} {run} {'was told' if isinstance(error, RunBusy) else 'came too late'}"
            )
            return
        self.note("winner", f"{self.kind} {run} {choice}")
        verdict, _ = await self.bridge.settle(run, posted)
        if verdict["result"] != "taken":
            self.note("fault", f"the winner of {run} was told {verdict}")


def _run(n: int) -> str:
    return f"260101-r{n:05}"


def _party(folder: Path, kind: str, rounds: int, meet: Any) -> None:
    async def all_rounds() -> None:
        party = Party(folder, kind)
        for n in range(rounds):
            if kind == "server":
                _, lock = await start_run(
                    party.ports, StartRequest("race", "Go", "ann", fake_config()), run=_run(n)
                )
                lock.release()
            meet.wait(60)
            if kind in ("server", "worker"):
                await party.drive(_run(n))
                for _ in range(400):
                    if party.journal.head(_run(n)).status in ("done", "stopped"):
                        break
                    await party.drive(_run(n))
                    await asyncio.sleep(0.002)
            else:
                await party.answer(_run(n), "approve" if kind == "ann" else "reject")
            meet.wait(60)
        party.journal.close()

    asyncio.run(all_rounds())


def rounds(folder: Path, n: int) -> dict[str, Any]:
    """So many rounds of four processes; what they noted, and what is wrong with it."""
    kinds = ("server", "worker", "ann", "bob")
    (folder / "held").mkdir(parents=True)
    meet = forks.Barrier(len(kinds))
    children = [forks.Process(target=_party, args=(folder, kind, n, meet)) for kind in kinds]
    for child in children:
        child.start()
    for child in children:
        child.join(600)
    codes = [child.exitcode for child in children]
    for child in children:
        if child.is_alive():
            child.kill()
    notes = [line.split() for line in (folder / "notes").read_text().splitlines()]
    counted = Counter(words[0] for words in notes)
    wrong = [f"processes ended with {codes}"] * (codes != [0] * len(kinds))
    wrong += [" ".join(words) for words in notes if words[0] == "fault"]
    judge = forks.Process(target=_judge, args=(folder, n))
    judge.start()
    judge.join(120)
    wrong += json.loads((folder / "judged.json").read_text())
    return {
        "rounds": n,
        "processes": len(kinds),
        "races_for_a_run": n,
        "races_for_a_gate": n,
        "drives": counted["drove"],
        "turned_away": counted["busy"],
        "stale_writes_refused": counted["stale"],
        "answers_won": counted["winner"],
        "answers_lost_and_told": counted["loser"],
        "faults": wrong,
    }


def _judge(folder: Path, n: int) -> None:
    """Holds every run's tape against what the processes noted."""
    party = Party(folder, "judge")
    notes = [line.split() for line in (folder / "notes").read_text().splitlines()]
    won = {words[2]: (words[1], words[3]) for words in notes if words[0] == "winner"}
    performed = Counter(words[1] for words in notes if words[0] == "performed")
    wrong = []
    for run in (_run(i) for i in range(n)):
        links = list(verify_chain(party.journal.rows(run), run))
        entries = [link[0] for link in links if not isinstance(link, BadEntry)]
        state_ = party.journal.head(run).state
        answers = [e.actor for e in entries if e.event in ("agreed", "refused")]
        person, choice = won.get(run, ("nobody", ""))
        again = Counter(e.cause for e in entries if e.kind == "effect_started")
        ids = [i.id for e in entries for i in e.planned if i.kind == "effect"]
        checks = {
            "the tape is whole": len(links) == len(entries)
            and verify_run(party.journal, party.ports.machines, run).ok,
            "its answer is the winner's": answers == [f"person:{person}"],
            "it ended as answered": state_ == {"approve": "granted", "reject": "declined"}.get(choice),
            "effects ran no more often than marked": all(performed[i] <= 1 + again[i] for i in ids),
            "nothing is left in its inbox": party.journal.pending(run) == [],
        }
        wrong += [f"{run}: not true that {claim}" for claim, holds in checks.items() if not holds]
    (folder / "judged.json").write_text(json.dumps(wrong))


# ── a stopped owner ───────────────────────────────────────────────────────────────────────────────────────────────────


def _owner(folder: Path, run: str, ready: Any) -> None:
    async def own() -> str:
        party = Party(folder, "owner", pause=0.05, git=True)
        _, lock = await start_run(party.ports, StartRequest("race", "Go", "ann", fake_config()), run=run)
        lock.release()
        party.entered = ready.set
        try:
            await Driver(party.ports).drive(run)
        except StaleError:
            return "stale"
        return "wrote"

    (folder / f"{run}.owner").write_text(asyncio.run(own()))


def _usurper(folder: Path, run: str) -> None:
    async def take() -> str:
        party = Party(folder, "usurper", git=True)
        head = await Driver(party.ports).drive(run, take_over=True)
        posted = party.bridge.answer(party.bridge.gate(run), "approve", "ann")
        await party.bridge.settle(run, posted)
        return f"{head.state} {party.journal.head(run).state} {party.journal.head(run).seq}"

    (folder / f"{run}.usurper").write_text(asyncio.run(take()))


def take_overs(folder: Path, n: int) -> dict[str, Any]:
    """An owner stopped in the middle of an effect is taken over, then wakes up: whatever it writes is refused."""
    (folder / "held").mkdir(parents=True)
    wrong, refused = [], 0
    for run in (_run(i) for i in range(n)):
        ready = forks.Event()
        owner = forks.Process(target=_owner, args=(folder, run, ready))
        owner.start()
        ready.wait(10)
        os.kill(owner.pid or 0, signal.SIGSTOP)
        usurper = forks.Process(target=_usurper, args=(folder, run))
        usurper.start()
        usurper.join(30)
        os.kill(owner.pid or 0, signal.SIGCONT)
        owner.join(30)
        said = [
            (folder / f"{run}.{who}").read_text()
            for who in ("owner", "usurper")
            if (folder / f"{run}.{who}").exists()
        ]
        refused += said[:1] == ["stale"]
        if len(said) != 2 or said[0] != "stale" or not said[1].startswith("asking granted"):
            wrong.append(f"{run}: {said}")
    wrong += [line for line in (folder / "notes").read_text().splitlines() if line.startswith("fault")]
    return {"take_overs": n, "writes_of_the_old_owner_refused": refused, "faults": wrong}


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault in any of them."""
    writes = 200 if quick else WRITES
    pairs = {"two_lone_writers": (alone, alone), "a_lone_and_a_group_writer": (alone, together)}
    with proof_folder("races") as parent_folder:
        parts = {
            "rounds": rounds(parent_folder / "rounds", 10 if quick else ROUNDS),
            "take_overs": take_overs(parent_folder / "take_overs", 2 if quick else TAKE_OVERS),
        }
        for name, pair in pairs.items():
            parts[f"beside_{name}_in_memory"] = fairness(parent_folder / name, pair, writes)
    with proof_folder("fairness", disk=True) as parent_folder:
        for name, pair in pairs.items():
            parts[f"beside_{name}"] = fairness(parent_folder / name, pair, writes)
    return {
        "ok": all(not part["faults"] for part in parts.values()),
        **stamp(quick, "none: the processes race for real"),
        "parts": parts,
        "not_tried": [
            "an owner stopped while it holds the store's write lock: nobody can write until it goes on or dies",
            "a store on a network file system",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = []
    for name, part in result["parts"].items():
        shown = {k: len(v) if k == "disturbed" else v for k, v in part.items() if k != "faults"}
        figures = ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in shown.items())
        lines.append(f"   {name.replace('_', ' ')}: {figures}, {len(part['faults'])} faults")
        lines += [f"   FAULT {fault}" for fault in part["faults"][:10]]
    return lines


if __name__ == "__main__":
    sys.exit(main(__name__))
