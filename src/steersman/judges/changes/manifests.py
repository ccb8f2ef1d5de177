"""What of a project's manifest says which tests run, and what says which packages they run with.

A manifest has many purposes: a version number, a description or a script that no check runs decides nothing.
**Invariant:** pure; a manifest that cannot be read counts as a whole.
"""

import configparser
import re
from collections.abc import Callable
from typing import Any

from steersman.judges.ecosystems import ECOSYSTEMS
from steersman.judges.ecosystems.ecosystem import ManifestParts

_VERSION_LINE = re.compile(
    r"\s*[\"']?(?:version|__version__|VERSION)[\"']?\s*[:=]\s*[\"']?[\w.+-]*[\"']?,?\s*(?:#.*)?"
)
_DEFAULT_TEST_TARGETS = frozenset({"test", "tests", "check"})
_MANIFEST_ERRORS = (ValueError, RecursionError, configparser.Error, AttributeError, TypeError)
_NO_PARTS = ManifestParts()
_PARTS_BY_NAME = {
    name: parts
    for ecosystem in ECOSYSTEMS
    for names, parts in ecosystem.manifest_parts.items()
    for name in names.split()
}


def has_only_version_change(old: str, new: str) -> bool:
    """Whether two texts differ in lines with a version number alone."""
    before, after = old.splitlines(), new.splitlines()
    pairs = zip(before, after, strict=False)
    return len(before) == len(after) and all(
        old_line == new_line or (_VERSION_LINE.fullmatch(old_line) and _VERSION_LINE.fullmatch(new_line))
        for old_line, new_line in pairs
    )


def is_known_manifest(path: str) -> bool:
    """Whether its parts can be told apart here."""
    return _manifest_parts(path).dependencies is not None


def has_test_setting_change(path: str, old: str, new: str, words: frozenset[str]) -> bool:
    """Whether the part that says which tests run, and how, is not the same; `words` are those of the checks."""
    before, after = (_read_test_settings(path, text, words | _DEFAULT_TEST_TARGETS) for text in (old, new))
    return before != after


def has_dependency_change(path: str, old: str, new: str) -> bool:
    """Whether the part that says which packages are installed is not the same."""
    read = _manifest_parts(path).dependencies
    return read is not None and bool(_read_or_whole(read, old) != _read_or_whole(read, new))


def find_dependency_paths_outside(path: str, text: str) -> tuple[str, ...]:
    """The places outside the tree from which go or cargo would take code, as the manifest names them."""
    find_paths = _manifest_parts(path).dependency_paths
    try:
        dependency_paths = find_paths(text) if find_paths is not None else ()
    except _MANIFEST_ERRORS:
        return ()
    return tuple(place for place in dependency_paths if _is_dependency_outside_tree(path, place))


def used_manifest_part(path: str, text: str, words: frozenset[str]) -> str:
    """The recipes, scripts and options that are used when these words are asked for; all of it where in doubt."""
    used = _manifest_parts(path).used
    return _read_or_whole(lambda content: used(content, words), text) if used is not None else text


def _is_dependency_outside_tree(path: str, place: str) -> bool:
    depth = 0 if not place.startswith("/") else -1
    for part in (*path.split("/")[:-1], *place.split("/")):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _manifest_parts(path: str) -> ManifestParts:
    return _PARTS_BY_NAME.get(path.rpartition("/")[2].casefold(), _NO_PARTS)


def _read_or_whole(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except _MANIFEST_ERRORS:
        return text


def _read_test_settings(path: str, text: str, words: frozenset[str]) -> tuple[Any, ...]:
    """What is used, and the settings of runners beside it; nothing of an empty manifest."""
    if not text.strip():
        return ()
    read_settings = _manifest_parts(path).settings
    used = used_manifest_part(path, text, words).strip()
    beside = _read_or_whole(lambda content: read_settings(content, words), text) if read_settings else ""
    return (used, beside) if used or beside else ()
