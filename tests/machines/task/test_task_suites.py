"""What was run for a task is one report on one tree."""

import msgspec
import pytest
from tests.support.cases import for_each_case

from steersman.contracts.commands import CommandResult, RunnerReport, VariantFinding
from steersman.contracts.facts import CheckFacts
from steersman.judges.evidence.check_results import weigh_check_results
from steersman.kernel.canonical import digest_of
from steersman.machines.task.documents import schemas as d
from steersman.machines.task.documents import suites

TREE = "b" * 40


@for_each_case(
    ("argv", "kind"),
    [
        ("ruff check .", "lint"),
        (".venv/bin/ruff format --check", "lint"),
        ("uv run ruff check", "lint"),
        ("python -m flake8", "lint"),
        ("npx eslint .", "lint"),
        ("npm run lint", "lint"),
        ("npm run lint:js", "lint"),
        ("make lint", "lint"),
        ("cargo +nightly clippy", "lint"),
        ("cargo fmt --check", "lint"),
        ("env A=1 golangci-lint run", "lint"),
        ("mypy", "static"),
        ("python3 -m mypy src", "static"),
        ("pnpm exec tsc --noEmit", "static"),
        ("go vet ./...", "static"),
        ("cargo check", "static"),
        ("tox -e types", "static"),
        ("pytest -q", "test"),
        ("uv run pytest tests/mypy", "test"),
        ("cargo test", "test"),
        ("npm test", "test"),
        ("make check", "test"),
        ("", "test"),
    ],
)
def test_kinds(argv, kind):
    """The program that does the work says what a command is, behind whatever starts it."""
    assert suites.classify_suite_command("unit", argv.split(), True) == kind


def test_kind_by_name():
    """Where the program is unknown the check's own name says it, and else whether it counts tests."""
    assert suites.classify_suite_command("Lint", ("./check",), True) == "lint"
    assert suites.classify_suite_command("types", ("./check",), False) == "static"
    assert suites.classify_suite_command("all", ("./check",), True) == "test"
    assert suites.classify_suite_command("all", ("./check",), False) == "lint"


def ran(name="unit", verdict="passed", *, exit_code=0, tests=3, failed=(), argv=None):
    report = RunnerReport(form="pytest", ran=3, failures=len(failed), failed=failed) if failed else None
    return CommandResult(
        name=name, argv=argv or ("pytest", name), source="project", verdict=verdict, exit_code=exit_code,
        tests=tests, passed=tests and tests - (verdict == "failed"), report=report,
    )  # fmt: skip


def broken(name="unit", **more):
    return ran(name, "failed", exit_code=1, **more)


def facts_of(results, base=None, known=(), tree=TREE, **changed):
    """Facts as the performer of checks makes them."""
    w = weigh_check_results(results, base if base is not None else results, frozenset(known))
    counted = {name: getattr(w, name) for name in ("passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky", "tests")}  # fmt: skip
    failed = tuple(digest_of(c)[:16] for c in w.failed_commands)
    return CheckFacts(**{**counted, "tree": tree, "failed_commands": failed, **changed})


def report(results, known=(), no_tests=(), base=None):
    facts = facts_of(results, base, known)
    made = suites.build_task_test_report("261116-abc123", 1, TREE, results, facts, no_tests, known)
    assert msgspec.json.decode(msgspec.json.encode(made), type=d.TestReport) == made
    return made


def test_everything_passed():
    """Every suite ran and passed, with tests, on this tree."""
    made = report([ran(), ran("lint", argv=("ruff",), tests=None)], no_tests=("lint",))
    assert made.overall_pass
    assert [(s.name, s.kind, s.verdict, s.known) for s in made.suites] == [
        ("unit", "test", "passed", False),
        ("lint", "lint", "passed", False),
    ]
    assert (made.summary["passed"], made.summary["tests"]) == (2, 3)


@for_each_case(
    "results",
    [
        [],
        [broken()],
        [ran(), broken("lint")],
        [ran(), ran("e2e", "blocked", exit_code=None)],
        [ran(), ran("e2e", "timeout", exit_code=None)],
        [ran(), ran("e2e", "no_tests", tests=0)],
        [ran(), ran("e2e", "passed", exit_code=1)],
        [ran(), ran("e2e", "passed", tests=0)],
        [ran("lint", tests=None)],
        [broken(), ran()],
    ],
)  # fmt: skip
def test_nothing_else_passes(results):
    """One suite that did not run and pass is enough, and so is the absence of tests."""
    assert not report(results).overall_pass


