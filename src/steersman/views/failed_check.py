"""Renders a check or setup step that did not pass: what was run, how it ended, which tests failed, what it printed.

Every screen, report, gate and prompt uses these lines, so that a failure reads the same everywhere.
**Invariant:** outside text stands behind a bar, printable and without colours, so that it cannot imitate our lines.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby

from steersman.contracts.commands import CommandResult
from steersman.judges.text import clip_text, count_with_noun, printable_line

TAIL_LINES = 6  # lines of one stream on a screen
MAX_ERROR_LINES = 2  # of these: headings of errors from before the last lines
MAX_CHECK_LINE_LENGTH = 200  # characters of one line
MAX_TEST_GROUPS, MAX_TEST_NAMES = 6, 5  # of failing tests: groups, and names in one group
OUTPUT_BAR = "│ "
_TERMINAL_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_ERROR_HEADING = re.compile(
    r"\s*(?:(?:[\w.]+\.)?\w*(?:Error|Exception)\b|error\b|fatal\b|panic:|thread '.*' panicked|FAIL(?:ED)?\b|✗|✖|×)|E {3}"
)
_READ_ONLY_SIGNS = ("Read-only file system", "EROFS")
_WRITABLE_HINT = (
    "a path is read-only while checks run. Add paths that checks have to write to [worktree] writable"
)
_VERDICT_LABELS = {"no_tests": "no tests", "timeout": "timed out"}


def failed_check_lines(result: CommandResult, tail: int = TAIL_LINES) -> list[str]:
    """Renders a result; of each stream it shows `tail` lines: the last ones, and the first that report an error."""
    where = f"   (in {printable_line(result.cwd)})" if result.cwd else ""
    return [
        failed_check_head(result),
        clip_text(f"  {printable_line(shlex.join(result.argv))}{where}", MAX_CHECK_LINE_LENGTH),
        *([f"  {clip_text(printable_line(result.reason), 2 * MAX_CHECK_LINE_LENGTH)}"] if result.reason else []),
        *(f"  {line}" for line in _failed_test_lines(result)),
        *_output_stream_lines("standard output", result.output, tail),
        *_output_stream_lines("standard error", result.errors, tail),
        *([f"  {_WRITABLE_HINT}"] if any(sign in result.output + result.errors for sign in _READ_ONLY_SIGNS) else []),
        *([] if result.output.strip() or result.errors.strip() or _has_never_run(result) else ["  it printed nothing"]),
    ]  # fmt: skip


def failed_check_head(result: CommandResult) -> str:
    """Returns the first line: name, verdict, exit code, seconds."""
    verdict = _VERDICT_LABELS.get(result.verdict, result.verdict)
    ended = "did not start" if result.exit_code is None else f"exit code {result.exit_code}"
    parts = [
        verdict,
        *([] if result.verdict == "blocked" else [ended]),
        *_format_check_seconds(result.micros),
    ]
    return f"{printable_line(result.name)}: {' · '.join(parts)}"


def _format_check_seconds(micros: int) -> list[str]:
    return [f"{micros / 1_000_000:.1f} s"] if micros else []


def _has_never_run(result: CommandResult) -> bool:
    return result.exit_code is None


def _failed_test_lines(result: CommandResult) -> list[str]:
    """Returns failing tests, grouped by module or class, then what failed as a whole, such as a package."""
    if result.report is None:
        return []
    broken = result.report.broken
    names = sorted(set(result.report.failed) - set(broken))
    broken_names = [
        clip_text(printable_line(name), MAX_CHECK_LINE_LENGTH) for name in broken[:MAX_TEST_GROUPS]
    ]
    return [
        *_grouped_test_lines(names),
        *([f"{len(broken)} failed as a whole: {', '.join((*broken_names, *_more_items_note(len(broken) - MAX_TEST_GROUPS)))}"] if broken else []),
    ]  # fmt: skip


def _grouped_test_lines(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    if len(names) == 1:
        return [f"1 test failed: {clip_text(printable_line(names[0]), MAX_CHECK_LINE_LENGTH)}"]
    return [
        f"{count_with_noun(len(names), 'test')} failed:",
        *(f"  {line}" for line in group_test_names(names)),
    ]


def group_test_names(names: Sequence[str]) -> list[str]:
    """Returns a line for each module or class with some of these tests; of many only the first ones."""
    if len(names) == 1:
        return [clip_text(printable_line(names[0]), MAX_CHECK_LINE_LENGTH)]
    parts = sorted(_split_test_name(name) for name in names)
    groups = [(holder, [test for _, test in group]) for holder, group in groupby(parts, key=lambda p: p[0])]
    lines = [
        clip_text(printable_line(_test_group_line(holder, tests)), MAX_CHECK_LINE_LENGTH)
        for holder, tests in groups[:MAX_TEST_GROUPS]
    ]
    return [*lines, *_more_items_note(sum(len(tests) for _, tests in groups[MAX_TEST_GROUPS:]))]


def _split_test_name(name: str) -> tuple[str, str]:
    # A dot in the host name of a Go package separates nothing.
    mark = "::" if "::" in name or "/" in name else "."
    holder, _, test = name.rpartition(mark)
    return holder, test


def _test_group_line(holder: str, tests: Sequence[str]) -> str:
    names_text = ", ".join((*tests[:MAX_TEST_NAMES], *_more_items_note(len(tests) - MAX_TEST_NAMES)))
    return f"{holder}: {names_text}" if holder else names_text


def _more_items_note(rest: int) -> list[str]:
    return [f"and {rest} more"] if rest > 0 else []


def _output_stream_lines(name: str, text: str, tail: int) -> Iterable[str]:
    lines = [_clean_output_line(line) for line in text.split("\n") if line.strip()]
    if not lines:
        return
    errors = pick_error_lines(lines, tail)
    last = lines[len(errors) - tail :]
    first = {0: "", 1: "first error and "}.get(len(errors), f"first {len(errors)} errors and ")
    cut = f", {first}last {len(last)} of {len(lines)} lines" if len(lines) > tail else ""
    yield f"  {name}{cut}:"
    yield from (f"  {OUTPUT_BAR}{line}" for line in (*errors, *last))


def pick_error_lines(lines: Sequence[str], tail: int) -> list[str]:
    """Returns the first lines that look like the heading of an error, where the last `tail` lines leave them out."""
    most = min(MAX_ERROR_LINES, tail // 3)
    return [line for line in lines[:-tail] if _ERROR_HEADING.match(line)][:most]


def _clean_output_line(line: str) -> str:
    """Returns a line as a terminal would leave it: without colours, and only the last of overwritten text."""
    return clip_text(
        printable_line(_TERMINAL_ESCAPES.sub("", line).rpartition("\r")[2].expandtabs(4)),
        MAX_CHECK_LINE_LENGTH,
    )
