"""What planning costs: rules beside a bare loop, growth of rules and graphs, and `plan` beside `runs`.

    python bench/planning.py [--quick]

CPU time, interleaved. The figures go to bench/results/planning.md; a miss is printed and fails nothing.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import graph
import rules

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent / "tests" / "journeys" / "planning" / "repository"
sys.path.insert(0, str(HERE.parent))

from tests.support.repeated_plans import write_plan_inputs  # noqa: E402  found through the path above
from tests.support.sample_project import Project  # noqa: E402  the same

LIBRARIES = ("msgspec", "apsw", "cel-expr-python", "cryptography", "click")
# metric: (most, what it is)
ASKED = {
    "rules_ratio": (1.5, "rules, to a bare loop over the compiled programs"),
    "rules_growth": (11.0, "ten times the rules"),
    "commands_growth": (11.0, "ten times the commands"),
    "plan_to_runs": (5.0, "CPU of `plan` on the fixture, to `steersman runs`"),
}


class Pairs(NamedTuple):
    """CPU seconds of `plan` and of `runs`, one after the other each time."""

    plan: list[float]
    runs: list[float]

    def ratios(self) -> list[float]:
        return [plan / listed for plan, listed in zip(self.plan, self.runs, strict=True)]


def pairs(times: int) -> Pairs:
    """Whole commands in processes of their own; whoever comes second is first the next time."""
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as place:
        project = _project(Path(place))
        intent = write_plan_inputs(project)
        measured = Pairs([], [])
        for n in range(times + 1):
            makes = (measured.plan, ("plan", intent, "--out", f"../{n}"))
            lists = (measured.runs, ("runs",))
            for kept, words in (makes, lists) if n % 2 == 0 else (lists, makes):
                cpu = _cpu(project, *words)
                if n:  # the first ones fill the caches of the disk
                    kept.append(cpu)
    return measured


def _project(place: Path) -> Project:
    """The fixture as a repository with one commit, copied to a place with a state of its own."""
    repo = place / "template"
    left_out = shutil.ignore_patterns("__pycache__", ".ruff_cache")
    shutil.copytree(REPOSITORY, repo, ignore=left_out)
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-qm", "base")):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return Project(place / "here", repo)


def _cpu(project: Project, *words: str) -> float:
    """User and system time of one command and of everything it has waited for, such as git."""
    child = subprocess.Popen(
        [sys.executable, "-m", "steersman", *words],
        cwd=project.repo, env=project.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"steersman {words[0]} ended with {child.returncode}: nothing was measured")
    return used.ru_utime + used.ru_stime


def page(figures: dict[str, float], timed: Pairs, grown: dict[str, Any], load: float) -> str:
    """The figures as a page."""
    ratios = timed.ratios()
    low, _, high = quantiles(ratios, n=4)
    lines = [
        "# What planning costs",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load:.1f} at the start; steersman {version('steersman')}, Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in LIBRARIES)}.",
        "",
        f"CPU time, interleaved. `plan` {1000 * median(timed.plan):.0f} ms and `runs` {1000 * median(timed.runs):.0f} ms, medians of {len(ratios)} pairs; half of the ratios lie between {low:.2f} and {high:.2f}.",
        "",
        "| figure | measured | at most | |",
        "|---|---|---|---|",
    ]
    for name, (most, what) in ASKED.items():
        lines.append(f"| {what} | {figures[name]:.2f} | {most:g} | {_word(figures[name], most)} |")
    small, large = grown["nodes"]
    for name, one in grown["steps"].items():
        what = f"graph of {large} nodes ({one['ms']:.0f} ms) to one of {small}: {name}"
        lines.append(f"| {what} | {one['growth']:.2f} | {graph.MOST} | {_word(one['growth'], graph.MOST)} |")
    return "\n".join([*lines, ""])


def _word(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


def main() -> int:
    quick = "--quick" in sys.argv[1:]
    load = os.getloadavg()[0]
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(HERE.parent / "src")], check=False)
    timed = pairs(4 if quick else 30)
    court = rules.figures(100, 100, 3) if quick else rules.figures(500, 1000, 5)
    figures = {
        "rules_ratio": court["ratio_to_bare_loop"],
        "rules_growth": court["growth_10x_rules"],
        "commands_growth": court["growth_10x_commands"],
        "plan_to_runs": median(timed.ratios()),
    }
    text = page(figures, timed, graph.measured(2 if quick else 9), load)
    print(text)
    if not quick:
        (HERE / "results" / "planning.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
