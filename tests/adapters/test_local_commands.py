"""Checks that really run, in a real directory."""

import asyncio
import os
import shutil
import socket
import sys
import time
import uuid
from pathlib import Path

import pytest

from steersman.adapters.checks.local_commands import LocalCommands
from steersman.adapters.checks.tree_commands import (
    COMMAND_CERTIFICATE_VARIABLES,
    COMMAND_VARIABLES,
    TOOLCHAIN_VARIABLES,
    clean_search_path,
)
from steersman.adapters.process.program_runner import alive
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.contracts.commands import Command
from steersman.contracts.grammars import Commands as Allowed
from steersman.ports.commands import CommandRunner

PY = sys.executable
TEST = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertTrue({})\n"


@pytest.fixture(params=["off", "auto"])
def sandbox(request):
    """Without a box, and in one where this machine has one."""
    found = probe_sandbox(request.param)
    if request.param == "auto" and not found.isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {found.why}")
    return found


class Place(type(Path())):
    """A directory, and how programs are started in it."""

    sandbox = None


@pytest.fixture
def workdir(tmp_path, monkeypatch, sandbox):
    """A directory, with this interpreter and its pytest first on PATH."""
    monkeypatch.setenv("PATH", f"{os.path.dirname(PY)}:{os.environ['PATH']}")
    place = Place(tmp_path / "tree")
    place.mkdir()
    place.sandbox = sandbox
    return place


def run(argv, workdir, *, source="project", seconds=120, allow=(), effect="none:0:0", setup=False, **more):
    commands: CommandRunner = LocalCommands(allow, workdir.sandbox, **more)
    command = Command("unit", argv, source)
    return asyncio.run(commands.run(command, str(workdir), effect, seconds, setup=setup))


def test_a_project_check_may_always_run():
    """What a person wrote under [checks] has no problem, whatever it is."""
    assert LocalCommands(()).find_command_problem(Command("odd", ("sh", "-c", "exit 0"))) is None


def test_a_proposed_command_has_to_be_on_the_list():
    """A tester's argv may run when it equals a project check or fits the table, and not otherwise."""
    commands = LocalCommands((("make", "test"),))
    assert commands.find_command_problem(Command("a", ("make", "test"), "tester")) is None
    assert commands.find_command_problem(Command("b", ("pytest", "-q"), "tester")) is None
    assert "add it under [checks]" in commands.find_command_problem(
        Command("c", ("make", "install"), "tester")
    )


def test_a_command_that_is_not_allowed_is_blocked_and_not_started(workdir):
    """A blocked command leaves no trace but its reason."""
    result = run(("touch", "here"), workdir, source="tester")
    assert (result.verdict, result.exit_code) == ("blocked", None)
    assert "`touch here` is not on the allow-list" in result.reason
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


def test_what_runs_no_tests_is_not_counted(workdir):
    """Nothing that a linter prints is a test, whether the project says it is one or the grammar of what was proposed."""
    (workdir / "notes.txt").write_text("3 passed in 0.01s\n")
    commands = LocalCommands((), grammars=Allowed(sets=("read",)))
    for command in (
        Command("lint", ("cat", "notes.txt"), tests=False),
        Command("lint", (sys.executable, "-m", "pytest", "--version"), tests=False),
        Command("tester 1", ("cat", "notes.txt"), "tester"),
    ):
        told = asyncio.run(commands.run(command, str(workdir), "none:0:0", 30))
        assert (told.verdict, told.tests, told.asked, told.report) == ("passed", None, {}, None), told


def test_no_bytecode_is_left_in_the_tree(workdir):
    """Running tests changes nothing in the tree by itself."""
    (workdir / "test_it.py").write_text(TEST.format("True"))
    run(("python", "-m", "unittest"), workdir, source="tester")
    assert os.listdir(workdir) == ["test_it.py"]


def test_the_environment_is_an_allowlist(workdir, monkeypatch):
    """A variable of the caller that is not on the list does not reach a check; the effect id does."""
    monkeypatch.setenv("API_KEY", "s3cret")
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "NODE_PATH", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "/somewhere")
    result = run((PY, "-c", "import os; print(dict(os.environ))"), workdir, effect="r1:2:3")
    seen = set(eval(result.output))  # noqa: S307  our own dictionary
    assert seen <= {
        *(
            *COMMAND_VARIABLES,
            *COMMAND_CERTIFICATE_VARIABLES,
            *TOOLCHAIN_VARIABLES,
            "PYTHONDONTWRITEBYTECODE",
        ),
        *(
            "STEERSMAN_EFFECT",
            "STEERSMAN_CALL",
            "PWD",
            "PYTHONPATH",  # a runner behind it is asked for its report
            "STEERSMAN_WITNESS",
            "CARGO_NET_OFFLINE",
            "UV_OFFLINE",
            "npm_config_offline",
        ),
    }
    assert "'STEERSMAN_EFFECT': 'r1:2:3'" in result.output


def test_an_activated_environment_is_not_inherited():
    """Programs of a virtual environment that happens to be active are not found, nor those of relative places."""
    environ = {"VIRTUAL_ENV": "/opt/mine/venv", "PATH": "/opt/mine/venv/bin:/usr/bin:bin:.:/bin"}
    assert clean_search_path(environ) == "/usr/bin:/bin"


def test_a_timeout_is_its_own_verdict(workdir):
    """A check that does not end in time is stopped and is no pass."""
    effect, began = f"{uuid.uuid4().hex}:1:1", time.monotonic()
    result = run(
        (PY, "-c", "print('3 passed in 0.1s', flush=True); import time; time.sleep(60)"), workdir, seconds=1,
        effect=effect,
    )  # fmt: skip
    assert result.verdict == "timeout"
    assert time.monotonic() - began < 30
    assert alive(effect) == []


