"""Adds texts to a list at the top of a TOML file and leaves every other character as it is, comments included.

**Invariant:** the new text means exactly the old one with a longer list, or there is no new text.
"""

import json
import tomllib
from collections.abc import Sequence

from steersman.judges.config.toml_lines import TOML_TOKEN

_TOML_BLANK_KINDS = ("blank", "newline", "comment")


def add_to_toml_list(text: str, key: str, items: Sequence[str]) -> str | None:
    """The text with `items` at the end of the top-level list `key`; None where that cannot be written safely."""
    try:
        old = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    encoded_items = [json.dumps(item, ensure_ascii=False) for item in items]
    place = _find_toml_list(text, key) if key in old else None
    if place is not None:
        new = _extend_toml_list(text, *place, encoded_items)
    else:
        at = _find_top_level_end(text)
        new = f"{text[:at]}{key} = [\n{_render_toml_items(encoded_items)}]\n{text[at:]}"
    return new if _has_toml_value(new, {**old, key: [*old.get(key, ()), *items]}) else None


def _has_toml_value(text: str, wanted: dict[str, object]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _find_toml_list(text: str, key: str) -> tuple[int, int, str] | None:
    """Where a top-level list ends (its bracket), where its last value or bracket ends, and what stands there."""
    depth, inside, last = 0, False, (0, "")
    words: list[str] = []
    for token in TOML_TOKEN.finditer(text):
        kind, word = str(token.lastgroup), token[0]
        if word in ("]", "}") and kind == "mark":
            depth -= 1
            if inside and depth == 0:
                return token.start(), *last
        if word in ("[", "{") and kind == "mark":
            depth += 1
            inside = inside or (depth == 1 and words == [key, "="])
        if kind == "newline" and depth == 0:
            words = []
        elif kind not in _TOML_BLANK_KINDS:
            words.append(word.strip("\"'"))
            last = (token.end(), word)
    return None


def _extend_toml_list(text: str, end: int, last_end: int, last: str, encoded_items: list[str]) -> str:
    """A list on one line stays on it; in one over several lines each text gets its own."""
    comma = "" if last in ("[", ",") else ","
    head = f"{text[:last_end]}{comma}{text[last_end:end]}"
    if "\n" not in text[last_end:end]:
        gap = "" if last == "[" else " "
        return f"{head.rstrip() if comma else head}{gap}{', '.join(encoded_items)}{text[end:]}"
    return f"{head}{_render_toml_items(encoded_items)}{text[end:]}"


def _render_toml_items(encoded_items: list[str]) -> str:
    return "".join(f"    {item},\n" for item in encoded_items)


def _find_top_level_end(text: str) -> int:
    """Where the last statement above the first table ends."""
    depth, end, has_statement = 0, 0, False
    for token in TOML_TOKEN.finditer(text):
        kind, word = str(token.lastgroup), token[0]
        if kind == "mark" and word == "[" and depth == 0 and not has_statement:
            return end
        depth += (word in ("[", "{")) - (word in ("]", "}")) if kind == "mark" else 0
        if kind == "newline" and depth == 0:
            end, has_statement = (token.end() if has_statement else end), False
        elif kind not in _TOML_BLANK_KINDS:
            has_statement = True
    return end
