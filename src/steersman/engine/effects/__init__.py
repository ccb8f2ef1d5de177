"""The effects that machines may use, each an async function from a call to facts, brought in when it is first needed.

**Invariant:** a performer never chooses an event; what its facts mean is in the machine's namings.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module

from steersman.engine.effect_call import EffectCall, EffectResult

Performer = Callable[[EffectCall], Awaitable[EffectResult]]
PERFORMER_PATHS = {
    "agent": "agent_work:ask_agent",
    "setup": "tree_setup:prepare_tree",
    "baseline": "checks:run_baseline_checks",
    "checks": "checks:run_checks",
    "recall": "checks:recall_check_results",
    "deliver": "delivery:deliver_change",
    "revert": "delivery:revert_delivery",
    "precheck": "planning:precheck_plan",
    "plan_context": "planning:build_plan_context",
    "adjudicate": "planning:adjudicate_commands",
    "draft_graph": "planning:draft_graph",
    "emit_questions": "planning:emit_questions",
    "weigh_answers": "planning:weigh_answers",
    "finalize_graph": "planning:finalize_graph",
    "review_pack": "planning:assemble_review_pack",
    "freeze": "plan_freezing:freeze_plan",
    "task_record": "task_documents:record_phase_documents",
    "task_inspect": "inspection:inspect_task_files",
    "task_restore": "document_restore:restore_documents",
    "task_adopt": "document_restore:adopt_documents",
    "task_others": "prerequisites:check_prerequisites",
    "base": "branch:follow_base",
    "task_base": "branch:check_base",
    "task_revert": "branch:take_change_back",
    "task_deliver": "delivery:deliver_change",
}


def load_performer(does: str) -> Performer | None:
    """What does this, or None where nothing here can."""
    module, _, name = PERFORMER_PATHS.get(does, "").partition(":")
    loaded: Performer | None = getattr(import_module(f"{__name__}.{module}"), name) if module else None
    return loaded


__all__ = ["Performer", "load_performer"]
