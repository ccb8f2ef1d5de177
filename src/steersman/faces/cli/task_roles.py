"""What the commands of a task have in common: who works on it, as steersman.toml says."""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext


def list_task_roles(options: dict[str, Any]) -> tuple[str, ...]:
    """Everybody who has to be there before a task begins."""
    return (*options["planners"], *options["plan_reviewers"], "coder", *options["code_reviewers"])


def load_task_bounds(
    context: CommandContext, plan_directory: str, key: str, config: Config
) -> dict[str, str]:
    """How far a task may go under a frozen plan, as a text to begin with; nothing where no plan is handed in."""
    from steersman.faces.cli.intent_drafts import render_problem_lines
    from steersman.faces.cli.plan_inputs import read_plan_files
    from steersman.judges.planning.semantics import find_project_mismatch
    from steersman.judges.planning.plan_bounds import PlanBounds, find_outside_bounds, read_plan_bounds
    from steersman.judges.planning.plan_trust import TrustedKey

    if key and not plan_directory:
        raise UserError("--key is the key of whoever froze a plan: name the plan too, --plan DIR")
    if not plan_directory:
        return {}
    files = read_plan_files(context, plan_directory)
    task_bounds = read_plan_bounds(
        files,
        TrustedKey(
            context.services.read_maker_public_key(context.project, key), context.services.has_valid_signature
        ),
    )
    if isinstance(task_bounds, PlanBounds):
        project_problems = find_project_mismatch(
            msgspec.json.decode(files["intent.json"]), config.project or ""
        )
        task_bounds = project_problems or task_bounds
    if not isinstance(task_bounds, PlanBounds):
        problem_lines = "\n  ".join(render_problem_lines(task_bounds, plan_directory))
        raise UserError(
            f"{plan_directory} bounds nothing: it is no plan that is trusted here\n  {problem_lines}"
        )
    uncovered = [
        (name, bound_problem)
        for name, check in config.checks.items()
        for bound_problem in find_outside_bounds(task_bounds, argvs=(check.run,))
    ]
    if uncovered:
        problem_lines = "\n  ".join(
            f"checks.{name}: {bound_problem.message} {bound_problem.fix}" for name, bound_problem in uncovered
        )
        raise UserError(
            f"the plan does not cover the project's checks, without which nothing is accepted:\n  {problem_lines}"
        )
    return {"bounds": msgspec.json.encode(task_bounds).decode()}


def resolve_after_runs(context: CommandContext, runs: tuple[str, ...], config: Config) -> list[str]:
    """The tasks that come first, by their whole names; one that can never be accepted, or looked for, is refused."""
    if (
        runs
        and context.services.open_ports(context.project, journal=None)
        .workspace(config)
        .base(config.base or None)
        .branch
        is None
    ):
        raise UserError(
            "--after needs a branch that can have the other's change: you are on none, `git switch BRANCH`"
        )
    run_ids = list(dict.fromkeys(context.read_only_runs.find(run) for run in runs))
    for run in run_ids:
        head = context.read_only_runs.head(run)
        if head.machine != "task":
            raise UserError(f"--after {run}: that is no task but a {head.machine}")
        if head.status == "stopped" and head.outcome != "reverted":
            raise UserError(f"--after {run}: that task has ended ({head.outcome}) and will never be accepted")
    return run_ids


def find_waiting_followers(context: CommandContext, run: str) -> list[str]:
    """The tasks that wait for this one."""
    from steersman.engine.active_run import read_snapshot
    from steersman.kernel.snapshot import Snapshot, context_fields

    journal = context.runs.ports.journal
    waiting = [gate.run for gate in journal.gates() if gate.job == "others" and not gate.answer]
    snapshots = (
        (other_run, read_snapshot(journal, other_run)) for other_run in waiting
    )  # one that cannot be read says so elsewhere
    return [
        other_run
        for other_run, snapshot in snapshots
        if isinstance(snapshot, Snapshot) and run in context_fields(snapshot.context)["after"]
    ]


def build_task_options(config: Config, *, pace: str = "through", after: Sequence[str] = ()) -> dict[str, Any]:
    """What is fixed when a task begins."""
    rules = config.task
    planners = rules.planners or (("planner",) if "planner" in config.roles else ("coder",))
    return {
        "pace": pace,
        "after": list(after),
        "codegen": rules.codegen,
        "planners": list(planners),
        "plan_reviewers": list(rules.plan_reviewers),
        "code_reviewers": list(rules.code_reviewers),
        "max_rounds": rules.max_rounds,
        "max_regressions": rules.max_regressions,
    }
