"""Tests that stand in the product's own files: Rust's test modules, and examples in texts that a runner tries.

The base's version of such a file cannot be put back without the product around it, so a change to these tests is shown.
What was there has to be there still; a further test behind it is as welcome as one in a new file.
**Invariant:** pure; linear in the text; only what the base has counts.
"""

import re
from collections import Counter
from typing import NamedTuple

from steersman.contracts.workspace import Text

_BEGINS = re.compile(r"#\[(?:cfg\((?:all\()?test\b|(?:\w+::){0,4}test[\](])")
_TEXTS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\bb?r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)|"(?:[^"\\]|\\.)*"?"""
    r"""|'(?:[^'\\\n]|\\[^\n][^'\n]{0,8})'""",
    re.DOTALL,
)
_FENCE = re.compile(
    r"^[ \t]*//[/!][ \t]?```[^\n]*\n(?P<body>(?:[ \t]*//[/!][^\n]*\n)*?)[ \t]*//[/!][ \t]?```", re.MULTILINE
)
_EXAMPLE = re.compile(r"^[ \t]*(?:>>>|iex(?:\(\d+\))?>)[^\n]*(?:\n[ \t]*[^\s>][^\n]*)*", re.MULTILINE)


def changed_inside(path: str, old: Text, new: Text, *, examples: bool = False) -> bool:
    """Whether tests that stand in this file are not what they were; `examples`: a runner tried those in its texts."""
    if path.casefold().endswith(".rs"):
        read = _rust_tests
    elif examples or path.casefold().endswith((".ex", ".exs")):
        read = _examples
    else:
        return False
    return bool(read(old.content) - read(new.content))


def _rust_tests(text: str) -> Counter[tuple[str, ...]]:
    """Each test, each test module without its tests, and each example, without blank lines and comments."""
    parts: list[list[str]] = []
    open_parts: list[_OpenPart] = []
    attributes: list[str] = []  # they belong to what follows them
    depth = 0
    for whole, code in zip(text.split("\n"), _without_texts(text).split("\n"), strict=True):
        line, indent = whole.strip(), whole[: len(whole) - len(whole.lstrip())]
        if not line or line.startswith("//"):
            continue
        if _BEGINS.match(code.strip()):
            parts.append([])
            open_parts.append(_OpenPart(indent, depth, parts[-1]))
        elif code.strip().startswith("#[") and code.rstrip().endswith("]"):
            attributes.append(line)
            continue
        if open_parts:
            open_parts[-1].lines.extend((*attributes, line))
        attributes.clear()
        depth += code.count("{") - code.count("}")
        while open_parts and open_parts[-1].ends_with(code, indent, depth):
            open_parts.pop()
    return Counter(map(_without_closing, parts)) + Counter((m["body"],) for m in _FENCE.finditer(text))


class _OpenPart(NamedTuple):
    """A test or a test module whose end has not come yet."""

    indent: str
    depth: int
    lines: list[str]

    def ends_with(self, code: str, indent: str, depth: int) -> bool:
        """Whether its item closes where it began; what is formatted otherwise goes on as long as what is around it."""
        closes = indent == self.indent and code.rstrip().endswith(("}", ";"))
        return depth < self.depth or (depth == self.depth and closes)


def _without_texts(text: str) -> str:
    """The code without comments, strings and characters; every line stays a line."""
    return _TEXTS.sub(lambda found: "\n" * found[0].count("\n"), text)


def _without_closing(part: list[str]) -> tuple[str, ...]:
    """A test behind the last one comes before the brace that closes their module."""
    end = len(part)
    while part[end - 1] == "}":
        end -= 1
    return tuple(part[:end])


def _examples(text: str) -> Counter[tuple[str, ...]]:
    """The examples of each text in quotes: those of one are tried together."""
    parts = (_EXAMPLE.findall(part) for part in re.split(r'"""|\'\'\'', text))
    return Counter(tuple(" ".join(example.split()) for example in part) for part in parts if part)
