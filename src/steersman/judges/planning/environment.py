"""What a rule can speak about: every variable with its type and its meaning, and the values it has for one command.

**Invariant:** a rule sees these values and nothing else; the same documents give the same values.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.context import ContextBundle, FactKind
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import CommandEffect, PlanPhase, RiskLevel, gravest_risk
from steersman.judges.planning.intent import EffectiveAsking
from steersman.judges.planning.paths import is_directory_target

VariableType = Literal["string", "bool", "int", "list(string)", "map(string, list(string))"]
FACT_KINDS: tuple[str, ...] = get_args(FactKind)
_ALL_PHASES: tuple[PlanPhase, ...] = get_args(PlanPhase)
_ALL_EFFECTS: tuple[CommandEffect, ...] = get_args(CommandEffect)


class RuleVariable(NamedTuple):
    """A name that rules may use."""

    name: str
    shape: VariableType
    meaning: str


RULE_VARIABLES = tuple(
    RuleVariable(*row)
    for row in (
        ("command.id", "string", "the planned command"),
        ("command.version", "string", "its version in the registry"),
        (
            "command.effects",
            "list(string)",
            "what it does: as the registry and the intent say, taken together",
        ),
        ("command.risk", "string", "the graver of what the registry and the intent say"),
        ("command.destructive", "bool", "whether it destroys what cannot simply be written again"),
        ("command.phases", "list(string)", "the selected phases it belongs to, or all of its own"),
        (
            "command.after",
            "list(string)",
            "the planned commands that come before it wherever it is planned; not what a condition may leave undone",
        ),
        ("command.files", "int", "how many files it usually changes"),
        ("command.minutes", "int", "how long it usually takes"),
        ("command.rollback", "string", "how it is undone; empty where nobody has said"),
        ("command.fact", "string", "the kind of fact that says that a project has it; empty for none"),
        (
            "command.evidence",
            "list(string)",
            "the references that the intent gives for it and that lead somewhere",
        ),
        (
            "command.understated",
            "bool",
            "whether the intent states less risk or fewer effects than the registry",
        ),
        ("intent.id", "string", "the intent"),
        ("intent.status", "string", "draft, proposed, approved, rejected or superseded"),
        ("intent.source", "string", "human, agentos or imported"),
        ("intent.mode", "string", "the mode it asks for"),
        ("intent.risk", "string", "its overall risk as its author sees it"),
        ("intent.reviews", "list(string)", "the reviews it asks for"),
        ("intent.workflows", "list(string)", "the selected workflows"),
        ("intent.agents", "list(string)", "the selected agents"),
        ("intent.roles", "list(string)", "their roles"),
        ("intent.phases", "list(string)", "the selected phases of all workflows"),
        ("intent.commands", "list(string)", "all planned commands"),
        ("intent.areas", "list(string)", "the areas in scope"),
        ("intent.files", "list(string)", "the files and folders in scope, as they are named"),
        (
            "intent.folders",
            "list(string)",
            "those of them that are folders: `.`, names with a slash at the end, and where the scan has read a file",
        ),
        ("intent.modules", "list(string)", "the modules in scope"),
        ("intent.max_files", "int", "its budget of files"),
        ("intent.max_commits", "int", "its budget of commits"),
        ("intent.max_tokens", "int", "its budget of tokens"),
        ("intent.max_cost_usd", "int", "its budget of dollars"),
        ("plan.mode", "string", "the stricter of the intent's and the policy's mode"),
        ("plan.asking", "string", "which questions may be asked"),
        ("plan.budget", "int", "how many questions may be asked"),
        ("policy.id", "string", "the policy"),
        ("policy.mode", "string", "its mode"),
        ("policy.profile", "string", "safe, aggressive_safe or aggressive"),
        ("policy.highest_risk", "string", "the gravest risk that it lets be planned"),
        ("policy.allow_destructive", "bool", "whether it lets destructive commands be planned"),
        ("policy.allow_bulk_changes", "bool", "whether it lets many files change in one commit"),
        ("policy.max_files_per_commit", "int", "how many files one commit may change"),
        ("policy.require_verification", "bool", "whether every change has to be verified"),
        ("facts.kinds", "list(string)", "the kinds of facts that the scan has found"),
        ("facts.languages", "list(string)", "the names of the languages"),
        ("facts.names", "map(string, list(string))", "the names of the facts by kind; every kind is there"),
        ("facts.complete", "bool", "whether the scan has seen everything it wanted to see"),
        ("memory.count", "int", "how many memories fit"),
        ("memory.tags", "list(string)", "the tags of these memories"),
    )
)
# What the scan has to have found; a rule that is asked without it does not see them.
FACT_VARIABLES = frozenset(v.name for v in RULE_VARIABLES if v.name.startswith("facts."))


class CommandTarget(msgspec.Struct, frozen=True):
    """A planned command as it holds: an intent cannot talk a command of the registry down."""

    id: str
    effects: tuple[CommandEffect, ...]
    risk: RiskLevel
    phases: tuple[PlanPhase, ...]
    understated: bool


def build_command_target(
    planned: PlannedCommand, spec: CommandSpec | None, phases: frozenset[PlanPhase]
) -> CommandTarget:
    """A planned command together with its entry; `phases` are the selected ones."""
    if spec is None:
        return CommandTarget(
            planned.command_id, _sort_effects(planned.effects), planned.risk_level, (), understated=False
        )
    risk = gravest_risk(planned.risk_level, spec.risk_level)
    is_understated = risk != planned.risk_level or not set(spec.effects) <= set(planned.effects)
    own_phases = tuple(p for p in _ALL_PHASES if p in spec.phases)
    selected_own = tuple(p for p in own_phases if p in phases)
    return CommandTarget(
        spec.id,
        _sort_effects((*planned.effects, *spec.effects)),
        risk,
        selected_own or own_phases,
        understated=is_understated,
    )


def list_selected_phases(intent: ExecutionIntent) -> frozenset[PlanPhase]:
    """The phases that any selected workflow is wanted for."""
    return frozenset(phase for w in intent.selected_workflows for phase in w.phases)


def shared_rule_values(
    intent: ExecutionIntent, bundle: ContextBundle, effective: EffectiveAsking
) -> dict[str, Any]:
    """The values that are the same for every command of an intent."""
    return {
        **_intent_values(intent),
        "intent.folders": _find_directory_targets(intent, bundle),
        **_policy_values(bundle),
        **_fact_values(bundle),
        "plan.mode": effective.mode,
        "plan.asking": effective.asking,
        "plan.budget": effective.budget,
        "memory.count": len(bundle.memory.memories),
        "memory.tags": sorted({tag for m in bundle.memory.memories for tag in m.tags}),
    }


def command_rule_values(
    planned: PlannedCommand, spec: CommandSpec, target: CommandTarget, after: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """The values of one planned command; `after` are the commands that come before it."""
    return {
        "command.id": target.id,
        "command.version": spec.version,
        "command.effects": list(target.effects),
        "command.risk": target.risk,
        "command.destructive": spec.destructive,
        "command.phases": list(target.phases),
        "command.after": list(after),
        "command.files": spec.files,
        "command.minutes": spec.minutes,
        "command.rollback": spec.rollback,
        "command.fact": spec.fact,
        "command.evidence": list(planned.evidence_refs),
        "command.understated": target.understated,
    }


def _intent_values(intent: ExecutionIntent) -> dict[str, Any]:
    targets, budgets = intent.scope.targets, intent.budgets
    return {
        "intent.id": intent.id,
        "intent.status": intent.status,
        "intent.source": intent.audit.source,
        "intent.mode": intent.interaction.mode,
        "intent.risk": intent.risk.overall,
        "intent.reviews": list(intent.risk.requires_review),
        "intent.workflows": [w.workflow_id for w in intent.selected_workflows],
        "intent.agents": [a.agent_id for a in intent.selected_agents],
        "intent.roles": [a.role for a in intent.selected_agents],
        "intent.phases": [p for p in _ALL_PHASES if p in list_selected_phases(intent)],
        "intent.commands": [c.command_id for c in intent.planned_commands],
        "intent.areas": list(targets.areas),
        "intent.files": list(targets.files),
        "intent.modules": list(targets.modules),
        "intent.max_files": budgets.max_files,
        "intent.max_commits": budgets.max_commits,
        "intent.max_tokens": budgets.max_tokens,
        "intent.max_cost_usd": budgets.max_cost_usd,
    }


def _find_directory_targets(intent: ExecutionIntent, bundle: ContextBundle) -> list[str]:
    """The targets that stand for more than one file."""
    scanned_files = {evidence.source_file for evidence in bundle.facts.evidence}
    return [name for name in intent.scope.targets.files if is_directory_target(name, scanned_files)]


def _policy_values(bundle: ContextBundle) -> dict[str, Any]:
    policy = bundle.policy
    return {
        "policy.id": policy.policy_id,
        "policy.mode": policy.mode,
        "policy.profile": policy.risk_profile,
        "policy.highest_risk": policy.highest_risk,
        "policy.allow_destructive": policy.constraints.allow_destructive,
        "policy.allow_bulk_changes": policy.constraints.allow_bulk_changes,
        "policy.max_files_per_commit": policy.constraints.max_files_per_commit,
        "policy.require_verification": policy.require_verification,
    }


def _fact_values(bundle: ContextBundle) -> dict[str, Any]:
    names_by_kind: dict[str, set[str]] = {kind: set() for kind in FACT_KINDS}
    for fact in bundle.facts.facts:
        names_by_kind[fact.kind].add(fact.name)
    return {
        "facts.kinds": [kind for kind, fact_names in names_by_kind.items() if fact_names],
        "facts.languages": sorted(names_by_kind["language"]),
        "facts.names": {kind: sorted(fact_names) for kind, fact_names in names_by_kind.items()},
        "facts.complete": bundle.facts.bounds.complete,
    }


def _sort_effects(effects: tuple[CommandEffect, ...]) -> tuple[CommandEffect, ...]:
    return tuple(e for e in _ALL_EFFECTS if e in effects)
