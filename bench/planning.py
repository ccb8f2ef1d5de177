"""What planning costs: rules beside a bare loop, growth of rules and graphs, and `plan` beside `runs`.

    python bench/planning.py [--quick]

CPU time, interleaved. The figures go to bench/results/planning.md; a miss is printed and fails nothing.
"""

import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import graph
import rules

HERE = Path(__file__).resolve().parent
JOURNEYS = HERE.parent / "tests" / "journeys"
sys.path[:0] = [str(JOURNEYS), str(JOURNEYS / "planning")]

from same import inputs  # noqa: E402  found through the path above
from voyage import Project  # noqa: E402  the same

# metric: (most, what it is)
ASKED = {
    "rules_ratio": (1.5, "rules, to a bare loop over the compiled programs"),
    "rules_growth": (11.0, "ten times the rules"),
    "commands_growth": (11.0, "ten times the commands"),
    "plan_to_runs": (5.0, "CPU of `plan` on the fixture, to `steersman runs`"),
}


def plan_to_runs(times: int) -> float:
    """How often the CPU of `runs` one whole `plan` takes, as the median of pairs."""
    with tempfile.TemporaryDirectory(prefix="steersman-bench-") as place:
        repo = Path(place) / "template"
        left_out = shutil.ignore_patterns("__pycache__", ".ruff_cache")
        shutil.copytree(JOURNEYS / "planning" / "repository", repo, ignore=left_out)
        who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-qm", "base")):
            subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
        project = Project(Path(place) / "here", repo)
        intent = inputs(project)
        _cpu(project, "plan", intent, "--out", "../first")
        pairs = [
            (_cpu(project, "plan", intent, "--out", f"../{n}"), _cpu(project, "runs")) for n in range(times)
        ]
    return median(plan / listed for plan, listed in pairs)


def _cpu(project: Project, *words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "steersman", *words],
        cwd=project.repo, env=project.env, capture_output=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(figures: dict[str, float], grown: dict[str, Any], times: int) -> str:
    """The figures as a page."""
    lines = [
        "# What planning costs",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.system()} {platform.machine()}; CPU time, medians; `plan` and `runs` {times} times each, interleaved.",
        "",
        "| figure | measured | at most | |",
        "|---|---|---|---|",
    ]
    for name, (most, what) in ASKED.items():
        lines.append(f"| {what} | {figures[name]:.2f} | {most:g} | {_word(figures[name], most)} |")
    small, large = grown["nodes"]
    for name, one in grown["steps"].items():
        what = f"graph of {large} nodes to one of {small}: {name}"
        lines.append(f"| {what} | {one['growth']:.2f} | {graph.MOST} | {_word(one['growth'], graph.MOST)} |")
    return "\n".join([*lines, ""])


def _word(value: float, most: float) -> str:
    return "met" if value <= most else "missed"


def main() -> int:
    quick = "--quick" in sys.argv[1:]
    times = 3 if quick else 15
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(HERE.parent / "src")], check=False)
    court = rules.figures(100, 100, 3) if quick else rules.figures(500, 1000, 5)
    figures = {
        "rules_ratio": court["ratio_to_bare_loop"],
        "rules_growth": court["growth_10x_rules"],
        "commands_growth": court["growth_10x_commands"],
        "plan_to_runs": plan_to_runs(times),
    }
    text = page(figures, graph.measured(2 if quick else 5), times)
    print(text)
    if not quick:
        (HERE / "results" / "planning.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
