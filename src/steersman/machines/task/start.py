"""How a task begins: who works on it, which tasks come first, and the frozen plan that bounds it."""

from collections.abc import Iterable
from typing import Any

import msgspec

from steersman.app.runs import find_run
from steersman.contracts.config import Config
from steersman.engine.machine_package import StartOptions, StartPlan
from steersman.engine.ports import Ports, require_planning
from steersman.errors import UserError
from steersman.judges.planning.attest import TrustedKey
from steersman.judges.planning.plan_bounds import PlanBounds, find_outside_bounds, read_plan_bounds
from steersman.judges.planning.semantics import find_project_mismatch
from steersman.views.planning.problems import document_problem_lines


def plan_task_start(start: StartOptions) -> StartPlan:
    """What is fixed when a task begins; an option that cannot be meant like this is refused."""
    config, given = start.config, start.given
    options = task_options(config, pace="step" if given.get("step") else "through")
    options["after"] = _find_earlier_tasks(start.ports, given.get("after", ()), config)
    texts = _read_bounds(start, given.get("plan", ""), given.get("key", ""))
    roles = (*options["planners"], *options["plan_reviewers"], "coder", *options["code_reviewers"])
    return StartPlan(options, texts, roles)


def task_options(config: Config, *, pace: str = "through") -> dict[str, Any]:
    """Who works on a task, and how long, as steersman.toml says."""
    rules = config.task
    planners = rules.planners or (("planner",) if "planner" in config.roles else ("coder",))
    return {
        "pace": pace,
        "after": [],
        "codegen": rules.codegen,
        "planners": list(planners),
        "plan_reviewers": list(rules.plan_reviewers),
        "code_reviewers": list(rules.code_reviewers),
        "max_rounds": rules.max_rounds,
        "max_regressions": rules.max_regressions,
    }


def _find_earlier_tasks(ports: Ports, names: Iterable[str], config: Config) -> list[str]:
    """The tasks that come first, by their whole names; one that can never be accepted, or looked for, is refused."""
    runs = [find_run(ports.journal, name) for name in names]
    if runs and ports.workspace(config).base(config.base or None).branch is None:
        raise UserError(
            "--after needs a branch that can have the other's change: you are on none, `git switch BRANCH`"
        )
    for run in runs:
        head = ports.journal.head(run)
        if head is None or head.machine != "task":
            raise UserError(f"--after {run}: that is a {head.machine if head else 'missing run'}, not a task")
        if head.status == "stopped" and head.outcome != "reverted":
            raise UserError(f"--after {run}: that task has ended ({head.outcome}) and will never be accepted")
    return list(dict.fromkeys(runs))


def _read_bounds(start: StartOptions, directory: str, key: str) -> dict[str, str]:
    """How far the task may go under a frozen plan, as a text to begin with; nothing where no plan is handed in."""
    if not directory:
        if key:
            raise UserError(
                "--key is the key of the project that froze a plan. Name the plan too, with --plan DIR"
            )
        return {}
    planning, config = require_planning(start.ports), start.config
    files = planning.plans.read(directory)
    trusted = TrustedKey(planning.maker_key(key), planning.is_signed)
    bounds = read_plan_bounds(files, trusted)
    if isinstance(bounds, PlanBounds):
        intent = msgspec.json.decode(files["intent.json"])
        bounds = find_project_mismatch(intent, config.project or "") or bounds
    if not isinstance(bounds, PlanBounds):
        lines = "\n  ".join(document_problem_lines(bounds, directory))
        raise UserError(f"{directory} bounds nothing: it is no plan that is trusted here\n  {lines}")
    _require_covered_checks(bounds, config)
    return {"bounds": msgspec.json.encode(bounds).decode()}


def _require_covered_checks(bounds: PlanBounds, config: Config) -> None:
    uncovered = [
        f"checks.{name}: {problem.message} {problem.fix}"
        for name, check in config.checks.items()
        for problem in find_outside_bounds(bounds, argvs=(check.run,))
    ]
    if uncovered:
        lines = "\n  ".join(uncovered)
        raise UserError(
            f"the plan does not cover the project's checks, without which nothing is accepted:\n  {lines}"
        )
