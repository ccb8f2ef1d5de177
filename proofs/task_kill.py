"""A whole task by the installed command, killed with -9 twenty times on its way: real git, agents that are processes.

    python proofs/task_kill.py [--quick]

The kills are spread over the whole life: when so many steps are on tape, and a moment of chance later. Every other one
takes all that the command has started with it; the others leave orphans. What a person types next is what takes it up
again: `resume`, or the command that was killed. It ends as an undisturbed one: same phases, same decisions, same tree in
the branch by one commit, same documents.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from figures import main, stamp
from interrupted_run import proof_folder
from interrupted_task import DIFFERS, FLAWED, OPINION, PLAN, RIGHT, TIMES, WAY, WIDER, lasting, phases
from kill import COMMAND, KilledProject, _quietly, _tree

from steersman.adapters.process import program_runner
from steersman.kernel.replay import decision_hash

SEED = 20260106
TASKS, KILLS = 3, 20
MOST = 80  # commands; an undisturbed task needs fifteen
ROLES = ("planner", "coder", "reviewer", "tester")
TOML = """version = 1
deliver = "branch"
[checks]
unit = ["python3", "-m", "unittest", "-q"]
[rules]
red_base = "fix"
""" + "".join(f'[roles.{role}]\nagent = "scripted"\nscript = "crew.yaml"\n' for role in ROLES)
BUILT = {"status": "done", "summary": "done", "missing": []}
WHY = [{"delete": "README"}, {"write": "notes/why.md", "text": "A sum adds.\n"}]
# Beside those that are made from the tape: what a program printed, with the seconds it took.
MAY_DIFFER = {**DIFFERS, "test-results.json": "what the checks printed, with the seconds they took"}


def _step(mode: str, reply: dict[str, Any], round_: str = "", **more: Any) -> dict[str, Any]:
    when = {"round": round_} if round_ else {}
    return {"mode": mode, **when, "reply": reply, "process": "yes", "sleep": "0.2", **more}


def _code(text: str, round_: str = "", *, also: list[dict[str, str]] | None = None) -> dict[str, Any]:
    edits = [{"write": "calc.py", "text": text}, *(also or [])]
    return _step("implementation", BUILT, round_, edit=edits)


CREW = {
    "version": "1",
    "planner": [_step("proposal", PLAN, "1"), _step("proposal", {**PLAN, "files": WIDER})],
    "coder": [_code(TIMES, "1"), _code(RIGHT, "2"), _code(RIGHT, also=WHY)],
    "reviewer": [
        _step("proposal", {**OPINION, "decision": "accept"}),
        _step("implementation", FLAWED, "2"),
        _step("implementation", {**OPINION, "decision": "approve", "plan_issues": []}),
    ],
}


class KilledTaskProject(KilledProject):
    """A project whose task goes astray twice before it is right."""

    toml, crew = TOML, json.dumps(CREW)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.repo / "README").write_text("A sum.\n")
        for argv in (["add", "README"], ["commit", "-q", "-m", "a name"]):
            subprocess.run(["git", *argv], cwd=self.repo, env=self._env, check=True)

    def steps(self) -> int:
        """How many steps are on tape."""
        return sum(e.kind == "transition" for e in self.entries()) if self.run() else 0

    def onward(self, *, same: bool = False) -> tuple[str, ...]:
        """What a person types next; `same`: what they typed before, also where it was cut off."""
        run = _quietly(self.run)
        if not run:
            return ("tasks", "new", "Fix add", "--step")
        match self.gate():
            case "decide":
                return ("tasks", "accept", run, "--reason", "looks right")
            case "":
                return ("tasks", "next", run) if same else ("resume", run)
        return ("tasks", "next", run)

    def documents(self) -> dict[str, str]:
        """Every document, with the name of the run and the digests that hang on it said in words."""
        run = self.run()
        folder = self.repo / ".steersman" / "runs" / run
        data = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        words = {
            run: "RUN",
            **{hashlib.sha256(text).hexdigest(): f"digest of {n}" for n, text in data.items()},
        }
        told = {n: text.decode() for n, text in data.items() if n not in MAY_DIFFER}
        told["state.json"] = json.dumps(lasting(data["state.json"]))
        return {name: _said(text, words) for name, text in sorted(told.items())}


def _said(text: str, words: dict[str, str]) -> str:
    for value, name in words.items():
        text = text.replace(value, name)
    return text


class Cut(NamedTuple):
    """A kill: after so many steps, so much later, with all that was started or without."""

    steps: int
    delay: float
    whole: bool


def killed(project: KilledTaskProject, cut: Cut, codes: list[int]) -> bool:
    """Goes on until the cut and kills there; whether there was still something to be killed."""
    while len(codes) < MOST:
        command = project.start(*project.onward(same=cut.whole))
        while command.poll() is None and (_quietly(project.steps) or 0) < cut.steps:
            time.sleep(0.02)
        time.sleep(cut.delay)
        if command.poll() is None:
            _kill(command, whole=cut.whole)
            return True
        codes.append(command.wait())
        if codes[-1] != 3:
            return False
    raise AssertionError(f"no end after {MOST} commands")


def _kill(command: "subprocess.Popen[bytes]", *, whole: bool) -> None:
    started = psutil.Process(command.pid).children(recursive=True) if whole else []
    os.kill(command.pid, signal.SIGKILL)
    for process in started:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    command.wait()


def lived(folder: Path, cuts: list[Cut]) -> dict[str, Any]:
    """A whole task, killed at these points, then let go to its end."""
    project, codes = KilledTaskProject(folder), []
    kills = sum(killed(project, cut, codes) for cut in cuts)
    while (not codes or codes[-1] == 3) and len(codes) < MOST:
        codes.append(project.say(*project.onward()))
    entries, run = project.entries(), project.run()
    log = project.repo / ".git" / "logs" / "refs" / "heads" / "steersman" / run
    return {
        "kills": kills,
        "outcome": project.outcome(),
        "way": phases(e.to for e in entries if e.kind == "transition"),
        "decisions": decision_hash(entries),
        "transitions": sum(e.kind == "transition" for e in entries),
        "answers": sum(e.event == "next_requested" for e in entries),
        "again": sum(e.kind == "effect_started" for e in entries),
        "tree": _tree(project, f"steersman/{run}"),
        "commits": _count(project, f"main..steersman/{run}"),
        "moves": len(log.read_text().splitlines()) if log.exists() else 0,
        "documents": project.documents(),
        "alive": program_runner.alive(f"{run}:"),
        "verified": project.say("audit", "verify", run) == 0,
        "wrong_codes": sorted({code for code in codes[:-1] if code != 3} | {codes[-1]} - {0}),
    }


def _count(project: KilledProject, commits: str) -> int:
    argv = ["git", "rev-list", "--count", commits]
    return int(subprocess.run(argv, cwd=project.repo, capture_output=True, text=True, check=True).stdout)


SAME = ("outcome", "way", "decisions", "transitions", "answers", "tree", "commits", "moves", "documents")


def faults(told: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """What is wrong with a killed task, held against an undisturbed one."""
    wrong = [f"{k}: {told[k]}" for k in SAME if told[k] != reference[k]]
    wrong += [f"{k}: {told[k]}" for k in ("alive", "wrong_codes") if told[k]]
    return wrong + ["the audit found something"] * (not told["verified"])


def cuts(dice: random.Random, steps: int, n: int) -> list[Cut]:
    """Spread over the whole life, in order."""
    places = [steps * k // n + dice.randint(0, max(steps // n - 1, 0)) for k in range(n)]
    return [Cut(place, dice.uniform(0.0, 0.3), whole=bool(k % 2)) for k, place in enumerate(places)]


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when every killed task ended as the undisturbed one, each killed twenty times."""
    dice = random.Random(SEED)  # noqa: S311  a seed on purpose
    tasks, n = (1, 3) if quick else (TASKS, KILLS)
    with proof_folder("task-kill") as parent_folder:
        reference = lived(parent_folder / "whole", [])
        wrong = faults(reference, reference)
        wrong += [f"the undisturbed task went {reference['way']}"] * (reference["way"] != WAY)
        told = [lived(parent_folder / str(k), cuts(dice, reference["transitions"], n)) for k in range(tasks)]
    wrong += [f"task {k}: {fault}" for k, one in enumerate(told) for fault in faults(one, reference)]
    return {
        "ok": not wrong
        and all(one["kills"] >= n - 1 for one in told)
        and any(one["kills"] == n for one in told),
        **stamp(quick, SEED),
        "command": Path(COMMAND).name,
        "way": reference["way"],
        "transitions": reference["transitions"],
        "decisions": reference["decisions"],
        "documents": sorted(reference["documents"]),
        "may_differ": MAY_DIFFER,
        "tasks": tasks,
        "kills": [one["kills"] for one in told],
        "effects_begun_again": [one["again"] for one in told],
        "faults": wrong,
        "not_tried": [
            "agents of a real provider",
            "a machine that loses power",
            "kills at a prompt that waits",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    kills = ", ".join(map(str, result["kills"]))
    figures = f"{result['tasks']} tasks killed {kills} times, {len(result['faults'])} faults"
    return [f"   the installed command: {figures}", *(f"   FAULT {fault}" for fault in result["faults"][:10])]


if __name__ == "__main__":
    sys.exit(main(__name__))
