"""What was typed in a terminal before anybody was asked: it answers nothing and starts nothing.

**Invariant:** an entry counts when it was sent at a prompt that its person could see. What came before is given back as
text: whole lines, and the beginning of one that was not sent yet.
"""

import os
import re
import sys

_KEYS = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|O.|.)?")  # arrows, Alt and other keys that are no text
_MOST = 1 << 16  # bytes of it that are kept


def forget_typed() -> None:
    """Drops what was typed in a terminal and not read yet."""
    import termios

    if _terminal():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def unread() -> str:
    """Takes what was typed in a terminal and not read yet, also of a line that has no end yet."""
    import select
    import termios
    import tty

    if not _terminal():
        return ""
    fd, found = sys.stdin.fileno(), b""
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd, termios.TCSANOW)  # a terminal that waits for whole lines shows no half ones
    try:
        while len(found) < _MOST and select.select([fd], [], [], 0)[0] and (piece := os.read(fd, 4096)):
            found += piece
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)
    return found.decode("utf-8", "ignore")


def typed_lines(keys: str) -> tuple[list[str], str]:
    """What these keys would have written: the lines that were sent, and the beginning of the next."""
    *sent, rest = (_line(part) for part in re.split(r"\r\n|\r|\n", _KEYS.sub("", keys)))
    return [line for line in sent if line.strip()], rest


def _line(keys: str) -> str:
    """One line, as it stood when a person had mended it."""
    kept: list[str] = []
    for key in keys:
        if key in "\x7f\b":
            del kept[-1:]
        elif key == "\x15":
            kept.clear()
        elif key.isprintable():
            kept.append(key)
    return "".join(kept)


def _terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
