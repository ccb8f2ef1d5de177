"""What a test reporter has sent: every test by name, and nothing at all without its end."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence import runner_reports
from steersman.judges.evidence.runner_reports import (
    UnreadableReport,
    find_failed_collection,
    read_reporter_events,
)


def told(*events, word="w"):
    return "".join(f"{word} {n} {json.dumps(e)}\n" for n, e in enumerate(events, 1)).encode()


def phases(name, *, call="passed", teardown="passed", setup="passed", expected=False, worker=""):
    steps = [("setup", setup), *([("call", call)] if call else []), ("teardown", teardown)]
    return [["test", worker, name, phase, outcome, expected] for phase, outcome in steps]


def ended(code=0, collected=0):
    return ["ended", code, collected]


def test_every_test_is_told_by_name():
    """A failure in any phase is one, only the call passes, an expected failure proves nothing."""
    report = read_reporter_events(
        "pytest",
        told(
            ["test", "", "broken.py", "collect", "failed", False], *phases("a"), *phases("b", call="failed"),
            *phases("c", teardown="failed"), *phases("d", call=None, setup="skipped"),
            *phases("e", call="skipped", expected=True), *phases("f", call="rerun"), *phases("f"),
            *phases("g", call=None), ["test", "", "class", "call", "skipped", False], ended(1, 90),
        ),
        "w",
    )  # fmt: skip
    assert (report.form, report.ran, report.failures, report.expected) == ("pytest", 5, 3, 1)
    assert report.passed == ("a", "f")
    assert report.failed == ("b", "broken.py", "c")
    assert report.broken == ("broken.py",)
    assert report.skipped == ("class", "d", "e")


def test_a_test_counts_as_often_as_it_ran():
    """Twice in a row, or in two workers at a time."""
    one, other = phases("a", worker="gw0"), phases("a", worker="gw1")
    both = [event for pair in zip(one, other, strict=True) for event in pair]
    assert read_reporter_events("pytest", told(*phases("a"), *phases("a"), ended()), "w").passed == ("a", "a")
    assert read_reporter_events("pytest", told(*both, ended()), "w").passed == ("a", "a")


def test_parts_that_failed_fail_their_test():
    """What failed once stays failed until the test is over."""
    parts = [["test", "", "a", "call", outcome, False] for outcome in ("failed", "passed", "skipped")]
    assert read_reporter_events("unittest", told(*parts, ended()), "w").failed == ("a",)


def test_what_unittest_could_not_load_or_set_up_is_no_test():
    """It is told under a name of unittest's own, and that name says what it is about."""
    names = ("unittest.loader._FailedTest.pkg.test_b", "setUpClass (test_a.A)", "tearDownModule (test_a)")
    events = [["test", "", name, "call", "failed", False] for name in (*names, "test_a.A.test_x")]
    report = read_reporter_events("unittest", told(*events, ended(1)), "w")
    assert set(report.broken) == set(names)
    assert set(report.failed) == {*names, "test_a.A.test_x"}
    assert [find_failed_collection(name) for name in (*names, "test_a.A.test_x")] == [
        "pkg.test_b", "test_a.A", "test_a", "",
    ]  # fmt: skip


def test_a_name_is_told_from_the_root_of_the_tree():
    """Also a parameter that is a place in it."""
    report = read_reporter_events(
        "pytest", told(*phases("test_a.py::test_x[/w/2/data/a.json]"), ended()), "w", ("/w/2",)
    )
    assert report.passed == ("test_a.py::test_x[data/a.json]",)


SPOILT = {
    "nothing": (b"", "it reported nothing"),
    "no end": (told(*phases("a")), "it ended before its tests"),
    "cut": (told(ended()) + b"w 2", "it ended before its tests"),
    "another word": (told(*phases("a"), ended(), word="x"), "something else than the runner"),
    "a number left out": (told(*phases("a"), ended()).replace(b"w 2", b"w 3"), "something else than the runner"),
    "a line between": (told(*phases("a")) + b"3 passed in 0.01s\n", "something else than the runner"),
    "after the end": (told(ended(), *phases("a")), "something else than the runner"),
    "no event": (told(["test", "a"]), "something else than the runner"),
    "no JSON": (b"w 1 {\n", "something else than the runner"),
    "too early": (told(*phases("a"), ended(0, 2)), "it ended after 1 of 2 tests"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "why"), SPOILT.values(), ids=SPOILT)
def test_what_is_not_whole_is_worthless(data, why):
    """Cut, mixed with another's words, out of order or without an end: unreadable, and it says why."""
    report = read_reporter_events("pytest", data, "w")
    assert isinstance(report, UnreadableReport)
    assert why in str(report)


def test_what_is_told_is_bounded(monkeypatch):
    """Too many bytes and too many tests are refused."""
    monkeypatch.setattr(runner_reports, "MAX_REPORT_CASES", 1)
    assert isinstance(
        read_reporter_events("pytest", told(*phases("a"), *phases("b"), *phases("c"), ended()), "w"),
        UnreadableReport,
    )
    monkeypatch.setattr(runner_reports, "MAX_REPORT_BYTES", 10)
    assert "longer than 10 bytes" in str(read_reporter_events("pytest", told(ended()), "w"))


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data):
    """Nothing that is told makes the reader raise."""
    for told_so in (data, b"w 1 " + data + b"\n"):
        assert isinstance(read_reporter_events("pytest", told_so, "w"), RunnerReport | UnreadableReport)


def test_files_modules_and_replacements_are_told():
    """Each test belongs to the files that were told last for its worker; files outside the tree are left out."""
    data = told(
        ["from", "", ["/w/1/test_a.py", "/w/1/base.py"]], *phases("test_a.py::a"),
        ["from", "gw1", ["/w/1/test_b.py", 7]], ["test", "gw1", "test_b.py::b", "call", "passed", False],
        ["from", "", ["/elsewhere/x.py"]], *phases("x.py::x"),
        ["from", "", ["/w/1/calc.py"]], *phases("calc.py::calc.add"), *phases("calc.py::ruff"),
        ["example", "/w/1/shown.py"],
        ["loaded", {"calc": "/w/1/calc.py", "random": "", "far": "/far.py", "odd": 1}],
        ["replaced", ["b", "a", "a", 7]], ended(),
    )  # fmt: skip
    report = read_reporter_events("pytest", data, "w", ("/w/1",))
    assert report.files == {
        "test_a.py": ("test_a.py::a",), "base.py": ("test_a.py::a",), "test_b.py": ("test_b.py::b",),
    }  # fmt: skip
    assert report.examples == ("calc.py", "shown.py")
    assert report.modules == {"calc": "calc.py", "random": "", "far": "/far.py"}
    assert report.replaced == ("a", "b")


def test_unittest_has_no_examples_in_names():
    """There a file is told for every test."""
    data = told(["from", "", ["/w/1/calc.py"]], *phases("calc.A.a"), ended())
    assert read_reporter_events("unittest", data, "w", ("/w/1",)).files == {"calc.py": ("calc.A.a",)}
