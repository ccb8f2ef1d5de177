"""What is left of a plan once everything is settled, held against the rules, its phases and its mode once more.

Answers and defaults leave commands out and name a scope. Rules that were silent about what was planned may speak about
what is left, a phase may be left with nothing to show, and the danger may be another one.
**Invariant:** nothing is let through here that the first look would have stopped.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steersman.contracts.planning.decisions import Problem, RiskAssessment, RiskFactor, RuleDecision
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.questions import Settled
from steersman.contracts.planning.words import RISKS, graver
from steersman.judges.planning.risk import assess
from steersman.judges.planning.unfound import without_ground
from steersman.judges.text import clip
from steersman.machines.coordinator.choices import Choices, judged_scope
from steersman.machines.coordinator.graph import chosen_by
from steersman.machines.coordinator.inputs import Inputs
from steersman.machines.coordinator.nodes import desk
from steersman.machines.coordinator.places import places
from steersman.machines.coordinator.purpose import lacking, makes

Adjudicate = Callable[[ExecutionIntent], tuple[RuleDecision, ...]]


NO_RISK = RiskAssessment(overall_risk="low", stated_risk="low", factors=(), requires_review=())


class Remaining(NamedTuple):
    """What stands against the rest of a plan."""

    ruled_out: tuple[Problem, ...]
    emptied: tuple[Problem, ...]
    alone: tuple[Problem, ...]
    decisions: tuple[RuleDecision, ...] = ()  # what holds now: as before, with the warnings that came to it
    groundless: tuple[Problem, ...] = ()  # commands that are missing because what is cited for them is
    risk: RiskAssessment = NO_RISK  # of what is left

    def any(self) -> bool:
        """Whether something does."""
        return bool(self.ruled_out or self.emptied or self.alone)


NOTHING = Remaining((), (), ())
STRICT = ("require_review", "deny")


def remaining(inputs: Inputs, settled: Settled, adjudicate: Adjudicate) -> Remaining:
    """Everything that stands against what is left; `adjudicate` asks all rules about an intent."""
    choices = chosen_by(inputs, settled)
    left = _left(inputs, choices)
    kept = {c.command_id for c in left.planned_commands}
    now = adjudicate(left)
    decisions = tuple(_holding(inputs, now))
    risk = _risk(inputs, left, decisions, choices)
    grave = inputs.effective.mode == "full_auto" and risk.overall_risk in ("high", "critical")
    told = f"What is left is of {risk.overall_risk} risk, and full_auto plans nothing above medium."
    return Remaining(
        ruled_out=tuple(_ruled_out(inputs, now)),
        emptied=tuple(_emptied(inputs, kept, choices)),
        alone=(Problem(field="interaction.mode", message=told, fix="Choose semi_auto or interactive."),)
        if grave
        else (),
        decisions=decisions,
        groundless=without_ground(inputs.intent, inputs.shelf(), choices.left_out.keys() - kept),
        risk=risk,
    )


def objections(inputs: Inputs, settled: Settled, adjudicate: Adjudicate) -> dict[str, RuleDecision]:
    """The commands left by some answers that a rule denies or cannot judge, by id; what it denied before is left out."""
    found = adjudicate(_left(inputs, chosen_by(inputs, settled)))
    return {d.command_id: d for d in found if d.decision == "deny" or d.undecidable or d.conflict}


def _left(inputs: Inputs, choices: Choices) -> ExecutionIntent:
    """The intent as its answers have made it: the commands that are proposed, and the files that were named."""
    out = desk(inputs, choices).out
    commands = tuple(c for c in inputs.intent.planned_commands if c.command_id not in out)
    return replace(judged_scope(inputs.intent, choices), planned_commands=commands)


def _risk(
    inputs: Inputs, left: ExecutionIntent, decisions: tuple[RuleDecision, ...], choices: Choices
) -> RiskAssessment:
    """The danger of what is left: graver where an answer lets anything be written. A review that somebody has taken
    upon themselves is no longer asked for."""
    held = {d.command_id: replace(d, review=()) if d.command_id in choices.approved else d for d in decisions}
    ruled = tuple(held[c.command_id] for c in left.planned_commands)
    found = assess(left, inputs.registry, ruled, inputs.bundle)
    if not choices.whole or not any("write" in inputs.effects(c) for c in left.planned_commands):
        return found
    higher = graver(found.overall_risk, "medium" if found.overall_risk == "low" else "high")
    told = RiskFactor(
        risk=higher, what="anything in the project may be changed", evidence_refs=(choices.whole,)
    )
    factors = sorted((told, *found.factors), key=lambda f: (-RISKS.index(f.risk), f.what))
    return replace(found, overall_risk=higher, factors=tuple(factors))


def _ruled_out(inputs: Inputs, decisions: tuple[RuleDecision, ...]) -> Iterator[Problem]:
    """Commands about which a rule speaks that nobody could answer to: it was silent about the whole, or outweighed."""
    before = inputs.decided()
    for now in decisions:
        was = before[now.command_id]
        new = _speaking(now) - _speaking(was)
        if now.decision in STRICT and was.decision not in STRICT:
            new = _speaking(now)  # what outweighed them holds no more
        if new or now.decision == "deny" or now.undecidable or now.conflict:
            yield Problem(
                field=f"planned_commands.{now.command_id}",
                message=clip(
                    f"{now.command_id}, as the plan is now ({', '.join(sorted(new))}): {now.reason}", 1000
                ),
                fix="Write what was answered into the intent, so that it is asked before; or keep in the plan what the rule asks for.",
            )


def _speaking(decision: RuleDecision) -> set[str]:
    """The rules that want a review of a command, or that deny it."""
    return {r.rule_id for r in decision.rules if r.outcome == "fired" and r.decision in STRICT}


def _fired(decision: RuleDecision) -> set[str]:
    return {r.rule_id for r in decision.rules if r.outcome == "fired"}


def _holding(inputs: Inputs, decisions: tuple[RuleDecision, ...]) -> Iterator[RuleDecision]:
    """What the rules said of the whole, with the warnings that they have only of the rest."""
    now = {d.command_id: d for d in decisions}
    return (_warned(was, now.get(was.command_id, was)) for was in inputs.decisions)


def _warned(was: RuleDecision, now: RuleDecision) -> RuleDecision:
    """A warning beside what was said before: nothing of that is taken back. What was allowed stands on what holds now."""
    spoke = _fired(was)
    if was.decision == "allow" and now.decision not in STRICT:
        return was if _fired(now) == spoke else now
    fresh = {
        r.rule_id: r
        for r in now.rules
        if r.outcome == "fired" and r.decision == "warn" and r.rule_id not in spoke
    }
    if not fresh:
        return was
    told = "; ".join(f"{r.rule_id} ({r.severity}, warn): {r.reason}" for r in fresh.values())
    return replace(
        was,
        reason=clip(f"{was.reason}; of what is left {told}", 2000),
        evidence_used=tuple(
            sorted({*was.evidence_used, *(e for r in fresh.values() for e in r.evidence_used)})
        ),
        rules=tuple(fresh.get(r.rule_id, r) for r in was.rules),
    )


def _emptied(inputs: Inputs, kept: set[str], choices: Choices) -> Iterator[Problem]:
    if not kept and not choices.by_hand:
        yield Problem(
            field="planned_commands",
            message="No command is left: there is nothing to propose.",
            fix="Plan commands, and cite evidence for them that can be found.",
        )
    for place in lacking(inputs, places(inputs), kept):
        name = f"{place.workflow.id}/{place.phase.phase}"
        left = (
            "nothing is left in it that changes anything" if makes(inputs, place) else "nothing is left in it"
        )
        if name not in choices.by_hand:
            yield Problem(
                field=f"selected_workflows.{name}",
                message=f"The phase {place.phase.phase} of {place.workflow.id} has to show something, and {left}.",
                fix="Plan a command for it that rules allow and evidence speaks for, or do not select the phase.",
            )
