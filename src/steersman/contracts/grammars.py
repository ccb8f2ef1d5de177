"""The form of a command grammar, for the grammars that ship and for `[commands]` in steersman.toml alike.

**Invariant:** a grammar holds words and names of kinds, never a pattern, so that none can become slow or vague.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# The grammars that ship, in sets that a project switches on.
GrammarSetName = Literal[
    "tests", "read", "uv", "poetry", "hatch", "tox", "pnpm", "yarn", "bun", "node", "vitest", "jest", "tsc", "eslint",
    "go", "cargo", "gradle", "maven",
]  # fmt: skip
# What a word may be; `judges/commands/value_kinds.py` says what each takes.
OptionValueKind = Literal[
    "path", "test", "name", "names", "number", "expression", "text", "files", "source", "test_files", "folder", "module",
    "package", "go_package", "tsconfig", "test_name", "glob", "test_glob", "jobs", "seconds", "duration", "script",
    "target", "phase", "task", "revision", "sed", "awk",
]  # fmt: skip

_FLAG_PATTERN = r"--?[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
GrammarWord = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
# A script of package.json, a target of make.
ScriptLabel = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$")]
GrammarName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.: -]{0,63}$")]
GrammarFlag = Annotated[str, Meta(pattern=rf"^{_FLAG_PATTERN}$")]
# -q/--quiet is one option.
GrammarFlagNames = Annotated[str, Meta(pattern=rf"^{_FLAG_PATTERN}(?:/{_FLAG_PATTERN})*$")]
# `--name=` takes its value in the same word only.
OptionValueNames = Annotated[str, Meta(pattern=rf"^{_FLAG_PATTERN}=?(?:/{_FLAG_PATTERN}=?)*$")]
OptionChoice = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"^[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")
]
OptionChoices = Annotated[tuple[OptionChoice, ...], Meta(min_length=1, max_length=64)]
CommandStart = Annotated[tuple[GrammarWord, ...], Meta(min_length=1, max_length=16)]
GrammarFlags = Annotated[tuple[GrammarFlagNames, ...], Meta(max_length=64)]
# Option → the kind of its value, or the words it may be.
OptionValues = dict[OptionValueNames, OptionValueKind | OptionChoices]


class CommandGrammar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program: its first words, then these options and operands in any order."""

    start: CommandStart
    # Other first words of the same command.
    also: Annotated[tuple[CommandStart, ...], Meta(max_length=16)] = ()
    like: GrammarName | None = None  # has the flags and values of that grammar too
    flags: GrammarFlags = ()
    values: OptionValues = msgspec.field(default_factory=dict)
    joined: bool = False  # -xv is -x -v
    needs: Annotated[tuple[GrammarFlag, ...], Meta(max_length=16)] = ()  # at least one of these
    first: Annotated[tuple[OptionValueKind, ...], Meta(max_length=4)] = ()  # operands that have to come first
    operands: OptionValueKind | None = None  # operands after them
    least: Annotated[int, Meta(ge=0, le=40)] = 0
    most: Annotated[int, Meta(ge=0, le=40)] = 40
    tail_flags: GrammarFlags | None = None  # options behind `--`; without this field there is no `--`
    tail_values: OptionValues = msgspec.field(default_factory=dict)
    runs: Annotated[tuple[GrammarName, ...], Meta(max_length=16)] = ()  # a launcher: one of these follows
    searches: bool = False  # reads every file below its operands
    proves: Literal["tests", "check", "nothing"] = "tests"


class GrammarSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Grammars that ship together and are on or off together."""

    about: str
    grammars: dict[GrammarName, CommandGrammar]


class Commands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which commands a tester may propose beside the project's own checks."""

    sets: Annotated[tuple[GrammarSetName, ...], Meta(max_length=18)] = ("tests",)
    # Beside `test`, behind npm|pnpm|yarn|bun|hatch run.
    scripts: Annotated[tuple[ScriptLabel, ...], Meta(max_length=64)] = ()
    # Beside `test`, behind make, gradle, mvn.
    targets: Annotated[tuple[ScriptLabel, ...], Meta(max_length=64)] = ()
    grammars: dict[GrammarName, CommandGrammar] = msgspec.field(default_factory=dict)
