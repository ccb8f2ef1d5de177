"""Tests that stand in the product's own files: Rust's test modules, and examples in texts that a runner tries.

What was there has to be there still; a further test beside it is as welcome as one in a new file. What surrounds the
tests of a module may not change, for a name put there stands in front of the product's.
**Invariant:** pure; linear in the text; only what the base has counts.
"""

import re
from collections import Counter
from collections.abc import Iterator

from steersman.contracts.workspace import Text

_NAMES = r"(?:\w+::){0,4}test(?:\([^\]\n]{0,200}\))?"
_TEST = re.compile(rf"#\[{_NAMES}\]")
_ATTRIBUTE = re.compile(rf"#\[(?:cfg\(test\)|cfg\(all\(test\b[^\]\n]{{0,200}}|{_NAMES})\]")
_COMMENT = re.compile(r"^\s*//[^\n]*$", re.MULTILINE)
_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|r(?P<hashes>#*)\".*?\"(?P=hashes)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|[{};]",
    re.DOTALL,
)
_FENCE = re.compile(
    r"^[ \t]*//[/!][ \t]?```[^\n]*\n(?P<body>(?:[ \t]*//[/!][^\n]*\n)*?)[ \t]*//[/!][ \t]?```", re.MULTILINE
)
_TEXTS = re.compile(r'"""|\'\'\'')
_EXAMPLE = re.compile(r"^[ \t]*(?:>>>|iex(?:\(\d+\))?>)[^\n]*(?:\n[ \t]*[^\s>][^\n]*)*", re.MULTILINE)
PROSE = (".md", ".rst", ".adoc", ".txt")


def changed_inside(path: str, old: Text, new: Text, *, examples: bool = False) -> bool:
    """Whether tests that stand in this file are not what they were; `examples`: somebody tries those of Python."""
    match path.casefold().rpartition(".")[2]:
        case "rs":
            return _module_changed(old.content, new.content) or _lost(_fenced(old), _fenced(new))
        case "ex" | "exs":
            return _lost(_shown(old), _shown(new))
        case "py" | "pyi" | "pyx" if examples:
            return _lost(_shown(old), _shown(new))
        case _ if examples and path.casefold().endswith(PROSE):
            return _examples(old.content) != _examples(new.content)
        case _:
            return False


def _lost(old: Counter[tuple[str, ...]], new: Counter[tuple[str, ...]]) -> bool:
    return bool(old - new)


def _fenced(text: Text) -> Counter[tuple[str, ...]]:
    return Counter((m["body"],) for m in _FENCE.finditer(text.content))


def _shown(text: Text) -> Counter[tuple[str, ...]]:
    """The examples of each text in quotes: those of one are tried together."""
    return Counter(found for part in _TEXTS.split(text.content) if (found := _examples(part)))


def _examples(text: str) -> tuple[str, ...]:
    return tuple(re.sub(r"\s+", " ", m[0]).strip() for m in _EXAMPLE.finditer(text))


def _module_changed(old: str, new: str) -> bool:
    before, after = (Counter(_items(text)) for text in (old, new))
    return bool(before - after)


def _items(text: str) -> Iterator[str]:
    """Each test, and of a test module what is left without its tests and the comments between them."""
    at = 0
    while (found := _ATTRIBUTE.search(text, at)) is not None:
        at = _end(text, found.end())
        item = text[found.start() : at]
        if _TEST.match(item) is None:
            tests = list(_tests(item))
            for test in tests:
                item = item.replace(test, "", 1)
            yield from map(_plain, tests)
            item = _COMMENT.sub("", item)
        yield _plain(item)


def _tests(module: str) -> Iterator[str]:
    at = 0
    while (found := _TEST.search(module, at)) is not None:
        at = _end(module, found.end())
        yield module[found.start() : at]


def _plain(item: str) -> str:
    return re.sub(r"\s+", " ", item).strip()


def _end(text: str, at: int) -> int:
    """Where the item that begins here is over: at its semicolon, or at the brace that closes its first."""
    depth = 0
    for token in _TOKEN.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth <= 0 and token[0] in ("}", ";"):
            return token.end()
    return len(text)
