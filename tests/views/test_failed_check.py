"""A check that failed reads the same everywhere: command, end, failing tests, both streams."""

import pytest

from steersman.contracts.commands import CommandResult, RunnerReport
from steersman.views.base_stop import base_stop_reason, base_stop_remedies, remedy_lines
from steersman.views.failed_check import failed_check_lines, pick_error_lines


def result(**more):
    given = {
        "name": "unit", "argv": ("py test", "-q"), "source": "project", "verdict": "failed", "exit_code": 1,
    }  # fmt: skip
    return CommandResult(**{**given, **more})


def test_everything_that_says_why():
    """Name, command, folder, exit code, seconds, the failing test, and standard output and standard error apart."""
    report = RunnerReport(form="pytest", failed=("t/test_x.py::test_a",))
    lines = failed_check_lines(
        result(micros=1_260_000, cwd="packages/a", report=report, output="out\n\n", errors="e1\ne2\n")
    )
    assert lines == [
        "unit: failed · exit code 1 · 1.3 s", "  'py test' -q   (in packages/a)",
        "  1 test failed: t/test_x.py::test_a", "  standard output:", "  │ out", "  standard error:",
        "  │ e1", "  │ e2",
    ]  # fmt: skip


def test_a_place_that_could_not_be_written():
    """A check that fails on a read-only place is told which setting lets it write there."""
    (hint,) = [line for line in failed_check_lines(result(errors="EROFS: open 'dist'")) if "writable" in line]
    assert hint.endswith("to [worktree] writable")
    assert not any("writable" in line for line in failed_check_lines(result(errors="no")))


def test_the_last_lines_of_each_stream():
    """What is left out is counted."""
    lines = failed_check_lines(result(output="\n".join(f"o{n}" for n in range(50)), errors="e"), 2)
    assert lines[2:] == [
        "  standard output, last 2 of 50 lines:", "  │ o48", "  │ o49", "  standard error:", "  │ e",
    ]  # fmt: skip


def test_the_heading_of_an_error_is_shown_before_its_stack():
    """Where the last lines are only stack frames the first lines that look like errors take the place of some."""
    frames = [f" ❯ frame{n} node_modules/x.js" for n in range(20)]
    text = "\n".join(
        ["noise", "\x1b[31m FAIL \x1b[39m a.spec.ts", "Error: no entry", *frames, "Error: last", "end"]
    )
    assert failed_check_lines(result(errors=text))[2:] == [
        "  standard error, first 2 errors and last 4 of 25 lines:", "  │  FAIL  a.spec.ts",
        "  │ Error: no entry", "  │  ❯ frame18 node_modules/x.js", "  │  ❯ frame19 node_modules/x.js",
        "  │ Error: last", "  │ end",
    ]  # fmt: skip


HEADINGS = [
    "error[E0425]: x", "E   assert 1 == 2", "panic: boom", "  × a test", "pkg.SomeError: x", "FAILED t.py::a",
]  # fmt: skip


@pytest.mark.parametrize("line", HEADINGS)
def test_what_looks_like_the_heading_of_an_error(line):
    """As compilers and runners write it; it is shown once, and a sentence about errors is none."""
    assert pick_error_lines([line, "a", "b", "c"], 3) == [line]
    assert pick_error_lines(["no error here", "a", "b", line], 3) == []


def test_what_is_no_test_is_not_called_one():
    """A package or module that failed as a whole stands apart from the tests."""
    lines = failed_check_lines(
        result(
            report=RunnerReport(
                form="go", failed=("x [build failed]", "y::TestA"), broken=("x [build failed]",)
            )
        )
    )
    assert lines[2:4] == ["  1 test failed: y::TestA", "  1 failed as a whole: x [build failed]"]


def test_failing_tests_are_grouped():
    """By the module or class that holds them; many are counted."""
    names = (*(f"m.A.test_{n}" for n in range(7)), "t.py::B::one", *(f"g{n}::x" for n in range(9)), "alone")
    lines = failed_check_lines(result(report=RunnerReport(form="pytest", failed=names)))
    assert lines[2] == "  18 tests failed:"
    assert lines[3] == "    alone"
    assert lines[-2:] == ["    and 12 more", "  it printed nothing"]
    few = failed_check_lines(result(report=RunnerReport(form="pytest", failed=names[:8])))
    assert few[3] == "    m.A: test_0, test_1, test_2, test_3, test_4, and 2 more"


def test_what_a_terminal_would_obey_is_gone_or_written_out():
    """Colours and lines that were written over are not shown; other controls are written out."""
    lines = failed_check_lines(result(output="\x1b[31mred\x1b[0m\n 10 %\r 99 %\nbell\x07\ta"))
    assert lines[-3:] == ["  │ red", "  │  99 %", "  │ bell\\x07   a"]


def test_what_did_not_run():
    """A program that is not there has no exit code, and a blocked command neither; each says its reason."""
    lines = failed_check_lines(result(exit_code=None, reason="cannot start x: it was not found"))
    assert lines == ["unit: failed · did not start", "  'py test' -q", "  cannot start x: it was not found"]
    assert failed_check_lines(result(verdict="blocked", exit_code=None))[0] == "unit: blocked"
    assert failed_check_lines(result(verdict="timeout", exit_code=-9))[0] == "unit: timed out · exit code -9"


def test_the_way_on_after_a_stop_on_the_base():
    """A red base is acknowledged, or fixed by a run; a check that cannot start is corrected."""
    red = base_stop_remedies("base_not_green", "r1", "roundtable", "Fix it's bug", "steersman")
    assert [r.command for r in red] == [
        "steersman acknowledge r1",
        "steersman run 'Fix it'\"'\"'s bug' --fix-base",
    ]
    bare = base_stop_remedies("base_not_green", "r1", "roundtable", "Fix", "steersman", untested=True)
    assert (bare[0].command, len(bare)) == ("steersman init --check", 3)
    lost = base_stop_remedies("check_cannot_start", "r1", "task", "long…", "steersman")
    assert remedy_lines(lost)[1::2] == [
        "  steersman init --check",
        '  steersman run "the same task" --as task',
    ]
    assert "nothing was spent" in base_stop_reason("base_not_green")
