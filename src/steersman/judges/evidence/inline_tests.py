"""Tests that stand in the product's own files: Rust's test modules, and examples in texts that a runner tries.

The base's version of such a file cannot be put back without the product around it, so a change to these tests is shown.
What was there has to be there still; a further test behind it is as welcome as one in a new file.
**Invariant:** pure; linear in the text; only what the base has counts.
"""

import re
from collections import Counter
from typing import NamedTuple

from steersman.contracts.workspace import FileText

_RUST_TEST_BEGIN = re.compile(r"#\[(?:cfg\((?:all\()?test\b|(?:\w+::){0,4}test[\](])")
_RUST_TEXTS = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\bb?r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)|"(?:[^"\\]|\\.)*"?"""
    r"""|'(?:[^'\\\n]|\\[^\n][^'\n]{0,8})'""",
    re.DOTALL,
)
_RUST_DOC_FENCE = re.compile(
    r"^[ \t]*//[/!][ \t]?```[^\n]*\n(?P<body>(?:[ \t]*//[/!][^\n]*\n)*?)[ \t]*//[/!][ \t]?```", re.MULTILINE
)
_DOC_EXAMPLE = re.compile(r"^[ \t]*(?:>>>|iex(?:\(\d+\))?>)[^\n]*(?:\n[ \t]*[^\s>][^\n]*)*", re.MULTILINE)


def has_inline_test_change(path: str, old: FileText, new: FileText, *, examples: bool = False) -> bool:
    """Whether tests that stand in this file are not what they were; `examples`: a runner tried those in its texts."""
    if path.casefold().endswith(".rs"):
        find_tests = _find_rust_tests
    elif examples or path.casefold().endswith((".ex", ".exs")):
        find_tests = _find_doc_examples
    else:
        return False
    return bool(find_tests(old.content) - find_tests(new.content))


def _find_rust_tests(text: str) -> Counter[tuple[str, ...]]:
    """Each test, each test module without its tests, and each example, without blank lines and comments."""
    parts: list[list[str]] = []
    open_parts: list[_OpenRustItem] = []
    attributes: list[str] = []  # they belong to what follows them
    depth = 0
    for raw_line, code in zip(text.split("\n"), _remove_rust_texts(text).split("\n"), strict=True):
        line, indent = raw_line.strip(), raw_line[: len(raw_line) - len(raw_line.lstrip())]
        if not line or line.startswith("//"):
            continue
        if _RUST_TEST_BEGIN.match(code.strip()):
            parts.append([])
            open_parts.append(_OpenRustItem(indent, depth, parts[-1]))
        elif code.strip().startswith("#[") and code.rstrip().endswith("]"):
            attributes.append(line)
            continue
        if open_parts:
            open_parts[-1].lines.extend((*attributes, line))
        attributes.clear()
        depth += code.count("{") - code.count("}")
        while open_parts and open_parts[-1].ends_with(code, indent, depth):
            open_parts.pop()
    return Counter(map(_remove_closing_braces, parts)) + Counter(
        (match["body"],) for match in _RUST_DOC_FENCE.finditer(text)
    )


class _OpenRustItem(NamedTuple):
    """A test or a test module whose end has not come yet."""

    indent: str
    depth: int
    lines: list[str]

    def ends_with(self, code: str, indent: str, depth: int) -> bool:
        """Whether its item closes where it began; what is formatted otherwise goes on as long as what is around it."""
        closes = indent == self.indent and code.rstrip().endswith(("}", ";"))
        return depth < self.depth or (depth == self.depth and closes)


def _remove_rust_texts(text: str) -> str:
    """The code without comments, strings and characters; every line stays a line."""
    return _RUST_TEXTS.sub(lambda match: "\n" * match[0].count("\n"), text)


def _remove_closing_braces(part: list[str]) -> tuple[str, ...]:
    """A test behind the last one comes before the brace that closes their module."""
    end = len(part)
    while part[end - 1] == "}":
        end -= 1
    return tuple(part[:end])


def _find_doc_examples(text: str) -> Counter[tuple[str, ...]]:
    """The examples of each text in quotes: those of one are tried together."""
    parts = (_DOC_EXAMPLE.findall(part) for part in re.split(r'"""|\'\'\'', text))
    return Counter(tuple(" ".join(example.split()) for example in part) for part in parts if part)
