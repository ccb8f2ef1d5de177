"""Warns about runs without a sandbox, where programs could reach the store and approve a change themselves."""

from steersman.contracts.config import Config
from steersman.engine.ports import Ports
from steersman.ports.sandbox import NOT_ISOLATED


def isolation_warning(ports: Ports, config: Config) -> str:
    """Returns `approval not isolated: why`; nothing where there is a sandbox. Raises UserError where one is required."""
    if ports.sandbox is None:
        return ""
    sandbox = ports.sandbox(config)
    return "" if sandbox.isolated else f"{NOT_ISOLATED}: {sandbox.why}"
