"""What a tester may ask to run.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks fits, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here.
"""

from collections.abc import Sequence
from functools import cache

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import Commands, OwnGrammar, ValueKind
from steersman.judges.command_line import NotSplit, shown, words_of
from steersman.judges.grammar import Fitted, Grammar, Option, Proves, Reach, Value, fit_any
from steersman.judges.grammars import SETS, shipped
from steersman.judges.grammars.values import EXPRESSION, GLOBS, NODE, PATH, TEXT, WORD, WORDS, number, one_of

PLAIN = Commands()  # what a project without the section says

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
    reason = off.reason if off.at > found.at else found.reason
    return Blocked(f"not on the allow-list: {shown(words)}: {reason}; {_NEXT}")


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
