"""Which runner an argv starts, and how it is asked for its report."""

from tests.support.cases import for_each_case

from steersman.judges.evidence.runners import (
    find_report_form,
    is_test_runner,
    judge_exit_code,
    reporter_environment,
)

PYTEST = ("python3", "-m", "pytest", "-q")
FORMS = [
    (PYTEST, "pytest"),
    (("/usr/bin/pytest", "tests"), "pytest"),
    (("py.test",), "pytest"),
    (("uv", "run", "pytest", "-q"), "pytest"),
    (("coverage", "run", "-m", "pytest"), "pytest"),
    (("pytest", "--junitxml=mine.xml"), "pytest"),
    (("python3", "-Werror", "-X", "dev", "-m", "pytest"), "pytest"),
    (("python3", "-I", "-m", "pytest"), None),
    (("python3", "-sE", "-m", "pytest"), None),
    (("python3", "-S", "-m", "pytest"), "pytest"),
    (("python3", "-m", "unittest"), "unittest"),
    (("coverage", "run", "-m", "unittest", "-v"), "unittest"),
    (("python3", "-S", "-m", "unittest"), None),
    (("make", "pytest"), None),
    (("node", "--test"), "node"),
    (("node", "run.js"), None),
    (("node", "--test", "--test-reporter=tap"), None),
    (("go", "test", "./..."), "go"),
    (("go", "-C", "sub", "test"), "go"),
    (("go", "test", "-json", "./..."), "go"),
    (("go", "vet", "./..."), None),
    ((), None),
]


@for_each_case(("argv", "form"), FORMS)
def test_only_a_runner_that_is_started_directly_is_asked(argv, form):
    """A report is asked of pytest, unittest, node and go themselves, where they can hear it."""
    assert find_report_form(argv) == form


def test_a_report_is_asked_through_the_environment():
    """The argv stays as it was approved; a place is quoted; a project that asks go for its events is given them."""
    assert reporter_environment(PYTEST, "pytest", "/r") == {
        "PYTEST_ADDOPTS": "-p steersman_witness", "PYTHONPATH": "/r", "STEERSMAN_WITNESS": "/r/wire",
    }  # fmt: skip
    assert reporter_environment((), "unittest", "/r") == {"PYTHONPATH": "/r", "STEERSMAN_WITNESS": "/r/wire"}
    assert 'destination="/r/a b/report.xml"' in reporter_environment((), "node", "/r/a b")["NODE_OPTIONS"]
    assert reporter_environment(("go", "test"), "go", "/r") == {"GOFLAGS": "-json -exec=/r/steersman_go.sh"}
    assert reporter_environment(("go", "test", "-json"), "go", "/r") == {
        "GOFLAGS": "-exec=/r/steersman_go.sh"
    }
    assert (
        reporter_environment(("go", "test"), "go", "/r/a b")["GOFLAGS"]
        == "-json '-exec=\"/r/a b/steersman_go.sh\"'"
    )


RUN_TESTS = """
jest --ci | npx vitest run | pnpm exec mocha | yarn jest | bundle exec rspec | vendor/bin/phpunit | cargo test
cargo +nightly test | cargo nextest run | dotnet test x.sln | swift test | mix test | flutter test | dart test
deno test -A | bun test | go test -json ./... | ctest -j2 | npx -- ava | ./gradlew -q :core:test | mvn -B verify
gradle test | npx tap | gotestsum | python -I -m pytest | python -S -m unittest | node --test --test-reporter=tap
pytest -q | /venv/bin/pytest | /venv/bin/python -m pytest | python -m unittest discover | uv run --frozen pytest
coverage run -m unittest
"""
RUN_NONE = """
go vet ./... | cargo clippy | dotnet build | npm run lint | npm test | make test | gradle assemble | mvn compile
deno lint | bun run test | eslint jest | npx | env | swift build | mix format | uv run ruff check | ruff check pytest
python -m mypy
"""


def list_commands(text):
    return [tuple(line.split()) for line in text.strip().replace("\n", "|").split("|")]


@for_each_case(
    ("argv", "is_runner"),
    [
        *((argv, True) for argv in list_commands(RUN_TESTS)),
        *((argv, False) for argv in [(), *list_commands(RUN_NONE)]),
    ],
)
def test_a_runner_that_tells_no_number_does_not_pass(argv, is_runner):
    """What starts a test runner passes with a counted test only; what is none passes by its exit code."""
    assert is_test_runner(argv) is is_runner
    assert judge_exit_code(argv, 0, None) == ("no_tests" if is_runner else "passed")
    assert judge_exit_code(argv, 0, 0) == "no_tests"
    assert judge_exit_code(argv, 0, 1) == "passed"


@for_each_case(
    ("argv", "exit_code", "tests", "verdict"),
    [
        (("pytest",), 0, 3, "passed"),
        (("pytest",), 0, 0, "no_tests"),
        (("pytest",), 0, None, "no_tests"),
        (("pytest",), 5, None, "no_tests"),
        (("python", "-m", "unittest"), 5, 0, "no_tests"),
        (("pytest",), 1, 3, "failed"),
        (("ruff", "check"), 0, None, "passed"),
        (("ruff", "check"), 1, None, "failed"),
        (("make", "test"), 0, 0, "no_tests"),
        (("make", "test"), 5, 2, "failed"),
        (("make", "test"), -9, None, "failed"),
    ],
)
def test_passing_needs_evidence(argv, exit_code, tests, verdict):
    """Exit 0 passes only with at least one counted test, or for a command that is no test runner."""
    assert judge_exit_code(argv, exit_code, tests) == verdict
