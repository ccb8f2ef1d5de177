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
from steersman.judges.searches import Search
from steersman.judges.secret_names import asks_for_secrets, keeps_secrets

Proves = Literal["tests", "check", "nothing"]
Form = Literal["=", " ", ""]  # --name=VALUE, --name VALUE or -n VALUE, -nVALUE
# What happens to the file that a value names: it is shown, it is loaded or searched, or names are compared with it.
Opens = Literal["", "shown", "loaded", "named"]
_WILD = re.compile(r"[*?]")


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What one word, or the part of it behind an option, may look like: all of `pattern`, or one of `words`."""

    name: str  # as pages and messages call it
    meaning: str
    pattern: str = ""
    words: tuple[str, ...] = ()
    least: int | None = None  # for numbers
    most: int | None = None
    path: str = ""  # a pattern whose first group is a path in the tree, where the value is one
    there: bool = False  # a program that does not find that path looks for it elsewhere
    opens: Opens = ""

    def fits(self, word: str) -> bool:
        """Whether this word is such a value."""
        if self.words:
            return word in self.words
        if re.fullmatch(self.pattern, word) is None or self._asks_for_a_secret(word):
            return False
        return self.most is None or (self.least or 0) <= int(word) <= self.most

    def path_in(self, word: str) -> str | None:
        """The path that such a word names, up to its first wildcard."""
        found = re.match(self.path, word) if self.path else None
        return found[1] if found else None

    def _asks_for_a_secret(self, word: str) -> bool:
        path = self.path_in(word) or word
        match self.opens:
            case "shown":
                return keeps_secrets(path)
            case "loaded":
                return keeps_secrets(path, folder=True) or (
                    _WILD.search(word) is not None and asks_for_secrets(word.rpartition("/")[2])
                )
            case "named":
                return asks_for_secrets(word)
            case _:
                return False


class Option(msgspec.Struct, frozen=True):
    """One option under all its names, with the value it takes, the ways to write that, and how often it may come."""

    names: tuple[str, ...]
    value: Value | None = None
    forms: tuple[Form, ...] = ()
    often: int = 1


class Searching(msgspec.Struct, frozen=True, kw_only=True):
    """How a program searches folders: its options that say so, by their first names."""

    when: tuple[str, ...] = ()  # it does with one of these; without any: always
    only: str
    without: str = ""
    without_folders: str = ""
    reveals: tuple[str, ...] | None = None  # one of these makes it look at hidden files; None: it always does


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
    greedy: tuple[str, ...] = ()  # options that would take an operand behind them for their value
    tail: tuple[Option, ...] | None = None  # options behind a `--`; None: no `--`
    inner: tuple["Grammar", ...] = ()  # a launcher: one of these follows
    searching: Searching | None = None
    proves: Proves = "tests"


class Reach(msgspec.Struct, frozen=True):
    """What an argv touches in the tree that it runs in, to be looked at on the disk."""

    paths: tuple[str, ...] = ()  # they have to stay in it
    there: tuple[str, ...] = ()  # those of them that have to be there
    folders: tuple[str, ...] = ()  # whose names a glob is held against
    search: Search | None = None


class Fitted(msgspec.Struct, frozen=True):
    """It fits: by which grammar, and what it touches."""

    grammar: Grammar
    reach: Reach


class Misfit(msgspec.Struct, frozen=True):
    """It does not: how many words were in their place, and what is wrong after them."""

    at: int
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
    return Misfit(len(start) + reading.at, reason) if reason else Fitted(grammar, reading.reach())


def fit_any(argv: Argv, grammars: Sequence[Grammar]) -> Fitted | Misfit:
    """The first grammar that fits, or the misfit that came furthest."""
    best: Misfit | None = None
    for grammar in grammars:
        found = fit(argv, grammar)
        if isinstance(found, Fitted):
            return found
        if found.at > (best.at if best else 0):
            best = found
    return best or _unstarted(argv, [start for grammar in grammars for start in grammar.starts])


def _unstarted(argv: Argv, starts: Sequence[Argv]) -> Misfit:
    """A program of no table; or one with other first words than it may have, which are then named."""
    known = max((_shared(argv, start) for start in starts), default=0)
    if not known:
        return Misfit(0, f"`{shown(argv[:1])}` is not a program of the table")
    words = dict.fromkeys(f"`{start[known]}`" for start in starts if start[:known] == argv[:known])
    given = f", not `{shown(argv[known : known + 1])}`" if argv[known:] else ""
    return Misfit(known, f"after `{shown(argv[:known])}` has to come {' or '.join(words)}{given}")


def _shared(argv: Argv, start: Argv) -> int:
    """How many first words are the same."""
    return next(
        (n for n, (a, b) in enumerate(zip(argv, start, strict=False)) if a != b), min(len(argv), len(start))
    )


def _inner(argv: Argv, grammar: Grammar, before: int) -> Fitted | Misfit:
    found = fit_any(argv, grammar.inner)
    if isinstance(found, Fitted):
        return Fitted(msgspec.structs.replace(grammar, proves=found.grammar.proves), found.reach)
    return Misfit(before + found.at, found.reason)


class _Reading:
    """One pass over the words behind a grammar's start."""

    def __init__(self, grammar: Grammar, start: Argv, words: Argv) -> None:
        self.grammar, self.start, self.words = grammar, start, words
        self.inside: Argv | None = None
        self.at = 0  # the word that is looked at
        self._operands: list[str] = []
        self._seen: Counter[str] = Counter()
        self._values: list[tuple[str, Value, str]] = []  # an option's first name, or nothing for an operand

    def read(self) -> str | None:
        """What is wrong, or None."""
        options = self.grammar.options
        left = iter(enumerate(self.words))
        for number, word in left:
            self.at = number
            if word == "--" and self.grammar.tail is not None and options is not self.grammar.tail:
                options = self.grammar.tail
                trouble = None
            elif word.startswith("-"):
                trouble = self._option(word, options, left)
            elif self.grammar.inner:
                self.inside = self.words[number:]
                return None
            elif number and self.words[number - 1] in self.grammar.greedy:
                trouble = f"`{shown((word,))}` would be taken for the value of `{self.words[number - 1]}`"
            else:
                trouble = self._operand(word)
            if trouble is not None:
                return trouble
        self.at = len(self.words)
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
        self._values.append((option.names[0], kind, value))
        return None

    def _operand(self, word: str) -> str | None:
        first = self.grammar.first
        kind = first[len(self._operands)] if len(self._operands) < len(first) else self.grammar.rest
        self._operands.append(word)
        if kind is None:
            return f"`{shown((word,))}` has no place after `{shown(self.start)}`"
        if not kind.fits(word):
            return f"`{shown((word,))}` is not {kind.meaning}"
        self._values.append(("", kind, word))
        over = len(self._operands) - len(first) > self.grammar.most
        return f"more than {self.grammar.most} operands" if over else None

    def reach(self) -> Reach:
        """What the values that were taken touch."""
        named = [
            (kind, path, word) for _, kind, word in self._values if (path := kind.path_in(word)) is not None
        ]
        return Reach(
            tuple(path for _, path, _ in named),
            tuple(path for kind, path, _ in named if kind.there),
            tuple(
                _above(word)
                for _, kind, word in self._values
                if kind.opens == "loaded" and _WILD.search(word)
            ),
            self._search(self.grammar.searching),
        )

    def _search(self, how: Searching | None) -> Search | None:
        if how is None or (how.when and not any(self._seen[name] for name in how.when)):
            return None
        reveals = how.reveals is None or any(self._seen[name] for name in how.reveals)
        return Search(
            roots=tuple(self._operands[len(self.grammar.first) :]) or (".",),
            only=self._given(how.only),
            without=self._given(how.without),
            without_folders=self._given(how.without_folders),
            hidden=reveals,
        )

    def _given(self, option: str) -> tuple[str, ...]:
        return tuple(word for name, _, word in self._values if name == option and option)

    def _missing(self) -> str | None:
        wanted = self.grammar.first[len(self._operands) :]
        if wanted:
            return f"after `{shown(self.start)}` has to come {wanted[0].meaning}"
        if self.grammar.inner or len(self._operands) - len(self.grammar.first) < self.grammar.least:
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


def _above(glob: str) -> str:
    """The folder in which a glob begins to look."""
    return _WILD.split(glob, maxsplit=1)[0].rpartition("/")[0] or "."
