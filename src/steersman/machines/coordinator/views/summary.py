"""What a planning run tells of itself: its summary, its sections of a report, and what is shown at its end."""

import msgspec

from steersman.engine.machine_package import RunEnding, RunResult, RunView
from steersman.machines.coordinator.context import CoordinatorContext
from steersman.machines.coordinator.views.outcome import (
    build_plan_run_summary,
    read_failure_pack,
    read_review_pack,
    render_outcome_lines,
    render_plan_lines,
)
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


def plan_ending(run_view: RunView) -> RunEnding:
    """The ending of a planning run; its fields are there while it goes on, too."""
    snapshot, text = run_view.snapshot, run_view.text
    directory = find_plan_directory(run_view)
    frozen = (f"frozen in {directory}",) if directory else ()
    return RunEnding(
        lines=(*render_outcome_lines(snapshot, text, run_view.entries), *frozen),
        commands=(
            f"plan explain {snapshot.run}",
            *((f"plan verify {directory}",) if directory else ()),
            f"audit tape {snapshot.run} --as runtape",
        ),
        fields={
            "plan": directory or None,
            "summary": msgspec.to_builtins(build_plan_run_summary(snapshot, text, run_view.entries)),
            "failure": msgspec.to_builtins(read_failure_pack(snapshot, text)),
        },
    )


def read_planned_result(run_view: RunView) -> RunResult:
    """The whole plan of a run that is done; of one that has failed, why."""
    snapshot, text = run_view.snapshot, run_view.text
    lines = render_plan_lines(snapshot, text) or render_outcome_lines(snapshot, text, run_view.entries)
    return RunResult(tuple(lines), read_failure_pack(snapshot, text) or read_review_pack(snapshot, text))


def find_plan_directory(run_view: RunView) -> str:
    """Where the frozen plan of a run lies; nothing where there is none."""
    if run_view.snapshot.state != "DONE":
        return ""
    ports, out_directory = run_view.live.world, run_view.text(run_view.snapshot.context.out_ref)
    return out_directory or (
        ports.planning().plans.default_directory(run_view.snapshot.run) if ports.planning is not None else ""
    )
