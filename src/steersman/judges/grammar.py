"""What a grammar of commands is, and whether an argv fits one: which options, how often, with what values, where.

A word that is not provided for has no place; there is no prefix rule, no denylist and no guess at an abbreviation.
**Invariant:** fitting changes nothing: the argv that fits is the argv that is run, word for word.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.judges.command_line import shown

Proves = Literal["tests", "check", "nothing"]
Form = Literal["=", " ", ""]  # --name=VALUE, --name VALUE or -n VALUE, -nVALUE


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What one word, or the part of it behind an option, may look like: all of `pattern`, or one of `words`."""

    name: str  # as pages and messages call it
    meaning: str
    pattern: str = ""
    words: tuple[str, ...] = ()
    least: int | None = None  # for numbers
    most: int | None = None
    path: str = ""  # a pattern whose first group is a path in the tree, where the value is one

    def fits(self, word: str) -> bool:
        """Whether this word is such a value."""
        if self.words:
            return word in self.words
        if re.fullmatch(self.pattern, word) is None:
            return False
        return self.most is None or (self.least or 0) <= int(word) <= self.most


class Option(msgspec.Struct, frozen=True):
    """One option under all its names, with the value it takes, the ways to write that, and how often it may come."""

    names: tuple[str, ...]
    value: Value | None = None
    forms: tuple[Form, ...] = ()
    often: int = 1


class Grammar(msgspec.Struct, frozen=True, kw_only=True):
    """One program as it may be started: its first words, then options and operands, or another whole command."""

    name: str
    set: str
    about: str
    starts: tuple[Argv, ...]
    options: tuple[Option, ...] = ()
    first: tuple[Value, ...] = ()  # operands that have to come, each of its own form
    rest: Value | None = None  # operands after them, all of one form
    least: int = 0  # of these
    most: int = 40
    needs: tuple[str, ...] = ()  # at least one of these options
    clusters: bool = False  # -xv is -x -v
    tail: tuple[Option, ...] | None = None  # options behind a `--`; None: no `--`
    inner: tuple["Grammar", ...] = ()  # a launcher: one of these follows
    proves: Proves = "tests"


class Fitted(msgspec.Struct, frozen=True):
    """It fits: by which grammar, and which of its words are paths that have to stay in the tree."""

    grammar: Grammar
    paths: tuple[str, ...]


class Misfit(msgspec.Struct, frozen=True):
    """It does not: how many words were the grammar's own, and what is wrong after them."""

    started: int
    reason: str


def fit(argv: Argv, grammar: Grammar) -> Fitted | Misfit:
    """Whether the whole argv is a sentence of this grammar."""
    start = max((s for s in grammar.starts if argv[: len(s)] == s), key=len, default=None)
    if start is None:
        return Misfit(0, f"`{shown(argv[:1])}` is not `{shown(grammar.starts[0])}`")
    reading = _Reading(grammar, start, argv[len(start) :])
    reason = reading.read()
    if reason is None and reading.inside is not None:
        return _inner(reading.inside, grammar, len(argv) - len(reading.inside))
    return Misfit(len(start), reason) if reason else Fitted(grammar, tuple(reading.paths))


def fit_any(argv: Argv, grammars: Sequence[Grammar]) -> Fitted | Misfit:
    """The first grammar that fits, or the misfit that came furthest."""
    best = Misfit(0, f"`{shown(argv[:1])}` is not a program of the table")
    for grammar in grammars:
        found = fit(argv, grammar)
        if isinstance(found, Fitted):
            return found
        if found.started > best.started:
            best = found
    return best


def _inner(argv: Argv, grammar: Grammar, before: int) -> Fitted | Misfit:
    found = fit_any(argv, grammar.inner)
    if isinstance(found, Fitted):
        return Fitted(msgspec.structs.replace(grammar, proves=found.grammar.proves), found.paths)
    return Misfit(before + found.started, found.reason)


