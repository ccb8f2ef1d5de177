"""What all rules together say about each planned command: every rule in whose scope it is gets asked and recorded.

A deny holds against every milder decision, whatever the severity of either. Otherwise the graver severity holds, and
at equal severity the stricter decision. A deny and an allow that both have severity `block` are a conflict.
**Invariant:** a rule that cannot answer is told as one that cannot; silence is never read into it.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, cast

import msgspec

from steersman.contracts.planning.content import CommandSpec, Rule
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RuleDecision, RuleFired
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import DECISIONS, SEVERITIES, Decision, Ref, Review, Severity
from steersman.judges.planning.basis import Basis, Grounds
from steersman.judges.planning.cel import Mute, Program, activation, quoted_texts
from steersman.judges.planning.environment import (
    FROM_FACTS,
    Target,
    command_values,
    selected_phases,
    shared_values,
    target_of,
)
from steersman.judges.planning.evidence import Shelf
from steersman.judges.planning.intent import Effective
from steersman.judges.planning.paths import covers, plain
from steersman.judges.planning.registry import Registry, pin
from steersman.judges.planning.rulebook import Compiled, Rulebook
from steersman.judges.planning.sequence import preceding
from steersman.judges.text import clip, one_line
from steersman.kernel.canonical import digest_of


class Ruling(msgspec.Struct, frozen=True):
    """What holds of everything that fired."""

    decision: Decision
    severity: Severity
    winners: tuple[Rule, ...]
    conflict: str = ""


def adjudicate(
    intent: ExecutionIntent,
    registry: Registry,
    bundle: ContextBundle,
    rulebook: Rulebook,
    effective: Effective,
) -> tuple[RuleDecision, ...]:
    """One decision for each planned command, in the intent's order."""
    court = _Court(intent, registry, bundle, rulebook, effective)
    return tuple(court.decide(n, planned) for n, planned in enumerate(intent.planned_commands))


def weigh(fired: tuple[Rule, ...]) -> Ruling:
    """What some rules that fired say together; allow where there is none."""
    if not fired:
        return Ruling("allow", "info", ())
    held = [r for r in fired if r.then.decision == "deny"] or fired
    severity = max((r.severity for r in held), key=SEVERITIES.index)
    gravest = [r for r in held if r.severity == severity]
    decision = max((r.then.decision for r in gravest), key=DECISIONS.index)
    winners = tuple(r for r in gravest if r.then.decision == decision)
    allowing = ", ".join(r.id for r in fired if (r.then.decision, r.severity) == ("allow", "block"))
    if (severity, decision) != ("block", "deny") or not allowing:
        return Ruling(decision, severity, winners)
    said = f"{', '.join(r.id for r in winners)} against {allowing}: deny and allow, both at severity block"
    return Ruling(decision, severity, winners, clip(said, 1000))


class _Asked(NamedTuple):
    """A rule made ready for one intent; its two plain answers are the same for every command."""

    ask: Program
    unseeing: bool  # for lack of evidence it is asked without the facts
    fired: RuleFired
    silent: RuleFired
    case: "_Case"
    wider: list[str] | None = None  # the files in scope, with the paths in its folders that the rule names


class _Case(msgspec.Struct, frozen=True):
    """The rule behind it."""

    rule: Rule
    basis: Basis
    commands: frozenset[str]


class _Heard(msgspec.Struct, frozen=True):
    """What was said about one command."""

    answers: tuple[RuleFired, ...]
    fired: tuple[Rule, ...]
    unsaid: tuple[RuleFired, ...]  # by rules that could not answer


class _Court:
    """All rules, made ready for one intent."""

    def __init__(
        self,
        intent: ExecutionIntent,
        registry: Registry,
        bundle: ContextBundle,
        rulebook: Rulebook,
        effective: Effective,
    ) -> None:
        self._shelf = Shelf(intent, registry, bundle)
        grounds = Grounds(intent, bundle, self._shelf)
        self._registry = registry
        files = intent.scope.targets.files
        self._asked = tuple(_asked(one, grounds.basis(one.rule), files) for one in rulebook.rules)
        self._seen = shared_values(intent, bundle, effective)
        self._unseen = {name: value for name, value in self._seen.items() if name not in FROM_FACTS}
        self._phases = selected_phases(intent)
        self._after = preceding(intent, registry)
        self._scopes: dict[tuple[Any, ...], tuple[tuple[_Asked, ...], bool]] = {}

    def decide(self, position: int, planned: PlannedCommand) -> RuleDecision:
        """What all rules say about one command; what leads nowhere is not among what is cited for it."""
        planned = msgspec.structs.replace(planned, evidence_refs=self._shelf.leading(planned.evidence_refs))
        spec = cast("CommandSpec | None", self._registry.usable("command", planned.command_id))
        if spec is None:
            return _unknown(position, planned)
        target = target_of(planned, spec, self._phases)
        values = command_values(planned, spec, target, self._after.get(spec.id, ()))
        heard = _hear(self._in_scope(target), {**self._seen, **values}, {**self._unseen, **values})
        entry = pin(self._registry.entries["command", spec.id])
        return _decision(position, planned, target, heard, entry)

    def _in_scope(self, target: Target) -> tuple[_Asked, ...]:
        key = (target.effects, target.risk, target.phases)
        if key not in self._scopes:
            found = tuple(one for one in self._asked if _reaches(one.case.rule, target))
            self._scopes[key] = found, any(one.case.commands for one in found)
        asked, by_name = self._scopes[key]
        if not by_name:
            return asked
        return tuple(one for one in asked if not one.case.commands or target.id in one.case.commands)


