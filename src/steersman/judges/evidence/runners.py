"""Which test runner an argv starts, how it is asked for its report, and what its end proves.

A runner is asked through its environment, so that the executed argv stays the approved one. Only one that the argv
starts itself, or through a usual launcher, is known: behind `make` or `npm` it is unknown how often one is started.
**Invariant:** pure; zero tests is never a pass, nor are skipped ones tests.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from steersman.contracts.commands import CommandOutcome
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.generic import GENERIC
from steersman.judges.ecosystems.javascript import JAVASCRIPT
from steersman.judges.ecosystems.python import PYTHON

RunnerForm = Literal["pytest", "unittest", "node", "go", "indirect"]
NODE_REPORTER_FILE, NODE_PRELOAD_FILE = "steersman_reporter.mjs", "steersman_preload.cjs"
# In the folder of one execution.
REPORTER_SOCKET_NAME, NODE_REPORT_PIPE, GO_EXEC_SCRIPT = ("wire", "report.xml", "steersman_go.sh")

_NO_TESTS_EXIT = 5  # pytest's, and unittest's since Python 3.12
_PYTHON_LAUNCHERS = frozenset(f"{PYTHON.launchers} {GENERIC.launchers}".split())
_PACKAGE_LAUNCHERS = frozenset(f"{JAVASCRIPT.launchers} {GENERIC.launchers} bundle".split())
_NODE_REPORTER_OPTIONS = ("--test-reporter", "--test-reporter-destination")
_STANDALONE_RUNNERS = frozenset(word for each in ECOSYSTEMS for word in each.test_runners.split())
_TEST_SUBCOMMAND_PROGRAMS = frozenset(word for each in ECOSYSTEMS for word in each.test_subcommands.split())
_BUILD_PROGRAMS = frozenset({"gradle", "gradlew", "mvn", "mvnw"})


def find_report_form(argv: Sequence[str]) -> RunnerForm | None:
    """Which report this argv can be asked for; None where its runner has none, or the argv sends it elsewhere."""
    names = _list_program_names(argv)
    if (
        _starts_python_module(names, "pytest")
        or names[:1] in (["pytest"], ["py.test"])
        or _starts_pytest_through_launcher(names)
    ):
        return None if _ignores_environment(argv, "IE") else "pytest"
    if _starts_python_module(names, "unittest"):
        return None if _ignores_environment(argv, "IES") else "unittest"
    if names[:1] == ["node"] and "--test" in names:
        return None if any(word.partition("=")[0] in _NODE_REPORTER_OPTIONS for word in argv) else "node"
    return "go" if _drop_toolchain_options(names)[:2] == ["go", "test"] else None


def reporter_environment(argv: Sequence[str], form: RunnerForm, directory: str) -> dict[str, str]:
    """What the runner finds in its environment: where to tell its report, beside what it prints."""
    match form:
        case "pytest":
            return {"PYTEST_ADDOPTS": "-p steersman_witness", **_reporter_variables(directory)}
        case "unittest" | "indirect":
            return _reporter_variables(directory)
        case "node":
            place, reporter, preload = (
                _quote_node_option(f"{directory}/{name}")
                for name in (NODE_REPORT_PIPE, NODE_REPORTER_FILE, NODE_PRELOAD_FILE)
            )
            stdout_options = "--test-reporter=spec --test-reporter-destination=stdout"
            options = f"--test-reporter={reporter} --test-reporter-destination={place} --require={preload}"
            return {"NODE_OPTIONS": f"{stdout_options} {options}"}
        case _:
            exec_option = (
                f"-exec={directory}/{GO_EXEC_SCRIPT}"
                if " " not in directory
                else f"'-exec=\"{directory}/{GO_EXEC_SCRIPT}\"'"
            )
            return {
                "GOFLAGS": exec_option
                if {"-json", "--json", "-json=true"} & set(argv)
                else f"-json {exec_option}"
            }


def _quote_node_option(place: str) -> str:
    """As node splits its options."""
    return '"' + place.replace("\\", "\\\\").replace('"', '\\"') + '"'


def is_test_runner(argv: Sequence[str]) -> bool:
    """Does this argv start a test runner, so that passing needs a counted test?"""
    names = _list_program_names(argv)
    if (
        find_report_form(argv) is not None
        or _starts_python_runner(names)
        or (names[:1] == ["node"] and "--test" in names)
    ):
        return True
    rest = names[1:] if names and names[0] in _PACKAGE_LAUNCHERS else names
    program = next((name for name in rest if name not in ("exec", "run", "x", "dlx", "--")), "")
    if program in _STANDALONE_RUNNERS:
        return True
    words = _drop_toolchain_options(names)
    if words and words[0] in _BUILD_PROGRAMS:
        return any(word.rpartition(":")[2] in ("test", "verify") for word in words)
    return bool(words) and words[0] in _TEST_SUBCOMMAND_PROGRAMS and words[1:2] in (["test"], ["nextest"])


def judge_exit_code(argv: Sequence[str], exit_code: int, tests: int | None) -> CommandOutcome:
    """The verdict on a command that ended by itself: passing needs exit 0 and, of a test runner, a counted test."""
    if exit_code == _NO_TESTS_EXIT and _starts_python_runner(_list_program_names(argv)):
        return "no_tests"
    if exit_code != 0:
        return "failed"
    return "no_tests" if tests == 0 or (tests is None and is_test_runner(argv)) else "passed"


def _starts_python_runner(names: Sequence[str]) -> bool:
    by_module = _starts_python_module(names, "pytest") or _starts_python_module(names, "unittest")
    return by_module or names[:1] == ["pytest"] or _starts_pytest_through_launcher(names)


def _list_program_names(argv: Sequence[str]) -> list[str]:
    return [word.rpartition("/")[2] for word in argv]


def _starts_python_module(names: Sequence[str], module: str) -> bool:
    return any(flag == "-m" and name == module for flag, name in pairwise(names))


def _starts_pytest_through_launcher(names: Sequence[str]) -> bool:
    return bool(names) and names[0] in _PYTHON_LAUNCHERS and "pytest" in names


def _drop_toolchain_options(names: list[str]) -> list[str]:
    """`go -C folder test` and `cargo +nightly test` without what stands between."""
    if names[1:2] == ["-C"]:
        return [*names[:1], *names[3:]]
    return [name for name in names if not name.startswith("+")]


def _ignores_environment(argv: Sequence[str], flags: str) -> bool:
    """Whether the interpreter was told to leave its environment, or `sitecustomize`, alone."""
    interpreter_words = argv[: argv.index("-m")] if "-m" in argv else ()
    return any(
        word.startswith("-") and not word.startswith(("--", "-W", "-X")) and set(flags) & set(word)
        for word in interpreter_words
    )


def _reporter_variables(directory: str) -> dict[str, str]:
    return {"PYTHONPATH": directory, "STEERSMAN_WITNESS": f"{directory}/{REPORTER_SOCKET_NAME}"}
