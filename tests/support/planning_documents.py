"""Planning documents that fit together: an intent, a registry, a context, verdicts; each can be had changed."""

from typing import Any

from msgspec.structs import replace

from steersman.contracts.planning.content import (
    AgentProfile,
    CommandSpec,
    ModelChoice,
    RegistryContent,
    RegistryRule,
    RuleConsequence,
    RuleScope,
    Workflow,
    WorkflowPhase,
)
from steersman.contracts.planning.context import (
    ContextBundle,
    FactPack,
    MemoryPack,
    ProjectFact,
    RecalledMemory,
    ScanBounds,
    ScanEvidence,
)
from steersman.contracts.planning.decisions import (
    PrecheckReport,
    RedLineCheck,
    RegistryReference,
    RoutingAdvice,
    RuleDecision,
    RuleOutcome,
)
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
    SelectedAgent,
    SelectedWorkflow,
)
from steersman.contracts.planning.policy import POLICY_PRESETS, ExecutionPolicy
from steersman.contracts.planning.questions import SettledQuestions
from steersman.judges.planning.answers import weigh_default_answers
from steersman.judges.planning.attest import (
    ENVELOPE_FILE,
    PAYLOAD_TYPE,
    TrustedKey,
    plan_statement,
    pre_authentication_encoding,
    signed_envelope,
)
from steersman.judges.planning.freeze import RENDERED_PLAN_FILES, PlanOutputs, freeze_plan_files
from steersman.judges.planning.intent import resolve_effective_asking
from steersman.judges.planning.plan_inputs import PlanInputs, build_plan_lineage, derive_plan_id
from steersman.judges.planning.registry import Registry, RegistryItem
from steersman.judges.planning.risk import assess_plan_risk
from steersman.judges.planning.routing import advise_models
from steersman.kernel.canonical import digest_of, plain_value
from steersman.machines.coordinator.graph import finalize_plan_graph, questions_for_inputs
from steersman.machines.coordinator.remaining import find_remaining_objections
from steersman.machines.coordinator.review import build_review_pack

VERSION = "1.0.0"
ZERO_DIGEST = "0" * 64
LINEAGE = ContentLineage(introduced_in="0.1.0")
CREATED_AT = "2026-01-25T09:00:00Z"

_BODY: dict[str, Any] = {
    "version": "1.0.0", "status": "active", "description": "For tests.", "lineage": LINEAGE,
}  # fmt: skip


def make_phase(name: str, role: str = "coder", **more: Any) -> WorkflowPhase:
    return WorkflowPhase(phase=name, purpose=f"To get {name} done.", role=role, **more)


def make_workflow(id_: str, *phases: WorkflowPhase, **more: Any) -> Workflow:
    return Workflow(id=id_, phases=phases, **{"title": id_.replace("_", " "), **_BODY, **more})


def make_agent(id_: str, role: str, *phases: str, **more: Any) -> AgentProfile:
    body = {"capabilities": ("works",), "tokens_per_action": 1_000, **_BODY, **more}
    return AgentProfile(id=id_, title=id_, role=role, phases=phases, **body)


def make_command(id_: str, *phases: str, **more: Any) -> CommandSpec:
    body = {"effects": ("read",), "risk_level": "low", "minutes": 5, **_BODY, **more}
    return CommandSpec(id=id_, title=id_.replace("_", " "), phases=phases, **body)


def make_rule(id_: str, decision: str = "deny", severity: str = "warn", **more: Any) -> RegistryRule:
    return RegistryRule(
        id=id_, title=id_, severity=severity, scope=RuleScope(effects=("write",)), when="true",
        then=RuleConsequence(decision=decision, reason="because of a test", **more),
        evidence_required=("language",), **_BODY,
    )  # fmt: skip


REGISTRY_CONTENT: tuple[RegistryContent, ...] = (
    make_workflow(
        "bug_fix",
        make_phase("analysis"),
        make_phase("implementation", needs_command=True, after=("analysis",)),
        make_phase("validation", "tester", needs_command=True, after=("implementation",)),
        make_phase("review", "reviewer", after=("validation",)),
    ),
    make_agent("agent_coder", "coder", "analysis", "implementation", models=(ModelChoice(model="m1", placement="local"),)),
    make_agent("agent_tester", "tester", "validation"),
    make_agent("agent_reviewer", "reviewer", "review", areas=("security",)),
    make_command("read_code", "analysis", "implementation"),
    make_command("edit_files", "implementation", effects=("write",), risk_level="medium", files=3, minutes=30, rollback="Revert the commit."),
    make_command("run_tests", "validation", fact="test_command", minutes=10),
    make_rule("rule_no_writes"),
)  # fmt: skip


