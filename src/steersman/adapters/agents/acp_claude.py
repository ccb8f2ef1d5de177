"""claude over the Agent Client Protocol, through `claude-agent-acp`: the same login and switches as without a screen.

It asks claude for settings of the working tree, hooks included; the switches are what keeps claude from acting on them.
"""

from steersman.adapters.agents.acp import AcpOptions, read_protocol_usage
from steersman.adapters.agents.acp_conversation import AcpAgentProfile
from steersman.adapters.agents.call_home import CallHome
from steersman.adapters.agents.claude import (
    CLAUDE_PASSED_VARIABLES,
    CLAUDE_SWITCHES,
    claude_hosts,
    find_claude_login,
)

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
