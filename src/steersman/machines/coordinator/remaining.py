"""What is left of a plan once everything is settled, held against the rules, its phases and its mode once more.

Answers and defaults leave commands out and name a scope. Rules that were silent about what was planned may speak about
what is left, a phase may be left with nothing to show, and the danger may be another one.
**Invariant:** nothing is let through here that the first look would have stopped.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import DocumentProblem, RiskAssessment, RiskFactor, RuleDecision
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import SettledQuestions
from steersman.contracts.planning.words import RISK_LEVELS, gravest_risk
from steersman.judges.planning.choices import PlanChoices, intent_as_rules_see_it
from steersman.judges.planning.dangling_refs import find_ungrounded_commands
from steersman.judges.planning.plan_inputs import PlanInputs
from steersman.judges.planning.risk import assess_plan_risk
from steersman.judges.text import clip_text
from steersman.machines.coordinator.causes import find_unmet_phases, is_changing_phase
from steersman.machines.coordinator.graph import choices_from_settled
from steersman.machines.coordinator.nodes import gather_graph_sources
from steersman.machines.coordinator.places import select_phases

IntentDecider = Callable[[ExecutionIntent], tuple[RuleDecision, ...]]


NO_REMAINING_RISK = RiskAssessment(overall_risk="low", stated_risk="low", factors=(), requires_review=())


class RemainingObjections(NamedTuple):
    """What stands against the rest of a plan."""

    ruled_out: tuple[DocumentProblem, ...]
    emptied: tuple[DocumentProblem, ...]
    alone: tuple[DocumentProblem, ...]
    decisions: tuple[RuleDecision, ...] = ()  # what holds now: as before, with the warnings that came to it
    # Commands that are missing because what is cited for them is.
    groundless: tuple[DocumentProblem, ...] = ()
    risk: RiskAssessment = NO_REMAINING_RISK  # of what is left

    def any(self) -> bool:
        """Whether something does."""
        return bool(self.ruled_out or self.emptied or self.alone)


NO_OBJECTIONS = RemainingObjections((), (), ())
STRICT_DECISIONS = ("require_review", "deny")


def find_remaining_objections(
    inputs: PlanInputs, settled: SettledQuestions, decide: IntentDecider
) -> RemainingObjections:
    """Everything that stands against what is left; `decide` asks all rules about an intent."""
    choices = choices_from_settled(inputs, settled)
    remaining_intent = _remaining_intent(inputs, choices)
    ids = {c.command_id for c in remaining_intent.planned_commands}
    now = decide(remaining_intent)
    decisions = tuple(_merge_rule_decisions(inputs, now))
    risk = _remaining_risk(inputs, remaining_intent, decisions, choices)
    grave = inputs.effective.mode == "full_auto" and risk.overall_risk in ("high", "critical")
    risk_message = f"What is left is of {risk.overall_risk} risk, and full_auto plans nothing above medium."
    return RemainingObjections(
        ruled_out=tuple(_find_ruled_out_commands(inputs, now)),
        emptied=tuple(_find_emptied_phases(inputs, ids, choices)),
        alone=(
            DocumentProblem(
                field="interaction.mode", message=risk_message, fix="Choose semi_auto or interactive."
            ),
        )
        if grave
        else (),
        decisions=decisions,
        groundless=find_ungrounded_commands(inputs.intent, inputs.shelf(), choices.left_out.keys() - ids),
        risk=risk,
    )


def find_answer_objections(
    inputs: PlanInputs, settled: SettledQuestions, decide: IntentDecider
) -> dict[str, RuleDecision]:
    """The commands left by some answers that a rule denies or cannot judge, by id; what it denied before is left out."""
    decisions = decide(_remaining_intent(inputs, choices_from_settled(inputs, settled)))
    return {d.command_id: d for d in decisions if d.decision == "deny" or d.undecidable or d.conflict}


def _remaining_intent(inputs: PlanInputs, choices: PlanChoices) -> ExecutionIntent:
    """The intent as its answers have made it: the commands that are proposed, and the files that were named."""
    out = gather_graph_sources(inputs, choices).out
    commands = tuple(c for c in inputs.intent.planned_commands if c.command_id not in out)
    return replace(intent_as_rules_see_it(inputs.intent, choices), planned_commands=commands)


def _remaining_risk(
    inputs: PlanInputs,
    remaining_intent: ExecutionIntent,
    decisions: tuple[RuleDecision, ...],
    choices: PlanChoices,
) -> RiskAssessment:
    """The danger of what is left: graver where an answer lets anything be written. A review that somebody has taken
    upon themselves is no longer asked for."""
    decisions_by_command = {
        d.command_id: replace(d, review=()) if d.command_id in choices.approved else d for d in decisions
    }
    ruled = tuple(decisions_by_command[c.command_id] for c in remaining_intent.planned_commands)
    assessment = assess_plan_risk(remaining_intent, inputs.registry, ruled, inputs.bundle)
    if not choices.whole or not any("write" in inputs.effects(c) for c in remaining_intent.planned_commands):
        return assessment
    higher = gravest_risk(assessment.overall_risk, "medium" if assessment.overall_risk == "low" else "high")
    factor = RiskFactor(
        risk=higher, what="anything in the project may be changed", evidence_refs=(choices.whole,)
    )
    factors = sorted((factor, *assessment.factors), key=lambda f: (-RISK_LEVELS.index(f.risk), f.what))
    return replace(assessment, overall_risk=higher, factors=tuple(factors))


def _find_ruled_out_commands(
    inputs: PlanInputs, decisions: tuple[RuleDecision, ...]
) -> Iterator[DocumentProblem]:
    """Commands about which a rule speaks that no question covered: it was silent about the whole, or outweighed."""
    before = inputs.decided()
    for now in decisions:
        was = before[now.command_id]
        new = _strict_rule_ids(now) - _strict_rule_ids(was)
        if now.decision in STRICT_DECISIONS and was.decision not in STRICT_DECISIONS:
            new = _strict_rule_ids(now)  # what outweighed them holds no more
        if new or now.decision == "deny" or now.undecidable or now.conflict:
            yield DocumentProblem(
                field=f"planned_commands.{now.command_id}",
                message=clip_text(
                    f"{now.command_id}, as the plan is now ({', '.join(sorted(new))}): {now.reason}", 1000
                ),
                fix="Write what was answered into the intent, so that it is asked before; or keep in the plan what the rule asks for.",
            )


def _strict_rule_ids(decision: RuleDecision) -> set[str]:
    """The rules that want a review of a command, or that deny it."""
    return {r.rule_id for r in decision.rules if r.outcome == "fired" and r.decision in STRICT_DECISIONS}


def _fired_rule_ids(decision: RuleDecision) -> set[str]:
    return {r.rule_id for r in decision.rules if r.outcome == "fired"}


def _merge_rule_decisions(inputs: PlanInputs, decisions: tuple[RuleDecision, ...]) -> Iterator[RuleDecision]:
    """What the rules said of the whole, with the warnings that they have only of the rest."""
    now = {d.command_id: d for d in decisions}
    return (_add_new_warnings(was, now.get(was.command_id, was)) for was in inputs.decisions)


def _add_new_warnings(was: RuleDecision, now: RuleDecision) -> RuleDecision:
    """A warning beside what was said before: nothing of that is taken back. What was allowed stands on what holds now."""
    earlier_rule_ids = _fired_rule_ids(was)
    if was.decision == "allow" and now.decision not in STRICT_DECISIONS:
        return was if _fired_rule_ids(now) == earlier_rule_ids else now
    fresh = {
        r.rule_id: r
        for r in now.rules
        if r.outcome == "fired" and r.decision == "warn" and r.rule_id not in earlier_rule_ids
    }
    if not fresh:
        return was
    warning_text = "; ".join(f"{r.rule_id} ({r.severity}, warn): {r.reason}" for r in fresh.values())
    return replace(
        was,
        reason=clip_text(f"{was.reason}; of what is left {warning_text}", 2000),
        evidence_used=tuple(
            sorted({*was.evidence_used, *(e for r in fresh.values() for e in r.evidence_used)})
        ),
        rules=tuple(fresh.get(r.rule_id, r) for r in was.rules),
    )


def _find_emptied_phases(
    inputs: PlanInputs, kept_ids: set[str], choices: PlanChoices
) -> Iterator[DocumentProblem]:
    if not kept_ids and not choices.by_hand:
        yield DocumentProblem(
            field="planned_commands",
            message="No command is left: there is nothing to propose.",
            fix="Plan commands, and cite evidence for them that can be found.",
        )
    for place in find_unmet_phases(inputs, select_phases(inputs), kept_ids):
        name = f"{place.workflow.id}/{place.phase.phase}"
        emptied_text = (
            "nothing is left in it that changes anything"
            if is_changing_phase(inputs, place)
            else "nothing is left in it"
        )
        if name not in choices.by_hand:
            yield DocumentProblem(
                field=f"selected_workflows.{name}",
                message=f"The phase {place.phase.phase} of {place.workflow.id} has to show something, and {emptied_text}.",
                fix="Plan a command for it that rules allow and evidence speaks for, or do not select the phase.",
            )
