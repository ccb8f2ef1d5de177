"""A plan and its review pack as Markdown for people.

**Invariant:** what an intent, a registry or an answer says is quoted; nothing of it adds a heading, a row or a link.
"""

from collections.abc import Iterable, Iterator, Sequence

from steersman.contracts.planning.graph import Estimate, ExecutionGraph, GraphLineage, Node
from steersman.contracts.planning.intent import LockScope
from steersman.contracts.planning.questions import AskedQuestion, Settled
from steersman.contracts.planning.review import Impact, ReviewPack
from steersman.judges.planning.paths import ANYWHERE, folder, plain, region, whole
from steersman.kernel.canonical import encode
from steersman.views.planning.layout import ranks
from steersman.views.planning.phases import conditions
from steersman.views.quotation import block, cell, inline

_NUMBERS = (
    "What has the same number stands side by side; anything else comes one after the other. "
    "What has its number in brackets belongs to a phase with a condition: it comes only where that holds, "
    "and never beside a phase that the condition rules out."
)


def review_markdown(pack: ReviewPack) -> str:
    """The review pack, ending in a newline."""
    impact, where = pack.change_impact, region(pack.change_impact.within)
    parts = [
        f"# Review of {inline(pack.plan_id)}",
        "\n".join(block(pack.plan_summary.objective)),
        (
            f"Mode: {pack.execution_mode}. Risk: {pack.risk_assessment.overall_risk} "
            f"(the intent says {pack.risk_assessment.stated_risk}). Nothing of this has been executed."
        ),
        "## Approach",
        _list(pack.plan_summary.approach),
        *_section("Not meant", _list(pack.plan_summary.non_goals), pack.plan_summary.non_goals),
        "## Risks",
        _table(
            ("risk", "what", "shown by"),
            ((f.risk, f.what, ", ".join(f.evidence_refs)) for f in pack.risk_assessment.factors),
        ),
        "## Change impact",
        _list((*_estimate("files", impact.estimated_files), *_estimate("commits", impact.estimated_commits))),
        _list(
            (
                f"files: {', '.join(map(_named, impact.files)) or f'anywhere in {where}'}",
                f"modules: {', '.join(impact.modules) or 'none named'}",
                f"areas: {', '.join(impact.areas) or 'none named'}",
                f"bounded by: {where}, without what is git's or steersman's",
                f"lock: {_lock(impact.lock)}",
            )
        ),
        _table(
            ("budget", "limit", "expected", "within"),
            ((b.name, str(b.limit), str(b.estimate), "yes" if b.within else "no") for b in impact.budgets),
        ),
        "## Review gates",
        _table(("review", "phase", "why"), ((g.category, g.phase, g.why) for g in pack.review_gates)),
        "## Actions",
        _table(
            ("command", "phase", "argv"),
            ((a.command_id, a.phase, _argv(a.argv)) for a in pack.actions),
        ),
        *_section("Left out", _list(pack.excluded), pack.excluded),
        "## Way back",
        _table(("command", "how"), ((s.command_id, s.how) for s in pack.rollback_guide)),
        "## Estimates",
        _list((*_estimate("duration", pack.estimated_duration), *_estimate("complexity", pack.complexity))),
    ]
    return "\n\n".join(parts) + "\n"


def plan_markdown(
    graph: ExecutionGraph, pack: ReviewPack, questions: Iterable[AskedQuestion], settled: Settled
) -> str:
    """The whole plan in the order of its graph, ending in a newline; `questions` are all that came up."""
    asked = {question.question_id: question for question in questions}
    parts = [
        f"# Plan {inline(graph.plan_id)}",
        "\n".join(block(pack.plan_summary.objective)),
        (
            f"Intent {inline(graph.intent_id)}, mode {graph.execution_policy}, risk {pack.risk_assessment.overall_risk}. "
            "This is a plan: nothing of it has been executed."
        ),
        "## Bounds",
        _list(_reach(pack.change_impact)),
        "## Steps",
        _NUMBERS,
        _table(
            ("step", "kind", "what", "phase", "agent", "risk", "status", "why"),
            _steps(graph),
        ),
        "## Questions",
        _answers(settled, asked),
        "## Lineage",
        _table(("from", "what"), _lineage(graph.lineage)),
    ]
    return "\n\n".join(parts) + "\n"


