"""Every change by hand to every file of a task, in every phase, is named, never trusted, and can be restored.

    python proofs/damaged_documents.py [--quick]

Three times: each phase by itself, its look at the files and its repair; a whole task each time, driven through the gate
that names the file to the end that an undisturbed one has; and what is made from the tape, wherever the task stops.
"""

import asyncio
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from figures import main, stamp
from interrupted_run import RUN, proof_folder
from interrupted_task import InterruptedTask
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.document_tampering import (
    DERIVED_FILES,
    TAMPERINGS,
    UNRECORDED_FILES,
    find_derived_file_failures,
    find_planted_file_failures,
    find_tamper_failures,
    move_planted_folder_away,
    read_files_below,
    tamper_file,
)
from tests.support.root_permissions import enforce_file_permissions
from tests.support.task_effects import RECORD_INPUTS, TaskEffects  # beside the tests that take a sample

from steersman.contracts.agent import AgentRequest
from steersman.contracts.artifacts import STATE_FILE
from steersman.engine.active_run import load_active_run
from steersman.engine.effects import EffectCall
from steersman.engine.start import StartRequest
from steersman.machines.task.documents.schemas import TASK_DOCUMENTS
from steersman.machines.task.documents.words import COPIES_DIRECTORY, PATCH_FILE
from steersman.machines.task.effects.document_restore import ASIDE_DIRECTORY
from steersman.ports.journal import Gate

Hand = tuple[str, str, str]  # phase, file, what is done
SAME = ("outcome", "way", "documents", "state", "delivered", "whole", "stale", "troubles")


class TamperedTask(InterruptedTask):
    """A task that goes straight to its end, into which a hand reaches once, when the phase has laid its documents down."""

    def __init__(
        self, folder: Path, hand: Hand | None = None, pace: str = "through", end: str = "approve"
    ) -> None:
        self.hand, self.pace, self.end = hand, pace, end
        self.laid: dict[str, list[str]] = {}  # the files there were, by phase
        self.told: list[str] = []  # what the gates about damage have said
        self.retold: list[str] = []
        self.looked = 0  # hands in what is made from the tape
        super().__init__(folder)

    def order(self) -> StartRequest:
        wanted = super().order()
        return replace(wanted, options={**wanted.options, "pace": self.pace})

    def port_overrides(self) -> dict[str, Any]:
        found = super().port_overrides()
        found["performers"]["task_record"] = self._reached(found["performers"]["task_record"])
        return found

    def _reached(self, record: Callable[[EffectCall], Any]) -> Callable[[EffectCall], Any]:
        async def reached(call: EffectCall) -> Any:
            facts, phase = await record(call), call.given("phase")
            first = phase not in self.laid
            self.laid.setdefault(phase, [name for name in read_files_below(self.place) if _counts(name)])
            if first and self.hand is not None and self.hand[0] == phase:
                tamper_file(self.place, *self.hand[1:])
            return facts

        return reached

    @property
    def place(self) -> Path:
        return Path(self.artifacts.folder(RUN))

    def answer(self, request: AgentRequest) -> Any:
        return super().answer(replace(request, round=3))  # as in the last round of a longer life

    def choice(self, gate: Gate) -> str:
        match gate.job:
            case "damage" | "damaged_plan":
                self.told.append(load_active_run(self.ports, RUN).payloads.get(gate.shown["damage"]))
                if self.hand is not None:
                    move_planted_folder_away(self.place, self.hand[1])
                return "restore"
            case "decide":
                return self.end
            case "next":
                return "approve"
        raise AssertionError(f"the task asks about {gate.job}")

    def drive_to_end_and_collect(self) -> dict[str, Any]:
        """To its end, and what can be said about it."""
        try:
            asyncio.run(self.drive_to_end())
            return self.judged()
        finally:
            self.close()


class TamperedProjectionTask(TamperedTask):
    """The same, and wherever it stops hands reach into what is made from the tape."""

    def seen(self) -> None:
        super().seen()
        for name, hand in product(DERIVED_FILES, TAMPERINGS):
            self.looked += 1
            self.retold += find_derived_file_failures(self.ports, RUN, name, hand)


def _counts(name: str) -> bool:
    return name != STATE_FILE and (
        name in TASK_DOCUMENTS or name == PATCH_FILE or name.startswith(f"{COPIES_DIRECTORY}/")
    )


