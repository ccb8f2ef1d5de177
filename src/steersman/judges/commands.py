"""What a tester may ask to run, and what a finished run of it proves.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks fits, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here; zero tests is never a pass, nor are skipped ones tests.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import Commands, OwnGrammar, ValueKind
from steersman.judges.command_line import NotSplit, shown, words_of
from steersman.judges.grammar import Fitted, Grammar, Option, Proves, Reach, Value, fit_any
from steersman.judges.grammars import SETS, shipped
from steersman.judges.grammars.values import EXPRESSION, GLOBS, NODE, PATH, TEXT, WORD, WORDS, number, one_of

Outcome = Literal["passed", "failed", "no_tests"]

PLAIN = Commands()  # what a project without the section says

_LAUNCHERS = frozenset({"uv", "poetry", "hatch", "pdm", "pipenv", "rye", "coverage", "xvfb-run", "env"})
_TEST_MODULES = frozenset({"pytest", "unittest"})
_NO_TESTS_EXIT = 5  # pytest's, and unittest's since Python 3.12
_NEXT = "add it under [checks] in steersman.toml"
_KINDS: dict[ValueKind, Value] = {
    "path": PATH,
    "test": NODE,
    "name": WORD,
    "names": WORDS,
    "number": number(0, 9_999_999),
    "expression": EXPRESSION,
    "text": TEXT,
    "files": GLOBS,
}


class Approved(msgspec.Struct, frozen=True):
    """Exactly this argv may run: why, what its exit code can prove, and what it touches in the tree."""

    argv: Argv
    fits: str
    set: str
    proves: Proves
    reach: Reach = Reach()


class Blocked(msgspec.Struct, frozen=True):
    """It may not run, and what to do about it."""

    reason: str


def approve(proposal: object, checks: Sequence[Argv] = (), commands: Commands = PLAIN) -> Approved | Blocked:
    """The verdict on a proposed command: a line of text, or a list of words; total."""
    if isinstance(proposal, list | tuple) and (same := _as_a_check(proposal, checks)) is not None:
        return Approved(same, "a check of the project", "checks", "check")
    words = words_of(proposal)
    if isinstance(words, NotSplit):
        return Blocked(words.reason)
    if words in checks:
        return Approved(words, "a check of the project", "checks", "check")
    on = sets_on(tuple(checks), commands)
    grammars = known(commands)
    found = fit_any(words, [g for g in grammars if g.set in on])
    if isinstance(found, Fitted):
        return Approved(words, found.grammar.name, found.grammar.set, found.grammar.proves, found.reach)
    off = fit_any(words, [g for g in grammars if g.set not in on])
    if isinstance(off, Fitted):
        hint = f"it is in the set {off.grammar.set!r}, which is off; add {off.grammar.set!r} to sets under [commands]"
        return Blocked(f"not on the allow-list: {shown(words)}: {hint}, or {_NEXT}")
    return Blocked(f"not on the allow-list: {shown(words)}: {found.reason}; {_NEXT}")


def command_problem(
    argv: Sequence[object], allowed: Sequence[Argv], commands: Commands = PLAIN
) -> str | None:
    """Why this proposed argv may not run, with the next step; or None when exactly it may."""
    verdict = approve(list(argv), allowed, commands)
    return verdict.reason if isinstance(verdict, Blocked) else None


def known(commands: Commands) -> tuple[Grammar, ...]:
    """The project's own grammars and all that ship, whether on or off."""
    own = tuple(_own(name, g) for name, g in commands.grammars.items())
    return (*own, *shipped(commands.scripts, commands.targets))


def sets_on(checks: tuple[Argv, ...], commands: Commands) -> frozenset[str]:
    """The sets that are on: named by the project, its own, and those one of whose grammars a check of it fits."""
    return frozenset({"own", *commands.sets}) | _used(checks, commands.scripts, commands.targets)


