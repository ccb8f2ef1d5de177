"""The inputs of a plan, collected once: intent, registry, context, verdicts and lineage.

**Invariant:** nothing here depends on answers. The same inputs always have the same plan id.
"""

from collections.abc import Iterable
from typing import NamedTuple, cast

from steersman.contracts.planning.content import AgentProfile, CommandSpec, RegistryContent, Workflow
from steersman.contracts.planning.context import ContextBundle
from steersman.contracts.planning.decisions import RiskAssessment, RuleDecision
from steersman.contracts.planning.graph import GraphLineage, RegistryVersions
from steersman.contracts.planning.intent import ExecutionIntent, PlannedCommand
from steersman.contracts.planning.words import CommandEffect, RiskLevel, gravest_risk
from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.intent import EffectiveAsking
from steersman.judges.planning.paths import intersect_paths
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.sequence import combined_effects
from steersman.kernel.canonical import digest_of

CHANGING_EFFECTS: frozenset[CommandEffect] = frozenset({"write", "deploy"})


class PlanInputs(NamedTuple):
    """Everything a draft goes by."""

    intent: ExecutionIntent
    registry: Registry
    bundle: ContextBundle
    decisions: tuple[RuleDecision, ...]
    risk: RiskAssessment
    plan_id: str
    lineage: GraphLineage
    effective: EffectiveAsking

    def workflow(self, id_: str) -> Workflow | None:
        """A workflow that may be planned with."""
        return cast("Workflow | None", self.registry.usable("workflow", id_))

    def agent(self, id_: str) -> AgentProfile | None:
        """An agent that may be planned with."""
        return cast("AgentProfile | None", self.registry.usable("agent", id_))

    def command(self, id_: str) -> CommandSpec | None:
        """A command that may be planned with."""
        return cast("CommandSpec | None", self.registry.usable("command", id_))

    def effects(self, planned: PlannedCommand) -> tuple[CommandEffect, ...]:
        """The effects of a planned command, by intent and registry together."""
        return combined_effects(planned, self.command(planned.command_id))

    def changes(self, planned: PlannedCommand) -> bool:
        """Whether a planned command itself changes anything that lasts."""
        spec = self.command(planned.command_id)
        return not (spec and spec.records) and not CHANGING_EFFECTS.isdisjoint(self.effects(planned))

    def shelf(self) -> CitableEvidence:
        """Everything that the intent can cite."""
        return CitableEvidence(self.intent, self.registry, self.bundle)

    def decided(self) -> dict[str, RuleDecision]:
        """What the rules say, by command."""
        return {decision.command_id: decision for decision in self.decisions}


def build_plan_lineage(
    intent: ExecutionIntent, registry: Registry, bundle: ContextBundle, coordinator_version: str
) -> GraphLineage:
    """Where a plan comes from: digests of every input, and the version of every piece of content it can use."""
    workflows = (registry.get("workflow", w.workflow_id) for w in intent.selected_workflows)
    agents = (registry.get("agent", a.agent_id) for a in intent.selected_agents)
    commands = (registry.get("command", c.command_id) for c in intent.planned_commands)
    return GraphLineage(
        derived_from_intent=intent.id,
        intent_checksum=intent.audit.checksum,
        policy_digest=digest_of(bundle.policy),
        facts_digest=digest_of(bundle.facts),
        memory_digest=digest_of(bundle.memory),
        registry_digest=registry.digest,
        registry_versions=RegistryVersions(
            workflows=_content_versions(workflows),
            agents=_content_versions(agents),
            commands=_content_versions(commands),
            rules=_content_versions(registry.all_usable("rule")),
        ),
        coordinator_version=coordinator_version,
    )


def derive_plan_id(made_from: GraphLineage) -> str:
    """The name of a plan: the same inputs under the same coordinator have the same one, whatever is answered to it."""
    parts = {
        "intent": made_from.intent_checksum,
        "policy": made_from.policy_digest,
        "registry": made_from.registry_digest,
        "facts": made_from.facts_digest,
        "memory": made_from.memory_digest,
        "coordinator": made_from.coordinator_version,
    }
    return f"plan_{digest_of(parts)[:16]}"


def intent_boundary(intent: ExecutionIntent) -> tuple[str, ...]:
    """The files and directories that nothing of a plan leaves, whatever its targets are."""
    lock, root = intent.constraints.lock_scope, intent.scope.repo_root
    return intersect_paths(root, lock.paths) if lock.mode == "files" else (root,)


def planned_command_risk(planned: PlannedCommand, spec: CommandSpec | None) -> RiskLevel:
    """The graver of what intent and registry say."""
    return gravest_risk(planned.risk_level, spec.risk_level) if spec else planned.risk_level


def _content_versions(contents: Iterable[RegistryContent | None]) -> dict[str, str]:
    return {c.id: c.version for c in sorted(filter(None, contents), key=lambda c: c.id)}
