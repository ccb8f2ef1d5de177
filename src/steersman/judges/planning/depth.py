"""What is said of a text that is too deep to be read: how deep it is, and which names in it could carry an execution.

**Invariant:** linear; never raises; nobody has read the text, so that what is said of its names is what they look like.
"""

import re
from collections.abc import Iterator

from steersman.judges.planning.payload import is_execution_key
from steersman.judges.replies.strict_json import MAX_JSON_DEPTH
from steersman.judges.text import clip_text

MAX_LISTED_NAMES = 20  # names that are listed

_JSON_BRACKETS = re.compile(r'"(?:[^"\\]++|(?:\\.)++)*+"|["{}\[\]]', re.DOTALL)
# A word in front of a colon, with or without a quote between; it begins where nothing of a word is before it.
_KEY_LIKE_WORD = re.compile(r"""(?<![^\s{}\[\],:"'#])([^\s{}\[\],:"'#]++)["']?[ \t]*+:""")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")

LineMessage = tuple[int, str]  # a line, and what is wrong there


def nesting_depth_message(levels: int) -> str:
    """The sentence about a text of so many levels."""
    return f"nested {levels} levels deep, and {MAX_JSON_DEPTH} are the most: nothing of it is read; make it flatter"


def measure_json_depth(text: str) -> tuple[int, int]:
    """How deep a JSON text goes, as far as its strings have an end, and the line where it goes too deep."""
    depth = deepest = position = 0
    for mark in _JSON_BRACKETS.finditer(text):
        if mark[0] == '"':
            break
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth > deepest:
            deepest, position = depth, mark.start() if depth == MAX_JSON_DEPTH + 1 else position
    return deepest, text.count("\n", 0, position) + 1


def find_executable_names(text: str) -> Iterator[LineMessage]:
    """Names that look like places to put something to execute, each once, with its line."""
    listed_names: set[str] = set()
    for match in _KEY_LIKE_WORD.finditer(text):
        name = _UNICODE_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), match[1])
        if name not in listed_names and is_execution_key(name):
            listed_names.add(name)
            message = f"{clip_text(ascii(name), 80)} looks like the name of something to execute, and an intent carries none (I1)"
            yield text.count("\n", 0, match.start()) + 1, message
        if len(listed_names) == MAX_LISTED_NAMES:
            return
