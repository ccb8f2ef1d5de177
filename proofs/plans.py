"""Plan proof: the same inputs give the same frozen files, byte for byte, wherever and whenever they are planned.

    python proofs/plans.py [--quick]

Each planning is a process of its own, in turn in two directories, on two dates, under other hash seeds, locales and time
zones. Then every byte class of the frozen files is changed once, and the check of the plan has to name the file.
"""

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from figures import main, stamp

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))

from tests.support.repeated_plans import SURROUNDINGS, copy_project, digest_frozen_plan, write_plan_inputs  # noqa: E402  found through the path above
from tests.support.sample_project import Project  # noqa: E402  the same

from steersman.judges.planning.verify import verify_frozen_plan  # noqa: E402  the same

SEED = 20_261_116
TIMES, SAMPLE = 50, 3
BYTES, SOME = 2_000, 60
NOT_TRIED = (
    "another operating system or processor, another version of Python",
    "a real clock set to another day: the process's own view of time is shifted",
    "other questions and answers than none: the stories of the suite have those",
)


def prove(quick: bool) -> dict[str, Any]:
    """Plans again and again, then changes bytes."""
    times, changes = (SAMPLE, SOME) if quick else (TIMES, BYTES)
    with tempfile.TemporaryDirectory(prefix="steersman-plans-") as place:
        template = _template(Path(place) / "template")
        here = Project(Path(place) / "here", template)
        intent = write_plan_inputs(here)
        first = digest_frozen_plan(here, intent, "../plan-0")
        there = copy_project(here, Path(place) / "there")
        different = [n for n in range(1, times + 1) if _again(n, here, there, intent) != first]
        found, missed = _changed(here.place / "plan-0", changes)
    return {
        **stamp(quick, SEED),
        "ok": not different and not missed,
        "planned": times + 1,
        "files": len(first),
        "different": len(different),
        "changed_bytes": found + len(missed),
        "found": found,
        "missed": missed[:10],
        "not_tried": NOT_TRIED,
    }


def _template(repo: Path) -> Path:
    shutil.copytree(
        TOP / "tests" / "journeys" / "planning" / "repository",
        repo,
        ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache"),
    )
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-qm", "base")):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return repo


def _again(n: int, here: Project, there: Project, intent: str) -> dict[str, str]:
    surroundings = {**SURROUNDINGS[n % len(SURROUNDINGS)], "PYTHONHASHSEED": str(n)}
    project = there if n % 2 else here
    ahead = (n % 3) * 200 * 86_400
    return digest_frozen_plan(project, intent, f"../plan-{n}", ahead=ahead, **surroundings)


def _changed(place: Path, times: int) -> tuple[int, list[str]]:
    """Flips one bit at a time, anywhere; how often it was found and named, and where it was not."""
    chance = random.Random(SEED)  # noqa: S311  it has to be the same again
    files = {p.name: p.read_bytes() for p in sorted(place.iterdir()) if p.name != "plan.dsse.json"}
    found, missed = 0, []
    for _ in range(times):
        name = chance.choice(sorted(files))
        at = chance.randrange(len(files[name]))
        data = bytearray(files[name])
        data[at] ^= 1 << chance.randrange(8)
        problems = verify_frozen_plan({**files, name: bytes(data)})
        if any(name in (p.field, "manifest.json") for p in problems):
            found += 1
        else:
            missed.append(f"{name} at {at}")
    return found, missed


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    return [
        f"   {result['planned']} plannings of {result['files']} files: {result['different']} different",
        f"   {result['changed_bytes']} single changed bits: {result['found']} found and named",
        *(f"   missed: {line}" for line in result["missed"]),
    ]


if __name__ == "__main__":
    sys.exit(main(__name__))
