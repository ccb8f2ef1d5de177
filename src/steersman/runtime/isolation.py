"""What is said of a run whose programs are in no box: nothing then keeps them from the store, and everybody is told."""

from steersman.contracts.config import Config
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.runtime.world import World


def not_isolated(world: World, config: Config) -> str:
    """`approval not isolated: why`, or nothing where there is a box; raises UserError where one is required."""
    if world.sandbox is None:
        return ""
    box = world.sandbox(config)
    return "" if box.isolated else f"{NOT_ISOLATED}: {box.why}"
