"""Where each key and item of a JSON text stands: the lines that no decoder keeps.

**Invariant:** total and linear, of a bounded depth; of a text that is not JSON it says as much as it can see, and never raises.
"""

import json
import re
from collections.abc import Iterator

import msgspec

JsonPath = tuple[str | int, ...]

MAX_JSON_LINES_DEPTH = 100
_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|(?:\\.)++)*+"|[{}\[\],:]|[^\s{}\[\],:"]++|"', re.DOTALL)


class JsonLines(msgspec.Struct, frozen=True):
    """The line of every path, from 1, and each key that is given again, with its line."""

    lines: dict[JsonPath, int]
    repeated: tuple[tuple[JsonPath, int], ...]


class _OpenContainer:
    """An object or list whose end has not come yet."""

    def __init__(self, path: JsonPath, *, is_list: bool) -> None:
        self.path, self.is_list = path, is_list
        self.number, self.key = 0, ""
        self.wants_key = not is_list

    @property
    def here(self) -> JsonPath:
        return (*self.path, self.number if self.is_list else self.key)


def find_json_lines(text: str) -> JsonLines:
    """The lines of a text that holds one JSON value."""
    lines: dict[JsonPath, int] = {}
    repeated: list[tuple[JsonPath, int]] = []
    stack: list[_OpenContainer] = []
    for number, word in _read_json_tokens(text):
        top = stack[-1] if stack else None
        if word in "{[":
            if len(stack) == MAX_JSON_LINES_DEPTH:
                break  # paths of endless depth would fill the memory; whoever reads the value refuses it anyway
            path = top.here if top else ()
            lines.setdefault(path, number)
            stack.append(_OpenContainer(path, is_list=word == "["))
        elif word in "}]":
            del stack[-1:]
        elif word == "," and top is not None:
            top.number, top.wants_key = top.number + 1, not top.is_list
        elif word == ":" and top is not None:
            top.wants_key = False
        elif top is not None and top.wants_key:
            top.key = _decode_json_key(word)
            if top.here in lines:
                repeated.append((top.here, number))
            lines.setdefault(top.here, number)
        else:
            lines.setdefault(top.here if top else (), number)
    return JsonLines(lines, tuple(repeated))


def _read_json_tokens(text: str) -> Iterator[tuple[int, str]]:
    number, at = 1, 0
    for token in _JSON_TOKEN.finditer(text):
        if token[0] == '"':
            return  # it has no end, and looking for one behind every quote would take the square of the time
        number += text.count("\n", at, token.start())
        at = token.start()
        yield number, token[0]


def _decode_json_key(word: str) -> str:
    try:
        return str(json.loads(word))
    except ValueError:
        return word