def _steps(graph: ExecutionGraph) -> Iterator[Sequence[str]]:
    rank, hangs = ranks(graph), conditions(graph)
    lanes = {ref: lane.agent_id for lane in graph.swimlanes for ref in lane.node_refs}
    for node in graph.nodes:
        condition = hangs.get((node.workflow_ref, node.phase_ref), "")
        number = rank[node.node_id] + 1
        yield (
            f"({number})" if condition else str(number),
            node.node_type,
            _headed(node, condition),
            node.phase_ref,
            lanes.get(node.node_id, ""),
            node.risk_level,
            node.status,
            node.reason,
        )


def _headed(node: Node, condition: str) -> str:
    """What a node is; a phase with the condition on which all of it hangs."""
    return f"{node.label}, only if: {condition}" if condition and node.node_type == "phase" else node.label


def _answers(settled: Settled, questions: dict[str, AskedQuestion]) -> str:
    if not settled.answers:
        return "Nothing was uncertain."
    rows = (
        (_asked(questions, a.question_id), a.answer, a.text, f"{a.provided_by} {a.answered_by}", a.rationale)
        for a in settled.answers
    )
    return _table(("question", "answer", "in words", "by", "because"), rows)


def _asked(questions: dict[str, AskedQuestion], name: str) -> str:
    return questions[name].question_text if name in questions else name


def _lineage(lineage: GraphLineage) -> Iterator[Sequence[str]]:
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


def _estimate(name: str, estimate: Estimate) -> tuple[str, ...]:
    return (f"{name}: {estimate.value} {estimate.unit} ({'; '.join(estimate.basis)})",)


def _reach(impact: Impact) -> Iterator[str]:
    """What the plan may touch: what it names, one by one, else anything in what it lies within."""
    where = region(impact.within)
    yield from (_touched(name) for name in impact.files)
    yield from (f"module {name}" for name in impact.modules)
    if not impact.files and not impact.modules:
        yield f"anything in {where}"
    elif where != region(ANYWHERE):
        yield f"nothing outside of {where}"
    most = next(b.limit for b in impact.budgets if b.name == "max_files")
    yield f"at most {most} files, without what is git's or steersman's"
    yield f"lock: {_lock(impact.lock)}"


def _touched(name: str) -> str:
    """What a name of a plan lets it touch; a name without a slash is of a file or of a folder, and only the disk knows."""
    if whole(name) or folder(name):
        return _named(name)
    last = plain(name).rpartition("/")[2]
    return (
        f"file {name}" if "." in last.strip(".") else f"{name}, or everything below {name}/ if it is a folder"
    )


def _named(name: str) -> str:
    if whole(name):
        return "the whole project"
    return f"everything below {plain(name)}/" if folder(name) else name


def _lock(lock: LockScope) -> str:
    match lock.mode:
        case "none":
            return "none, others may change the same files meanwhile"
        case "task":
            return "the task, nobody else changes meanwhile what it names"
        case "files":
            return f"files, nobody else changes these meanwhile, and the plan changes no others: {', '.join(lock.paths)}"


def _argv(argv: tuple[str, ...]) -> str:
    """As JSON: what is one word and what are two can be seen."""
    return encode(argv).decode() if argv else "as the project has it"


def _section(title: str, body: str, there: Sequence[str]) -> tuple[str, ...]:
    return (f"## {title}", body) if there else ()


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {inline(line)}" for line in lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    told = ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    if not told:
        return "None."
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *told])
