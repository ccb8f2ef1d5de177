"""Wraps screen text between words, so that a narrow terminal does not break lines inside words.

**Invariant:** a command stays in one piece, on a line of its own or between backticks, because people copy it.
"""

import re
import textwrap

_LINE_START = re.compile(r"(?P<indent> *)(?P<bar>│ )?(?P<more>[•-] | *)")
_QUOTED_COMMAND = re.compile(r"`[^`\n]+`")
_UNBROKEN_SPACE = "\0"  # printable text holds none
_COMMAND_STARTS = ("git ", "XDG_STATE_HOME=", "$ ")


def wrap_screen_text(text: str, columns: int, command_prefix: str) -> list[str]:
    """Returns the lines of a text for a terminal of this width."""
    return [part for line in text.split("\n") for part in _wrap_line(line, columns, command_prefix)]


def _wrap_line(line: str, columns: int, command_prefix: str) -> list[str]:
    start = _LINE_START.match(line)
    if len(line) <= columns or start is None or _is_command(line.strip(), command_prefix):
        return [line]
    rest_start = f"{start['indent']}{start['bar'] or ''}{' ' * len(start['more'])}"
    parts = textwrap.wrap(
        _QUOTED_COMMAND.sub(lambda quoted: quoted[0].replace(" ", _UNBROKEN_SPACE), line[start.end() :]),
        max(columns, len(rest_start) + 20),
        initial_indent=start[0],
        subsequent_indent=rest_start,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return [part.replace(_UNBROKEN_SPACE, " ") for part in parts] or [line]


def _is_command(line: str, command_prefix: str) -> bool:
    return line.startswith((*_COMMAND_STARTS, f"{command_prefix} "))
