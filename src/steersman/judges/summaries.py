"""What runners print at their end: how many tests ran, and whether the words say that some failed.

Printed by a process that ran hostile code, so a summary is weaker than a report: it is used where a runner has none,
and beside a report, which it must not contradict. Where nothing ran, or all was skipped, the count is zero, not unknown.
**Invariant:** pure; linear in the output.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Runner(NamedTuple):
    """One runner's closing lines. Groups: `passed`, `failed`, `ran` (both together), `skipped` and `left` (of those
    that ran), `parts` (numbers with their words); a pattern without a group says that nothing ran. Of those in `ran`
    `good` passed, or all but `failures` and `errors`.
    """

    name: str
    words: str
    nested: bool = False  # the sum is printed for each part and for the whole: the greatest counts


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Compiled when something was printed: half a hundred of them cost more than most commands."""
    return re.compile(words, re.MULTILINE)


_N = r"\d{1,9}"
_PART = rf"{_N} [a-z]+(?: [a-z]+)?"
RUNNERS = (
    Runner("jest", rf"^Tests: +(?P<parts>{_PART}(?:, {_PART}){{0,6}}), {_N} total$"),
    Runner("jest without tests", r"^No tests found, exiting with code 0$"),
    Runner("vitest", rf"^ +Tests +(?P<parts>{_PART}(?: \| {_PART}){{0,6}}) \({_N}\)$"),
    Runner("vitest without tests", r"^(?:No test files found, exiting with code 0| +Tests +no tests)$"),
    Runner("pest", rf"^ +Tests: +(?P<parts>{_PART}(?:, {_PART}){{0,6}}) \({_N} assertions?\)$"),
    Runner("cargo", rf"^test result: \w+\. (?P<passed>{_N}) passed; (?P<failed>{_N}) failed; "),
    Runner("nextest", rf"^ +Summary \[.{{0,20}}\] +(?:{_N}/)?(?P<ran>{_N}) tests? run: (?P<good>{_N}) passed"),
    Runner("mocha passed", rf"^ +(?P<passed>{_N}) passing \("),
    Runner("mocha failed", rf"^ +(?P<failed>{_N}) failing$"),
    Runner("playwright", rf"^ +(?P<passed>{_N}) passed \("),
    Runner("node and tape passed", rf"^(?:#|ℹ) pass +(?P<passed>{_N})$"),
    Runner("node and tape failed", rf"^(?:#|ℹ) fail +(?P<failed>{_N})$"),
    Runner("tap", rf"^# \{{ total: {_N}, pass: (?P<passed>{_N})(?:, fail: (?P<failed>{_N}))?"),
    Runner("tap asserts", rf"^Asserts: +(?P<passed>{_N}) passed +(?P<failed>{_N}) failed "),
    Runner("tap without tests", r"^1\.\.0(?: #.{0,80})?$"),
    Runner("prove", rf"^Files={_N}, Tests=(?P<ran>{_N}), "),
    Runner("ava", rf"^ +(?P<parts>{_N} (?:tests?|known failures?|uncaught exceptions?) \w+)$"),
    Runner("bun passed", rf"^ (?P<passed>{_N}) pass$"),
    Runner("bun failed", rf"^ (?P<failed>{_N}) fail$"),
    Runner("uvu", rf"^ +Total: +(?P<ran>{_N})\n +Passed: +(?P<good>{_N})\n +Skipped: +{_N}$"),
    Runner("deno", rf"^(?:ok|FAILED) \| (?P<passed>{_N}) passed(?: \(.{{0,40}}\))? \| (?P<failed>{_N}) failed"),
    Runner("rspec", rf"^(?P<ran>{_N}) examples?, (?P<failures>{_N}) failures?(?:, (?P<skipped>{_N}) pending)?(?:, {_N} errors? .{{0,60}})?$"),
    Runner("minitest", rf"^(?P<ran>{_N}) runs, {_N} assertions, (?P<failures>{_N}) failures, (?P<errors>{_N}) errors, (?P<skipped>{_N}) skips$"),
    Runner("test-unit", rf"^(?P<ran>{_N}) tests, {_N} assertions, (?P<failures>{_N}) failures, (?P<errors>{_N}) errors, (?P<skipped>{_N}) pendings, (?P<left>{_N}) omissions, "),
    Runner("phpunit passed", rf"^OK \((?P<passed>{_N}) tests?, "),
    Runner("phpunit", rf"^Tests: (?P<ran>{_N}), Assertions: {_N}(?:, (?!Skipped|Incomplete)[A-Z][A-Za-z ]{{0,40}}: {_N}){{0,6}}(?:, Skipped: (?P<skipped>{_N}))?(?:, Incomplete: (?P<left>{_N}))?"),
    Runner("phpunit without tests", r"^No tests executed!$"),
    Runner("dotnet", rf"^(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>{_N}), Passed: +(?P<passed>{_N}), "),
    Runner("dotnet summary", rf"^Test summary: total: {_N}, failed: (?P<failed>{_N}), succeeded: (?P<passed>{_N}), "),
    Runner("dotnet without tests", r"^No test (?:is available in|matches the given) "),
    Runner("ctest", rf"^\d+% tests passed, (?P<failures>{_N}) tests? failed out of (?P<ran>{_N})$"),
    Runner("ctest skipped", r"^\s+\d+ - .{1,200} \((?P<not_run>Skipped|Disabled|Not Run)\)"),
    Runner("ctest without tests", r"^No tests were found!!!$"),
    Runner("maven", rf"^(?:\[\w+\] )?Tests run: (?P<ran>{_N}), Failures: (?P<failures>{_N}), Errors: (?P<errors>{_N}), Skipped: (?P<skipped>{_N})$"),
    Runner("maven without tests", r"^(?:\[\w+\] )?No tests to run\.$"),
    Runner("gradle", r"^\S.{0,300} > .{1,300} (?P<one>PASSED|FAILED)$"),
    Runner("gradle without tests", r"^> Task \S{0,200}[tT]est\w* NO-SOURCE$"),
    Runner("xctest", rf"^\s*Executed (?P<ran>{_N}) tests?, with (?:(?P<skipped>{_N}) tests? skipped and )?{_N} failures?", nested=True),
    Runner("swift testing", rf"Test run with (?P<ran>{_N}) tests?(?: in {_N} suites?)? (?:passed|failed) after "),
    Runner("mix", rf"^(?:(?P<passed>{_N}) (?:doctests?|propert(?:y|ies)), )?(?P<ran>{_N}) tests?, (?P<failures>{_N}) failures?(?:, (?P<errors>{_N}) invalid)?(?:, (?P<left>{_N}) excluded)?(?:, (?P<skipped>{_N}) skipped)?$"),
    Runner("mix without tests", r"^There are no tests to run$"),
    Runner("dart", rf"\+(?P<passed>{_N})(?: ~{_N})?(?: -(?P<failed>{_N}))?: (?:All tests passed!|Some tests failed\.|All tests skipped\.)"),
    Runner("dart on GitHub", rf"^(?:🎉 |::error::)(?P<parts>{_N} tests? passed(?:, {_PART}){{0,3}})\.$"),
    Runner("dart without tests", r"^No tests (?:ran\.|were found\.|match )"),
    Runner("go", r"^--- (?P<one>PASS|FAIL): Test\S{0,300} \("),
    Runner("go without tests", r"^(?:ok|\?) .{0,300}\[no (?:tests to run|test files)\]$"),
    Runner("gotestsum", rf"^DONE (?:{_N} runs, )?(?P<ran>{_N}) tests?(?:, (?P<skipped>{_N}) skipped)?(?:, {_N} (?:failures?|errors?)){{0,2}} in "),
    Runner("googletest passed", rf"^\[  PASSED  \] (?P<passed>{_N}) tests?\."),
    Runner("googletest failed", rf"^\[  FAILED  \] (?P<failed>{_N}) tests?, listed below:$"),
    Runner("catch2", rf"^All tests passed \({_N} assertions? in (?P<passed>{_N}) test cases?\)$"),
    Runner("catch2 without tests", r"^No tests ran$"),
)  # fmt: skip
_FAILURES = re.compile(
    r"\b[1-9]\d{0,8} (?:tests? |examples? )?(?:failed|failures?|failing)\b|^(?:#|ℹ) fail +[1-9]|^FAILED \((?:failures|errors)=",
    re.IGNORECASE,
)
_FAILURE_COUNT = re.compile(
    r"\b(\d{1,9}) (?:(?:tests?|examples?) )?(?:fail(?:ed|ing|ures?)?|errors?)\b"
    r"|\b(?:fail(?:ed|ures?)?|errors?)(?:=|:? +)(\d{1,9})\b",
    re.IGNORECASE,
)
# All the words that stand in a runner's closing line; a line with another one is somebody's sentence.
_WORDS = """
after and assertion assertions asserts case cases complete deselected disabled doctest doctests done duration error
errors example examples exception exceptions excluded executed expected fail failed failing failure failures file files
filtered finished flaky ignored in incomplete invalid issue issues known m measured min ms notifications of omissions
out pass passed passing pending pendings properties property rerun result risky run runs s sec second seconds skipped
skips snapshots step steps subtests suite suites summary test tests time todo total uncaught unexpected warn warning
warnings with xfailed xpassed ℹ
"""
_CLOSING = frozenset(_WORDS.split())


