"""Questions as lines of JSON, answered line by line: `{"id", "input"}` in, `{"id", "result", "reason"}` out.

**Invariant:** every line is answered, whatever is in it, and no line is held in memory beyond a limit.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, TextIO

from steersman.faces.cli.context import encode_json_line
from steersman.judges.replies.strict_json import read_strict_json
from steersman.judges.text import clip_text, printable_text

MAX_JSONL_LINE_BYTES = (
    4 * 1024 * 1024
)  # bytes of a line: four times the longest verdict, because JSON in JSON is longer
_JSONL_CHUNK_BYTES = 1024 * 1024
_JSONL_EDGE_BYTES = 4096
_MAX_JSONL_REASON = 2000
_JSONL_ID_PATTERN = rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?[0-9]{1,15})'
_LEADING_JSONL_ID = re.compile(rb"\s*\{\s*" + _JSONL_ID_PATTERN + rb"\s*[,}]")
_TRAILING_JSONL_ID = re.compile(rb".*(?<!\\)" + _JSONL_ID_PATTERN + rb"\s*\}\s*\Z", re.DOTALL)


class InputVerdict(NamedTuple):
    """Whether an input is accepted, and why or why not."""

    accepted: bool
    reason: str


class JsonlLine(NamedTuple):
    """One line; of one that is too long only its two ends."""

    whole: bytes | None
    head: bytes
    tail: bytes


def answer_jsonl_stream(lines: BinaryIO, out: TextIO, judge: Callable[[Any], InputVerdict]) -> None:
    """Answers each line of a stream as it comes."""
    for number, line in enumerate(_read_jsonl_lines(lines), 1):
        line_id, answer = _judge_jsonl_line(line, number, judge)
        result = "accept" if answer.accepted else "refuse"
        reason = clip_text(printable_text(answer.reason), _MAX_JSONL_REASON)
        out.write(encode_json_line({"id": line_id, "result": result, "reason": reason}) + "\n")
        out.flush()


def _read_jsonl_lines(stream: BinaryIO) -> Iterator[JsonlLine]:
    while raw_line := stream.readline(MAX_JSONL_LINE_BYTES + 1):
        if raw_line.endswith(b"\n") or len(raw_line) <= MAX_JSONL_LINE_BYTES:
            yield JsonlLine(raw_line, raw_line[:_JSONL_EDGE_BYTES], raw_line[-_JSONL_EDGE_BYTES:])
            continue
        head, tail = raw_line[:_JSONL_EDGE_BYTES], raw_line[-_JSONL_EDGE_BYTES:]
        del raw_line
        while chunk := stream.readline(_JSONL_CHUNK_BYTES):
            tail = (tail + chunk)[-_JSONL_EDGE_BYTES:]
            if chunk.endswith(b"\n"):
                break
        yield JsonlLine(None, head, tail)


def _judge_jsonl_line(
    line: JsonlLine, number: int, judge: Callable[[Any], InputVerdict]
) -> tuple[Any, InputVerdict]:
    if line.whole is None:
        return _find_jsonl_id(line), _broken_line_verdict(number, f"longer than {MAX_JSONL_LINE_BYTES} bytes")
    try:
        text = line.whole.decode()
    except UnicodeDecodeError as error:
        return _find_jsonl_id(line), _broken_line_verdict(number, f"not UTF-8 at byte {error.start + 1}")
    reading = read_strict_json(text, MAX_JSONL_LINE_BYTES)
    if reading.value is None:
        return _find_jsonl_id(line), _broken_line_verdict(number, "; ".join(reading.problems))
    id_value = reading.value.get("id")
    line_id = id_value if isinstance(id_value, str | int) else None
    if reading.problems:
        return line_id, _broken_line_verdict(number, "; ".join(reading.problems))
    if "input" not in reading.value:
        return line_id, _broken_line_verdict(number, 'has no "input"')
    return line_id, judge(reading.value["input"])


def _broken_line_verdict(number: int, problem: str) -> InputVerdict:
    return InputVerdict(accepted=False, reason=f"line {number}: {problem.replace('reply: ', '')}")


def _find_jsonl_id(line: JsonlLine) -> Any:
    """The id of a line that cannot be read, where it stands at one of the ends; it names an answer, nothing more."""
    id_match = _LEADING_JSONL_ID.match(line.head) or _TRAILING_JSONL_ID.match(line.tail)
    try:
        return json.loads(id_match[1]) if id_match else None
    except ValueError:
        return None
