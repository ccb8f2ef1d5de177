"""Checks that really run, in a real directory."""

import asyncio
import os
import shutil
import sys
import time
import uuid

import pytest

from steersman.adapters.commands import LocalCommands
from steersman.adapters.processes import alive
from steersman.contracts.commands import Command
from steersman.ports.commands import Commands

PY = sys.executable
TEST = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertTrue({})\n"


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    """A directory, with this interpreter and its pytest first on PATH."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(PY)}:{os.environ['PATH']}")
    return tmp_path


def run(argv, workdir, *, source="project", seconds=20, allow=(), effect="none:0:0"):
    commands: Commands = LocalCommands(allow)
    return asyncio.run(commands.run(Command("unit", argv, source), str(workdir), effect, seconds))


def test_a_project_check_may_always_run():
    """What a person wrote under [checks] has no problem, whatever it is."""
    assert LocalCommands(()).problem(Command("odd", ("sh", "-c", "exit 0"))) is None


def test_a_proposed_command_has_to_be_on_the_list():
    """A tester's argv may run when it equals a project check or fits the table, and not otherwise."""
    commands = LocalCommands((("make", "test"),))
    assert commands.problem(Command("a", ("make", "test"), "tester")) is None
    assert commands.problem(Command("b", ("pytest", "-q"), "tester")) is None
    assert "add it under [checks]" in commands.problem(Command("c", ("make", "install"), "tester"))


def test_a_command_that_is_not_allowed_is_blocked_and_not_started(workdir):
    """A blocked command leaves no trace but its reason."""
    result = run(("touch", "here"), workdir, source="tester")
    assert (result.verdict, result.exit_code) == ("blocked", None)
    assert "not on the allow-list: touch here" in result.reason
    assert not (workdir / "here").exists()


@pytest.mark.parametrize(
    ("content", "argv", "verdict", "tests"),
    [
        (TEST.format("True"), ("python", "-m", "unittest", "-q"), "passed", 1),
        (TEST.format("False"), ("python", "-m", "unittest"), "failed", 1),
        ("", ("python", "-m", "unittest"), "no_tests", 0),
        (TEST.format("True"), ("python", "-m", "pytest", "-q"), "passed", 1),
        (TEST.format("False"), ("pytest", "-x", "test_it.py"), "failed", 1),
        ("", ("pytest", "-q"), "no_tests", 0),
    ],
)
def test_a_proposed_test_run_gets_its_verdict(workdir, content, argv, verdict, tests):
    """unittest and pytest pass with a test that passed, fail with one that failed, and prove nothing with none."""
    (workdir / "test_it.py").write_text(content)
    result = run(argv, workdir, source="tester")
    assert (result.verdict, result.tests, result.argv) == (verdict, tests, argv)
    assert result.micros > 0


def test_a_quiet_pytest_is_still_counted(workdir):
    """A project that is quiet by configuration, asked to be quiet again, prints no summary and is counted all the same."""
    (workdir / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    (workdir / "test_it.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    result = run(("pytest", "-q"), workdir, source="tester")
    assert (result.verdict, result.tests) == ("passed", 2)


def test_a_test_module_cannot_print_itself_a_pass(workdir):
    """A module without tests that prints a summary of five still has no tests."""
    (workdir / "test_it.py").write_text("print('Ran 5 tests in 0.1s\\n\\nOK')\n")
    assert run(("python", "-m", "unittest"), workdir, source="tester").verdict == "no_tests"


def test_a_check_that_runs_no_tests_passes_by_its_exit(workdir):
    """A linter has no tests to count: its exit code is the verdict."""
    assert run((PY, "-c", "pass"), workdir).verdict == "passed"
    failed = run((PY, "-c", "import sys; sys.exit(1)"), workdir)
    assert (failed.verdict, failed.exit_code, failed.tests) == ("failed", 1, None)


def test_no_bytecode_is_left_in_the_tree(workdir):
    """Running tests changes nothing in the tree by itself."""
    (workdir / "test_it.py").write_text(TEST.format("True"))
    run(("python", "-m", "unittest"), workdir, source="tester")
    assert os.listdir(workdir) == ["test_it.py"]


def test_the_environment_is_an_allowlist(workdir, monkeypatch):
    """A variable of the caller that is not on the list does not reach a check; the effect id does."""
    monkeypatch.setenv("API_KEY", "s3cret")
    monkeypatch.setenv("VIRTUAL_ENV", "/somewhere")
    result = run((PY, "-c", "import os; print(dict(os.environ))"), workdir, effect="r1:2:3")
    seen = set(eval(result.output))  # noqa: S307  our own dictionary
    assert seen <= {
        *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONDONTWRITEBYTECODE"),
        *("STEERSMAN_EFFECT", "STEERSMAN_CALL", "LC_CTYPE"),
    }
    assert "'STEERSMAN_EFFECT': 'r1:2:3'" in result.output


def test_a_timeout_is_its_own_verdict(workdir):
    """A check that does not end in time is stopped and is no pass."""
    effect, began = f"{uuid.uuid4().hex}:1:1", time.monotonic()
    result = run(
        (PY, "-c", "print('3 passed in 0.1s', flush=True); import time; time.sleep(60)"),
        workdir,
        seconds=1,
        effect=effect,
    )
    assert result.verdict == "timeout"
    assert time.monotonic() - began < 5
    assert alive(effect) == []


def test_a_check_killed_by_a_signal_says_so(workdir):
    """A crash is a failure whose reason names the signal."""
    result = run((PY, "-c", "import os; os.kill(os.getpid(), 11)"), workdir)
    assert (result.verdict, result.reason) == ("failed", "killed by signal 11")


def test_what_cannot_start_has_failed(workdir):
    """A missing program or a missing directory is a failure with a reason."""
    assert "was not found" in run(("no-such-program-here",), workdir).reason
    shutil.rmtree(workdir)
    gone = run((PY, "-c", "pass"), workdir)
    assert gone.verdict == "failed"
    assert "working directory" in gone.reason


def test_bytes_that_are_no_text_are_escaped(workdir):
    """Output is text that any store can keep."""
    code = "import sys; sys.stdout.buffer.write(b'caf\\xe9 \\xe2\\x9c\\x93')"
    assert run((PY, "-c", code), workdir).output == "caf\\xe9 ✓"
