"""Budgets over a run and all its children: reserved at every ancestor when an agent starts, settled when it is done."""

from steersman.contracts.config import Config
from steersman.kernel.snapshot import Item
from steersman.ports.journal import Spend
from steersman.runtime.live import Live
from steersman.runtime.roles import role_of

SHARE = 10  # a role without a ceiling of its own reserves a tenth of the limit per call


def limits(config: Config) -> dict[str, int]:
    """The figures a budget binds, by name."""
    b = config.budget
    told = {
        "turns": b.turns,
        "tokens": b.tokens,
        "micro_usd": b.micro_usd,
        "ms": b.seconds * 1000 if b.seconds is not None else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def ceiling(config: Config, role: str) -> dict[str, int]:
    """What one call of a role may cost at most: that much is reserved."""
    asked = _asked(config, role)
    return {
        name: asked.get(name, 1 if name == "turns" else 0 if name == "ms" else limit // SHARE)
        for name, limit in limits(config).items()
    }


def _asked(config: Config, role: str) -> dict[str, int]:
    """A role's own ceilings: `call_tokens` and `call_micro_usd` in its table."""
    options = role_of(config, role).options
    return {
        name: int(options[key])
        for name, key in (("tokens", "call_tokens"), ("micro_usd", "call_micro_usd"))
        if key in options
    }


def ceilings(live: Live, item: Item, config: Config) -> tuple[Spend, ...]:
    """The reservations that an effect needs before it starts; only agents cost."""
    return tuple(
        Spend(run, name, reserved=amount, bound=True)
        for run in live.ancestors
        for name, amount in _wanted(live, item, config).items()
    )


def freed(live: Live, item: Item) -> tuple[Spend, ...]:
    """What was reserved for an effect that is over; one that was held had nothing."""
    if item.held:
        return ()
    return tuple(
        Spend(run, name, reserved=-amount)
        for run in live.ancestors
        for name, amount in _wanted(live, item, live.config).items()
    )


def _wanted(live: Live, item: Item, config: Config) -> dict[str, int]:
    role, job = item.input.get("role"), live.machine.jobs.get(item.job)
    # A job of an older version, which this machine no longer has, had its reservation by its role.
    if role is None or item.kind != "effect" or (job is not None and job.does != "agent"):
        return {}
    return ceiling(config, role)


def settle(live: Live, spent: dict[str, int]) -> tuple[Spend, ...]:
    """What was really used, at the run and every ancestor; its reservation goes with the item."""
    return tuple(Spend(run, name, spent=amount) for run in live.ancestors for name, amount in spent.items())