def printed_tests(output: str) -> int | None:
    """How many tests the closing lines say were run, skipped ones left out; None where none says."""
    return _add_up(_COLOUR.sub("", output), _count, passes=False)


def printed_passes(output: str) -> int | None:
    """How many of these tests passed; None where a closing line does not tell them from those that failed."""
    plain = _COLOUR.sub("", output)
    groups = (_pattern(r.words).groupindex for r in RUNNERS if _pattern(r.words).search(plain))
    if any("ran" in names and not {"good", "failures"} & names.keys() for names in groups):
        return None
    return _add_up(plain, _count_passes, passes=True)


def _add_up(plain: str, count: Callable[[re.Match[str]], int], *, passes: bool) -> int | None:
    counts = [
        max(numbers) if runner.nested else sum(numbers)
        for runner in RUNNERS
        if (numbers := [count(match) for match in _pattern(runner.words).finditer(plain)])
    ]
    python = _python(plain, passes=passes)
    if python is None:
        return max(0, sum(counts)) if counts else None
    return python and max(0, python + sum(counts))


def _count(match: re.Match[str]) -> int:
    given, number = _numbers(match)
    if "one" in given or "not_run" in given:
        return 1 if "one" in given else -1
    ran = sum(number.get(name, 0) for name in ("passed", "failed", "ran"))
    return _parts(given, "passed", "failed") + max(0, ran - number.get("skipped", 0) - number.get("left", 0))


