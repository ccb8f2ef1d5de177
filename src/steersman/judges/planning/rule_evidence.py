"""The evidence that rules require, and rules compiled with all their faults.

A rule requires a kind of fact (`ci`: one exists), knowledge of a kind (`known:ci`: one exists, or a complete scan found
none), one of `intent`, `policy`, `registry`, `memory`, or a reference such as `doc://guide`.
**Invariant:** "nothing was found" is evidence only after a complete scan. A citation of the intent counts only where it
leads somewhere. A rule with a fault has no program, so it cannot decide.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from steersman.contracts.planning.content import RegistryRule
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.words import EvidenceRef
from steersman.judges.planning.cel import CelProgram, RuleFault, compile_cel_expression, find_cel_words
from steersman.judges.planning.environment import FACT_KINDS
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.registry import ContentPath
from steersman.judges.replies.strict_json import render_field_path

EVIDENCE_DOCUMENTS = ("intent", "policy", "registry", "memory")
KNOWN_PREFIX = "known:"
MAX_CITED_REFS = 5  # of one kind: enough to look at
_EVIDENCE_REF_PATTERN = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S{1,480}")


class EvidenceBasis(msgspec.Struct, frozen=True):
    """The names of what a rule goes by, and what of it is lacking."""

    used: tuple[EvidenceRef, ...]
    lacking: tuple[str, ...]


class RuleEvidence:
    """Everything that rules about one intent can go by."""

    def __init__(self, intent: ExecutionIntent, bundle: ContextBundle, citable: CitableEvidence) -> None:
        self._bounds = bundle.facts.bounds
        self.scan = f"doc://scan/{bundle.facts.fingerprint[:12]}"
        self._found = {fact.kind for fact in bundle.facts.facts}
        self._citable = frozenset((*bundle.evidence_refs, *citable.leading(intent.evidence_refs)))
        self._documents: dict[str, tuple[EvidenceRef, ...]] = {
            "intent": (f"intent://{intent.id}",),
            "policy": (f"doc://policy/{bundle.policy.policy_id}",),
            "registry": (),  # the rule's own name is cited anyway, and so is the command's
            "memory": tuple(f"memory://{memory.id}" for memory in bundle.memory.memories[:MAX_CITED_REFS]),
        }
        self._facts: dict[str, list[EvidenceRef]] = {}
        for ref in bundle.evidence_refs:
            scheme, _, fact_name = ref.partition("://")
            if scheme == "fact":
                self._facts.setdefault(fact_name.partition("/")[0], []).append(ref)

    def basis(self, rule: RegistryRule) -> EvidenceBasis:
        """What one rule goes by; its own name comes first."""
        used: list[EvidenceRef] = [f"rule://{rule.id}@{rule.version}"]
        lacking = []
        for name in rule.evidence_required:
            refs = self.cited(name)
            if refs is None:
                lacking.append(name)
            else:
                used += refs
        return EvidenceBasis(tuple(dict.fromkeys(used)), tuple(lacking))

    def cited(self, name: str) -> tuple[EvidenceRef, ...] | None:
        """The names under which a required piece of evidence is there; None where it is lacking."""
        if name in self._documents:
            return self._documents[name]
        kind = name.removeprefix(KNOWN_PREFIX)
        if kind in self._found:
            return tuple(self._facts.get(kind, [self.scan])[:MAX_CITED_REFS])
        if name.startswith(KNOWN_PREFIX):
            return (self.scan,) if self._all_seen(kind) else None
        return (name,) if name in self._citable else None

    def _all_seen(self, kind: str) -> bool:
        """Whether there is no more of a kind than was found."""
        unknown = self._bounds.unknown
        return self._bounds.complete or (bool(unknown) and kind not in unknown)


def is_fact_evidence(name: str) -> bool:
    """Whether a required piece of evidence is about what the scan finds."""
    return name.removeprefix(KNOWN_PREFIX) in FACT_KINDS


def find_evidence_name_problem(name: str) -> tuple[str, str] | None:
    """What is wrong with the name of a required piece of evidence, and what would do."""
    if name in EVIDENCE_DOCUMENTS or is_fact_evidence(name) or _EVIDENCE_REF_PATTERN.fullmatch(name):
        return None
    return (
        "is no kind of fact, no document and no reference",
        f"write one of {', '.join((*EVIDENCE_DOCUMENTS, *FACT_KINDS))}, known:<kind of fact>, or a reference such as doc://guide",
    )


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
        yield ("then", "review"), RuleFault("asks for a review and names none", "name at least one review")
