"""The agents by name: how each is made for a role, which of them are installed here, and what stands in their way.

**Invariant:** a role's table is whole or refused when the agent is made, with the field and the file, never in the
middle of a run.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steersman.contracts.config import Role, table_of
from steersman.errors import UserError
from steersman.ports.agent import Agent
from steersman.ports.sandbox import Sandbox

# In the order in which `init` prefers them.
PROGRAMS = {"claude": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}


class Post(NamedTuple):
    """A role to be filled, and what the one who fills it gets."""

    role: str
    chosen: Role
    project: Path  # the top of the repository
    place: Path  # where the homes of calls are made
    sandbox: Sandbox

    @property
    def table(self) -> str:
        """Its table in steersman.toml."""
        return table_of(self.role)


def make(post: Post) -> Agent:
    """The agent that a role names; a UserError where there is none of this name or its table is wrong."""
    maker = _MAKERS.get(post.chosen.agent)
    if maker is None:
        raise UserError(
            f"{post.table} agent = {post.chosen.agent!r} is not known here; known: {', '.join(_MAKERS)}"
        )
    return maker(post)


def _scripted(post: Post) -> Agent:
    from steersman.adapters.scripted import ScriptedAgent

    if not post.chosen.script:
        raise UserError(f'{post.table} script is missing: the scripted agent needs script = "file.yaml"')
    return ScriptedAgent.load(post.project / post.chosen.script)


def _claude(post: Post) -> Agent:
    from steersman.adapters.agents.claude import ClaudeAgent, ClaudeOptions

    return ClaudeAgent(post.place, post.sandbox, options(post, ClaudeOptions))


def _codex(post: Post) -> Agent:
    from steersman.adapters.agents.codex import CodexAgent, CodexOptions

    return CodexAgent(post.place, post.sandbox, options(post, CodexOptions))


def _gemini(post: Post) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions
    from steersman.adapters.agents.acp_gemini import gemini

    return AcpAgent(post.place, post.sandbox, options(post, AcpOptions), gemini)


def _opencode(post: Post) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions
    from steersman.adapters.agents.acp_opencode import checked, opencode

    return AcpAgent(post.place, post.sandbox, checked(options(post, AcpOptions), post.table), opencode)


def _claude_acp(post: Post) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions
    from steersman.adapters.agents.acp_claude import claude

    return AcpAgent(post.place, post.sandbox, options(post, AcpOptions), claude)


def _acp(post: Post) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions

    return AcpAgent(post.place, post.sandbox, _with_command(post, options(post, AcpOptions)))


def _command(post: Post) -> Agent:
    from steersman.adapters.agents.command import CommandAgent, CommandOptions

    return CommandAgent(post.place, post.sandbox, _with_command(post, options(post, CommandOptions)))


def _with_command(post: Post, found: Any) -> Any:
    if not found.command or not found.command[0].strip():
        raise UserError(
            f'{post.table} command is missing: agent = "{post.chosen.agent}" needs command = ["program", …]'
        )
    first, *rest = found.command
    # A path in the file is one of the project, wherever steersman was started.
    program = str(post.project / first) if "/" in first else first
    return msgspec.structs.replace(found, command=(program, *rest))


def options(post: Post, kind: type[Any]) -> Any:
    """A role's table as the struct of its provider; a UserError names the field that does not fit."""
    given = dict(post.chosen.options)
    if post.chosen.model is not None:
        given["model"] = post.chosen.model
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__)
        raise UserError(
            f"steersman.toml, {post.table}: {error}; {post.chosen.agent} knows: {known}"
        ) from None


_MAKERS: dict[str, Callable[[Post], Agent]] = {
    "scripted": _scripted,
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "claude-acp": _claude_acp,
    "acp": _acp,
    "command": _command,
}


def installed() -> dict[str, str]:
    """The CLIs found on PATH, by the name a role calls them."""
    found = {name: shutil.which(program) for name, program in PROGRAMS.items()}
    return {name: path for name, path in found.items() if path}


def obstacle(chosen: Role) -> str:
    """Why a call of this role would not even begin, with the next step; nothing where nothing is known against it."""
    command = chosen.options.get("command") if chosen.agent in ("acp", "command") else None
    named = command[0] if isinstance(command, list | tuple) and command else PROGRAMS.get(chosen.agent, "")
    program = str(chosen.options.get("program", named))
    if program and shutil.which(program) is None:
        return f"{program} was not found: install it, or say program = … in the role's table"
    return "" if chosen.options.get("environment") else _without_login(chosen)


def _without_login(chosen: Role) -> str:
    if chosen.agent == "claude":
        from steersman.adapters.agents.claude import login

        if not any(login()):
            return "claude is not logged in: run `claude` and log in, or set ANTHROPIC_API_KEY"
    if chosen.agent == "codex":
        from steersman.adapters.agents.codex import logged_in

        key = chosen.options.get("key_env")
        if not logged_in(key):
            return f"codex is not logged in: {f'set {key}' if key else 'run `codex login`, or set OPENAI_API_KEY'}"
    if chosen.agent == "gemini":
        from steersman.adapters.agents.acp_gemini import logged_in as known

        if not known():
            return "gemini is not logged in: run `gemini` and log in, or set GEMINI_API_KEY"
    return ""
