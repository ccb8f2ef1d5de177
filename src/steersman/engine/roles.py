"""Finds the settings of a role in a run's frozen configuration."""

from steersman.contracts.config import Config, Role
from steersman.errors import UserError


def find_role_settings(config: Config, name: str) -> Role:
    """Returns the role's settings; raises UserError where no agent has it."""
    role = config.roles.get(name)
    if role is None:
        raise UserError(
            f"steersman.toml: no agent has the role {name}. Add [roles.{name}] with agent = …, or try `steersman demo`"
        )
    return role
