"""The first minute: what `make demo` and `make help` need and print before anything is installed."""

import shutil
import subprocess
import sys

from tests.docs.test_prose import TOP


def call_make(folder, target, python):
    """Runs a target in a copy of the Makefile with a PATH on which there is no program at all."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(TOP / name, folder / name)
    make = shutil.which("make")
    assert make
    return subprocess.run(
        [make, target, f"PYTHON={python}"], cwd=folder,
        env={"PATH": str(folder / "nothing"), "HOME": str(folder)}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def test_the_demo_speaks_before_it_installs(tmp_path):
    """`make demo` says what it does before it starts Python for the first time, and needs no other program."""
    done = call_make(tmp_path, "demo", "/bin/false")
    assert done.stdout.startswith("Installing steersman into .venv.")
    assert done.returncode == 2
    assert "not found" not in done.stderr


def test_help_lists_every_target(tmp_path):
    """`make help` names each target that has a description, with Python alone."""
    done = call_make(tmp_path, "help", sys.executable)
    assert done.returncode == 0, done.stderr
    assert {line.split(":")[0] for line in done.stdout.splitlines()} >= {
        "demo", "test", "check", "wheel-check",
    }  # fmt: skip
