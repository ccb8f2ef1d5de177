"""Decides about each planned command: asks every rule whose scope contains it, and records every answer.

A deny holds against every milder decision, whatever the severity of either. Otherwise the graver severity holds, and at
equal severity the stricter decision. A deny and an allow that both have severity `block` are a conflict.
**Invariant:** a rule that cannot answer is recorded as undecidable. It never counts as allow or deny.
"""

from typing import Any, Literal, NamedTuple, cast

import msgspec

from steersman.contracts.planning.content import CommandSpec, RegistryRule
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RuleDecision, RuleOutcome
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import (
    DECISION_KINDS,
    RULE_SEVERITIES,
    DecisionKind,
    EvidenceRef,
    RuleSeverity,
)
from steersman.judges.planning.cel import CelProgram, FailedProgram, build_cel_activation, find_quoted_texts
from steersman.judges.planning.environment import (
    FACT_VARIABLES,
    CommandTarget,
    build_command_target,
    command_rule_values,
    list_selected_phases,
    shared_rule_values,
)
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.intent import EffectiveAsking
from steersman.judges.planning.paths import covers_path, strip_directory_mark
from steersman.judges.planning.registry import Registry, format_pin
from steersman.judges.planning.rule_evidence import CompiledRule, CompiledRuleSet, EvidenceBasis, RuleEvidence
from steersman.judges.planning.sequence import find_preceding_commands
from steersman.judges.text import clip_text, printable_line
from steersman.kernel.canonical import digest_of


class RuleVerdict(msgspec.Struct, frozen=True):
    """The combined decision of all rules that matched."""

    decision: DecisionKind
    severity: RuleSeverity
    winners: tuple[RegistryRule, ...]
    conflict: str = ""


def decide_planned_commands(
    intent: ExecutionIntent,
    registry: Registry,
    bundle: ContextBundle,
    rule_set: CompiledRuleSet,
    effective: EffectiveAsking,
) -> tuple[RuleDecision, ...]:
    """One decision for each planned command, in the intent's order."""
    decider = _PlannedCommandDecider(intent, registry, bundle, rule_set, effective)
    return tuple(decider.decide(n, planned) for n, planned in enumerate(intent.planned_commands))


def weigh_fired_rules(fired: tuple[RegistryRule, ...]) -> RuleVerdict:
    """What some rules that fired say together; allow where there is none."""
    if not fired:
        return RuleVerdict("allow", "info", ())
    relevant = [r for r in fired if r.then.decision == "deny"] or fired
    severity = max((r.severity for r in relevant), key=RULE_SEVERITIES.index)
    gravest = [r for r in relevant if r.severity == severity]
    decision = max((r.then.decision for r in gravest), key=DECISION_KINDS.index)
    winners = tuple(r for r in gravest if r.then.decision == decision)
    allowing = ", ".join(r.id for r in fired if (r.then.decision, r.severity) == ("allow", "block"))
    if (severity, decision) != ("block", "deny") or not allowing:
        return RuleVerdict(decision, severity, winners)
    conflict = (
        f"{', '.join(r.id for r in winners)} against {allowing}: deny and allow, both at severity block"
    )
    return RuleVerdict(decision, severity, winners, clip_text(conflict, 1000))


class _PreparedRule(NamedTuple):
    """A rule made ready for one intent; its two plain answers are the same for every command."""

    ask: CelProgram
    unseeing: bool  # for lack of evidence it is asked without the facts
    fired: RuleOutcome
    silent: RuleOutcome
    case: "_RuleCase"
    wider: list[str] | None = None  # the files in scope, with the paths in its folders that the rule names


class _RuleCase(msgspec.Struct, frozen=True):
    """The rule behind it."""

    rule: RegistryRule
    basis: EvidenceBasis
    commands: frozenset[str]


class _RuleAnswers(msgspec.Struct, frozen=True):
    """What was said about one command."""

    answers: tuple[RuleOutcome, ...]
    fired: tuple[RegistryRule, ...]
    unsaid: tuple[RuleOutcome, ...]  # by rules that could not answer


