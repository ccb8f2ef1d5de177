"""Which test runner an argv starts, how it is asked for its report, and what its end proves.

A runner is asked through its environment, so that the executed argv stays the approved one. Only one that the argv
starts itself, or through a usual launcher, is known: behind `make` or `npm` it is unknown how often one is started.
**Invariant:** pure; zero tests is never a pass, nor are skipped ones tests.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from steersman.contracts.commands import CommandOutcome
from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.ecosystem import COUNT_DIGITS
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


# ── printed summaries ───────────────────────────────────────────────────────────────────────────────────────────────────

# What runners print at their end: how many tests ran, and whether the words say that some failed.
#
# Printed by a process that ran hostile code, so a summary is weaker than a report: it is used where a runner has none,
# and beside a report, which it must not contradict. Where nothing ran, or all was skipped, the count is zero, not unknown.
# **Invariant:** pure; linear in the output.


_COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")


@cache
def _compile_summary_pattern(words: str) -> re.Pattern[str]:
    """Compiled when something was printed: half a hundred of them cost more than most commands."""
    return re.compile(words, re.MULTILINE)


RUNNER_SUMMARY_PATTERNS = tuple(pattern for ecosystem in ECOSYSTEMS for pattern in ecosystem.runner_summaries)
_FAILURE_WORDS = re.compile(
    r"\b[1-9]\d{0,8} (?:tests? |examples? )?(?:failed|failures?|failing)\b|^(?:#|ℹ) fail +[1-9]|^FAILED \((?:failures|errors)=",
    re.IGNORECASE,
)
_FAILURE_COUNT = re.compile(
    r"\b(\d{1,9}) (?:(?:tests?|examples?) )?(?:fail(?:ed|ing|ures?)?|errors?)\b"
    r"|\b(?:fail(?:ed|ures?)?|errors?)(?:=|:? +)(\d{1,9})\b",
    re.IGNORECASE,
)
# All the words that stand in a runner's closing line; a line with another word is ordinary text.
_CLOSING_WORD_LIST = """
after and assertion assertions asserts case cases complete deselected disabled doctest doctests done duration error
errors example examples exception exceptions excluded executed expected fail failed failing failure failures file files
filtered finished flaky ignored in incomplete invalid issue issues known m measured min ms notifications of omissions
out pass passed passing pending pendings properties property rerun result risky run runs s sec second seconds skipped
skips snapshots step steps subtests suite suites summary test tests time todo total uncaught unexpected warn warning
warnings with xfailed xpassed ℹ
"""
_CLOSING_WORDS = frozenset(_CLOSING_WORD_LIST.split())


def count_printed_tests(output: str) -> int | None:
    """How many tests the closing lines say were run, skipped ones left out; None where none says."""
    return _add_up_counts(_COLOUR_CODES.sub("", output), _count_tests_in_match, passes=False)


def count_printed_passes(output: str) -> int | None:
    """How many of these tests passed; None where a closing line does not tell them from those that failed."""
    plain = _COLOUR_CODES.sub("", output)
    groups = (
        _compile_summary_pattern(runner.words).groupindex
        for runner in RUNNER_SUMMARY_PATTERNS
        if _compile_summary_pattern(runner.words).search(plain)
    )
    if any("ran" in names and not {"good", "failures"} & names.keys() for names in groups):
        return None
    return _add_up_counts(plain, _count_passes_in_match, passes=True)


def _add_up_counts(plain: str, count: Callable[[re.Match[str]], int], *, passes: bool) -> int | None:
    counts = [
        max(numbers) if runner.nested else sum(numbers)
        for runner in RUNNER_SUMMARY_PATTERNS
        if (numbers := [count(match) for match in _compile_summary_pattern(runner.words).finditer(plain)])
    ]
    python_count = _count_python_tests(plain, passes=passes)
    if python_count is None:
        return max(0, sum(counts)) if counts else None
    return python_count and max(0, python_count + sum(counts))


def _count_tests_in_match(match: re.Match[str]) -> int:
    groups, number = _read_match_numbers(match)
    if "one" in groups or "not_run" in groups:
        return 1 if "one" in groups else -1
    ran = sum(number.get(name, 0) for name in ("passed", "failed", "ran"))
    return _sum_worded_counts(groups, "passed", "failed") + max(
        0, ran - number.get("skipped", 0) - number.get("left", 0)
    )


def _count_passes_in_match(match: re.Match[str]) -> int:
    groups, number = _read_match_numbers(match)
    if "one" in groups or "not_run" in groups:
        return int(groups.get("one", "").startswith("PASS")) if "one" in groups else -1
    not_passed = sum(number.get(name, 0) for name in ("skipped", "left", "failures", "errors"))
    good = number.get("good", max(0, number.get("ran", 0) - not_passed))
    return _sum_worded_counts(groups, "passed") + number.get("passed", 0) + good


def _read_match_numbers(match: re.Match[str]) -> tuple[dict[str, str], dict[str, int]]:
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    return groups, {name: int(text) for name, text in groups.items() if text.isdecimal()}


def _sum_worded_counts(groups: Mapping[str, str], *words: str) -> int:
    parts = re.findall(rf"({COUNT_DIGITS}) ([a-z ]+)", groups.get("parts", ""))
    return sum(int(number) for number, text in parts if text.split()[-1] in words)


def _count_python_tests(plain: str, *, passes: bool) -> int | None:
    """Of pytest and unittest a summary that says zero decides: a test module may print any summary it likes."""
    not_counted, words, dots = (
        (_NOT_PASSED_COUNT, _PASS_WORDS, ".xX") if passes else (_SKIPPED_COUNT, _RAN_WORDS, ".FxX")
    )
    counts = [_count_unittest_tests(match, not_counted) for match in _UNITTEST_SUMMARY.finditer(plain)]
    counts += [_count_pytest_tests(match["parts"], words) for match in _PYTEST_SUMMARY.finditer(plain)]
    if not counts:  # with -qq pytest draws its dots and leaves the summary out
        counts = [sum(map(match["dots"].count, dots)) for match in _PYTEST_PROGRESS.finditer(plain)]
        return sum(counts) if counts else None
    return 0 if 0 in counts else sum(counts)


_UNITTEST_SUMMARY = re.compile(
    r"^Ran (?P<ran>\d{1,9}) tests? in [\d.]+s(?:\s+(?:OK|FAILED|NO TESTS RAN)(?: \((?P<notes>[^)\n]*)\))?)?$",
    re.MULTILINE,
)
_PYTEST_SUMMARY = re.compile(
    r"^(?:=+ )?(?P<parts>no tests ran|\d{1,9} [a-z]+(?: [a-z]+)?(?:, \d{1,9} [a-z]+(?: [a-z]+)?)*)"
    r" in [\d.]+s(?: \([^)\n]*\))?(?: =+)?$",
    re.MULTILINE,
)
_PYTEST_PROGRESS = re.compile(r"^(?P<dots>[.FEsxXR]+) +\[ *\d{1,3}%\]$", re.MULTILINE)
_RAN_WORDS = frozenset({"passed", "failed", "xfailed", "xpassed"})
_PASS_WORDS = _RAN_WORDS - {"failed"}
_SKIPPED_COUNT = re.compile(r"\bskipped=(\d{1,9})")
_NOT_PASSED_COUNT = re.compile(r"\b(?:skipped|failures|errors)=(\d{1,9})")


def _count_unittest_tests(match: re.Match[str], not_counted: re.Pattern[str]) -> int:
    return max(0, int(match["ran"]) - sum(map(int, not_counted.findall(match["notes"] or ""))))


def _count_pytest_tests(parts: str, words: frozenset[str]) -> int:
    numbers = (part.split(" ", 1) for part in parts.split(", "))
    return sum(int(number) for number, word in numbers if word in words)


def count_printed_failures(output: str) -> int:
    """The sum of all failures that closing lines tell: of tests, and of files or suites that could not be loaded."""
    lines = (line for line in _COLOUR_CODES.sub("", output).splitlines() if _is_closing_line(line))
    return sum(int(match[1] or match[2]) for line in lines for match in _FAILURE_COUNT.finditer(line))


def find_failure_lines(output: str) -> list[str]:
    """The closing lines that tell of failures, numbers left out: beside exit code 0 they are in question."""
    lines = _COLOUR_CODES.sub("", output).splitlines()
    return [
        _SUMMARY_NUMBER.sub("#", line)
        for line in lines
        if _FAILURE_WORDS.search(line) and _is_closing_line(line)
    ]


def _is_closing_line(line: str) -> bool:
    return all(word.lower() in _CLOSING_WORDS for word in _SUMMARY_WORD.findall(line))


_SUMMARY_WORD = re.compile(r"[^\W\d]+")
_SUMMARY_NUMBER = re.compile(r"\d[\d.]*")
