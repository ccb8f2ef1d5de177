"""The variables that a rule can read: name, type, meaning and value.

**Invariant:** a rule sees these values and nothing else. The same documents give the same values.
"""

from collections.abc import Callable, Mapping
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


class RuleSubject(NamedTuple):
    """What the rules of one plan judge, without the single command."""

    intent: ExecutionIntent
    bundle: ContextBundle
    effective: EffectiveAsking
    phases: tuple[PlanPhase, ...]  # the selected phases of all workflows
    names: Mapping[str, list[str]]  # the names of the facts, by kind


class JudgedCommand(NamedTuple):
    """The one command that a rule judges."""

    planned: PlannedCommand
    spec: CommandSpec
    target: CommandTarget
    after: tuple[str, ...]


class RuleVariable(NamedTuple):
    """A name that rules may use, and how its value is read."""

    name: str
    shape: VariableType
    meaning: str


def _find_directory_targets(subject: RuleSubject) -> list[str]:
    """The targets that stand for more than one file."""
    scanned_files = {evidence.source_file for evidence in subject.bundle.facts.evidence}
    return [f for f in subject.intent.scope.targets.files if is_directory_target(f, scanned_files)]


_TEXTS: VariableType = "list(string)"
_COMMAND_VARIABLES: tuple[tuple[str, VariableType, str, Callable[[JudgedCommand], Any]], ...] = (
    ("command.id", "string", "the planned command", lambda c: c.target.id),
    ("command.version", "string", "its version in the registry", lambda c: c.spec.version),
    ("command.effects", _TEXTS, "what it does: as the registry and the intent say, taken together", lambda c: list(c.target.effects)),
    ("command.risk", "string", "the graver of what the registry and the intent say", lambda c: c.target.risk),
    ("command.destructive", "bool", "whether it destroys what cannot simply be written again", lambda c: c.spec.destructive),
    ("command.phases", _TEXTS, "the selected phases it belongs to, or all of its own", lambda c: list(c.target.phases)),
    ("command.after", _TEXTS, "the planned commands that come before it wherever it is planned; not what a condition may leave undone", lambda c: list(c.after)),
    ("command.files", "int", "how many files it usually changes", lambda c: c.spec.files),
    ("command.minutes", "int", "how long it usually takes", lambda c: c.spec.minutes),
    ("command.rollback", "string", "how it is undone; empty where the registry does not say", lambda c: c.spec.rollback),
    ("command.fact", "string", "the kind of fact that says that a project has it; empty for none", lambda c: c.spec.fact),
    ("command.evidence", _TEXTS, "the references that the intent gives for it and that lead somewhere", lambda c: list(c.planned.evidence_refs)),
    ("command.understated", "bool", "whether the intent states less risk or fewer effects than the registry", lambda c: c.target.understated),
)  # fmt: skip
_SHARED_VARIABLES: tuple[tuple[str, VariableType, str, Callable[[RuleSubject], Any]], ...] = (
    ("intent.id", "string", "the intent", lambda s: s.intent.id),
    ("intent.status", "string", "draft, proposed, approved, rejected or superseded", lambda s: s.intent.status),
    ("intent.source", "string", "human, agentos or imported", lambda s: s.intent.audit.source),
    ("intent.mode", "string", "the mode it asks for", lambda s: s.intent.interaction.mode),
    ("intent.risk", "string", "its overall risk as its author sees it", lambda s: s.intent.risk.overall),
    ("intent.reviews", _TEXTS, "the reviews it asks for", lambda s: list(s.intent.risk.requires_review)),
    ("intent.workflows", _TEXTS, "the selected workflows", lambda s: [w.workflow_id for w in s.intent.selected_workflows]),
    ("intent.agents", _TEXTS, "the selected agents", lambda s: [a.agent_id for a in s.intent.selected_agents]),
    ("intent.roles", _TEXTS, "their roles", lambda s: [a.role for a in s.intent.selected_agents]),
    ("intent.phases", _TEXTS, "the selected phases of all workflows", lambda s: list(s.phases)),
    ("intent.commands", _TEXTS, "all planned commands", lambda s: [c.command_id for c in s.intent.planned_commands]),
    ("intent.areas", _TEXTS, "the areas in scope", lambda s: list(s.intent.scope.targets.areas)),
    ("intent.files", _TEXTS, "the files and folders in scope, as they are named", lambda s: list(s.intent.scope.targets.files)),
    ("intent.folders", _TEXTS, "those of them that are folders: `.`, names with a slash at the end, and where the scan has read a file", _find_directory_targets),
    ("intent.modules", _TEXTS, "the modules in scope", lambda s: list(s.intent.scope.targets.modules)),
    ("intent.max_files", "int", "its budget of files", lambda s: s.intent.budgets.max_files),
    ("intent.max_commits", "int", "its budget of commits", lambda s: s.intent.budgets.max_commits),
    ("intent.max_tokens", "int", "its budget of tokens", lambda s: s.intent.budgets.max_tokens),
    ("intent.max_cost_usd", "int", "its budget of dollars", lambda s: s.intent.budgets.max_cost_usd),
    ("plan.mode", "string", "the stricter of the intent's and the policy's mode", lambda s: s.effective.mode),
    ("plan.asking", "string", "which questions may be asked", lambda s: s.effective.asking),
    ("plan.budget", "int", "how many questions may be asked", lambda s: s.effective.budget),
    ("policy.id", "string", "the policy", lambda s: s.bundle.policy.policy_id),
    ("policy.mode", "string", "its mode", lambda s: s.bundle.policy.mode),
    ("policy.profile", "string", "safe, aggressive_safe or aggressive", lambda s: s.bundle.policy.risk_profile),
    ("policy.highest_risk", "string", "the gravest risk that it lets be planned", lambda s: s.bundle.policy.highest_risk),
    ("policy.allow_destructive", "bool", "whether it lets destructive commands be planned", lambda s: s.bundle.policy.constraints.allow_destructive),
    ("policy.allow_bulk_changes", "bool", "whether it lets many files change in one commit", lambda s: s.bundle.policy.constraints.allow_bulk_changes),
    ("policy.max_files_per_commit", "int", "how many files one commit may change", lambda s: s.bundle.policy.constraints.max_files_per_commit),
    ("policy.require_verification", "bool", "whether every change has to be verified", lambda s: s.bundle.policy.require_verification),
    ("facts.kinds", _TEXTS, "the kinds of facts that the scan has found", lambda s: [kind for kind, names in s.names.items() if names]),
    ("facts.languages", _TEXTS, "the names of the languages", lambda s: s.names["language"]),
    ("facts.names", "map(string, list(string))", "the names of the facts by kind; every kind is there", lambda s: s.names),
    ("facts.complete", "bool", "whether the scan has seen everything it wanted to see", lambda s: s.bundle.facts.bounds.complete),
    ("memory.count", "int", "how many memories fit", lambda s: len(s.bundle.memory.memories)),
    ("memory.tags", _TEXTS, "the tags of these memories", lambda s: sorted({tag for m in s.bundle.memory.memories for tag in m.tags})),
)  # fmt: skip
RULE_VARIABLES = tuple(RuleVariable(*row[:3]) for row in (*_COMMAND_VARIABLES, *_SHARED_VARIABLES))
# What the scan has to have found; a rule that is asked without it does not see them.
FACT_VARIABLES = frozenset(v.name for v in RULE_VARIABLES if v.name.startswith("facts."))