@for_each_case(
    "changed",
    [{"tree": ""}, {"tree": "c" * 40}, {"error": "workspace"}, {"failed": 1}, {"blocked": 1}, {"timeout": 1}, {"no_tests": 1}, {"tests": 0}],
)  # fmt: skip
def test_facts_that_speak_against_it(changed):
    """Results that look well prove nothing beside facts that say otherwise."""
    assert report([ran()]).overall_pass
    facts = facts_of([ran()], **changed)
    assert not suites.build_task_test_report("t", 1, TREE, [ran()], facts, (), ()).overall_pass


def test_a_report_on_no_tree():
    """Where there is no tree nothing was proven, even if the facts have none either."""
    facts = facts_of([ran()], tree="")
    assert not suites.build_task_test_report("t", 1, "", [ran()], facts, (), ()).overall_pass


KNOWN = {
    "by the check's name": ([broken()], ("unit",)),
    "by the tests' names": ([broken(failed=("tests/a.py::one",))], ("tests.a.one",)),
}


@pytest.mark.parametrize(("results", "known"), KNOWN.values(), ids=KNOWN)
def test_known_failures(results, known):
    """A failure that the base tree has too and that is acknowledged by name does not stand against the change."""
    made = report([*results, ran("other")], known)
    assert made.overall_pass
    assert [(s.verdict, s.known) for s in made.suites] == [("failed", True), ("passed", False)]
    assert not report([*results, ran("other")], ()).overall_pass
    new = report([*results, ran("other")], known, base=[ran(), ran("other")])
    assert not new.overall_pass
    assert not new.suites[0].known


@pytest.mark.parametrize(
    "result", [broken("other"), broken("other", failed=("tests/a.py::two",)), broken("other", failed=())]
)
def test_known_is_said_by_name(result):
    """Beside a known failure nobody's other failure becomes one, whatever the facts say of it."""
    facts = CheckFacts(tree=TREE, known=1, tests=3)
    made = suites.build_task_test_report("t", 1, TREE, [broken(), result], facts, (), ("unit", "tests.a.one"))
    assert [s.known for s in made.suites] == [True, False]
    assert not made.overall_pass


def test_acknowledged_and_new():
    """A check that is acknowledged by name and fails only now has failed, beside one whose failure is old."""
    base = [broken("old"), ran("new")]
    made = report([broken("old"), broken("new")], ("old", "new"), base=base)
    assert [s.known for s in made.suites] == [True, False]
    assert not made.overall_pass


def test_runs_of_one_command_are_one_suite():
    """The worst of several runs is told, with its reason."""
    slow = msgspec.structs.replace(ran(verdict="timeout", exit_code=None), reason="600 s")
    made = report([broken(), slow])
    assert [(s.verdict, s.reason) for s in made.suites] == [("timeout", "600 s")]


def test_bounds():
    """Whatever a project calls its checks and however many it has, the report fits."""
    long = ran("n" * 900, argv=tuple("x" * 5000 for _ in range(70)))
    made = report([long, *(ran(f"c{n}") for n in range(250))])
    assert len(made.suites) == 200
    assert len(made.suites[0].argv) == 64


def test_a_variant_speaks_where_it_fails_alone():
    """What passes only because of other test files is a failed suite with its reason; else a variant is none."""
    fine = msgspec.structs.replace(ran("unit (old tests)"), variant="old tests", tree=TREE)
    assert [s.name for s in report([ran(), fine]).suites] == ["unit"]
    assert report([ran(), fine]).overall_pass
    found = (VariantFinding("failure", "1 test passes only so", ("a",)),)
    made = report([ran(), msgspec.structs.replace(fine, findings=found)])
    assert not made.overall_pass
    assert [(s.name, s.verdict, s.reason) for s in made.suites[1:]] == [
        ("unit (old tests)", "failed", "1 test passes only so\na")
    ]
