"""The grammars of commands as a page: every set, program, option and operand, from the file that is executed."""

from collections.abc import Iterator
from typing import get_args

from steersman.adapters.checks.tree_paths import load_command_grammars
from steersman.contracts.grammars import CommandGrammar, Commands, OptionValueKind, OptionValues
from steersman.judges.changes.infrastructure import (
    AGENT_FILE_RULES,
    DECISIVE_FILE_RULES,
)
from steersman.judges.commands.value_kinds import find_word_kind
from steersman.judges.ecosystems.ecosystem import FileNameRule

OPENING = """Which commands a tester may propose, word for word. A word that has no place here is refused: there is no prefix rule and no list of forbidden words. `steersman check command` says what holds in your project, [Allow commands](../how-to/allow-commands.md) how to add to it.

A command is a list of words, or one line in which quotes keep words together; whatever a shell would expand, redirect or join is refused. At most 64 words, each of printable characters in their plain Unicode form, none empty. What is approved is what is executed, without a shell, in a folder and an environment of steersman's own. A path that leads out of the tree through a link is refused when the command is to run, and so is a search of folders in which a file looks like one with secrets.

`python3` and `python3.12` are `python`. A program that a check of the project names by its path, such as `.venv/bin/python`, may be named by that path.

An option is written as here: `-n 4` or `-n4`, `--name value` or `--name=value`; one that ends with `=` has its value in the same word only."""
FILES = "A change to one of these is shown to a person before it counts; `*` is any part of a name, and a folder counts at any depth. Letter case makes no difference."
PROJECT = Commands(scripts=("SCRIPT",), targets=("TARGET",))  # the names under `scripts` and `targets`
PROVES = {
    "tests": "proves tests, where they are counted",
    "check": "proves what its exit code says",
    "nothing": "proves nothing",
}
GATED = (
    ("Executed, installed, loaded or obeyed by a tool without being asked", DECISIVE_FILE_RULES),
    ("Obeyed by agents", AGENT_FILE_RULES),
)


def grammar_page(notice: str) -> str:
    """The whole page."""
    parts = [notice, "# Commands", OPENING]
    for name, given in load_command_grammars().items():
        parts += [f"## {name}", given.about]
        for grammar_name, grammar in given.grammars.items():
            parts += [f"### {grammar_name}", "\n".join(f"- {line}" for line in _lines(grammar))]
    rows = [f"| `{kind}` | {find_word_kind(kind, PROJECT).meaning} |" for kind in get_args(OptionValueKind)]
    parts += ["## Kinds of values", "\n".join(["| kind | what it takes |", "|---|---|", *rows])]
    parts += ["## Files that open a gate", FILES]
    parts += [part for title, kinds in GATED for part in _gated_files(title, kinds)]
    return "\n\n".join(parts) + "\n"


def _lines(grammar: CommandGrammar) -> Iterator[str]:
    yield "starts with " + " or ".join(_code(" ".join(start)) for start in (grammar.start, *grammar.also))
    if grammar.runs:
        yield f"then one of {_codes(grammar.runs)}, as in its own list"
    if grammar.like:
        yield f"the options of {_code(grammar.like)}"
    if grammar.flags:
        yield f"options: {_codes(grammar.flags)}" + ("; letters may be joined" if grammar.joined else "")
    if grammar.values:
        yield f"options with a value: {_values(grammar.values)}"
    if grammar.needs:
        yield "needs " + " or ".join(map(_code, grammar.needs))
    for value in grammar.first:
        yield f"needs {_code(value)}"
    if grammar.operands is not None:
        yield f"takes {grammar.least} to {grammar.most} × {_code(grammar.operands)}"
    if grammar.tail_flags is not None:
        tail = [_codes(grammar.tail_flags), _values(grammar.tail_values)]
        yield f"behind `--`: {', '.join(filter(None, tail))}"
    yield PROVES[grammar.proves]


def _values(values: OptionValues) -> str:
    return ", ".join(
        f"{_code(names)} ({_code(kind) if isinstance(kind, str) else _codes(kind)})"
        for names, kind in values.items()
    )


def _gated_files(title: str, kinds: tuple[FileNameRule, ...]) -> Iterator[str]:
    yield f"### {title}"
    rows = [f"| {k.why} | {_words(k.names)} | {_words(k.folders)} |" for k in kinds]
    yield "\n".join(["| why | files | folders |", "|---|---|---|", *rows])


def _words(words: str) -> str:
    return " ".join(map(_code, words.split()))


def _codes(words: tuple[str, ...]) -> str:
    return ", ".join(map(_code, words))


def _code(text: str) -> str:
    return f"`{text}`"
