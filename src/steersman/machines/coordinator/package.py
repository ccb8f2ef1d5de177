"""Everything that the rest of the product knows about `coordinator`."""

from steersman.engine.machine_package import MachinePackage
from steersman.engine.person_words import AnswerPlanQuestions, PersonWord
from steersman.machines.coordinator.files import list_plan_artifacts, render_audit_log, render_run_tape
from steersman.machines.coordinator.start import PLAN_OPTIONS, start_planning
from steersman.machines.coordinator.table import MACHINE
from steersman.machines.coordinator.views.summary import (
    coordinator_report_sections,
    coordinator_summary_fields,
    plan_ending,
    read_planned_result,
)
from steersman.views.planning.questions import render_answer_gate_items

PACKAGE = MachinePackage(
    machine=MACHINE,
    folder="steersman.machines.coordinator",
    effects={
        "precheck": "steersman.machines.coordinator.effects.planning:precheck_plan",
        "plan_context": "steersman.machines.coordinator.effects.planning:build_plan_context",
        "adjudicate": "steersman.machines.coordinator.effects.planning:adjudicate_commands",
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