def shared_rule_values(
    intent: ExecutionIntent, bundle: ContextBundle, effective: EffectiveAsking
) -> dict[str, Any]:
    """The values that are the same for every command of an intent."""
    phases = tuple(p for p in _ALL_PHASES if p in list_selected_phases(intent))
    subject = RuleSubject(intent, bundle, effective, phases, _group_fact_names(bundle))
    return {name: read(subject) for name, _, _, read in _SHARED_VARIABLES}


def command_rule_values(
    planned: PlannedCommand, spec: CommandSpec, target: CommandTarget, after: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The values of one planned command; `after` are the commands that come before it."""
    judged = JudgedCommand(planned, spec, target, after)
    return {name: read(judged) for name, _, _, read in _COMMAND_VARIABLES}


def _group_fact_names(bundle: ContextBundle) -> dict[str, list[str]]:
    names_by_kind: dict[str, set[str]] = {kind: set() for kind in FACT_KINDS}
    for fact in bundle.facts.facts:
        names_by_kind[fact.kind].add(fact.name)
    return {kind: sorted(names) for kind, names in names_by_kind.items()}


def _sort_effects(effects: tuple[CommandEffect, ...]) -> tuple[CommandEffect, ...]:
    return tuple(e for e in _ALL_EFFECTS if e in effects)
