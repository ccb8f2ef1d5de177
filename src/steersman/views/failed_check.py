"""Renders a check or setup step that did not pass: what was run, how it ended, which tests failed, what it printed.

Every screen, report, gate and prompt uses these lines, so that a failure reads the same everywhere.
**Invariant:** outside text stands behind a bar, printable, and without colours; it cannot pose as a line of ours.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby

from steersman.contracts.commands import CommandResult
from steersman.judges.text import clip, count_of, one_line

TAIL = 6  # lines of one stream on a screen
ERRORS = 2  # of these lines: headings of errors that stand before the last lines
LONGEST = 200  # characters of one line
GROUPS, NAMES = 6, 5  # of failing tests: groups, and names in one group
BAR = "│ "
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ERROR = re.compile(
    r"\s*(?:(?:[\w.]+\.)?\w*(?:Error|Exception)\b|error\b|fatal\b|panic:|thread '.*' panicked|FAIL(?:ED)?\b|✗|✖|×)|E {3}"
)
_READ_ONLY = ("Read-only file system", "EROFS")
_MAY_WRITE = (
    "something is read-only while checks run: name a place that they have to write under [worktree] writable"
)
_VERDICTS = {"no_tests": "no tests", "timeout": "timed out"}


def failed_check_lines(result: CommandResult, tail: int = TAIL) -> list[str]:
    """The result as lines; of each stream `tail` lines are shown: the last, and the first that tell an error."""
    where = f"   (in {one_line(result.cwd)})" if result.cwd else ""
    return [
        failed_check_head(result),
        clip(f"  {one_line(shlex.join(result.argv))}{where}", LONGEST),
        *([f"  {clip(one_line(result.reason), 2 * LONGEST)}"] if result.reason else []),
        *(f"  {line}" for line in _failed_tests(result)),
        *_stream("standard output", result.output, tail),
        *_stream("standard error", result.errors, tail),
        *([f"  {_MAY_WRITE}"] if any(sign in result.output + result.errors for sign in _READ_ONLY) else []),
        *([] if result.output.strip() or result.errors.strip() or _never_ran(result) else ["  it printed nothing"]),
    ]  # fmt: skip


def failed_check_head(result: CommandResult) -> str:
    """The first line: name, verdict, exit code, seconds."""
    verdict = _VERDICTS.get(result.verdict, result.verdict)
    ended = "did not start" if result.exit_code is None else f"exit code {result.exit_code}"
    parts = [verdict, *([] if result.verdict == "blocked" else [ended]), *_seconds(result.micros)]
    return f"{one_line(result.name)}: {' · '.join(parts)}"


def _seconds(micros: int) -> list[str]:
    return [f"{micros / 1_000_000:.1f} s"] if micros else []


def _never_ran(result: CommandResult) -> bool:
    return result.exit_code is None


def _failed_tests(result: CommandResult) -> list[str]:
    """The failing tests, grouped by the module or class that holds them; then what failed as a whole, such as a package."""
    if result.report is None:
        return []
    broken = result.report.broken
    names = sorted(set(result.report.failed) - set(broken))
    whole = [clip(one_line(name), LONGEST) for name in broken[:GROUPS]]
    return [
        *_grouped_tests(names),
        *([f"{len(broken)} failed as a whole: {', '.join((*whole, *_more(len(broken) - GROUPS)))}"] if broken else []),
    ]  # fmt: skip


def _grouped_tests(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    if len(names) == 1:
        return [f"1 test failed: {clip(one_line(names[0]), LONGEST)}"]
    return [f"{count_of(len(names), 'test')} failed:", *(f"  {line}" for line in group_test_names(names))]


def group_test_names(names: Sequence[str]) -> list[str]:
    """A line for each module or class that holds some of these tests; of many only the first."""
    if len(names) == 1:
        return [clip(one_line(names[0]), LONGEST)]
    parts = sorted(_split(name) for name in names)
    groups = [(holder, [test for _, test in group]) for holder, group in groupby(parts, key=lambda p: p[0])]
    lines = [clip(one_line(_group(holder, tests)), LONGEST) for holder, tests in groups[:GROUPS]]
    return [*lines, *_more(sum(len(tests) for _, tests in groups[GROUPS:]))]


def _split(name: str) -> tuple[str, str]:
    mark = "::" if "::" in name or "/" in name else "."  # the dot of a Go package's host divides nothing
    holder, _, test = name.rpartition(mark)
    return holder, test


def _group(holder: str, tests: Sequence[str]) -> str:
    shown = ", ".join((*tests[:NAMES], *_more(len(tests) - NAMES)))
    return f"{holder}: {shown}" if holder else shown


def _more(rest: int) -> list[str]:
    return [f"and {rest} more"] if rest > 0 else []


def _stream(name: str, text: str, tail: int) -> Iterable[str]:
    lines = [_shown(line) for line in text.split("\n") if line.strip()]
    if not lines:
        return
    errors = pick_error_lines(lines, tail)
    last = lines[len(errors) - tail :]
    first = {0: "", 1: "first error and "}.get(len(errors), f"first {len(errors)} errors and ")
    cut = f", {first}last {len(last)} of {len(lines)} lines" if len(lines) > tail else ""
    yield f"  {name}{cut}:"
    yield from (f"  {BAR}{line}" for line in (*errors, *last))


def pick_error_lines(lines: Sequence[str], tail: int) -> list[str]:
    """Returns the first lines that look like the heading of an error, where the last `tail` lines leave them out."""
    most = min(ERRORS, tail // 3)
    return [line for line in lines[:-tail] if _ERROR.match(line)][:most]


def _shown(line: str) -> str:
    """A line as a terminal would leave it: without colours, and of what was written over only the last."""
    return clip(one_line(_ESCAPES.sub("", line).rpartition("\r")[2].expandtabs(4)), LONGEST)