def _asked(one: Compiled, basis: Basis, files: tuple[str, ...]) -> _Asked:
    rule = one.rule
    within = [] if rule.then.decision == "allow" else _named_within(rule, files)
    fired = _record(rule, basis, "fired", rule.then.reason)
    silent = _record(rule, basis, "silent", "its condition does not hold")
    broken = "; ".join(f"{path[0]}: {fault.message}" for path, fault in one.faults)
    case = _Case(rule, basis, frozenset(rule.scope.commands))
    wider = [*files, *within] if within else None
    return _Asked(one.program or Mute(broken), bool(basis.lacking), fired, silent, case, wider)


def _named_within(rule: Rule, files: tuple[str, ...]) -> list[str]:
    """The paths that a rule names in folders of the scope: who may change a folder may change them."""
    paths = dict.fromkeys(quoted_texts(rule.when)) if files else {}
    return [p for p in paths if p not in files and any(covers(f, plain(p)) for f in files)]


def _reaches(rule: Rule, target: Target) -> bool:
    """Whether a command is in a rule's scope, its name left aside."""
    scope = rule.scope
    return (
        (not scope.effects or not set(scope.effects).isdisjoint(target.effects))
        and (not scope.risks or target.risk in scope.risks)
        and (not scope.phases or not set(scope.phases).isdisjoint(target.phases))
    )


def _hear(asked: tuple[_Asked, ...], seen: dict[str, Any], unseen: dict[str, Any]) -> _Heard:
    """The answer of every rule; one whose evidence is lacking is asked without the facts, and may still know."""
    seeing, unseeing = activation(seen), activation(unseen)
    answers: list[RuleFired] = []
    fired: list[Rule] = []
    unsaid: list[RuleFired] = []
    for ask, blind, yes, no, case, wider in asked:  # millions of times: no call that is not the library's
        try:
            said = ask(unseeing if blind else seeing).value()
            if said is False and wider is not None:
                said = ask(activation({**(unseen if blind else seen), "intent.files": wider})).value()
        except Exception as error:  # the library raises where it cannot even make an error value
            said = error
        if said is False:
            answers.append(no)
        elif said is True:
            answers.append(yes)
            fired.append(case.rule)
        else:
            unsaid.append(_undecidable(case, str(said)))
            answers.append(unsaid[-1])
    return _Heard(tuple(answers), tuple(fired), tuple(unsaid))


def _undecidable(case: _Case, said: str) -> RuleFired:
    lacking = ", ".join(case.basis.lacking)
    why = f" without {lacking}, and that is not there" if lacking else f": {one_line(said)}"
    return _record(case.rule, case.basis, "undecidable", clip(f"cannot be decided{why}", 1000))


def _record(
    rule: Rule, basis: Basis, outcome: Literal["fired", "silent", "undecidable"], reason: str
) -> RuleFired:
    return RuleFired(
        rule_id=rule.id,
        rule_version=rule.version,
        severity=rule.severity,
        decision=rule.then.decision,
        outcome=outcome,
        evidence_used=basis.used,
        reason=reason,
    )


def _decision(
    position: int, planned: PlannedCommand, target: Target, heard: _Heard, entry: Ref
) -> RuleDecision:
    ruling = weigh(heard.fired)
    spoke = [a for a in heard.answers if a.outcome != "silent"]
    used = {entry, *planned.evidence_refs, *(ref for a in spoke for ref in a.evidence_used)}
    grave = ruling.severity == "block" or target.risk in ("high", "critical")
    return RuleDecision(
        decision_id=_name(position, planned, spoke),
        command_id=planned.command_id,
        decision=ruling.decision,
        severity=ruling.severity,
        hard=ruling.decision == "deny" and grave,
        undecidable=bool(heard.unsaid),
        conflict=ruling.conflict,
        evidence_used=tuple(sorted(used)),
        reason=clip(_reason(ruling, heard), 2000),
        required_changes=_once(change for rule in heard.fired for change in rule.then.required_changes),
        review=_reviews(heard.fired),
        rules=heard.answers,
    )


def _reason(ruling: Ruling, heard: _Heard) -> str:
    parts = [f"{said.rule_id} {said.reason}" for said in heard.unsaid]
    if not heard.fired:
        parts.append(f"no rule objects, of {len(heard.answers)} that were asked")
    parts += [
        f"{rule.id} ({rule.severity}, {rule.then.decision}): {rule.then.reason}" for rule in ruling.winners
    ]
    winning = {rule.id for rule in ruling.winners}
    less = [f"{r.id} ({r.severity}, {r.then.decision})" for r in heard.fired if r.id not in winning]
    return "; ".join([*parts, f"outweighs {', '.join(less)}"] if less else parts)


def _unknown(position: int, planned: PlannedCommand) -> RuleDecision:
    return RuleDecision(
        decision_id=_name(position, planned, []),
        command_id=planned.command_id,
        decision="deny",
        severity="error",
        hard=False,
        undecidable=True,
        evidence_used=tuple(sorted(set(planned.evidence_refs))),
        reason="the registry has no usable command of this name, so that no rule can be asked",
        rules=(),
    )


def _name(position: int, planned: PlannedCommand, spoke: list[RuleFired]) -> str:
    said = [[a.rule_id, a.rule_version, a.outcome] for a in spoke]
    return f"decision_{digest_of([position, planned.command_id, said])[:16]}"


def _reviews(fired: tuple[Rule, ...]) -> tuple[Review, ...]:
    return tuple(sorted({review for rule in fired for review in rule.then.review}))


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
