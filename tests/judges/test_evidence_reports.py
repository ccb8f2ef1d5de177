"""What runners report: read strictly, and able to take a pass away."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence import runner_reports
from steersman.judges.evidence.runner_reports import (
    LEFT_EARLY_LINE,
    NO_TEST_COUNT_REASON,
    UnreadableReport,
    judge_command_report,
    read_go_report,
    read_node_report,
)

PYTEST = ("python3", "-m", "pytest", "-q")


def node(*tests, end=True):
    lines = [*tests, *([["ended"]] if end else ())]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def case(name, outcome="passed", above=(), file="/w/1/a.test.js"):
    return ["test", list(above), name, outcome, file]


def test_node_tells_every_test_with_its_file():
    """Passed, failed and skipped tests are told apart by name; a suite is none; files are told from the tree."""
    told = read_node_report(
        node(
            case("one"), case("two", "failed", ["grp", "inner"]),
            ["suite", [], "grp", "failed", "/w/1/a.test.js"],
            case("three", "skipped", file="/elsewhere/b.test.js"), ["replaced", "assert.equal"],
        ),
        ("/w/1",),
    )  # fmt: skip
    assert (told.passed, told.failed, told.skipped) == (("one",), ("grp::inner::two",), ("three",))
    assert told.files == {"a.test.js": ("grp::inner::two", "one")}
    assert (told.form, told.ran, told.failures, told.expected) == ("junit", 2, 1, 0)
    assert told.replaced == ("assert.equal",)


def test_a_file_that_holds_no_test_is_none():
    """node calls such a file a test that passed; one that broke is a failure all the same."""
    told = read_node_report(node(case("/w/1/a.test.js"), case("b.mjs", "failed"), case("of a.js")), ("/w/1",))
    assert (told.passed, told.failed, told.ran, told.expected) == (("of a.js",), ("b.mjs",), 2, 1)
    assert (told.broken, told.empty) == (("b.mjs",), ("a.test.js",))


def test_a_name_is_told_from_the_root_of_the_tree():
    """A tree has another place each time: what is in it, and it itself, is named the same wherever it is."""
    told = [
        read_node_report(node(case(f"reads {tree}/a.json from {tree}", file=f"{tree}/x.js")), (tree, "/real"))
        for tree in ("/w/1", "/w/22")
    ]
    assert told[0] == told[1]
    assert told[0].files == {"x.js": ("reads a.json from .",)}


@for_each_case(
    ("data", "why"),
    [
        (b"", "ended before"),
        (node(case("a"), end=False), "ended before"),
        (node(case("a")) + b"[", "ended before"),
        (b"=== 100 passed in 1.00s ===\n", "something else"),
        (node(case("a"), ["ended"]), "something else"),
        (node(case("a", "fine")), "something else"),
        (b" " * (runner_reports.MAX_REPORT_BYTES + 1), "longer than"),
    ],
)
def test_what_is_no_report_says_why(data, why):
    """A forged, cut or foreign report is unreadable, and that has a reason."""
    told = read_node_report(data)
    assert isinstance(told, UnreadableReport)
    assert why in str(told)


def test_a_report_is_bounded(monkeypatch):
    """Too many cases are refused; names beyond those kept are only counted."""
    monkeypatch.setattr(runner_reports, "MAX_REPORT_CASES", 3)
    assert isinstance(read_node_report(node(*(case(f"t{n}") for n in range(6)))), UnreadableReport)
    monkeypatch.setattr(runner_reports, "MAX_KEPT_TEST_NAMES", 2)
    told = read_node_report(node(*(case(f"t{n}") for n in range(3))))
    assert (told.ran, len(told.passed), told.cut) == (3, 2, True)


def test_code_from_outside_the_tree_is_no_evidence():
    """Tests that loaded the project from elsewhere have failed, and the place is named."""
    report = RunnerReport(form="pytest", ran=1, passed=("a",), outside=("calc was loaded from /x/calc.py",))
    verdict, _, reason = judge_command_report(PYTEST, 0, report, 1)
    assert (verdict, reason) == (
        "failed",
        "its tests did not test this tree: calc was loaded from /x/calc.py",
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data):
    """No report makes the reader raise."""
    assert isinstance(read_node_report(data), RunnerReport | UnreadableReport)


def events(*lines):
    return "".join(json.dumps({"Package": "x", **line}) + "\n" for line in lines)


def test_go_tells_every_test():
    """Tests count, packages count where they fail, and the output is as people know it."""
    told, shown = read_go_report(
        "# x\n"
        + events(
            {"Action": "start"},
            {"Action": "run", "Test": "TestA"},
            {"Action": "output", "Test": "TestA", "Output": "--- PASS: TestA\n"},
            {"Action": "pass", "Test": "TestA"},
            {"Action": "skip", "Test": "TestS"},
            {"Action": "output", "Test": "TestF", "Output": "=== RUN   TestF\n"},
            {"Action": "output", "Test": "TestF", "Output": "--- FAIL: TestF\n"},
            {"Action": "fail", "Test": "TestF"},
            {"Action": "run", "Test": "TestHangs"},
            {"Action": "pass"},
            {"Action": "skip", "Package": "y"},
        )
        + '{"not": "an event"}\n{"broken\n'
    )
    assert (told.passed, told.failed, told.skipped) == (
        ("x::TestA",),
        ("x::TestF", "x::TestHangs"),
        ("x::TestS",),
    )
    assert (told.broken, told.empty) == ((), ("y",))
    assert shown == '# x\n--- FAIL: TestF\n{"not": "an event"}\n{"broken\n'


def test_a_go_package_that_fails_has_failed():
    """A package that does not build, or fails after a test has passed, is a failure of its own."""
    told, _ = read_go_report(events({"Action": "start"}, {"Action": "fail"}, {"Action": "pass"}))
    assert (told.failed, told.broken, told.passed) == (("x",), ("x",), ())
    told, _ = read_go_report(events({"Action": "start"}))
    assert told.broken == ("x",)


def unbuilt(package, kind="build"):
    return (
        {"Action": "start", "Package": package},
        {"Action": "output", "Package": package, "Output": f"FAIL\t{package} [{kind} failed]\n"},
        {"Action": "fail", "Package": package},
    )


def test_a_go_package_is_no_test():
    """Where a test says why its package failed the package is left out; in no case is it counted."""
    red = ({"Action": "start"}, {"Action": "fail", "Test": "TestRed"}, {"Action": "fail"})
    told, _ = read_go_report(events(*red, {"Action": "pass", "Test": "TestA"}))
    assert (told.failed, told.broken, told.ran, told.failures) == (("x::TestRed",), (), 2, 1)
    told, _ = read_go_report(events(*red, *unbuilt("y")))
    assert (told.failed, told.broken) == (("x::TestRed", "y [build failed]"), ("y [build failed]",))
    assert (told.ran, told.failures) == (1, 1)
    assert judge_command_report(("go",), 0, read_go_report(events(*unbuilt("y")))[0], None)[0] == "failed"


def test_a_go_package_says_how_it_failed():
    """A package that does not build is another failure than one that fails beside its tests, whatever these print."""
    told, _ = read_go_report(
        events(*unbuilt("y"), *unbuilt("z", "setup"), {"Action": "start"}, {"Action": "fail"})
    )
    assert told.broken == ("x", "y [build failed]", "z [setup failed]")
    told, _ = read_go_report(events({"Action": "pass", "Test": "TestA", "Package": "y"}, *unbuilt("y")))
    assert told.broken == ("y",)


def test_what_go_says_of_a_build_is_shown_as_text():
    """Not as the event that it comes in."""
    build = {"ImportPath": "y [y.test]", "Action": "build-output", "Output": "y/a.go:4:6: syntax error\n"}
    fails = {"ImportPath": "y [y.test]", "Action": "build-fail"}
    _, shown = read_go_report("".join(json.dumps(e) + "\n" for e in (build, fails)) + events(*unbuilt("y")))
    assert shown == "y/a.go:4:6: syntax error\nFAIL\ty [build failed]\n"


def test_go_tests_that_did_not_come_to_their_end_prove_nothing():
    """A binary that prints its results and leaves proves nothing; one that left without a test is no test, nor empty."""
    left = {"Action": "output", "Output": f"{LEFT_EARLY_LINE}\n"}
    forged = ({"Action": "run", "Test": "TestA"}, {"Action": "pass", "Test": "TestA"}, {"Action": "pass"})
    assert "before its tests" in str(read_go_report(events(*forged[:2], left, forged[2]))[0])
    other = [{**event, "Package": "y"} for event in forged]
    told, _ = read_go_report(events(left, {"Action": "skip"}, *other))
    assert (told.passed, told.empty) == (("y::TestA",), ())


def test_go_without_events_has_no_report():
    """Plain output, however it looks, is no report."""
    told, shown = read_go_report("ok  \tx\t0.01s\n")
    assert isinstance(told, UnreadableReport)
    assert shown == "ok  \tx\t0.01s\n"


GOOD = RunnerReport(form="junit", ran=3, passed=("a", "b", "c"))


@for_each_case(
    ("exit_code", "report", "printed", "expected"),
    [
        (0, GOOD, 3, ("passed", 3, "")),
        (0, GOOD, None, ("failed", 3, "it left a report without coming to its summary")),
        (0, RunnerReport(form="go", ran=3), None, ("passed", 3, "")),
        (0, RunnerReport(form="go", ran=3), 1, ("passed", 3, "")),
        (0, RunnerReport(form="pytest", ran=3), None, ("passed", 3, "")),
        (0, RunnerReport(form="pytest", ran=3), 4, ("failed", 3, "its report has 3 tests, its summary 4")),
        (0, RunnerReport(form="unittest", ran=3), None, ("failed", 3, "it left a report without coming to its summary")),
        (0, RunnerReport(form="unittest", ran=3), 1, ("passed", 3, "")),
        (0, GOOD, 100, ("failed", 3, "its report has 3 tests, its summary 100")),
        (0, RunnerReport(form="junit", ran=3, failures=1), None, ("failed", 3, "its report has 1 failures, its exit code is 0")),
        (0, RunnerReport(form="junit", expected=2), 2, ("no_tests", 0, "")),
        (0, UnreadableReport("gone"), 100, ("no_tests", None, "gone")),
        (1, UnreadableReport("gone"), 100, ("failed", None, "gone")),
        (5, UnreadableReport("gone"), None, ("no_tests", None, "gone")),
        (1, GOOD, 3, ("failed", 3, "")),
        (0, None, 3, ("passed", 3, "")),
        (0, None, None, ("no_tests", None, NO_TEST_COUNT_REASON)),
        (0, None, 0, ("no_tests", 0, "")),
    ],
)  # fmt: skip
def test_a_report_can_only_take_a_pass_away(exit_code, report, printed, expected):
    """Passing needs exit code 0, a report that can be read, a test in it, and a summary that agrees."""
    assert judge_command_report(PYTEST, exit_code, report, printed) == expected
