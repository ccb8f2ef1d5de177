"""What the commands of a task have in common: who works on it, as steersman.toml says."""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.faces.deck import Deck


def roles_of(options: dict[str, Any]) -> tuple[str, ...]:
    """Everybody who has to be there before a task begins."""
    return (*options["planners"], *options["plan_reviewers"], "coder", *options["code_reviewers"])


def bounds_of(deck: Deck, place: str, key: str, config: Config) -> dict[str, str]:
    """How far a task may go under a frozen plan, as a text to begin with; nothing where no plan is handed in."""
    from steersman.faces.intents import lines_of
    from steersman.faces.planning import files_of
    from steersman.judges.planning.sense import elsewhere
    from steersman.machines.coordinator.bounds import Bounds, bounds, outside
    from steersman.machines.coordinator.trust import Key

    if key and not place:
        raise UserError("--key is the key of whoever froze a plan: name the plan too, --plan DIR")
    if not place:
        return {}
    files = files_of(deck, place)
    found = bounds(files, Key(deck.helm.key_here(deck.project, key), deck.helm.verifies))
    if isinstance(found, Bounds):
        wrong = elsewhere(msgspec.json.decode(files["intent.json"]), config.project or "")
        found = wrong or found
    if not isinstance(found, Bounds):
        told = "\n  ".join(lines_of(found, place))
        raise UserError(f"{place} bounds nothing: it is no plan that is trusted here\n  {told}")
    left = [(name, p) for name, check in config.checks.items() for p in outside(found, argvs=(check.run,))]
    if left:
        told = "\n  ".join(f"checks.{name}: {p.message} {p.fix}" for name, p in left)
        raise UserError(
            f"the plan does not cover the project's checks, without which nothing is accepted:\n  {told}"
        )
    return {"bounds": msgspec.json.encode(found).decode()}


def after_of(deck: Deck, runs: tuple[str, ...], config: Config) -> list[str]:
    """The tasks that come first, by their whole names; one that can never be accepted, or looked for, is refused."""
    if (
        runs
        and deck.helm.open_world(deck.project, journal=None)
        .workspace(config)
        .base(config.base or None)
        .branch
        is None
    ):
        raise UserError(
            "--after needs a branch that can have the other's change: you are on none, `git switch BRANCH`"
        )
    found = list(dict.fromkeys(deck.sight.find(run) for run in runs))
    for run in found:
        head = deck.sight.head(run)
        if head.machine != "task":
            raise UserError(f"--after {run}: that is no task but a {head.machine}")
        if head.status == "stopped" and head.outcome != "reverted":
            raise UserError(f"--after {run}: that task has ended ({head.outcome}) and will never be accepted")
    return found


def followers(deck: Deck, run: str) -> list[str]:
    """The tasks that wait for this one."""
    from steersman.kernel.snapshot import Snapshot, fields
    from steersman.runtime.live import read_snapshot

    journal = deck.bridge.world.journal
    waiting = [gate.run for gate in journal.gates() if gate.job == "others" and not gate.answer]
    read = (
        (other, read_snapshot(journal, other)) for other in waiting
    )  # one that cannot be read says so elsewhere
    return [other for other, s in read if isinstance(s, Snapshot) and run in fields(s.context)["after"]]


def options_of(config: Config, *, pace: str = "through", after: Sequence[str] = ()) -> dict[str, Any]:
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
