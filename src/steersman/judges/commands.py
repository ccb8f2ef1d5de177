"""What a tester may ask to run.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks matches, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here.
"""

from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import CommandGrammar, Commands, GrammarSet
from steersman.judges.command_grammar import GrammarTable, Match, Reach, match_command
from steersman.judges.command_line import NotSplit, shown, words_of

PLAIN = Commands()  # what a project without the section says
OWN = "own"  # the set of a project's own grammars

_NEXT = "add it under [checks] in steersman.toml"
_AS_CHECK = "a check of the project"


class Approved(msgspec.Struct, frozen=True):
    """Exactly this argv may run: why, what its exit code can prove, and what it touches in the tree."""

    argv: Argv
    fits: str
    set: str
    proves: str
    reach: Reach = Reach()


class Blocked(msgspec.Struct, frozen=True):
    """It may not run, and what to do about it."""

    reason: str


class CommandRules(msgspec.Struct, frozen=True):
    """What a project allows: the argv of its checks, its `[commands]`, and the sets that ship."""

    checks: tuple[Argv, ...]
    commands: Commands
    shipped: Mapping[str, GrammarSet]

    def approve(self, proposal: object) -> Approved | Blocked:
        """The verdict on a proposed command: a line of text, or a list of words; total."""
        if isinstance(proposal, list | tuple) and (check := _find_check(proposal, self.checks)) is not None:
            return Approved(check, _AS_CHECK, "checks", "check")
        words = words_of(proposal)
        if isinstance(words, NotSplit):
            return Blocked(words.reason)
        if words in self.checks:
            return Approved(words, _AS_CHECK, "checks", "check")
        return self._judge_words(words)

    def sets_on(self) -> frozenset[str]:
        """The sets that are on: named by the project, its own, and those that a check of it matches but `read`."""
        table, sets = self._table(), self._sets()
        matches = [match_command(check, tuple(sets), table) for check in self.checks]
        used = {sets[match.name] for match in matches if isinstance(match, Match)}
        return frozenset({OWN, *self.commands.sets, *used - {"read"}})

    def _judge_words(self, words: Argv) -> Approved | Blocked:
        table, sets, sets_on = self._table(), self._sets(), self.sets_on()
        result = match_command(words, [name for name in sets if sets[name] in sets_on], table)
        if isinstance(result, Match):
            return Approved(words, result.name, sets[result.name], result.proves, result.reach)
        off = match_command(words, [name for name in sets if sets[name] not in sets_on], table)
        refused = f"not on the allow-list: {shown(words)}"
        if isinstance(off, Match):
            name = sets[off.name]
            hint = f"it is in the set {name!r}, which is off; add {name!r} to sets under [commands]"
            return Blocked(f"{refused}: {hint}, or {_NEXT}")
        return Blocked(f"{refused}: {off.reason if off.at > result.at else result.reason}; {_NEXT}")

    def _table(self) -> GrammarTable:
        shipped = {name: g for given in self.shipped.values() for name, g in given.grammars.items()}
        grammars: dict[str, CommandGrammar] = shipped | self.commands.grammars
        programs = frozenset(check[0] for check in self.checks if check and "/" in check[0])
        return GrammarTable(grammars=grammars, commands=self.commands, programs=programs)

    def _sets(self) -> dict[str, str]:
        """The set of each grammar, the project's own first; one of its own replaces a shipped one of the same name."""
        shipped = {name: key for key, given in self.shipped.items() for name in given.grammars}
        return dict.fromkeys(self.commands.grammars, OWN) | {
            name: key for name, key in shipped.items() if name not in self.commands.grammars
        }


def _find_check(words: Sequence[object], checks: Sequence[Argv]) -> Argv | None:
    """A check of the project may hold any words: a person wrote them."""
    return next((check for check in checks if len(check) == len(words) and check == tuple(words)), None)
