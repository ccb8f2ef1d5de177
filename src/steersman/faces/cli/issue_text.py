"""Reads text that is not the person's own and goes along with a task as data: `--issue FILE`, or `-`."""

import sys

from steersman.errors import UserError
from steersman.judges.text import decode_outside_bytes, has_visible_text

MAX_ISSUE_BYTES = 128 * 1024
ISSUE_OPTION_HELP = "A file with text that is not yours, such as an issue; - is standard input. Agents get it as data, never as the task."


def read_issue_text(file: str) -> str:
    """The text of an issue; UserError where there is none, or more than `MOST_BYTES`."""
    if not file:
        return ""
    try:
        data = _read_issue_bytes(file)
    except OSError as error:
        raise UserError(
            f"cannot read --issue {file}: {error.strerror}; name a file with the text, or -"
        ) from None
    if len(data) > MAX_ISSUE_BYTES:
        raise UserError(f"--issue {file} is longer than {MAX_ISSUE_BYTES} bytes: shorten the text")
    text = decode_outside_bytes(data)
    if not has_visible_text(text):
        raise UserError(f"--issue {file} holds no text: name a file with the text, or - for standard input")
    return text


def _read_issue_bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(MAX_ISSUE_BYTES + 1) if sys.stdin is not None else b""
    with open(file, "rb") as stream:
        return stream.read(MAX_ISSUE_BYTES + 1)
