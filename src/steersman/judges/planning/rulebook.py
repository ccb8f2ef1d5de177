"""Rules made ready to be asked: each typed against the declared variables, with everything that is wrong with it.

**Invariant:** a rule with a fault has no program, so that it can decide nothing.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from steersman.contracts.planning.content import Rule
from steersman.contracts.planning.decisions import Problem
from steersman.judges.planning.basis import misnamed, speaks_of_facts
from steersman.judges.planning.cel import Fault, Program, compiled, words
from steersman.judges.planning.registry import Path
from steersman.judges.problems import field

Faults = tuple[tuple[Path, Fault], ...]


class Compiled(msgspec.Struct, frozen=True):
    """A rule with its program, or with what is wrong with it."""

    rule: Rule
    program: Program | None
    faults: Faults = ()


class Rulebook(msgspec.Struct, frozen=True, eq=False):
    """Rules, sorted by id."""

    rules: tuple[Compiled, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong, each with rule and field."""
        return tuple(
            Problem(field=field((one.rule.id, *path)), message=fault.message, fix=fault.fix)
            for one in self.rules
            for path, fault in one.faults
        )


def compile_rules(rules: Iterable[Rule]) -> Rulebook:
    """Every rule with its program or its faults."""
    return Rulebook(tuple(compile_rule(rule) for rule in sorted(rules, key=lambda r: r.id)))


@lru_cache(maxsize=1024)
def compile_rule(rule: Rule) -> Compiled:
    """One rule with its program, or with all its faults; a plan asks its rules twice."""
    found, faults = compiled(rule.when), tuple(_beside(rule))
    if isinstance(found, tuple):
        return Compiled(rule, None, (*((("when",), fault) for fault in found), *faults))
    return Compiled(rule, None if faults else found, faults)


def _beside(rule: Rule) -> Iterator[tuple[Path, Fault]]:
    """What is wrong with a rule beside its condition."""
    scope = rule.scope
    if not (scope.commands or scope.effects or scope.risks or scope.phases):
        yield (
            ("scope",),
            Fault("is empty", "name commands, effects, risks or phases; all four risks are every command"),
        )
    for n, name in enumerate(rule.evidence_required):
        if (wrong := misnamed(name)) is not None:
            yield ("evidence_required", n), Fault(*wrong)
    if "facts" in words(rule.when) and not any(map(speaks_of_facts, rule.evidence_required)):
        yield (
            ("evidence_required",),
            Fault("the condition reads facts, and none is required", "name a kind of fact, or known:<kind>"),
        )
    if rule.then.decision == "require_review" and not rule.then.review:
        yield ("then", "review"), Fault("nobody is named who has to look", "name at least one review")