def make_registry(*more: RegistryContent, without: tuple[str, ...] = ()) -> Registry:
    """The content above; of what is given with the same id the later holds."""
    kept = (content for content in REGISTRY_CONTENT if content.id not in without)
    return Registry(tuple(RegistryItem(content, "built-in") for content in (*kept, *more)))


def planned_command(id_: str, **more: Any) -> PlannedCommand:
    body = {
        "intent": f"To {id_}.", "effects": ("read",), "risk_level": "low",
        "evidence_refs": ("fact://language/python",),
    }  # fmt: skip
    return PlannedCommand(command_id=id_, **{**body, **more})


def selected_workflow(id_: str = "bug_fix", *phases: str) -> SelectedWorkflow:
    return SelectedWorkflow(
        workflow_id=id_, phases=phases or ("analysis", "implementation", "validation", "review")
    )


def selected_agent(id_: str, role: str) -> SelectedAgent:
    return SelectedAgent(agent_id=id_, role=role, responsibilities=("its part",))


def make_intent(**changes: Any) -> ExecutionIntent:
    """A sealed intent that raises no question."""
    made = ExecutionIntent(
        id="intent_fix_the_leak",
        type="execution_intent",
        title="Fix the leak",
        description="The pump leaks.",
        version="1.0.0",
        created_at=CREATED_AT,
        status="approved",
        lineage=LINEAGE,
        scope=IntentScope(project_id="boat", repo_root=".", targets=ScopeTargets(files=("src/pump.py",))),
        objective=IntentObjective(goal="Fix the leak in the pump.", success_criteria=("The tests pass.",)),
        selected_workflows=(selected_workflow(),),
        selected_agents=(
            selected_agent("agent_coder", "coder"),
            selected_agent("agent_tester", "tester"),
            selected_agent("agent_reviewer", "reviewer"),
        ),
        planned_commands=(
            planned_command("read_code"),
            planned_command("edit_files", effects=("write",), risk_level="medium"),
            planned_command("run_tests", evidence_refs=("scan://ev0123456789ab",)),
        ),
        interaction=IntentInteraction(
            mode="interactive", question_budget=10, question_policy="conceptual_only"
        ),
        risk=IntentRisk(overall="medium", drivers=("It writes.",), requires_review=("architecture",)),
        budgets=IntentBudgets(max_files=10, max_commits=5, max_tokens=100_000, max_cost_usd=10),
        evidence_refs=("fact://language/python",),
        constraints=IntentConstraints(
            execution="forbidden", no_fabrication=True, registry_only=True, lock_scope=LockScope(mode="none")
        ),
        audit=IntentAudit(created_by="ann", source="human", checksum=ZERO_DIGEST),
    )
    return seal_intent(replace(made, **changes))


def seal_intent(made: ExecutionIntent) -> ExecutionIntent:
    """The intent with the checksum of its own bytes."""
    raw = plain_value(made)
    del raw["audit"]["checksum"]
    return replace(made, audit=replace(made.audit, checksum=digest_of(raw)))


def make_policy(preset: str = "interactive", **changes: Any) -> ExecutionPolicy:
    return replace(POLICY_PRESETS[preset], **changes)


FACT_PACK = FactPack(
    project_id="boat",
    fingerprint="1" * 64,
    facts=(
        ProjectFact(kind="language", name="python", value="3.11", evidence=("ev0123456789ab",)),
        ProjectFact(kind="test_command", name="pytest", argv=("pytest", "-q"), evidence=("ev0123456789ab",)),
    ),
    evidence=(
        ScanEvidence(
            id="ev0123456789ab", source_file="pyproject.toml", first_line=1, last_line=4, digest="2" * 64,
            snippet="[project]",
        ),
    ),
    bounds=ScanBounds(files_seen=3, files_read=3, bytes_read=99, skipped=0, complete=True),
)  # fmt: skip
MEMORY_PACK = MemoryPack(
    project_id="boat",
    query="leak",
    scopes=("project",),
    threshold=1,
    memories=(
        RecalledMemory(id="mem_0123456789ab", scope="project", text="The pump is old."),
    ),
)  # fmt: skip
EVIDENCE_REFS = (
    "fact://language/python", "fact://test_command/pytest", "memory://mem_0123456789ab",
    "scan://ev0123456789ab",
)  # fmt: skip


def make_context_bundle(under: ExecutionPolicy | None = None, **changes: Any) -> ContextBundle:
    made = ContextBundle(
        memory=MEMORY_PACK, facts=FACT_PACK, policy=under or make_policy(), evidence_refs=EVIDENCE_REFS
    )
    return replace(made, **changes)