def _count_passes(match: re.Match[str]) -> int:
    given, number = _numbers(match)
    if "one" in given or "not_run" in given:
        return int(given.get("one", "").startswith("PASS")) if "one" in given else -1
    bad = sum(number.get(name, 0) for name in ("skipped", "left", "failures", "errors"))
    good = number.get("good", max(0, number.get("ran", 0) - bad))
    return _parts(given, "passed") + number.get("passed", 0) + good


def _numbers(match: re.Match[str]) -> tuple[dict[str, str], dict[str, int]]:
    given = {name: text for name, text in match.groupdict().items() if text is not None}
    return given, {name: int(text) for name, text in given.items() if text.isdecimal()}


def _parts(given: Mapping[str, str], *words: str) -> int:
    parts = re.findall(rf"({_N}) ([a-z ]+)", given.get("parts", ""))
    return sum(int(number) for number, text in parts if text.split()[-1] in words)


def _python(plain: str, *, passes: bool) -> int | None:
    """Of pytest and unittest a summary that says zero decides: a test module may print any summary it likes."""
    bad, words, dots = (_NOT_PASSED, _PASS_WORDS, ".xX") if passes else (_SKIPPED, _RAN_WORDS, ".FxX")
    counts = [_unittest_count(match, bad) for match in _UNITTEST.finditer(plain)]
    counts += [_pytest_count(match["parts"], words) for match in _PYTEST.finditer(plain)]
    if not counts:  # with -qq pytest draws its dots and leaves the summary out
        counts = [sum(map(match["dots"].count, dots)) for match in _PROGRESS.finditer(plain)]
        return sum(counts) if counts else None
    return 0 if 0 in counts else sum(counts)


_UNITTEST = re.compile(
    r"^Ran (?P<ran>\d{1,9}) tests? in [\d.]+s(?:\s+(?:OK|FAILED|NO TESTS RAN)(?: \((?P<notes>[^)\n]*)\))?)?$",
    re.MULTILINE,
)
_PYTEST = re.compile(
    r"^(?:=+ )?(?P<parts>no tests ran|\d{1,9} [a-z]+(?: [a-z]+)?(?:, \d{1,9} [a-z]+(?: [a-z]+)?)*)"
    r" in [\d.]+s(?: \([^)\n]*\))?(?: =+)?$",
    re.MULTILINE,
)
_PROGRESS = re.compile(r"^(?P<dots>[.FEsxXR]+) +\[ *\d{1,3}%\]$", re.MULTILINE)
_RAN_WORDS = frozenset({"passed", "failed", "xfailed", "xpassed"})
_PASS_WORDS = _RAN_WORDS - {"failed"}
_SKIPPED = re.compile(r"\bskipped=(\d{1,9})")
_NOT_PASSED = re.compile(r"\b(?:skipped|failures|errors)=(\d{1,9})")


def _unittest_count(match: re.Match[str], bad: re.Pattern[str]) -> int:
    return max(0, int(match["ran"]) - sum(map(int, bad.findall(match["notes"] or ""))))


def _pytest_count(parts: str, words: frozenset[str]) -> int:
    numbers = (part.split(" ", 1) for part in parts.split(", "))
    return sum(int(number) for number, word in numbers if word in words)


def count_failures(output: str) -> int:
    """The sum of all failures that closing lines tell: of tests, and of files or suites that could not be loaded."""
    lines = (line for line in _COLOUR.sub("", output).splitlines() if _closes(line))
    return sum(int(found[1] or found[2]) for line in lines for found in _FAILURE_COUNT.finditer(line))


def failures_told(output: str) -> list[str]:
    """The closing lines that tell of failures, numbers left out: beside exit code 0 they are in question."""
    lines = _COLOUR.sub("", output).splitlines()
    return [_NUMBER.sub("#", line) for line in lines if _FAILURES.search(line) and _closes(line)]


def _closes(line: str) -> bool:
    return all(word.lower() in _CLOSING for word in _WORD.findall(line))


_WORD = re.compile(r"[^\W\d]+")
_NUMBER = re.compile(r"\d[\d.]*")