def test_a_check_killed_by_a_signal_says_so(workdir):
    """A crash is a failure whose reason names the signal."""
    result = run((PY, "-c", "import os; os.kill(os.getpid(), 11)"), workdir)
    assert result.verdict == "failed"
    assert result.reason in ("killed by signal 11", "exit code 139, as after signal 11")


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


REACH = "import socket, sys\ntry: socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)\nexcept OSError: sys.exit(9)"


def test_a_check_has_a_network_only_where_the_project_says_so(workdir):
    """In a box a check reaches nothing; with network = true, and in a setup step, it does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = (PY, "-c", REACH, str(server.getsockname()[1]))
        assert run(argv, workdir).exit_code == (9 if workdir.sandbox.isolated else 0)
        assert run(argv, workdir, network=True).exit_code == 0
        assert run(argv, workdir, setup=True).exit_code == 0


def test_a_check_writes_its_tree_and_nothing_else(workdir):
    """In a box the directory beside the tree stays as it is."""
    beside = workdir.parent / "beside"
    beside.mkdir()
    code = f"open('in', 'w').close(); open({str(beside / 'out')!r}, 'w').close()"
    result = run((PY, "-c", code), workdir)
    assert (workdir / "in").exists()
    assert (result.exit_code == 0) == (beside / "out").exists() == (not workdir.sandbox.isolated)


def test_a_check_runs_in_its_folder(workdir):
    """`cwd` is the folder in the tree; one that is not there, or leads out of it, starts nothing."""
    (workdir / "packages" / "a").mkdir(parents=True)
    (workdir / "out").symlink_to("/")
    commands = LocalCommands((), workdir.sandbox)

    def where(cwd):
        command = Command("where", ("pwd",), cwd=cwd)
        return asyncio.run(commands.run(command, str(workdir), "none:0:0", 120))

    found = where("packages/a")
    assert (found.verdict, found.cwd) == ("passed", "packages/a")
    assert found.output.strip().endswith("packages/a")
    for cwd, problem in (("missing", "not a folder"), ("out", "leads out")):
        found = where(cwd)
        assert (found.verdict, found.exit_code) == ("failed", None)
        assert problem in found.reason


def test_variables_of_the_project(workdir, monkeypatch):
    """[env] reaches a check; `env:NAME` passes one through, and options stand beside those of the reporter."""
    monkeypatch.setenv("MINE", "passed through")
    env = {"PLAIN": "x", "THEIRS": "env:MINE", "GONE": "env:NOT_THERE", "PYTEST_ADDOPTS": "-k test_b"}
    show = "import os; print(*(os.environ.get(n, '-') for n in ('PLAIN', 'THEIRS', 'GONE', 'MINE')), sep='|')"
    assert run((PY, "-c", show), workdir, env=env).output.strip() == "x|passed through|-|-"
    (workdir / "test_x.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    result = run((PY, "-m", "pytest", "-q"), workdir, env=env)
    assert (result.verdict, result.tests, result.report.passed) == ("passed", 1, ("test_x.py::test_b",))


UVU = "print('  Total:     32\\n  Passed:    32\\n  Skipped:   0\\n')"
OWN = "print('All fine: 32 tests')"


@pytest.mark.parametrize("sandbox", ["off"], indirect=True)  # what is printed is judged outside the box
@pytest.mark.parametrize(
    ("program", "more", "verdict", "tests", "reason"),
    [
        (UVU, {}, "passed", 32, ""),
        (OWN, {}, "passed", None, ""),
        (OWN, {"summary": r"fine: (?P<passed>\d+)"}, "passed", 32, ""),
        (OWN, {"summary": r"good: (?P<passed>\d+)"}, "no_tests", None, "matches nothing"),
        (OWN + ";raise SystemExit(3)", {"summary": r"fine: (?P<passed>\d+)"}, "failed", 32, ""),
        ("print('a'*40)", {"summary": r"(a|a)*(?P<passed>\d)"}, "no_tests", None, "takes longer than"),
        (OWN, {"exit_code_is_enough": True}, "passed", None, "exit code only (chosen in steersman.toml)"),
        ("raise SystemExit(3)", {"exit_code_is_enough": True}, "failed", None, "exit code only"),
    ],
)
def test_runners_that_nobody_knows(workdir, program, more, verdict, tests, reason):
    """A summary pattern counts tests, within a time; an exit code is enough where the project says so."""
    command = Command("unit", (PY, "-c", program), **more)
    found = asyncio.run(LocalCommands((), workdir.sandbox).run(command, str(workdir), "none:0:0", 120))
    assert (found.verdict, found.tests) == (verdict, tests)
    assert reason in found.reason
    assert found.exit_code_only == ("exit_code_is_enough" in more)


def test_both_streams_are_recorded_apart(workdir):
    """Standard output and standard error are told apart, also in a box, and tests are counted on either."""
    said = "import sys; print('out'); print('Ran 3 tests in 0.1s\\n\\nOK', file=sys.stderr)"
    done = run((PY, "-c", said), workdir)
    assert (done.output, done.errors) == ("out\n", "Ran 3 tests in 0.1s\n\nOK\n")
    assert (done.verdict, done.tests) == ("passed", 3)


@pytest.mark.parametrize("option", ["no:xdist", "no:cacheprovider"])
def test_pytest_reports_with_and_without_xdist(workdir, option):
    """The reporter needs no plugin that a project may not have."""
    (workdir / "test_x.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    result = run((PY, "-m", "pytest", "-q", "-p", option), workdir)
    assert (result.verdict, result.exit_code, result.report.passed, result.report.failed) == (
        "failed", 1, ("test_x.py::test_a",), ("test_x.py::test_b",)
    ), result.output  # fmt: skip
