"""Finds the settings of a role in a run's frozen configuration."""

from collections.abc import Iterable, Sequence

from steersman.contracts.config import Config, Role
from steersman.errors import UserError


def find_role_settings(config: Config, name: str) -> Role:
    """Returns the role's settings; raises UserError where no agent has it."""
    role = config.roles.get(name)
    if role is None:
        raise UserError(missing_roles_message([name]))
    return role


def require_roles(config: Config, names: Iterable[str]) -> None:
    """Raises one UserError that names every role that no agent has."""
    if missing := [name for name in names if name not in config.roles]:
        raise UserError(missing_roles_message(missing))


def missing_roles_message(names: Sequence[str]) -> str:
    """Says which roles no agent has, and what to write."""
    roles = f"role{'s' * (len(names) > 1)} {', '.join(names)}"
    tables = f"[roles.{names[0]}]" if len(names) == 1 else f"a table such as [roles.{names[0]}] for each"
    return (
        f'steersman.toml: no agent has the {roles}. Add {tables}, with agent = "claude" or another agent, '
        "or try `steersman demo`"
    )
