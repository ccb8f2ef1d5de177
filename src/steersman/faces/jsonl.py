"""Questions as lines of JSON, answered line by line: `{"id", "input"}` in, `{"id", "result", "reason"}` out.

**Invariant:** every line is answered, whatever is in it, and no line is held in memory beyond a limit.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, TextIO

from steersman.faces.deck import json_line
from steersman.judges.strict_json import read
from steersman.judges.text import clip, printable

LONGEST = 4 * 1024 * 1024  # bytes of a line: four times the longest verdict, because JSON in JSON is longer
_PIECE = 1024 * 1024
_EDGE = 4096
_REASON = 2000
_ID = rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?[0-9]{1,15})'
_FIRST = re.compile(rb"\s*\{\s*" + _ID + rb"\s*[,}]")
_LAST = re.compile(rb".*(?<!\\)" + _ID + rb"\s*\}\s*\Z", re.DOTALL)


class Answer(NamedTuple):
    """Whether an input is accepted, and why or why not."""

    accepted: bool
    reason: str


class Line(NamedTuple):
    """One line; of one that is too long only its two ends."""

    whole: bytes | None
    head: bytes
    tail: bytes


def answer_all(lines: BinaryIO, out: TextIO, judge: Callable[[Any], Answer]) -> None:
    """Answers each line of a stream as it comes."""
    for number, line in enumerate(_lines(lines), 1):
        name, answer = _answer(line, number, judge)
        result = "accept" if answer.accepted else "refuse"
        reason = clip(printable(answer.reason), _REASON)
        out.write(json_line({"id": name, "result": result, "reason": reason}) + "\n")
        out.flush()


def _lines(stream: BinaryIO) -> Iterator[Line]:
    while piece := stream.readline(LONGEST + 1):
        if piece.endswith(b"\n") or len(piece) <= LONGEST:
            yield Line(piece, piece[:_EDGE], piece[-_EDGE:])
            continue
        head, tail = piece[:_EDGE], piece[-_EDGE:]
        del piece
        while more := stream.readline(_PIECE):
            tail = (tail + more)[-_EDGE:]
            if more.endswith(b"\n"):
                break
        yield Line(None, head, tail)


def _answer(line: Line, number: int, judge: Callable[[Any], Answer]) -> tuple[Any, Answer]:
    if line.whole is None:
        return _named(line), _broken(number, f"longer than {LONGEST} bytes")
    try:
        text = line.whole.decode()
    except UnicodeDecodeError as error:
        return _named(line), _broken(number, f"not UTF-8 at byte {error.start + 1}")
    reading = read(text, LONGEST)
    if reading.value is None:
        return _named(line), _broken(number, "; ".join(reading.problems))
    given = reading.value.get("id")
    name = given if isinstance(given, str | int) else None
    if reading.problems:
        return name, _broken(number, "; ".join(reading.problems))
    if "input" not in reading.value:
        return name, _broken(number, 'has no "input"')
    return name, judge(reading.value["input"])


def _broken(number: int, problem: str) -> Answer:
    return Answer(accepted=False, reason=f"line {number}: {problem.replace('reply: ', '')}")


def _named(line: Line) -> Any:
    """The id of a line that cannot be read, where it stands at one of the ends; it names an answer, nothing more."""
    found = _FIRST.match(line.head) or _LAST.match(line.tail)
    try:
        return json.loads(found[1]) if found else None
    except ValueError:
        return None
