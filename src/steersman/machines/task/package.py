"""Everything that the rest of the product knows about `task`."""

from steersman.engine.machine_package import MachinePackage
from steersman.machines.task.documents_on_disk import TASK_RUN_DOCUMENTS, read_task_patch
from steersman.machines.task.effects.document_digests import has_unchanged_artifacts
from steersman.machines.task.files import find_task_file_problems, list_task_artifacts
from steersman.machines.task.replies import TASK_REPLY_CONTRACTS
from steersman.machines.task.start import plan_task_start
from steersman.machines.task.table import MACHINE
from steersman.machines.task.views.actions import find_task_actions
from steersman.machines.task.views.summary import (
    preview_task_gate,
    task_ending,
    task_report_sections,
    task_summary_fields,
)
from steersman.machines.task.words import TASK_WORDS, read_free_text

PACKAGE = MachinePackage(
    machine=MACHINE,
    folder="steersman.machines.task",
    effects={
        "task_record": "steersman.machines.task.effects.task_documents:record_phase_documents",
        "task_inspect": "steersman.machines.task.effects.inspection:inspect_task_files",
        "task_restore": "steersman.machines.task.effects.document_restore:restore_documents",
        "task_adopt": "steersman.machines.task.effects.document_restore:adopt_documents",
        "task_others": "steersman.machines.task.effects.prerequisites:check_prerequisites",
        "task_base": "steersman.machines.task.effects.branch:check_base",
        "task_deliver": "steersman.engine.effects.delivery:deliver_change",
        "task_revert": "steersman.machines.task.effects.branch:take_change_back",
    },
    replies=TASK_REPLY_CONTRACTS,
    takes=frozenset({"after", "plan", "key", "step"}),
    plan_start=plan_task_start,
    summary_fields=task_summary_fields,
    report_sections=task_report_sections,
    legal_actions=find_task_actions,
    preview_gate=preview_task_gate,
    ending=task_ending,
    artifacts=list_task_artifacts,
    find_file_problems=find_task_file_problems,
    has_unchanged_files=has_unchanged_artifacts,
    words=TASK_WORDS,
    read_free_text=read_free_text,
    read_step=lambda context: str(context.step),
    read_earlier_runs=lambda context: tuple(context.after),
    read_patch=read_task_patch,
    documents=TASK_RUN_DOCUMENTS,
)
