"""Discards type-ahead, so that keys pressed before a prompt appears cannot answer it.

**Invariant:** an entry counts when it was sent at a prompt that its person could see. What came before is given back as
text: whole lines, and the beginning of one that was not sent yet.
"""

import os
import re
import sys

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|O.|.)?"
)  # arrows, Alt and other keys that are no text
_MAX_TYPEAHEAD_BYTES = 1 << 16  # bytes of it that are kept


def discard_typeahead() -> None:
    """Drops what was typed in a terminal and not read yet."""
    import termios

    if _is_input_terminal():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_typeahead() -> str:
    """Takes what was typed in a terminal and not read yet, also of a line that has no end yet."""
    import select
    import termios
    import tty

    if not _is_input_terminal():
        return ""
    fd, typed_bytes = sys.stdin.fileno(), b""
    terminal_settings = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSANOW)  # a terminal that waits for whole lines shows no half ones
    try:
        while (
            len(typed_bytes) < _MAX_TYPEAHEAD_BYTES
            and select.select([fd], [], [], 0)[0]
            and (chunk := os.read(fd, 4096))
        ):
            typed_bytes += chunk
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, terminal_settings)
    return typed_bytes.decode("utf-8", "ignore")


def split_typeahead(keys: str) -> tuple[list[str], str]:
    """What these keys would have written: the lines that were sent, and the beginning of the next."""
    *sent_lines, unfinished_line = (
        _edit_typeahead_line(part) for part in re.split(r"\r\n|\r|\n", _ESCAPE_SEQUENCE.sub("", keys))
    )
    return [line for line in sent_lines if line.strip()], unfinished_line


def _edit_typeahead_line(keys: str) -> str:
    """One line, as it stood after a person had edited it."""
    characters: list[str] = []
    for key in keys:
        if key in "\x7f\b":
            del characters[-1:]
        elif key == "\x15":
            characters.clear()
        elif key.isprintable():
            characters.append(key)
    return "".join(characters)


def _is_input_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
