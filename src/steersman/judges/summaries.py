"""What runners print at their end: how many tests ran, and whether the words say that some failed.

Printed by a process that ran hostile code, so a summary is weaker than a report: it is used where a runner has none,
and beside a report, which it must not contradict.
**Invariant:** pure; linear in the output.
"""

import re
from typing import NamedTuple

from steersman.judges.commands import tests_counted

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Runner(NamedTuple):
    """One runner's closing lines: patterns with the groups `passed`, `failed` or `ran` (passed and failed together)."""

    name: str
    pattern: re.Pattern[str]


def _runner(name: str, pattern: str) -> Runner:
    return Runner(name, re.compile(pattern, re.MULTILINE))


_N = r"\d{1,9}"
RUNNERS = (
    _runner("jest failed", rf"^Tests: +(?P<failed>{_N}) failed, "),
    _runner("jest passed", rf"^Tests: +(?:{_N} (?!passed)\w+, ){{0,4}}(?P<passed>{_N}) passed, "),
    _runner("vitest failed", rf"^ +Tests +(?P<failed>{_N}) failed"),
    _runner("vitest passed", rf"^ +Tests +(?:{_N} failed \| )?(?P<passed>{_N}) passed"),
    _runner("cargo", rf"^test result: \w+\. (?P<passed>{_N}) passed; (?P<failed>{_N}) failed; "),
    _runner("mocha passed", rf"^ +(?P<passed>{_N}) passing \("),
    _runner("mocha failed", rf"^ +(?P<failed>{_N}) failing$"),
    _runner("node passed", rf"^(?:#|ℹ) pass (?P<passed>{_N})$"),
    _runner("node failed", rf"^(?:#|ℹ) fail (?P<failed>{_N})$"),
    _runner("bun passed", rf"^ (?P<passed>{_N}) pass$"),
    _runner("bun failed", rf"^ (?P<failed>{_N}) fail$"),
    _runner("deno", rf"^(?:ok|FAILED) \| (?P<passed>{_N}) passed(?: \(.{{0,40}}\))? \| (?P<failed>{_N}) failed"),
    _runner("rspec", rf"^(?P<ran>{_N}) examples?, (?P<failed>{_N}) failures?(?:, (?P<skipped>{_N}) pending)?$"),
    _runner("phpunit passed", rf"^OK \((?P<passed>{_N}) tests?, "),
    _runner("phpunit failed", rf"^Tests: (?P<ran>{_N}), Assertions: {_N}, (?:Errors: {_N}, )?Failures: (?P<failed>{_N})"),
    _runner("dotnet", rf"^(?:Passed|Failed)! +- Failed: +(?P<failed>{_N}), Passed: +(?P<passed>{_N}), "),
    _runner("ctest", rf"^\d+% tests passed, (?P<failed>{_N}) tests failed out of (?P<ran>{_N})$"),
    _runner(
        "maven",
        rf"^(?:\[\w+\] )?Tests run: (?P<ran>{_N}), Failures: (?P<failed>{_N}), Errors: {_N}, Skipped: (?P<skipped>{_N})$",
    ),
)  # fmt: skip
_FAILURES = re.compile(r"\b[1-9]\d{0,8} (?:tests? |examples? )?(?:failed|failures?|failing)\b", re.IGNORECASE)


def printed_tests(output: str) -> int | None:
    """How many tests the closing lines say were run, skipped ones left out; None where none says."""
    plain = _COLOUR.sub("", output)
    counts = [_count(match) for runner in RUNNERS for match in runner.pattern.finditer(plain)]
    python = tests_counted(plain)
    if python is None:
        return sum(counts) if counts else None
    return python and python + sum(counts)


def _count(match: re.Match[str]) -> int:
    given = {name: int(number) for name, number in match.groupdict().items() if number is not None}
    ran = given["ran"] - given.get("skipped", 0) if "ran" in given else sum(given.values())
    return max(0, ran)


def says_failed(output: str) -> bool:
    """Whether the words speak of failures: beside exit code 0 that is in question."""
    return _FAILURES.search(_COLOUR.sub("", output)) is not None
