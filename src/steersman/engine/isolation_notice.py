"""What is said of a run whose programs are in no box: nothing then keeps them from the store, and everybody is told."""

from steersman.contracts.config import Config
from steersman.engine.ports import Ports
from steersman.ports.sandbox import NOT_ISOLATED


def isolation_warning(ports: Ports, config: Config) -> str:
    """`approval not isolated: why`, or nothing where there is a box; raises UserError where one is required."""
    if ports.sandbox is None:
        return ""
    sandbox = ports.sandbox(config)
    return "" if sandbox.isolated else f"{NOT_ISOLATED}: {sandbox.why}"
