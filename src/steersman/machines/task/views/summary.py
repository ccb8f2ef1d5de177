"""What a task tells of itself: its summary, and its own sections of a report."""

from collections.abc import Sequence

from steersman.kernel.record import run_outcome
from steersman.kernel.tape import Entry
from steersman.machines.shared.proof_sections import base_tree_section, evidence_questions_section
from steersman.machines.shared.tree_summary import base_problem_of_outcome, tree_summary_fields
from steersman.machines.task.context import TaskContext
from steersman.machines.task.views.actions import find_side_actions
from steersman.machines.task.views.blocked_reason import find_blocked_cause
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.report import ReportFacts, check_evidence_section, reviews_section
from steersman.views.run_summary import RunFacts, SummaryFields


def task_summary_fields(facts: RunFacts) -> SummaryFields:
    """The fields of the task's summary that only its context tells."""
    context: TaskContext = facts.snapshot.context
    side_actions = find_side_actions(facts.machine, facts.snapshot, facts.gates)
    return SummaryFields(
        **tree_summary_fields(facts, context),
        round=context.round,
        base_measured=context.workspace == "measured",
        base_problem=_find_base_problem(facts, context),
        cause=find_blocked_cause(facts),
        besides=tuple(action.word for action in side_actions),
        side_commands=tuple(action.command for action in side_actions),
    )


def _find_base_problem(facts: RunFacts, context: TaskContext) -> str:
    """Which problem of its base tree keeps the task from going on; nothing where another one does, or none."""
    reached = run_outcome(facts.machine, facts.snapshot)
    if reached or context.step != "broken":
        return base_problem_of_outcome(reached)
    last = last_state_event(facts.entries)
    return last if last in BASE_PROBLEMS else ""


def last_state_event(entries: Sequence[Entry]) -> str:
    """The event of the last step that led to another state."""
    return next((e.event for e in reversed(entries) if e.kind == "transition" and not e.stay), "")


def task_report_sections(report: ReportFacts) -> list[str]:
    """What reviewers said, and what is proven of the tree."""
    context, text = report.facts.snapshot.context, report.facts.text
    return [
        *reviews_section(report),
        *check_evidence_section(report),
        *evidence_questions_section(context, text, asks=context.evidence == "touched"),
        *base_tree_section(context, text),
    ]