def each_phase(parent_folder: Path, step: int) -> tuple[int, list[str]]:
    """Every phase with everything that is there then: its look, its repair."""
    cases, wrong = 0, []
    for phase in RECORD_INPUTS:
        bench = TaskEffects(parent_folder / phase, disk=True).through(phase)
        names = [
            *bench.c.documents,
            *(f"{COPIES_DIRECTORY}/{n}" for n in bench.artifacts.names(bench.run, COPIES_DIRECTORY)),
        ]
        for name, hand in list(product(names, TAMPERINGS))[::step]:
            cases += 1
            wrong += find_tamper_failures(bench, phase, name, hand)
        for name in [n for n in UNRECORDED_FILES if n not in bench.c.artifacts][::step]:
            cases += 1
            wrong += find_planted_file_failures(bench, phase, name)
    return cases, wrong


def each_task(parent_folder: Path, step: int) -> tuple[dict[str, list[str]], int, list[str]]:
    """A whole task for every phase, file and hand; which files there were in each phase."""
    accepted, reverted = (
        TamperedTask(parent_folder / "accepted"),
        TamperedTask(parent_folder / "reverted", end="revert"),
    )
    references = {
        "approve": accepted.drive_to_end_and_collect(),
        "revert": reverted.drive_to_end_and_collect(),
    }
    laid = {**accepted.laid, "revert": reverted.laid["revert"]}
    cases = [(phase, name, hand) for phase, names in laid.items() for name in names for hand in TAMPERINGS]
    cases += [
        (phase, name, "planted")
        for phase, names in laid.items()
        for name in UNRECORDED_FILES
        if name not in names
    ]
    cases = cases[::step]
    wrong = []
    for n, hand in enumerate(cases):
        task = TamperedTask(parent_folder / str(n), hand, end="revert" if hand[0] == "revert" else "approve")
        wrong += [f"driven {' '.join(hand)}: {fault}" for fault in _amiss(task, references[task.end])]
    return laid, len(cases), wrong


def _amiss(task: TamperedTask, reference: dict[str, Any]) -> list[str]:
    judged = task.drive_to_end_and_collect()
    judged["documents"] = {
        n: d for n, d in judged["documents"].items() if not n.startswith(f"{ASIDE_DIRECTORY}/")
    }
    told = task.told[0].splitlines() if task.told else ["", ""]
    assert task.hand is not None
    wrong = [f"{key}: {judged[key]!r}" for key in SAME if judged[key] != reference[key]]
    wrong += ["it is not named"] * (not told[0].startswith(f"{task.hand[1]} "))
    return wrong + ["nobody says what to do"] * ("`restore`" not in told[1])


def each_stop(parent_folder: Path) -> tuple[list[str], int, list[str]]:
    """State and transcript, at every stop of a task that goes step by step, and of one that stops while it is taken back."""
    record = ("revert", "revert/record.json", "deleted")
    tasks = [
        TamperedProjectionTask(parent_folder / "steps", pace="step"),
        TamperedProjectionTask(parent_folder / "back", record, end="revert"),
    ]
    phases = sorted({phase for task in tasks for phase in task.drive_to_end_and_collect()["way"]})
    return phases, sum(task.looked for task in tasks), [fault for task in tasks for fault in task.retold]


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when there is no fault, and every hand could be shown."""
    step = 23 if quick else 1
    with proof_folder("documents") as parent_folder, enforce_file_permissions() as counted:
        if not counted:
            raise AssertionError("nothing is unreadable to root here: run it as somebody else")
        phases, wrong = each_phase(parent_folder / "phases", step)
        laid, tasks, amiss = each_task(parent_folder / "tasks", step)
        stops, beside, mistold = each_stop(parent_folder / "stops")
    faults = [*wrong, *amiss, *mistold]
    return {
        "ok": not faults and set(laid) == set(RECORD_INPUTS),
        **stamp(quick, "none: every combination is taken"),
        "combinations": phases + tasks + beside,
        "hands": [*TAMPERINGS, "planted"],
        "files": {**laid, "at every stop": list(DERIVED_FILES)},
        "stops": stops,
        "phases_by_themselves": phases,
        "whole_tasks": tasks,
        "made_from_the_tape": beside,
        "faults": faults,
        "not_tried": [
            "hands in several files at once: a test has all of them deleted, and all of them garbage",
            "a hand that reaches in between the look and its entry: tests have that",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    parts = f"{result['phases_by_themselves']} by phase, {result['whole_tasks']} whole tasks, {result['made_from_the_tape']} made from the tape"
    line = f"   {result['combinations']} combinations of phase, file and hand: {parts}, {len(result['faults'])} faults"
    return [line, *(f"   FAULT {fault}" for fault in result["faults"][:10])]


if __name__ == "__main__":
    sys.exit(main(__name__))
