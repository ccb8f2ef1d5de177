"""What a round of commands proves, judged from what steersman recorded itself.

**Invariant:** absence of evidence is failure: no results, zero tests or a timeout never pass.
"""

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import CommandResult

Rule = Literal["same_command", "same_failure"]
Verdict = Literal["repeated", "failed", "blocked", "passed"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
# Addresses, times, durations, process numbers and temporary paths change while a failure stays the same.
_SHIFTING = re.compile(r"0x[0-9a-f]+|/tmp/\S+|\d+", re.IGNORECASE)


class TestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One round's results, counted and compared with the round before."""

    passed: int
    failed: int
    blocked: int
    timeout: int
    no_tests: int
    tests: int  # how many the runners say they ran, where they say it
    failed_commands: tuple[str, ...]
    failure_keys: tuple[str, ...]
    repeated: bool
    all_passed: bool
    only_blocked_failures: bool
    verdict: Verdict


def summarise(
    results: Sequence[CommandResult],
    previous_failed: tuple[str, ...],
    rule: Rule,
    digests: Sequence[str] | None = None,
) -> TestSummary:
    """Counts a round; `previous_failed` holds the last round's keys of the same rule (see `keys`).

    `digests` are the output digests of the results where the outputs themselves are not at hand.
    """
    found = [_verdict(r) for r in results]
    marks = [output_digest(r.output) for r in results] if digests is None else digests
    bad = [(r, m) for r, v, m in zip(results, found, marks, strict=True) if v not in ("passed", "blocked")]
    commands = _once(command_key(r.argv) for r, _ in bad)
    failures = _once(failure_key(r, m) for r, m in bad)
    repeated = not set(previous_failed).isdisjoint(commands if rule == "same_command" else failures)
    all_passed = bool(found) and all(v == "passed" for v in found)
    only_blocked = "blocked" in found and not bad
    return TestSummary(
        passed=found.count("passed"),
        failed=found.count("failed"),
        blocked=found.count("blocked"),
        timeout=found.count("timeout"),
        no_tests=found.count("no_tests"),
        tests=sum(r.tests or 0 for r in results),
        failed_commands=commands,
        failure_keys=failures,
        repeated=repeated,
        all_passed=all_passed,
        only_blocked_failures=only_blocked,
        verdict=_precedence(repeated=repeated, only_blocked=only_blocked, all_passed=all_passed),
    )


def keys(summary: TestSummary, rule: Rule) -> tuple[str, ...]:
    """What the next round has to be compared with under this rule."""
    return summary.failed_commands if rule == "same_command" else summary.failure_keys


def command_key(argv: Sequence[str]) -> str:
    """The argv as one line that splits back into the same argv."""
    return shlex.join(argv)


def failure_key(result: CommandResult, digest: str) -> str:
    """Equal for the same command that fails in the same way."""
    exit_code = "-" if result.exit_code is None else result.exit_code
    return f"{command_key(result.argv)} #{result.verdict} {exit_code} {digest}"


def output_digest(output: str) -> str:
    """Sixteen hex digits, the same for outputs that differ only in what shifts from run to run."""
    lines = _SHIFTING.sub("#", _ESCAPES.sub("", output)).split()
    return hashlib.sha256(" ".join(lines).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _verdict(result: CommandResult) -> str:
    """The recorded verdict, unless the record itself contradicts a pass."""
    if result.verdict == "passed" and result.exit_code not in (None, 0):
        return "failed"
    if result.verdict == "passed" and result.tests == 0:
        return "no_tests"
    return result.verdict


def _precedence(*, repeated: bool, only_blocked: bool, all_passed: bool) -> Verdict:
    if repeated:
        return "repeated"
    if all_passed:
        return "passed"
    return "blocked" if only_blocked else "failed"


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
