"""The built-in machines that commands of their own start.

**Invariant:** nothing else outside a machine's folder names one: what differs between machines is in their packages.
"""

from typing import Literal

DEFAULT_MACHINE = "roundtable"  # `run` and `chat`
PLANNING_MACHINE = "coordinator"  # `plan`
TASKS_MACHINE = "task"  # `tasks`, and what is typed at the prompt before there is a run

TaskPhase = Literal["planning", "plan_review", "codegen", "review", "test", "accept", "revert", "done"]
TASK_PHASES: tuple[TaskPhase, ...] = (
    "planning", "plan_review", "codegen", "review", "test", "accept", "revert", "done",
)  # fmt: skip