@cache
def _used(checks: tuple[Argv, ...], scripts: tuple[str, ...], targets: tuple[str, ...]) -> frozenset[str]:
    """Who starts the checks with `uv run` has said yes to `uv run`; looking at files is always asked for by name."""
    found = [fit_any(check, shipped(scripts, targets)) for check in checks]
    return frozenset(f.grammar.set for f in found if isinstance(f, Fitted)) & frozenset(SETS) - {"read"}


def _as_a_check(words: Sequence[object], checks: Sequence[Argv]) -> Argv | None:
    """A check of the project may hold any words: a person wrote them."""
    return next((check for check in checks if len(check) == len(words) and check == tuple(words)), None)


def _own(name: str, given: OwnGrammar) -> Grammar:
    flags = tuple(Option((flag,)) for flag in given.flags)
    values = tuple(Option((flag,), _kind(kind), ("=", " "), 20) for flag, kind in given.values.items())
    return Grammar(
        name=name,
        set="own",
        about="A command of the project's own.",
        starts=(given.start,),
        options=(*flags, *values),
        rest=None if given.operands is None else _KINDS[given.operands],
        least=given.least,
        most=given.most,
        proves=given.proves,
    )


def _kind(kind: ValueKind | tuple[str, ...]) -> Value:
    return _KINDS[kind] if isinstance(kind, str) else one_of(*kind)


def is_test_runner(argv: Argv) -> bool:
    """Does this argv start pytest or unittest, directly or through a usual launcher?"""
    names = [word.rpartition("/")[2] for word in argv]
    by_module = any(flag == "-m" and name in _TEST_MODULES for flag, name in pairwise(names))
    return by_module or names[:1] == ["pytest"] or ("pytest" in names and names[0] in _LAUNCHERS)


def outcome(argv: Argv, exit_code: int, tests: int | None) -> Outcome:
    """The verdict on a command that ended by itself: passing needs exit 0 and, of a test runner, a counted test."""
    runner = is_test_runner(argv)
    if runner and exit_code == _NO_TESTS_EXIT:
        return "no_tests"
    if exit_code != 0:
        return "failed"
    return "no_tests" if tests == 0 or (runner and tests is None) else "passed"


def tests_counted(output: str) -> int | None:
    """How many tests the runners in this output say they ran, skipped ones left out; None where none says.

    A summary that says zero decides: a test module may print any summary it likes, and none outweighs the empty one.
    """
    plain = _COLOUR.sub("", output)
    counts = [_unittest_count(match) for match in _UNITTEST.finditer(plain)]
    counts += [_pytest_count(match["parts"]) for match in _PYTEST.finditer(plain)]
    if not counts:  # with -qq pytest draws its dots and leaves the summary out
        counts = [sum(map(match["dots"].count, ".FxX")) for match in _PROGRESS.finditer(plain)]
        return sum(counts) if counts else None
    return 0 if 0 in counts else sum(counts)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNITTEST = re.compile(
    r"^Ran (?P<ran>\d{1,9}) tests? in [\d.]+s(?:\s+(?:OK|FAILED|NO TESTS RAN)(?: \((?P<notes>[^)\n]*)\))?)?$",
    re.MULTILINE,
)
_PYTEST = re.compile(
    r"^(?:=+ )?(?P<parts>no tests ran|\d{1,9} [a-z]+(?: [a-z]+)?(?:, \d{1,9} [a-z]+(?: [a-z]+)?)*)"
    r" in [\d.]+s(?: \([^)\n]*\))?(?: =+)?$",
    re.MULTILINE,
)
_PROGRESS = re.compile(r"^(?P<dots>[.FEsxXR]+) +\[ *\d{1,3}%\]$", re.MULTILINE)
_RAN_WORDS = frozenset({"passed", "failed", "xfailed", "xpassed"})


def _unittest_count(match: re.Match[str]) -> int:
    skipped = re.search(r"\bskipped=(\d{1,9})", match["notes"] or "")
    return max(0, int(match["ran"]) - (int(skipped[1]) if skipped else 0))


def _pytest_count(parts: str) -> int:
    numbers = (part.split(" ", 1) for part in parts.split(", "))
    return sum(int(number) for number, word in numbers if word in _RAN_WORDS)
