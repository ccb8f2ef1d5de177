"""Who plays a role in a run, as its frozen configuration says."""

from steersman.contracts.config import Config, Role
from steersman.errors import UserError


def find_role_settings(config: Config, name: str) -> Role:
    """The role's settings; a UserError when nobody plays it."""
    role = config.roles.get(name)
    if role is None:
        raise UserError(
            f"nobody plays the role {name}: add [roles.{name}] with agent = … to steersman.toml, or try `steersman demo`"
        )
    return role
