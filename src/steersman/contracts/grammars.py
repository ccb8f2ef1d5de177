"""What a project says about the commands a tester may propose: `[commands]` in steersman.toml.

**Invariant:** a project adds words to tables; it never writes a pattern, so that no table can become slow or vague.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# The grammars that ship, in sets that a project switches on.
SetName = Literal[
    "tests", "read", "uv", "poetry", "hatch", "tox", "pnpm", "yarn", "bun", "node", "vitest", "jest", "tsc", "eslint",
    "go", "cargo", "gradle", "maven",
]  # fmt: skip
# What a word may be: a path in the tree; that or one test of it; names; a whole number; names with and/or/not; any text
# that is no option; paths with * in them.
ValueKind = Literal["path", "test", "name", "names", "number", "expression", "text", "files"]

Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Label = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$")
]  # a script of package.json, a target of make
Flag = Annotated[str, Meta(pattern=r"^--?[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Choice = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")]


class OwnGrammar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command of the project's own: its first words, then these options and operands in any order."""

    start: Annotated[tuple[Word, ...], Meta(min_length=1, max_length=16)]
    flags: Annotated[tuple[Flag, ...], Meta(max_length=64)] = ()
    values: dict[Flag, ValueKind | Annotated[tuple[Choice, ...], Meta(min_length=1, max_length=64)]] = (
        msgspec.field(default_factory=dict)
    )  # option → what it takes, or the words it may take
    operands: ValueKind | None = None
    least: Annotated[int, Meta(ge=0, le=40)] = 0
    most: Annotated[int, Meta(ge=0, le=40)] = 40
    proves: Literal["tests", "check"] = "tests"


class Commands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which commands a tester may propose beside the project's own checks."""

    sets: Annotated[tuple[SetName, ...], Meta(max_length=18)] = ("tests",)
    scripts: Annotated[
        tuple[Label, ...], Meta(max_length=64)
    ] = ()  # beside `test`, behind npm|pnpm|yarn|bun|hatch run
    targets: Annotated[tuple[Label, ...], Meta(max_length=64)] = ()  # beside `test`, behind make, gradle, mvn
    grammars: dict[Label, OwnGrammar] = msgspec.field(default_factory=dict)