def make_decision(id_: str, what: str = "allow", severity: str = "info", **more: Any) -> RuleDecision:
    fired = (
        RuleOutcome(
            rule_id="rule_no_writes", rule_version="1.0.0", severity=severity, decision=what, outcome="fired",
            evidence_used=("fact://language/python",), reason="because of a test",
        ),
    )  # fmt: skip
    body: dict[str, Any] = {
        "hard": False,
        "undecidable": False,
        "evidence_used": ("fact://language/python",),
        "reason": "because of a test",
        "rules": () if what == "allow" else fired,
    }
    return RuleDecision(
        decision_id=f"decision_{id_}", command_id=id_, decision=what, severity=severity, **{**body, **more}
    )


def make_plan_inputs(
    of: ExecutionIntent | None = None,
    *,
    known: Registry | None = None,
    context: ContextBundle | None = None,
    ruled: tuple[RuleDecision, ...] = (),
) -> PlanInputs:
    """Everything a draft goes by; what no decision is given for is allowed."""
    of, known, context = of or make_intent(), known or make_registry(), context or make_context_bundle()
    by_command = {one.command_id: one for one in ruled}
    decisions = tuple(
        by_command.get(c.command_id) or make_decision(c.command_id) for c in of.planned_commands
    )
    trace = build_plan_lineage(of, known, context, VERSION)
    return PlanInputs(
        intent=of,
        registry=known,
        bundle=context,
        decisions=decisions,
        risk=assess_plan_risk(of, known, decisions, context),
        plan_id=derive_plan_id(trace),
        lineage=trace,
        effective=resolve_effective_asking(of, context.policy),
    )


def plan_routing(i: PlanInputs) -> tuple[RoutingAdvice, ...]:
    return advise_models(i.intent, i.registry, i.bundle.policy)


def precheck_report(i: PlanInputs, **changes: Any) -> PrecheckReport:
    """A report in which everything is as it should be."""
    passed = tuple(RedLineCheck(red_line=line, passed=True) for line in ("I1", "I2", "I3", "I4", "I5"))
    references = tuple(
        RegistryReference(kind=e.kind, id=e.id, found="usable", version=e.version, digest=e.digest)
        for e in i.registry.entries.values()
    )
    made = PrecheckReport(
        intent_id=i.intent.id, schema_valid=True, schema_problems=(), checksum_matches=True,
        checksum_expected=i.intent.audit.checksum, red_lines=passed, execution_payload=(),
        references=references, registry_digest=i.registry.digest, policy_problems=(),
    )  # fmt: skip
    return replace(made, **changes)


def default_answers(i: PlanInputs, **words: str) -> SettledQuestions:
    """The settled answers to what these inputs raise: by cause, else the default of each question."""
    found = questions_for_inputs(i)
    settled = weigh_default_answers(found, i.plan_id, i.bundle.policy).settled
    causes = {question.question_id: question.cause for question in found}
    said = tuple(
        replace(answer, answer=words.get(causes[answer.question_id], answer.answer))
        for answer in settled.answers
    )
    return replace(settled, answers=said)


def make_plan_outputs(i: PlanInputs | None = None, settled: SettledQuestions | None = None) -> PlanOutputs:
    """A plan that is done."""
    i = i or make_plan_inputs()
    settled = settled or default_answers(i)
    graph = finalize_plan_graph(i, settled)
    said = i.decided()
    rest = find_remaining_objections(
        i, settled, lambda left: tuple(said[c.command_id] for c in left.planned_commands)
    )
    i = i._replace(risk=rest.risk)
    advice = plan_routing(i)
    return PlanOutputs(
        inputs=i,
        intent=plain_value(i.intent),
        report=precheck_report(i),
        routing=advice,
        graph=graph,
        packs=(),
        settled=settled,
        review=build_review_pack(i, graph, settled, advice),
    )


def frozen_files(of: PlanOutputs | None = None) -> dict[str, bytes]:
    """The frozen files of a plan; what views would draw is a word each."""
    return freeze_plan_files(of or make_plan_outputs(), {name: f"{name}\n" for name in RENDERED_PLAN_FILES})


TRUSTED_KEY = TrustedKey("the key", lambda _, data, signature: signature == data[:20])


def sign_files(made):
    """The files with the statement about them."""
    said = plan_statement(made)
    return {
        **made,
        ENVELOPE_FILE: signed_envelope(said, "the key", pre_authentication_encoding(PAYLOAD_TYPE, said)[:20]),
    }
