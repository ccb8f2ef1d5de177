"""What a tester may ask to run.

A proposed argv is compared with the project's own checks, then with the grammars that are on here: those of the sets
that the project names, those of a set that one of its own checks matches, and the project's own. Nothing else may run.
**Invariant:** nothing is started, found or read here.
"""

from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.contracts.grammars import CommandGrammar, Commands, GrammarSet
from steersman.judges.commands.command_words import (
    UnsplittableCommand,
    parse_proposed_command,
    render_command_words,
)
from steersman.judges.commands.grammar import CommandReach, GrammarMatch, GrammarTable, match_command_grammars

DEFAULT_COMMANDS = Commands()  # what a project without the section says
OWN_GRAMMAR_SET = "own"  # the set of a project's own grammars

_ADD_CHECK_HINT = "add it under [checks] in steersman.toml"
_PROJECT_CHECK_REASON = "a check of the project"


class ApprovedCommand(msgspec.Struct, frozen=True):
    """Exactly this argv may run: why, what its exit code can prove, and what it touches in the tree."""

    argv: Argv
    fits: str
    set: str
    proves: str
    reach: CommandReach = CommandReach()


class BlockedCommand(msgspec.Struct, frozen=True):
    """It may not run, and what to do about it."""

    reason: str


class CommandRules(msgspec.Struct, frozen=True):
    """What a project allows: the argv of its checks, its `[commands]`, and the sets that ship."""

    checks: tuple[Argv, ...]
    commands: Commands
    shipped: Mapping[str, GrammarSet]

    def approve(self, proposal: object) -> ApprovedCommand | BlockedCommand:
        """The verdict on a proposed command: a line of text, or a list of words; total."""
        if (
            isinstance(proposal, list | tuple)
            and (check := _find_project_check(proposal, self.checks)) is not None
        ):
            return ApprovedCommand(check, _PROJECT_CHECK_REASON, "checks", "check")
        words = parse_proposed_command(proposal)
        if isinstance(words, UnsplittableCommand):
            return BlockedCommand(words.reason)
        if words in self.checks:
            return ApprovedCommand(words, _PROJECT_CHECK_REASON, "checks", "check")
        return self._judge_words(words)

    def sets_on(self) -> frozenset[str]:
        """The sets that are on: named by the project, its own, and those that a check of it matches but `read`."""
        table, sets = self._table(), self._sets()
        matches = [match_command_grammars(check, tuple(sets), table) for check in self.checks]
        used = {sets[match.name] for match in matches if isinstance(match, GrammarMatch)}
        return frozenset({OWN_GRAMMAR_SET, *self.commands.sets, *used - {"read"}})

    def _judge_words(self, words: Argv) -> ApprovedCommand | BlockedCommand:
        table, sets, sets_in_use = self._table(), self._sets(), self.sets_on()
        result = match_command_grammars(words, [name for name in sets if sets[name] in sets_in_use], table)
        if isinstance(result, GrammarMatch):
            return ApprovedCommand(words, result.name, sets[result.name], result.proves, result.reach)
        disabled_match = match_command_grammars(
            words, [name for name in sets if sets[name] not in sets_in_use], table
        )
        refusal = f"not on the allow-list: {render_command_words(words)}"
        if isinstance(disabled_match, GrammarMatch):
            name = sets[disabled_match.name]
            hint = f"it is in the set {name!r}, which is off; add {name!r} to sets under [commands]"
            return BlockedCommand(f"{refusal}: {hint}, or {_ADD_CHECK_HINT}")
        return BlockedCommand(
            f"{refusal}: {disabled_match.reason if disabled_match.at > result.at else result.reason}; {_ADD_CHECK_HINT}"
        )

    def _table(self) -> GrammarTable:
        shipped = {
            name: grammar
            for grammar_set in self.shipped.values()
            for name, grammar in grammar_set.grammars.items()
        }
        grammars: dict[str, CommandGrammar] = shipped | self.commands.grammars
        programs = frozenset(check[0] for check in self.checks if check and "/" in check[0])
        return GrammarTable(grammars=grammars, commands=self.commands, programs=programs)

    def _sets(self) -> dict[str, str]:
        """The set of each grammar, the project's own first; one of its own replaces a shipped one of the same name."""
        shipped = {name: key for key, grammar_set in self.shipped.items() for name in grammar_set.grammars}
        return dict.fromkeys(self.commands.grammars, OWN_GRAMMAR_SET) | {
            name: key for name, key in shipped.items() if name not in self.commands.grammars
        }


def _find_project_check(words: Sequence[object], checks: Sequence[Argv]) -> Argv | None:
    """A check of the project may hold any words: a person wrote them."""
    return next((check for check in checks if len(check) == len(words) and check == tuple(words)), None)
