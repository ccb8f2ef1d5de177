"""Rules made ready to be asked: each typed against the declared variables, with everything that is wrong with it.

**Invariant:** a rule with a fault has no program, so that it can decide nothing.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from steersman.contracts.planning.content import RegistryRule
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.planning.cel import CelProgram, RuleFault, compile_cel_expression, find_cel_words
from steersman.judges.planning.registry import ContentPath
from steersman.judges.planning.rule_evidence import find_evidence_name_problem, is_fact_evidence
from steersman.judges.replies.schema_problems import render_field_path

RuleFaults = tuple[tuple[ContentPath, RuleFault], ...]


class CompiledRule(msgspec.Struct, frozen=True):
    """A rule with its program, or with what is wrong with it."""

    rule: RegistryRule
    program: CelProgram | None
    faults: RuleFaults = ()


class CompiledRuleSet(msgspec.Struct, frozen=True, eq=False):
    """Rules, sorted by id."""

    rules: tuple[CompiledRule, ...]

    @property
    def problems(self) -> tuple[DocumentProblem, ...]:
        """Everything that is wrong, each with rule and field."""
        return tuple(
            DocumentProblem(
                field=render_field_path((compiled_rule.rule.id, *path)), message=fault.message, fix=fault.fix
            )
            for compiled_rule in self.rules
            for path, fault in compiled_rule.faults
        )


def compile_rules(rules: Iterable[RegistryRule]) -> CompiledRuleSet:
    """Every rule with its program or its faults."""
    return CompiledRuleSet(tuple(compile_rule(rule) for rule in sorted(rules, key=lambda r: r.id)))


@lru_cache(maxsize=1024)
def compile_rule(rule: RegistryRule) -> CompiledRule:
    """One rule with its program, or with all its faults; a plan asks its rules twice."""
    result, faults = compile_cel_expression(rule.when), tuple(_find_rule_faults(rule))
    if isinstance(result, tuple):
        return CompiledRule(rule, None, (*((("when",), fault) for fault in result), *faults))
    return CompiledRule(rule, None if faults else result, faults)


def _find_rule_faults(rule: RegistryRule) -> Iterator[tuple[ContentPath, RuleFault]]:
    """What is wrong with a rule beside its condition."""
    scope = rule.scope
    if not (scope.commands or scope.effects or scope.risks or scope.phases):
        yield (
            ("scope",),
            RuleFault(
                "is empty", "name commands, effects, risks or phases; all four risks are every command"
            ),
        )
    for n, name in enumerate(rule.evidence_required):
        if (name_problem := find_evidence_name_problem(name)) is not None:
            yield ("evidence_required", n), RuleFault(*name_problem)
    if "facts" in find_cel_words(rule.when) and not any(map(is_fact_evidence, rule.evidence_required)):
        yield (
            ("evidence_required",),
            RuleFault(
                "the condition reads facts, and none is required", "name a kind of fact, or known:<kind>"
            ),
        )
    if rule.then.decision == "require_review" and not rule.then.review:
        yield ("then", "review"), RuleFault("nobody is named who has to look", "name at least one review")