class _Reading:
    """One pass over the words behind a grammar's start."""

    def __init__(self, grammar: Grammar, start: Argv, words: Argv) -> None:
        self.grammar, self.start, self.words = grammar, start, words
        self.paths: list[str] = []
        self.inside: Argv | None = None
        self._operands = 0
        self._seen: Counter[str] = Counter()

    def read(self) -> str | None:
        """What is wrong, or None."""
        options = self.grammar.options
        left = iter(enumerate(self.words))
        for number, word in left:
            if word == "--" and self.grammar.tail is not None and options is not self.grammar.tail:
                options = self.grammar.tail
                trouble = None
            elif word.startswith("-"):
                trouble = self._option(word, options, left)
            elif self.grammar.inner:
                self.inside = self.words[number:]
                return None
            else:
                trouble = self._operand(word)
            if trouble is not None:
                return trouble
        return self._missing()

    def _option(self, word: str, options: tuple[Option, ...], left: Iterator[tuple[int, str]]) -> str | None:
        for option in options:
            for name in option.names:
                if word == name and option.value is None:
                    return self._count(option)
                value = _value(word, name, option, left)
                if value is not None:
                    return self._count(option) or self._taken(name, option, value)
        return self._cluster(word, options)

    def _cluster(self, word: str, options: tuple[Option, ...]) -> str | None:
        """`-xvs`, where each letter is an option without a value."""
        flags = {n: o for o in options if o.value is None for n in o.names if len(n) == 2}
        letters = [flags.get(f"-{letter}") for letter in word[1:]]
        if not self.grammar.clusters or len(letters) < 2 or None in letters:
            return f"`{shown((word,))}` is not an option of `{shown(self.start)}` that may be used here"
        return next((t for o in letters if o is not None and (t := self._count(o))), None)

    def _count(self, option: Option) -> str | None:
        self._seen[option.names[0]] += 1
        times = self._seen[option.names[0]]
        return f"`{option.names[0]}` comes more than {option.often} times" if times > option.often else None

    def _taken(self, name: str, option: Option, value: str) -> str | None:
        kind = option.value
        if kind is None or not kind.fits(value):  # an option with a value always has a kind
            return f"`{shown((value,))}` is not a value for `{name}`: {kind.meaning if kind else ''}"
        self._path(kind, value)
        return None

    def _operand(self, word: str) -> str | None:
        first = self.grammar.first
        kind = first[self._operands] if self._operands < len(first) else self.grammar.rest
        self._operands += 1
        if kind is None:
            return f"`{shown((word,))}` has no place after `{shown(self.start)}`"
        if not kind.fits(word):
            return f"`{shown((word,))}` is not {kind.meaning}"
        self._path(kind, word)
        over = self._operands - len(first) > self.grammar.most
        return f"more than {self.grammar.most} operands" if over else None

    def _path(self, kind: Value, word: str) -> None:
        found = re.match(kind.path, word) if kind.path else None
        if found is not None:
            self.paths.append(found[1])

    def _missing(self) -> str | None:
        wanted = self.grammar.first[self._operands :]
        if wanted:
            return f"after `{shown(self.start)}` has to come {wanted[0].meaning}"
        if self.grammar.inner or self._operands - len(self.grammar.first) < self.grammar.least:
            rest = self.grammar.rest
            return f"after `{shown(self.start)}` has to come {rest.meaning if rest else 'a command'}"
        if self.grammar.needs and not any(self._seen[n] for n in self.grammar.needs):
            return f"`{shown(self.start)}` needs {' or '.join(self.grammar.needs)}"
        return None


def _value(word: str, name: str, option: Option, left: Iterator[tuple[int, str]]) -> str | None:
    """The value that this word, and where needed the next, gives to the option; None where it is another word."""
    if option.value is None or not word.startswith(name):
        return None
    behind = word.removeprefix(name)
    if not behind:
        return next((w for _, w in left), "") if " " in option.forms else None
    if len(name) > 2 and "=" in option.forms and behind.startswith("="):
        return behind[1:]
    return behind if len(name) <= 2 and "" in option.forms else None
