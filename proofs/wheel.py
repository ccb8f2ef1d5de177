"""Builds the wheel, installs it into an empty environment, and runs the demo there.

The wheel holds the files of `src/steersman` that git knows and nothing else: no tests and no support of our own tests.
The public fakes and the conformance suites in `steersman.testing` are part of the product.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
TEST_IMPORT = re.compile(r"^\s*(?:from|import) (?:tests|proofs|hypothesis)\b", re.MULTILINE)
NETWORK_SETTINGS = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")


def prove(quick: bool) -> dict[str, Any]:
    """Says what the wheel should not hold, what it lacks, and how the demo of the installed wheel ends."""
    del quick  # there is nothing to take a sample of
    with tempfile.TemporaryDirectory(prefix="steersman-wheel-") as folder:
        place = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        python = place / "venv" / "bin" / "python"
        run_pip(python, place, "wheel", "--no-deps", "--wheel-dir", str(place / "dist"), str(TOP))
        (wheel,) = (place / "dist").glob("steersman-*.whl")
        contents = compare_contents(wheel)
        run_pip(python, place, "install", str(wheel))
        demo = run_demo(place)
    succeeded = demo.get("outcome") == "approved" and demo.get("verified") is True
    holds = succeeded and not contents["unexpected"] and not contents["missing"]
    return {"ok": holds, **contents, "demo": demo.get("outcome"), "tests": demo.get("tests")}


def compare_contents(wheel: Path) -> dict[str, Any]:
    """Compares the files of the wheel with the files of the package that git knows."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        tests = {
            name
            for name in names
            if name.endswith(".py") and TEST_IMPORT.search(archive.read(name).decode("utf-8"))
        }
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/steersman"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    wanted = {name.removeprefix("src/") for name in listed if (TOP / name).is_file()}
    return {
        "files": len(names),
        "unexpected": sorted((names - wanted) | tests),
        "missing": sorted(wanted - names),
    }


def run_pip(python: Path, place: Path, *arguments: str) -> None:
    """Runs pip of the empty environment with the settings that reach the packages, and a fresh home."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(NETWORK_SETTINGS)}
    run_clean(
        place, [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], settings
    )


def run_demo(place: Path) -> dict[str, Any]:
    """Runs `steersman demo --json` by the installed command and returns its result."""
    demo = run_clean(
        place, [str(place / "venv" / "bin" / "steersman"), "demo", "--json"], {"TMPDIR": str(place)}
    )
    result: dict[str, Any] = json.loads(demo)
    return result


def run_clean(place: Path, argv: Sequence[str], settings: dict[str, str]) -> str:
    """Runs a command outside the repository, with a fresh home and few variables, and returns what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "LC_ALL": "C.UTF-8", **settings}
    done = subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{argv} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def describe_result(result: dict[str, Any]) -> list[str]:
    lines = [
        f"   the wheel holds {result['files']} files; its demo ends {result['demo']} with {result['tests']} tests"
    ]
    lines += [f"   should not be in the wheel: {name}" for name in result["unexpected"]]
    return lines + [f"   is missing in the wheel: {name}" for name in result["missing"]]


if __name__ == "__main__":
    sys.exit(0 if prove(quick=True)["ok"] else 1)
