"""Rules against planned commands: what the court costs beside a bare loop over the same compiled programs, and its growth.

    python bench/rules.py            500 rules, 1,000 commands, five repetitions
    python bench/rules.py --quick    fewer of each

Both sides ask every rule about every command, with values made once for a command; ours also keeps scope, evidence,
outcomes and reasons. CPU time, interleaved; the ratio is the median of those within a repetition.
"""

import json
import sys
from statistics import median
from time import process_time
from typing import Any

from steersman.contracts.planning.content import CommandSpec, RegistryRule, RuleConsequence, RuleScope
from steersman.contracts.planning.context import ContextBundle, FactPack, MemoryPack, ProjectFact, ScanBounds
from steersman.contracts.planning.intent import (
    ContentLineage,
    ExecutionIntent,
    IntentAudit,
    IntentBudgets,
    IntentConstraints,
    IntentInteraction,
    IntentObjective,
    IntentRisk,
    IntentScope,
    LockScope,
    PlannedCommand,
    ScopeTargets,
)
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.judges.planning import cel
from steersman.judges.planning.environment import (
    build_command_target,
    command_rule_values,
    shared_rule_values,
)
from steersman.judges.planning.intent import resolve_effective_asking
from steersman.judges.planning.registry import Registry, RegistryItem
from steersman.judges.planning.rule_evidence import CompiledRuleSet, compile_rules
from steersman.judges.planning.rules import decide_planned_commands

LINEAGE = ContentLineage(introduced_in="bench")
CONDITIONS = (  # as rules are: a few words each; about one in six fires
    'command.destructive && command.rollback == "{}"',
    '!("test_command" in facts.kinds) && command.files > {}',
    "intent.max_files > 100 + {} && !policy.allow_bulk_changes",
    '"infra" in intent.areas && !("architecture" in intent.reviews) && command.files != {}',
    'plan.mode != "interactive" && command.minutes > {}',
    '"write" in command.effects && command.files < 1000 + {}',
)  # fmt: skip


def rules(count: int) -> tuple[RegistryRule, ...]:
    return tuple(
        RegistryRule(
            id=f"rule_{n:04d}",
            version="1.0.0",
            status="active",
            title="A rule",
            description="A rule of the benchmark",
            lineage=LINEAGE,
            severity="warn",
            scope=RuleScope(risks=("low", "medium")),
            when=CONDITIONS[n % len(CONDITIONS)].format(n),
            then=RuleConsequence(decision="warn", reason="because it is so"),
            evidence_required=("known:test_command", "intent"),
        )
        for n in range(count)
    )


def commands(count: int) -> tuple[CommandSpec, ...]:
    return tuple(
        CommandSpec(
            id=f"cmd_{n:04d}",
            version="1.0.0",
            status="active",
            title="A command",
            description="A command of the benchmark",
            lineage=LINEAGE,
            effects=("read", "write") if n % 2 else ("read",),
            risk_level="medium" if n % 3 else "low",
            phases=("implementation",),
        )
        for n in range(count)
    )


def intent(specs: tuple[CommandSpec, ...]) -> ExecutionIntent:
    planned = tuple(
        PlannedCommand(
            command_id=s.id,
            intent="it",
            effects=s.effects,
            risk_level=s.risk_level,
            evidence_refs=("doc://why",),
        )
        for s in specs
    )
    return ExecutionIntent(
        id="intent_benchmark",
        type="execution_intent",
        title="A benchmark",
        description="",
        version="1.0.0",
        created_at="2026-01-25T09:30:00Z",
        status="draft",
        lineage=LINEAGE,
        scope=IntentScope(project_id="bench", repo_root=".", targets=ScopeTargets(areas=("backend",))),
        objective=IntentObjective(goal="a figure", success_criteria=("it is printed",)),
        selected_workflows=(),
        selected_agents=(),
        planned_commands=planned,
        interaction=IntentInteraction(
            mode="interactive", question_budget=1, question_policy="conceptual_only"
        ),
        risk=IntentRisk(overall="medium", drivers=("none",), requires_review=("security",)),
        budgets=IntentBudgets(max_files=10, max_commits=1, max_tokens=1, max_cost_usd=1),
        evidence_refs=("doc://why",),
        constraints=IntentConstraints(
            execution="forbidden", no_fabrication=True, registry_only=True, lock_scope=LockScope(mode="none")
        ),
        audit=IntentAudit(created_by="bench", source="human", checksum="0" * 64),
    )


def bundle() -> ContextBundle:
    bounds = ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True)
    fact = ProjectFact(kind="test_command", name="pytest", evidence=("ev000000000000",))
    return ContextBundle(
        memory=MemoryPack(project_id="bench", query="", scopes=(), threshold=1, memories=()),
        facts=FactPack(project_id="bench", fingerprint="0" * 64, facts=(fact,), evidence=(), bounds=bounds),
        policy=POLICY_PRESETS["interactive"],
        evidence_refs=("fact://test_command/pytest",),
    )


class Case:
    """A number of rules and commands, compiled and made ready for both sides."""

    def __init__(self, rule_count: int, command_count: int) -> None:
        specs = commands(command_count)
        self.intent, self.bundle = intent(specs), bundle()
        self.registry = Registry(tuple(RegistryItem(spec, "built-in") for spec in specs))
        self.book: CompiledRuleSet = compile_rules(rules(rule_count))
        assert not self.book.problems
        self.effective = resolve_effective_asking(self.intent, self.bundle.policy)
        assert self.registry.entries
        self.ours()  # the library makes its programs ready on their first use

    def ours(self) -> int:
        decisions = decide_planned_commands(
            self.intent, self.registry, self.bundle, self.book, self.effective
        )
        return sum(said.outcome == "fired" for decision in decisions for said in decision.rules)

    def bare(self) -> int:
        programs = [one.program for one in self.book.rules]
        shared = shared_rule_values(self.intent, self.bundle, self.effective)
        fired = 0
        for planned in self.intent.planned_commands:
            spec: Any = self.registry.get("command", planned.command_id)
            own = command_rule_values(planned, spec, build_command_target(planned, spec, frozenset()))
            values = cel.build_cel_activation({**shared, **own})
            for program in programs:
                fired += program(values).value() is True
        return fired


def timed(what: Any) -> float:
    start = process_time()
    what()
    return process_time() - start


def often(what: Any) -> float:
    """The same, as the mean of ten: about as long as ten times the work, so that a busy machine falls on both."""
    return sum(timed(what) for _ in range(10)) / 10


def figures(rule_count: int, command_count: int, repetitions: int) -> dict[str, float]:
    """The ratio to the bare loop, and the time of ten times the work over that of a tenth, by commands and by rules."""
    whole = Case(rule_count, command_count)
    assert whole.ours() == whole.bare() > 0
    fewer_commands, fewer_rules = Case(rule_count, command_count // 10), Case(rule_count // 10, command_count)
    samples = [
        (timed(whole.ours), timed(whole.bare), often(fewer_commands.ours), often(fewer_rules.ours))
        for _ in range(repetitions)
    ]
    return {
        "us_per_pair": round(median(s[0] for s in samples) / (rule_count * command_count) * 1e6, 3),
        "ratio_to_bare_loop": round(median(s[0] / s[1] for s in samples), 3),
        "growth_10x_commands": round(median(s[0] / s[2] for s in samples), 2),
        "growth_10x_rules": round(median(s[0] / s[3] for s in samples), 2),
    }


def main() -> int:
    quick = "--quick" in sys.argv[1:]
    print(json.dumps(figures(100, 100, 3) if quick else figures(500, 1000, 5), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
