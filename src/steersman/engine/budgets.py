"""Reserves budget at a run and every ancestor when an agent starts, and settles it when the call is over."""

from steersman.contracts.config import Config, find_role_settings
from steersman.engine.active_run import ActiveRun
from steersman.kernel.snapshot import JobItem
from steersman.ports.journal import Spend

DEFAULT_CALL_SHARE = 10  # a role without a ceiling of its own reserves a tenth of the limit per call


def budget_limits(config: Config) -> dict[str, int]:
    """Returns the limits that a budget sets, by figure."""
    budget = config.budget
    figures = {
        "turns": budget.turns,
        "tokens": budget.tokens,
        "micro_usd": budget.micro_usd,
        "ms": budget.seconds * 1000 if budget.seconds is not None else None,
    }
    return {name: value for name, value in figures.items() if value is not None}


def call_ceiling(config: Config, role: str) -> dict[str, int]:
    """Returns the most that one call of a role may cost, which is what it reserves."""
    configured = _configured_ceilings(config, role)
    return {
        name: configured.get(
            name, 1 if name == "turns" else 0 if name == "ms" else limit // DEFAULT_CALL_SHARE
        )
        for name, limit in budget_limits(config).items()
    }


def _configured_ceilings(config: Config, role: str) -> dict[str, int]:
    """Returns a role's own ceilings: `call_tokens` and `call_micro_usd` in its table."""
    options = find_role_settings(config, role).options
    return {
        name: int(options[key])
        for name, key in (("tokens", "call_tokens"), ("micro_usd", "call_micro_usd"))
        if key in options
    }


def budget_reservations(active_run: ActiveRun, item: JobItem, config: Config) -> tuple[Spend, ...]:
    """Returns the reservations that an effect needs before it starts; only agents need any."""
    return tuple(
        Spend(run, name, reserved=amount, bound=True)
        for run in active_run.ancestors
        for name, amount in _reserved_amounts(active_run, item, config).items()
    )


def budget_releases(active_run: ActiveRun, item: JobItem) -> tuple[Spend, ...]:
    """Returns what frees the reservations of an effect that is over; a held effect has none."""
    if item.held:
        return ()
    return tuple(
        Spend(run, name, reserved=-amount)
        for run in active_run.ancestors
        for name, amount in _reserved_amounts(active_run, item, active_run.config).items()
    )


def _reserved_amounts(active_run: ActiveRun, item: JobItem, config: Config) -> dict[str, int]:
    role, job = item.input.get("role"), active_run.machine.jobs.get(item.job)
    # A job that this version of the machine no longer has reserved budget by its role.
    if role is None or item.kind != "effect" or (job is not None and job.does != "agent"):
        return {}
    return call_ceiling(config, role)


def usage_spends(active_run: ActiveRun, spent: dict[str, int]) -> tuple[Spend, ...]:
    """Returns the spending of a call for the run and every ancestor."""
    return tuple(
        Spend(run, name, spent=amount) for run in active_run.ancestors for name, amount in spent.items()
    )
