"""The agents by name: how each is made for a role, which of them are installed here, and what stands in their way.

**Invariant:** a role's table is accepted completely or rejected when the agent is made, with the field and the file, never in the
middle of a run.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steersman.adapters.agents.acp import AcpOptions, read_protocol_usage
from steersman.adapters.agents.acp_conversation import AcpAgentProfile
from steersman.adapters.agents.call_home import CallHome
from steersman.adapters.agents.claude import (
    CLAUDE_PASSED_VARIABLES,
    CLAUDE_SWITCHES,
    claude_hosts,
    find_claude_login,
)
from steersman.contracts.config import Role, role_table_name
from steersman.errors import UserError
from steersman.ports.agent import Agent
from steersman.ports.sandbox import Sandbox

# In the order in which `init` prefers them.
AGENT_PROGRAMS = {"claude": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}


class AgentSpec(NamedTuple):
    """A role to be filled, and what the one who fills it gets."""

    role: str
    chosen: Role
    project: Path  # the top of the repository
    place: Path  # where the homes of calls are made
    sandbox: Sandbox

    @property
    def table(self) -> str:
        """Its table in steersman.toml."""
        return role_table_name(self.role)


def make_agent(spec: AgentSpec) -> Agent:
    """The agent that a role names; a UserError where there is none of this name or its table is wrong."""
    maker = _AGENT_MAKERS.get(spec.chosen.agent)
    if maker is None:
        raise UserError(
            f"{spec.table} agent = {spec.chosen.agent!r} is not known here; known: {', '.join(_AGENT_MAKERS)}"
        )
    return maker(spec)


def _make_scripted_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.scripted_agent import ScriptedAgent

    if not spec.chosen.script:
        raise UserError(f'{spec.table} script is missing: the scripted agent needs script = "file.yaml"')
    return ScriptedAgent(spec.project / spec.chosen.script)


def _make_claude_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.claude import ClaudeAgent, ClaudeOptions

    return ClaudeAgent(spec.place, spec.sandbox, parse_agent_options(spec, ClaudeOptions))


def _make_codex_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.codex import CodexAgent, CodexOptions

    return CodexAgent(spec.place, spec.sandbox, parse_agent_options(spec, CodexOptions))


def _make_gemini_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions
    from steersman.adapters.agents.acp_gemini import make_gemini_profile

    return AcpAgent(spec.place, spec.sandbox, parse_agent_options(spec, AcpOptions), make_gemini_profile)


def _make_opencode_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions
    from steersman.adapters.agents.acp_opencode import check_opencode_options, make_opencode_profile

    return AcpAgent(
        spec.place,
        spec.sandbox,
        check_opencode_options(parse_agent_options(spec, AcpOptions), spec.table),
        make_opencode_profile,
    )


def _make_claude_acp_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions

    return AcpAgent(spec.place, spec.sandbox, parse_agent_options(spec, AcpOptions), make_claude_profile)


def _make_acp_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.acp import AcpAgent, AcpOptions

    return AcpAgent(
        spec.place, spec.sandbox, _resolve_command_program(spec, parse_agent_options(spec, AcpOptions))
    )


def _make_command_agent(spec: AgentSpec) -> Agent:
    from steersman.adapters.agents.command import CommandAgent, CommandOptions

    return CommandAgent(
        spec.place, spec.sandbox, _resolve_command_program(spec, parse_agent_options(spec, CommandOptions))
    )


def _resolve_command_program(spec: AgentSpec, agent_options: Any) -> Any:
    if not agent_options.command or not agent_options.command[0].strip():
        raise UserError(
            f'{spec.table} command is missing: agent = "{spec.chosen.agent}" needs command = ["program", …]'
        )
    program_word, *rest = agent_options.command
    # A path in the file is one of the project, wherever steersman was started.
    program = str(spec.project / program_word) if "/" in program_word else program_word
    return msgspec.structs.replace(agent_options, command=(program, *rest))


def parse_agent_options(spec: AgentSpec, kind: type[Any]) -> Any:
    """A role's table as the struct of its provider; a UserError names the field that does not fit."""
    table = dict(spec.chosen.options)
    if spec.chosen.model is not None:
        table["model"] = spec.chosen.model
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        field_names = ", ".join(kind.__struct_fields__)
        raise UserError(
            f"steersman.toml, {spec.table}: {error}; {spec.chosen.agent} knows: {field_names}"
        ) from None


_AGENT_MAKERS: dict[str, Callable[[AgentSpec], Agent]] = {
    "scripted": _make_scripted_agent,
    "claude": _make_claude_agent,
    "codex": _make_codex_agent,
    "gemini": _make_gemini_agent,
    "opencode": _make_opencode_agent,
    "claude-acp": _make_claude_acp_agent,
    "acp": _make_acp_agent,
    "command": _make_command_agent,
}


def find_installed_agents() -> dict[str, str]:
    """The CLIs found on PATH, by the name a role calls them."""
    paths = {name: shutil.which(program) for name, program in AGENT_PROGRAMS.items()}
    return {name: path for name, path in paths.items() if path}


def find_agent_obstacle(role: Role) -> str:
    """Why a call of this role would not even begin, with the next step; nothing where nothing is known against it."""
    command = role.options.get("command") if role.agent in ("acp", "command") else None
    default_program = (
        command[0] if isinstance(command, list | tuple) and command else AGENT_PROGRAMS.get(role.agent, "")
    )
    program = str(role.options.get("program", default_program))
    if program and shutil.which(program) is None:
        return f"{program} was not found: install it, or say program = … in the role's table"
    return "" if role.options.get("environment") else _find_missing_login(role)


def _find_missing_login(role: Role) -> str:
    if role.agent == "claude":
        from steersman.adapters.agents.claude import find_claude_login

        if not any(find_claude_login()):
            return "claude is not logged in: run `claude` and log in, or set ANTHROPIC_API_KEY"
    if role.agent == "codex":
        from steersman.adapters.agents.codex import has_codex_login

        key = role.options.get("key_env")
        if not has_codex_login(key):
            return f"codex is not logged in: {f'set {key}' if key else 'run `codex login`, or set OPENAI_API_KEY'}"
    if role.agent == "gemini":
        from steersman.adapters.agents.acp_gemini import has_gemini_login as is_gemini_logged_in

        if not is_gemini_logged_in():
            return "gemini is not logged in: run `gemini` and log in, or set GEMINI_API_KEY"
    return ""


# ── acp claude ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# claude over the Agent Client Protocol, through `claude-agent-acp`: the same login and switches as without a screen.
#
# It asks claude for settings of the working tree, hooks included; the switches are what keeps claude from acting on them.


CLAUDE_ACP_NAME = "claude-acp"


def make_claude_profile(options: AcpOptions, home: CallHome) -> AcpAgentProfile:
    """How claude-agent-acp is called, once."""
    claude_login = find_claude_login()
    model_variables = {"ANTHROPIC_MODEL": options.model} if options.model else {}
    switches = {
        **dict.fromkeys(CLAUDE_SWITCHES, "1"),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "IS_SANDBOX": "1",
    }
    return AcpAgentProfile(
        CLAUDE_ACP_NAME,
        (options.program or "claude-agent-acp",),
        env={**home.environment(), **switches, **model_variables, **claude_login.environment},
        keeps=CLAUDE_PASSED_VARIABLES,
        writes=claude_login.files,
        network=(*claude_hosts(renewed=bool(claude_login.files)), *options.hosts),
        usage=read_protocol_usage,
    )
