"""Adds texts to a list at the top of a TOML file and leaves the rest as it is, comments included.

**Invariant:** the new text means exactly the old one with a longer list, or there is no new text.
"""

import re
import tomllib
from collections.abc import Sequence

_VERSION_LINE = re.compile(
    r"(?:[ \t]*(?:#[^\n]*)?\n)*version[ \t]*=[^\n]*\n"
)  # at the top of a file, below comments


def add_to_toml_list(text: str, key: str, items: Sequence[str]) -> str | None:
    """The text with `items` at the end of the top-level list `key`; None where that cannot be written safely."""
    import tomlkit  # slow to import, and only for whoever changes a file
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
