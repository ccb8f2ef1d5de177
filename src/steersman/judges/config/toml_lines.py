"""Where each key of a TOML text stands: the lines that Python's own reader does not keep.

**Invariant:** total: of a text that is not TOML it says as much as it can see, and never raises.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence

from steersman.judges.text import lazy_pattern

TomlKeyPath = tuple[str, ...]
TomlLineNumbers = dict[TomlKeyPath, int]

# One alternative per kind of token; strings come first so that nothing inside them is looked at.
_TOML_TOKEN = lazy_pattern(
    r"""
    (?P<text>\"{3}(?:[^"\\]++|\\.|\"{1,2}(?!\"))*+\"{3,5} | '{3}(?:[^']++|'{1,2}(?!'))*+'{3,5}
           | "(?:[^"\\\n]++|\\.)*+" | '[^'\n]*+')
  | (?P<comment>\#[^\n]*+) | (?P<newline>\n) | (?P<blank>[ \t\r]++)
  | (?P<mark>[\[\]{}=,.]) | (?P<bare>[^\s\[\]{}=,.\#"']++) | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def find_toml_lines(text: str) -> TomlLineNumbers:
    """Each table and key, as a path of names, with the number of the line it is on (from 1)."""
    lines: TomlLineNumbers = {}
    table: TomlKeyPath = ()
    for number, is_header, names in _read_toml_statements(text):
        if is_header:
            table = names
        path = names if is_header else (*table, *names)
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], number)
    return lines


def find_nearest_toml_line(lines: TomlLineNumbers, path: tuple[str | int, ...]) -> int | None:
    """The line of the nearest known key at or above a path; None for the file as a whole."""
    names = tuple(str(part) for part in path)
    for length in range(len(names), 0, -1):
        if names[:length] in lines:
            return lines[names[:length]]
    return None


def _read_toml_statements(text: str) -> Iterator[tuple[int, bool, TomlKeyPath]]:
    """Every table header and every left-hand side, with its line."""
    number, depth, skipping = 1, 0, False
    names: list[str] = []
    for token in _TOML_TOKEN.finditer(text):
        kind, word = str(token.lastgroup), token[0]
        if kind == "mark" and word in "[{":
            depth += 1
        elif kind == "mark" and word in "]}":
            depth = max(0, depth - 1)
            if not skipping and depth == 0 and names:
                yield number, True, tuple(names)
                skipping = True
        elif kind == "mark" and word == "=" and not skipping:
            yield number, False, tuple(names)
            skipping = True
        elif kind in ("text", "bare") and not skipping:
            names.append(_unquote_toml_key(word))
        elif kind == "newline" and (depth == 0 or not skipping):
            skipping, depth = False, 0
            names.clear()
        number += word.count("\n")


def _unquote_toml_key(word: str) -> str:
    if word.startswith('"'):
        try:
            return str(json.loads(word))
        except ValueError:  # an escape that only TOML knows
            return word.strip('"')
    return word.strip("'")


# At the top of a file, below comments.
_VERSION_LINE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*version[ \t]*=[^\n]*\n")


def add_to_toml_list(text: str, key: str, items: Sequence[str]) -> str | None:
    """The text with `items` at the end of the top-level list `key`; None where that cannot be written safely."""
    import tomlkit  # slow to import, and needed only to change a file
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import Array

    try:
        old, document = tomllib.loads(text), tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError):
        return None
    listed = document.get(key, tomlkit.array().multiline(multiline=True))
    if not isinstance(listed, Array):
        return None
    listed.extend(items)
    if key in document:
        new = tomlkit.dumps(document)
    else:
        top = _VERSION_LINE.match(text)
        end = top.end() if top else 0
        new = f"{text[:end]}{key} = {listed.as_string()}\n{text[end:]}"
    return new if _means(new, {**old, key: [*old.get(key, ()), *items]}) else None


def _means(text: str, wanted: dict[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False