class _PlannedCommandDecider:
    """All rules, made ready for one intent."""

    def __init__(
        self,
        intent: ExecutionIntent,
        registry: Registry,
        bundle: ContextBundle,
        rule_set: CompiledRuleSet,
        effective: EffectiveAsking,
    ) -> None:
        self._shelf = CitableEvidence(intent, registry, bundle)
        rule_evidence = RuleEvidence(intent, bundle, self._shelf)
        self._registry = registry
        files = intent.scope.targets.files
        self._asked = tuple(
            _prepare_rule(compiled_rule, rule_evidence.basis(compiled_rule.rule), files)
            for compiled_rule in rule_set.rules
        )
        self._seen = shared_rule_values(intent, bundle, effective)
        self._unseen = {name: value for name, value in self._seen.items() if name not in FACT_VARIABLES}
        self._phases = list_selected_phases(intent)
        self._after = find_preceding_commands(intent, registry)
        self._scopes: dict[tuple[Any, ...], tuple[tuple[_PreparedRule, ...], bool]] = {}

    def decide(self, position: int, planned: PlannedCommand) -> RuleDecision:
        """What all rules say about one command; what leads nowhere is not among what is cited for it."""
        planned = msgspec.structs.replace(planned, evidence_refs=self._shelf.leading(planned.evidence_refs))
        spec = cast("CommandSpec | None", self._registry.usable("command", planned.command_id))
        if spec is None:
            return _unknown_command_decision(position, planned)
        target = build_command_target(planned, spec, self._phases)
        values = command_rule_values(planned, spec, target, self._after.get(spec.id, ()))
        rule_answers = _ask_rules(
            self._in_scope(target), {**self._seen, **values}, {**self._unseen, **values}
        )
        entry = format_pin(self._registry.entries["command", spec.id])
        return _build_rule_decision(position, planned, target, rule_answers, entry)

    def _in_scope(self, target: CommandTarget) -> tuple[_PreparedRule, ...]:
        key = (target.effects, target.risk, target.phases)
        if key not in self._scopes:
            rules = tuple(p for p in self._asked if _is_in_rule_scope(p.case.rule, target))
            self._scopes[key] = rules, any(prepared.case.commands for prepared in rules)
        candidates, by_name = self._scopes[key]
        if not by_name:
            return candidates
        return tuple(p for p in candidates if not p.case.commands or target.id in p.case.commands)


def _prepare_rule(compiled_rule: CompiledRule, basis: EvidenceBasis, files: tuple[str, ...]) -> _PreparedRule:
    rule = compiled_rule.rule
    named_paths = [] if rule.then.decision == "allow" else _find_named_paths(rule, files)
    fired = _rule_outcome(rule, basis, "fired", rule.then.reason)
    silent = _rule_outcome(rule, basis, "silent", "its condition does not hold")
    fault_text = "; ".join(f"{path[0]}: {fault.message}" for path, fault in compiled_rule.faults)
    case = _RuleCase(rule, basis, frozenset(rule.scope.commands))
    wider_files = [*files, *named_paths] if named_paths else None
    return _PreparedRule(
        compiled_rule.program or FailedProgram(fault_text),
        bool(basis.lacking),
        fired,
        silent,
        case,
        wider_files,
    )


def _find_named_paths(rule: RegistryRule, files: tuple[str, ...]) -> list[str]:
    """The paths that a rule names in folders of the scope: who may change a folder may change them."""
    paths = dict.fromkeys(find_quoted_texts(rule.when)) if files else {}
    return [
        p for p in paths if p not in files and any(covers_path(f, strip_directory_mark(p)) for f in files)
    ]


def _is_in_rule_scope(rule: RegistryRule, target: CommandTarget) -> bool:
    """Whether a command is in a rule's scope, its name left aside."""
    scope = rule.scope
    return (
        (not scope.effects or not set(scope.effects).isdisjoint(target.effects))
        and (not scope.risks or target.risk in scope.risks)
        and (not scope.phases or not set(scope.phases).isdisjoint(target.phases))
    )


