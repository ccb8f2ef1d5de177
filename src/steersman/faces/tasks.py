"""What the commands of a task have in common: who works on it, as steersman.toml says."""

from typing import Any

from steersman.contracts.config import Config


def roles_of(options: dict[str, Any]) -> tuple[str, ...]:
    """Everybody who has to be there before a task begins."""
    return (*options["planners"], *options["plan_reviewers"], "coder", *options["code_reviewers"])


def options_of(config: Config, *, pace: str = "through") -> dict[str, Any]:
    """What is fixed when a task begins."""
    rules = config.task
    planners = rules.planners or (("planner",) if "planner" in config.roles else ("coder",))
    return {
        "pace": pace,
        "codegen": rules.codegen,
        "planners": list(planners),
        "plan_reviewers": list(rules.plan_reviewers),
        "code_reviewers": list(rules.code_reviewers),
        "max_rounds": rules.max_rounds,
        "max_regressions": rules.max_regressions,
    }
