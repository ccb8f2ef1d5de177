"""Everything that the rest of the product knows about `coordinator`."""

from collections.abc import Iterator

import msgspec

from steersman.engine.machine_package import (
    AnswerPlanQuestions,
    Artifact,
    MachinePackage,
    PersonWord,
    RunView,
)
from steersman.engine.projections import format_json_file
from steersman.kernel.snapshot import context_fields
from steersman.machines.coordinator.start import PLAN_OPTIONS, start_planning
from steersman.machines.coordinator.table import MACHINE
from steersman.machines.coordinator.views.forms import build_run_tape
from steersman.machines.coordinator.views.log import build_audit_log
from steersman.machines.coordinator.views.outcome import build_plan_run_summary, read_failure_pack
from steersman.machines.coordinator.views.summary import (
    coordinator_report_sections,
    coordinator_summary_fields,
    plan_ending,
    read_planned_result,
)
from steersman.views.planning.questions import render_answer_gate_items

# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

# The files of a planning run that are made from its tape, in the forms that the specification gives them.


def list_plan_artifacts(run_view: RunView) -> Iterator[Artifact]:
    """What the specification of the planner wants to be seen of every run, also of one that has failed."""
    yield "coordinator_run_tape.json", lambda: _json_file(render_run_tape(run_view))
    yield "audit_log.json", lambda: _json_file(render_audit_log(run_view))
    failure_pack = read_failure_pack(run_view.snapshot, run_view.text)
    if failure_pack is not None:
        yield "failure_pack.json", lambda: _json_file(failure_pack)
    run_summary = build_plan_run_summary(run_view.snapshot, run_view.text, run_view.entries)
    if run_summary is not None:
        yield "run_summary.json", lambda: _json_file(run_summary)


def render_run_tape(run_view: RunView) -> msgspec.Struct:
    """The tape as a CoordinatorRunTape."""
    context = context_fields(run_view.snapshot.context)
    return build_run_tape(run_view.machine, run_view.entries, context, run_view.text)


def render_audit_log(run_view: RunView) -> msgspec.Struct:
    """The tape as an audit log."""
    return build_audit_log(run_view.machine, run_view.entries, run_view.text)


def _json_file(document: msgspec.Struct) -> bytes:
    return format_json_file(msgspec.json.encode(document))


# ── package ────────────────────────────────────────────────────────────────────────────────


PACKAGE = MachinePackage(
    machine=MACHINE,
    folder="steersman.machines.coordinator",
    effects={
        "precheck": "steersman.machines.coordinator.effects.planning:precheck_plan",
        "plan_context": "steersman.machines.coordinator.effects.planning:build_plan_context",
        "adjudicate": "steersman.machines.coordinator.effects.planning:decide_commands_by_rules",
        "draft_graph": "steersman.machines.coordinator.effects.planning:draft_graph",
        "emit_questions": "steersman.machines.coordinator.effects.planning:emit_questions",
        "weigh_answers": "steersman.machines.coordinator.effects.planning:weigh_answers",
        "finalize_graph": "steersman.machines.coordinator.effects.planning:finalize_graph",
        "review_pack": "steersman.machines.coordinator.effects.planning:assemble_review_pack",
        "freeze": "steersman.machines.coordinator.effects.plan_freezing:freeze_plan",
    },
    takes=PLAN_OPTIONS,
    plan_start=start_planning,
    summary_fields=coordinator_summary_fields,
    report_sections=coordinator_report_sections,
    split_gate_text=render_answer_gate_items,
    ending=plan_ending,
    read_result=read_planned_result,
    words={
        "answer": PersonWord("answer what the plan asks, one by one", lambda _: AnswerPlanQuestions()),
        "defaults": PersonWord(
            "answer what the plan asks with its own defaults", lambda _: AnswerPlanQuestions(defaults=True)
        ),
    },
    started_by="plan",
    round_field="round",
    artifacts=list_plan_artifacts,
    tape_forms={"runtape": render_run_tape, "auditlog": render_audit_log},
)
