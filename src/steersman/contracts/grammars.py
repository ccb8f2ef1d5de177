"""The form of a command grammar, for the grammars that ship and for `[commands]` in steersman.toml alike.

**Invariant:** a grammar holds words and names of kinds, never a pattern, so that none can become slow or vague.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# The grammars that ship, in sets that a project switches on.
SetName = Literal[
    "tests", "read", "uv", "poetry", "hatch", "tox", "pnpm", "yarn", "bun", "node", "vitest", "jest", "tsc", "eslint",
    "go", "cargo", "gradle", "maven",
]  # fmt: skip
# What a word may be; `judges/value_kinds.py` says what each takes.
ValueKind = Literal[
    "path", "test", "name", "names", "number", "expression", "text", "files", "source", "test_files", "folder", "module",
    "package", "go_package", "tsconfig", "test_name", "glob", "test_glob", "jobs", "seconds", "duration", "script",
    "target", "phase", "task", "revision", "sed", "awk",
]  # fmt: skip

_FLAG = r"--?[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Label = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$")
]  # a script of package.json, a target of make
GrammarName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.: -]{0,63}$")]
Flag = Annotated[str, Meta(pattern=rf"^{_FLAG}$")]
FlagNames = Annotated[str, Meta(pattern=rf"^{_FLAG}(?:/{_FLAG})*$")]  # -q/--quiet is one option
# `--name=` takes its value in the same word only.
ValueNames = Annotated[str, Meta(pattern=rf"^{_FLAG}=?(?:/{_FLAG}=?)*$")]
Choice = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")]
Choices = Annotated[tuple[Choice, ...], Meta(min_length=1, max_length=64)]
Start = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=16)]
Flags = Annotated[tuple[FlagNames, ...], Meta(max_length=64)]
Values = dict[ValueNames, ValueKind | Choices]  # option → the kind of its value, or the words it may be


class CommandGrammar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program: its first words, then these options and operands in any order."""

    start: Start
    also: Annotated[tuple[Start, ...], Meta(max_length=16)] = ()  # other first words of the same command
    like: GrammarName | None = None  # has the flags and values of that grammar too
    flags: Flags = ()
    values: Values = msgspec.field(default_factory=dict)
    joined: bool = False  # -xv is -x -v
    needs: Annotated[tuple[Flag, ...], Meta(max_length=16)] = ()  # at least one of these
    first: Annotated[tuple[ValueKind, ...], Meta(max_length=4)] = ()  # operands that have to come first
    operands: ValueKind | None = None  # operands after them
    least: Annotated[int, Meta(ge=0, le=40)] = 0
    most: Annotated[int, Meta(ge=0, le=40)] = 40
    tail_flags: Flags | None = None  # options behind `--`; without this field there is no `--`
    tail_values: Values = msgspec.field(default_factory=dict)
    runs: Annotated[tuple[GrammarName, ...], Meta(max_length=16)] = ()  # a launcher: one of these follows
    searches: bool = False  # reads every file below its operands
    proves: Literal["tests", "check", "nothing"] = "tests"


class GrammarSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Grammars that ship together and are on or off together."""

    about: str
    grammars: dict[GrammarName, CommandGrammar]


class Commands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which commands a tester may propose beside the project's own checks."""

    sets: Annotated[tuple[SetName, ...], Meta(max_length=18)] = ("tests",)
    scripts: Annotated[
        tuple[Label, ...], Meta(max_length=64)
    ] = ()  # beside `test`, behind npm|pnpm|yarn|bun|hatch run
    targets: Annotated[tuple[Label, ...], Meta(max_length=64)] = ()  # beside `test`, behind make, gradle, mvn
    grammars: dict[GrammarName, CommandGrammar] = msgspec.field(default_factory=dict)
