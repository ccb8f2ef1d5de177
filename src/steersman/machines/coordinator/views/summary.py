"""What a planning run tells of itself: its summary, and its section of a report."""

from steersman.machines.coordinator.context import CoordinatorContext
from steersman.machines.coordinator.views.outcome import render_outcome_lines
from steersman.views.report import ReportFacts, quoted_section, reviews_section
from steersman.views.run_summary import RunFacts, SummaryFields


def coordinator_summary_fields(facts: RunFacts) -> SummaryFields:
    """The fields of the run's summary that only its context tells."""
    context: CoordinatorContext = facts.snapshot.context
    return SummaryFields(round=context.round, detail=facts.text(context.detail_ref))


def coordinator_report_sections(report: ReportFacts) -> list[str]:
    """What a planning run has brought: nothing of it was executed, so that there is nothing to prove."""
    facts = report.facts
    lines = render_outcome_lines(facts.snapshot, facts.text)
    return [*reviews_section(report), *quoted_section("Plan", "\n".join(lines))]
