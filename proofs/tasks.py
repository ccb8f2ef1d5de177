"""Five tasks at once in one repository, each driven by a process of its own, two of them on the same file.

    python proofs/tasks.py [--quick]

They begin together, and everybody accepts at the same moment, round after round, until all are delivered. Each commit on
the branch is exactly its task's patch; whatever the branch moved under was reviewed and tested again on it before anybody
was asked; nothing is lost, locked or left behind. Then two that change the same line.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from figures import main, stamp
from interrupted_run import proof_folder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support import parallel_tasks  # stories that journeys tell too
from tests.support.sample_project import RIGHT_CODE, UNIT_TESTS, Project

SEED = 20260105  # of nothing: what goes first is the machine's own chance
TIMES = 3
ROUNDS = 10  # each delivers one at least


def repository(place: Path) -> Path:
    """One commit: a function and its test."""
    place.mkdir(parents=True)
    (place / "calc.py").write_text(RIGHT_CODE)
    (place / "test_calc.py").write_text(UNIT_TESTS)
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "base"]):
        subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)
    return place


def story(place: Path, errands: tuple[parallel_tasks.ParallelTask, ...]) -> dict[str, Any]:
    """Begun together, accepted together until all are there; what was seen, and what was wrong."""
    project = Project(place / "project", repository(place / "template"))
    project.env["PATH"] = f"{Path(sys.executable).resolve().parent}:{project.env['PATH']}"
    parallel_tasks.create_task_folders(project, errands)
    base = project.git("rev-parse", "main").strip()
    began = [
        parallel_tasks.wait_for_exit(p)
        for p in [project.start(*parallel_tasks.new_task_words(e)) for e in errands]
    ]
    wrong = [f"beginning ended with {code}: {said[-300:]}" for code, said in began if code != 3]
    rounds = 0
    while (
        waiting := [t["run"] for t in parallel_tasks.tasks_by_title(project).values() if not t["outcome"]]
    ) and rounds < ROUNDS:
        rounds += 1
        told = [
            parallel_tasks.wait_for_exit(p)
            for p in [project.start("tasks", "accept", run) for run in waiting]
        ]
        wrong += [f"accepting ended with {code}: {said[-300:]}" for code, said in told if code not in (0, 3)]
    tasks = parallel_tasks.tasks_by_title(project)
    return {
        "rounds": rounds,
        "at_once": _at_once(project, [t["run"] for t in tasks.values()]),
        "again": {
            title: parallel_tasks.count_reverifications(project, t["run"]) for title, t in tasks.items()
        },
        "faults": [*wrong, *faults(project, base, errands, tasks)],
    }


def _at_once(project: Project, runs: list[str]) -> int:
    """How many of them were under way at the same moment, before anybody was asked."""
    spans = []
    for run in runs:
        entries = project.entries(run)
        asked = next(e for e in entries if e.get("to") == "accept")
        spans.append((entries[0]["at"], asked["at"]))
    return max(sum(a <= at <= b for a, b in spans) for at, _ in spans)


def faults(project: Project, base: str, errands: Any, tasks: dict[str, dict[str, Any]]) -> list[str]:
    """What is not as it should be."""
    wrong = [
        f"{title} ended {t['outcome'] or t['phase']}"
        for title, t in tasks.items()
        if t["outcome"] != "accepted"
    ]
    if wrong:
        return wrong
    for t in tasks.values():
        wrong += parallel_tasks.find_delivery_errors(project, t["run"])
        verified = project.call("audit", "verify", t["run"])
        wrong += [f"{t['run']}: {verified.err}"] * (verified.code != 0)
    commits = project.git("rev-list", "--count", f"{base}..main").strip()
    wrong += [f"{commits} commits for {len(errands)} tasks"] * (commits != str(len(errands)))
    return [*wrong, *parallel_tasks.find_leftovers(project)]


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when every delivery was its own task's and nothing else was left."""
    five, two = (
        parallel_tasks.FIVE_TASKS[:2] if quick else parallel_tasks.FIVE_TASKS,
        (parallel_tasks.COMMENT_TASK, parallel_tasks.CONFLICTING_TASK),
    )
    times = 1 if quick else TIMES
    with proof_folder("tasks", disk=True) as parent_folder:
        told = [story(parent_folder / f"five-{n}", five) for n in range(times)]
        pairs = [] if quick else [story(parent_folder / f"pair-{n}", two) for n in range(times)]
    wrong = [fault for one in (*told, *pairs) for fault in one["faults"]]
    again = [sum(one["again"].values()) for one in told]
    return {
        "ok": not wrong and all(one["at_once"] == len(five) for one in told) and all(again),
        **stamp(quick, SEED),
        "stories": times,
        "tasks": len(five),
        "under_way_at_once": [one["at_once"] for one in told],
        "rounds_of_accepting": [one["rounds"] for one in told],
        "verified_again": again,
        "pairs_on_one_line": len(pairs),
        "pairs_built_again": [sum(one["again"].values()) for one in pairs],
        "faults": wrong,
        "not_tried": [
            "more than five",
            "agents of a real provider",
            "a repository that others push to meanwhile",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    figures = f"{result['stories']} times {result['tasks']} tasks at once, verified again {result['verified_again']} times"
    pairs = f"{result['pairs_on_one_line']} pairs on one line, {len(result['faults'])} faults"
    return [f"   {figures}; {pairs}", *(f"   FAULT {fault}" for fault in result["faults"][:10])]


if __name__ == "__main__":
    sys.exit(main(__name__))
