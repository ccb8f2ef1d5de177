"""The grammars of commands as a page: every set, program, option and operand, read from the tables that are executed."""

import re
from collections.abc import Iterator

from steersman.judges.grammar import Grammar, Option, Value
from steersman.judges.grammars import SETS, shipped
from steersman.judges.infrastructure import AGENTS, CODE, TESTS, Kind

OPENING = """Which commands a tester may propose, word for word. A word that has no place here is refused: there is no prefix rule and no list of forbidden words. `steersman check command` says what holds in your project, [Allow commands](../how-to/allow-commands.md) how to add to it.

A command is a list of words, or one line in which quotes keep words together; whatever a shell would expand, redirect or join is refused. At most 64 words, each of printable characters in their plain Unicode form, none empty. What is approved is what is executed, without a shell, in a folder and an environment of steersman's own. A path that leads out of the tree through a link is refused when the command is to run, and so is a search of folders that would read a file which looks like one with secrets.

`SCRIPT` and `TARGET` stand for the names under `scripts` and `targets` of `[commands]`."""


def grammar_page(notice: str) -> str:
    """The whole page."""
    parts = [notice, "# Commands", OPENING]
    grammars = shipped(("SCRIPT",), ("TARGET",))
    for name, about in SETS.items():
        parts += [f"## {name}", about]
        parts += [part for g in grammars if g.set == name for part in _grammar(g)]
    parts += ["## Files that open a gate", _FILES]
    parts += [part for title, kinds in _KINDS for part in _kinds(title, kinds)]
    return "\n\n".join(parts) + "\n"


_FILES = "A change to one of these is shown to a person before it counts; `*` is any part of a name, and a folder counts at any depth. Letter case makes no difference."
_KINDS = (
    ("Test infrastructure: they decide what tests prove", TESTS),
    ("Executed, installed or loaded without being asked", CODE),
    ("Obeyed by agents", AGENTS),
)


_NUMBERED = re.compile(r"python3\.")


def _grammar(g: Grammar) -> Iterator[str]:
    yield f"### {g.name}"
    yield g.about
    yield "\n".join(f"- {line}" for line in _lines(g))
    options = [*g.options, *(g.tail or ())]
    if options:
        yield "\n".join(["| option | value | often |", "|---|---|---|", *map(_option, options)])


def _lines(g: Grammar) -> Iterator[str]:
    yield "starts with " + " or ".join(
        f"`{' '.join(start)}`" for start in g.starts if not _NUMBERED.match(start[0])
    )
    numbered = [start[0] for start in g.starts if _NUMBERED.match(start[0])]
    if numbered:
        yield f"`{numbered[0]}` to `{numbered[-1]}` may stand for `python`"
    if g.inner:
        yield "then one of " + ", ".join(f"`{i.name}`" for i in g.inner) + ", as in its own table"
    for value in g.first:
        yield f"needs {_value(value)}"
    if g.rest is not None:
        yield f"takes {f'{g.least} to ' if g.least else 'up to '}{g.most} × {_value(g.rest)}"
    if g.needs:
        yield "needs " + " or ".join(f"`{n}`" for n in g.needs)
    if g.clusters:
        yield "short options without a value may be joined: `-xv`"
    if g.greedy:
        yield "no operand directly behind " + " or ".join(f"`{n}`" for n in g.greedy)
    if g.tail is not None:
        yield "behind `--`: " + ", ".join(f"`{o.names[0]}`" for o in g.tail)
    yield {"tests": "proves tests, where they are counted", "check": "proves what its exit code says", "nothing": "proves nothing"}[g.proves]  # fmt: skip


def _option(o: Option) -> str:
    names = ", ".join(f"`{n}`" for n in o.names)
    if o.value is None:
        return f"| {names} |  | {o.often} |"
    ways = {"=": "behind `=`", " ": "as the next word", "": "joined to the letter"}
    return f"| {names} | {_cell(_value(o.value))}, {' or '.join(ways[f] for f in o.forms)} | {o.often} |"


def _value(v: Value) -> str:
    if v.words:
        return " or ".join(f"`{w}`" for w in v.words)
    return f"{v.name}: {v.meaning}"


def _kinds(title: str, kinds: tuple[Kind, ...]) -> Iterator[str]:
    yield f"### {title}"
    rows = [f"| {k.why} | {_words(k.names)} | {_words(k.folders)} |" for k in kinds]
    yield "\n".join(["| why | files | folders |", "|---|---|---|", *rows])


def _words(words: str) -> str:
    return " ".join(f"`{w}`" for w in words.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
