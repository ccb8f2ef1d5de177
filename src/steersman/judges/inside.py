"""Tests that stand in the product's own files: Rust's test modules, and examples in texts that a runner tries.

The base's version of such a file cannot be put back without the product around it, so a change to these tests is shown.
What was there has to be there still; a further test behind it is as welcome as one in a new file.
**Invariant:** pure; linear in the text; only what the base has counts.
"""

import re
from collections import Counter

from steersman.contracts.workspace import Text

_BEGINS = re.compile(r"#\[(?:cfg\((?:all\()?test\b|(?:\w+::){0,4}test[\](])")
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
    """Each test, each opening of a test module, and each example, without blank lines and comments."""
    parts: list[list[str]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if _BEGINS.match(line):
            parts.append([line])
        elif parts and not line.startswith("//") and not _is_over(parts[-1]):
            parts[-1].append(line)
    return Counter(_without_closing(part) for part in parts) + Counter((m["body"],) for m in _FENCE.finditer(text))  # fmt: skip


def _is_over(part: list[str]) -> bool:
    """Whether a line such as `mod tests;` has ended what began: the product goes on."""
    return len(part) == 2 and part[1].endswith(";")


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