def _ask_rules(
    prepared_rules: tuple[_PreparedRule, ...], full_values: dict[str, Any], blind_values: dict[str, Any]
) -> _RuleAnswers:
    """The answer of every rule; one whose evidence is lacking is asked without the facts, and may still know."""
    full_activation, blind_activation = build_cel_activation(full_values), build_cel_activation(blind_values)
    answers: list[RuleOutcome] = []
    fired: list[RegistryRule] = []
    undecided: list[RuleOutcome] = []
    # Millions of times: no call that is not the library's.
    for program, is_blind, fired_outcome, silent_outcome, case, wider_files in prepared_rules:
        try:
            result = program(blind_activation if is_blind else full_activation).value()
            if result is False and wider_files is not None:
                result = program(
                    build_cel_activation(
                        {**(blind_values if is_blind else full_values), "intent.files": wider_files}
                    )
                ).value()
        except Exception as error:  # the library raises where it cannot even make an error value
            result = error
        if result is False:
            answers.append(silent_outcome)
        elif result is True:
            answers.append(fired_outcome)
            fired.append(case.rule)
        else:
            undecided.append(_undecidable_outcome(case, str(result)))
            answers.append(undecided[-1])
    return _RuleAnswers(tuple(answers), tuple(fired), tuple(undecided))


def _undecidable_outcome(case: _RuleCase, result_text: str) -> RuleOutcome:
    lacking = ", ".join(case.basis.lacking)
    why = f" without {lacking}, and that is not there" if lacking else f": {printable_line(result_text)}"
    return _rule_outcome(case.rule, case.basis, "undecidable", clip_text(f"cannot be decided{why}", 1000))


def _rule_outcome(
    rule: RegistryRule, basis: EvidenceBasis, outcome: Literal["fired", "silent", "undecidable"], reason: str
) -> RuleOutcome:
    return RuleOutcome(
        rule_id=rule.id,
        rule_version=rule.version,
        severity=rule.severity,
        decision=rule.then.decision,
        outcome=outcome,
        evidence_used=basis.used,
        reason=reason,
    )


def _build_rule_decision(
    position: int,
    planned: PlannedCommand,
    target: CommandTarget,
    rule_answers: _RuleAnswers,
    entry: EvidenceRef,
) -> RuleDecision:
    ruling = weigh_fired_rules(rule_answers.fired)
    outspoken = [a for a in rule_answers.answers if a.outcome != "silent"]
    used = {entry, *planned.evidence_refs, *(ref for a in outspoken for ref in a.evidence_used)}
    is_grave = ruling.severity == "block" or target.risk in ("high", "critical")
    return RuleDecision(
        decision_id=_rule_decision_id(position, planned, outspoken),
        command_id=planned.command_id,
        decision=ruling.decision,
        severity=ruling.severity,
        hard=ruling.decision == "deny" and is_grave,
        undecidable=bool(rule_answers.unsaid),
        conflict=ruling.conflict,
        evidence_used=tuple(sorted(used)),
        reason=clip_text(_explain_rule_decision(ruling, rule_answers), 2000),
        required_changes=tuple(
            dict.fromkeys(change for rule in rule_answers.fired for change in rule.then.required_changes)
        ),
        review=tuple(sorted({review for rule in rule_answers.fired for review in rule.then.review})),
        rules=rule_answers.answers,
    )


def _explain_rule_decision(ruling: RuleVerdict, rule_answers: _RuleAnswers) -> str:
    parts = [f"{answer.rule_id} {answer.reason}" for answer in rule_answers.unsaid]
    if not rule_answers.fired:
        parts.append(f"no rule objects, of {len(rule_answers.answers)} that were asked")
    parts += [
        f"{rule.id} ({rule.severity}, {rule.then.decision}): {rule.then.reason}" for rule in ruling.winners
    ]
    winning = {rule.id for rule in ruling.winners}
    outweighed = [
        f"{r.id} ({r.severity}, {r.then.decision})" for r in rule_answers.fired if r.id not in winning
    ]
    return "; ".join([*parts, f"outweighs {', '.join(outweighed)}"] if outweighed else parts)


def _unknown_command_decision(position: int, planned: PlannedCommand) -> RuleDecision:
    return RuleDecision(
        decision_id=_rule_decision_id(position, planned, []),
        command_id=planned.command_id,
        decision="deny",
        severity="error",
        hard=False,
        undecidable=True,
        evidence_used=tuple(sorted(set(planned.evidence_refs))),
        reason="the registry has no usable command of this name, so that no rule can be asked",
        rules=(),
    )


def _rule_decision_id(position: int, planned: PlannedCommand, outspoken: list[RuleOutcome]) -> str:
    outcomes = [[a.rule_id, a.rule_version, a.outcome] for a in outspoken]
    return f"decision_{digest_of([position, planned.command_id, outcomes])[:16]}"
