"""A plan and its review pack as Markdown for people.

**Invariant:** what an intent, a registry or an answer says is quoted; nothing of it adds a heading, a row or a link.
"""

from collections.abc import Iterable, Iterator, Sequence

from steersman.contracts.planning.graph import ExecutionGraph, GraphLineage, GraphNode, PlanEstimate
from steersman.contracts.planning.intent import LockScope
from steersman.contracts.planning.questions import AskedQuestion, SettledQuestions
from steersman.contracts.planning.review import ChangeImpact, ReviewPack
from steersman.judges.planning.adjacency import GraphAdjacency
from steersman.judges.planning.paths import (
    WHOLE_PROJECT_TARGETS,
    describe_region,
    is_directory_target,
    is_whole_project,
    strip_directory_mark,
)
from steersman.kernel.canonical import encode_sorted_json
from steersman.views.planning.phases import find_phase_conditions
from steersman.views.screen import quote_block, quote_cell, quote_inline

_STEP_NUMBERS_NOTE = (
    "Steps with the same number can run in parallel; all others run one after the other. "
    "A step whose number is in brackets belongs to a phase with a condition: it runs only if the condition "
    "holds, and never together with a phase that the condition rules out."
)


def render_review_markdown(pack: ReviewPack) -> str:
    """Renders the review pack."""
    impact = pack.change_impact
    parts = [
        f"# Review of {quote_inline(pack.plan_id)}",
        "\n".join(quote_block(pack.plan_summary.objective)),
        (
            f"Mode: {pack.execution_mode}. Risk: {pack.risk_assessment.overall_risk} "
            f"(the intent says {pack.risk_assessment.stated_risk}). Nothing of this has been executed."
        ),
        "## Approach",
        _render_markdown_list(pack.plan_summary.approach),
        *_optional_section(
            "Out of scope", _render_markdown_list(pack.plan_summary.non_goals), pack.plan_summary.non_goals
        ),
        "## Risks",
        _render_markdown_table(
            ("risk", "what", "shown by"),
            ((f.risk, f.what, ", ".join(f.evidence_refs)) for f in pack.risk_assessment.factors),
        ),
        "## Change impact",
        _render_markdown_list(
            (
                *_estimate_lines("files", impact.estimated_files),
                *_estimate_lines("commits", impact.estimated_commits),
            )
        ),
        _render_markdown_list(_impact_lines(impact)),
        _render_markdown_table(
            ("budget", "limit", "expected", "within"),
            ((b.name, str(b.limit), str(b.estimate), "yes" if b.within else "no") for b in impact.budgets),
        ),
        "## Review gates",
        _render_markdown_table(
            ("review", "phase", "why"), ((g.category, g.phase, g.why) for g in pack.review_gates)
        ),
        "## Actions",
        _render_markdown_table(
            ("command", "phase", "argv"),
            ((a.command_id, a.phase, _render_plan_argv(a.argv)) for a in pack.actions),
        ),
        *_optional_section("Left out", _render_markdown_list(pack.excluded), pack.excluded),
        "## Way back",
        _render_markdown_table(("command", "how"), ((s.command_id, s.how) for s in pack.rollback_guide)),
        "## Estimates",
        _render_markdown_list(
            (
                *_estimate_lines("duration", pack.estimated_duration),
                *_estimate_lines("complexity", pack.complexity),
            )
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _impact_lines(impact: ChangeImpact) -> tuple[str, ...]:
    """Renders what the change may touch, and its constraints."""
    region_text = describe_region(impact.within)
    return (
        f"files: {', '.join(map(_describe_plan_path, impact.files)) or f'anywhere in {region_text}'}",
        f"modules: {', '.join(impact.modules) or 'none named'}",
        f"areas: {', '.join(impact.areas) or 'none named'}",
        f"bounded by: {region_text}, without what is git's or steersman's",
        f"lock: {_describe_lock(impact.lock)}",
    )


def render_plan_markdown(
    graph: ExecutionGraph, pack: ReviewPack, questions: Iterable[AskedQuestion], settled: SettledQuestions
) -> str:
    """Renders the whole plan in the order of its graph; `questions` are all that came up."""
    questions_by_id = {question.question_id: question for question in questions}
    parts = [
        f"# Plan {quote_inline(graph.plan_id)}",
        "\n".join(quote_block(pack.plan_summary.objective)),
        (
            f"Intent {quote_inline(graph.intent_id)}, mode {graph.execution_policy}, risk {pack.risk_assessment.overall_risk}. "
            "This is a plan: nothing of it has been executed."
        ),
        "## Bounds",
        _render_markdown_list(_reach_lines(pack.change_impact)),
        "## Steps",
        _STEP_NUMBERS_NOTE,
        _render_markdown_table(
            ("step", "kind", "what", "phase", "agent", "risk", "status", "why"), _step_rows(graph)
        ),
        "## Questions",
        _render_plan_answers(settled, questions_by_id),
        "## Lineage",
        _render_markdown_table(("from", "what"), _lineage_rows(graph.lineage)),
    ]
    return "\n\n".join(parts) + "\n"


def _step_rows(graph: ExecutionGraph) -> Iterator[Sequence[str]]:
    rank, conditions_by_phase = compute_node_ranks(graph), find_phase_conditions(graph)
    lanes = {ref: lane.agent_id for lane in graph.swimlanes for ref in lane.node_refs}
    for node in graph.nodes:
        condition = conditions_by_phase.get((node.workflow_ref, node.phase_ref), "")
        number = rank[node.node_id] + 1
        yield (
            f"({number})" if condition else str(number),
            node.node_type,
            _describe_graph_node(node, condition),
            node.phase_ref,
            lanes.get(node.node_id, ""),
            node.risk_level,
            node.status,
            node.reason,
        )


def _describe_graph_node(node: GraphNode, condition: str) -> str:
    """Describes a node; a phase with its condition."""
    return f"{node.label}, only if: {condition}" if condition and node.node_type == "phase" else node.label


def _render_plan_answers(settled: SettledQuestions, questions: dict[str, AskedQuestion]) -> str:
    if not settled.answers:
        return "Nothing was uncertain."
    rows = (
        (
            _find_question_text(questions, a.question_id),
            a.answer,
            a.text,
            f"{a.provided_by} {a.answered_by}",
            a.rationale,
        )
        for a in settled.answers
    )
    return _render_markdown_table(("question", "answer", "in words", "by", "because"), rows)


def _find_question_text(questions: dict[str, AskedQuestion], name: str) -> str:
    return questions[name].question_text if name in questions else name


def _lineage_rows(lineage: GraphLineage) -> Iterator[Sequence[str]]:
    yield "intent", f"{lineage.derived_from_intent} {lineage.intent_checksum}"
    yield "policy", lineage.policy_digest
    yield "facts", lineage.facts_digest
    yield "memory", lineage.memory_digest
    yield "registry", lineage.registry_digest
    yield "answers", lineage.answers_digest
    versions = lineage.registry_versions
    for kind, used in (
        ("workflows", versions.workflows),
        ("agents", versions.agents),
        ("commands", versions.commands),
        ("rules", versions.rules),
    ):
        yield kind, ", ".join(f"{id_} {version}" for id_, version in sorted(used.items()))
    yield "coordinator", lineage.coordinator_version


def _estimate_lines(name: str, estimate: PlanEstimate) -> tuple[str, ...]:
    return (f"{name}: {estimate.value} {estimate.unit} ({'; '.join(estimate.basis)})",)


def _reach_lines(impact: ChangeImpact) -> Iterator[str]:
    """Lists what the plan may touch: the names in it, or everything in its scope."""
    region_text = describe_region(impact.within)
    yield from (_describe_touched_path(name) for name in impact.files)
    yield from (f"module {name}" for name in impact.modules)
    if not impact.files and not impact.modules:
        yield f"anything in {region_text}"
    elif region_text != describe_region(WHOLE_PROJECT_TARGETS):
        yield f"nothing outside of {region_text}"
    max_files = next(b.limit for b in impact.budgets if b.name == "max_files")
    yield f"at most {max_files} files, without what is git's or steersman's"
    yield f"lock: {_describe_lock(impact.lock)}"


def _describe_touched_path(name: str) -> str:
    """Describes what a name of a plan covers; a name without a slash may be a file or a folder."""
    if is_whole_project(name) or is_directory_target(name):
        return _describe_plan_path(name)
    last = strip_directory_mark(name).rpartition("/")[2]
    return (
        f"file {name}" if "." in last.strip(".") else f"{name}, or everything below {name}/ if it is a folder"
    )


def _describe_plan_path(name: str) -> str:
    if is_whole_project(name):
        return "the whole project"
    return f"everything below {strip_directory_mark(name)}/" if is_directory_target(name) else name


def _describe_lock(lock: LockScope) -> str:
    match lock.mode:
        case "none":
            return "none, others may change the same files meanwhile"
        case "task":
            return "the task: no other work changes meanwhile what it names"
        case "files":
            return f"files: no other work changes these meanwhile, and the plan changes no others: {', '.join(lock.paths)}"


def _render_plan_argv(argv: tuple[str, ...]) -> str:
    """Renders an argv as JSON, which shows where each word ends."""
    return encode_sorted_json(argv).decode() if argv else "as the project has it"


def _optional_section(title: str, body: str, items: Sequence[str]) -> tuple[str, ...]:
    return (f"## {title}", body) if items else ()


def _render_markdown_list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {quote_inline(line)}" for line in lines)


def _render_markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(quote_cell(text) for text in row) + " |" for row in rows]
    if not lines:
        return "None."
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *lines])


def compute_node_ranks(graph: ExecutionGraph) -> dict[str, int]:
    """Returns the length of the longest path to each node; within and behind a cycle, as far as it is known."""
    names = [node.node_id for node in graph.nodes]
    adjacency, steps = GraphAdjacency(names, graph.edges), [0] * len(names)
    for node in adjacency.in_order():
        for following in adjacency.after(node):
            steps[following] = max(steps[following], steps[node] + 1)
    return dict(zip(names, steps, strict=True))
