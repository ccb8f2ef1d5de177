"""What is said of a text that is too deep to be read: how deep it is, and which names in it could carry an execution.

**Invariant:** linear; never raises; nobody has read the text, so that what is said of its names is what they look like.
"""

import re
from collections.abc import Iterator

from steersman.judges.planning.payload import is_payload
from steersman.judges.strict_json import MAX_DEPTH
from steersman.judges.text import clip

MOST = 20  # names that are listed

_MARKS = re.compile(r'"(?:[^"\\]++|(?:\\.)++)*+"|["{}\[\]]', re.DOTALL)
# A word in front of a colon, with or without a quote between; it begins where nothing of a word is before it.
_NAME = re.compile(r"""(?<![^\s{}\[\],:"'#])([^\s{}\[\],:"'#]++)["']?[ \t]*+:""")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")

Said = tuple[int, str]  # a line, and what is wrong there


def too_deep(levels: int) -> str:
    """The sentence about a text of so many levels."""
    return (
        f"nested {levels} levels deep, and {MAX_DEPTH} are the most: nothing of it is read; make it flatter"
    )


def json_depth(text: str) -> tuple[int, int]:
    """How deep a JSON text goes, as far as its strings have an end, and the line where it goes too deep."""
    depth = deepest = at = 0
    for mark in _MARKS.finditer(text):
        if mark[0] == '"':
            break
        depth += (mark[0] in "{[") - (mark[0] in "}]")
        if depth > deepest:
            deepest, at = depth, mark.start() if depth == MAX_DEPTH + 1 else at
    return deepest, text.count("\n", 0, at) + 1


def executing(text: str) -> Iterator[Said]:
    """Names that look like places to put something to execute, each once, with its line."""
    seen: set[str] = set()
    for found in _NAME.finditer(text):
        name = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), found[1])
        if name not in seen and is_payload(name):
            seen.add(name)
            said = f"{clip(ascii(name), 80)} looks like the name of something to execute, and an intent carries none (I1)"
            yield text.count("\n", 0, found.start()) + 1, said
        if len(seen) == MOST:
            return
