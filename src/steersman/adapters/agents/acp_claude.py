"""claude over the Agent Client Protocol, through `claude-agent-acp`: the same login and switches as without a screen.

It asks claude for settings of the working tree, hooks included; the switches are what keeps claude from acting on them.
"""

from steersman.adapters.agents.acp import AcpOptions, Kind, told_usage
from steersman.adapters.agents.claude import KEEPS, SWITCHED_ON, hosts, login
from steersman.adapters.agents.home import Home

NAME = "claude-acp"


def claude(options: AcpOptions, home: Home) -> Kind:
    """How claude-agent-acp is called, once."""
    lent = login()
    chosen = {"ANTHROPIC_MODEL": options.model} if options.model else {}
    switched = {**dict.fromkeys(SWITCHED_ON, "1"), "CLAUDE_CONFIG_DIR": str(home.config), "IS_SANDBOX": "1"}
    return Kind(
        NAME,
        (options.program or "claude-agent-acp",),
        env={**home.environment(), **switched, **chosen, **lent.environment},
        keeps=KEEPS,
        writes=lent.files,
        network=(*hosts(renewed=bool(lent.files)), *options.hosts),
        usage=told_usage,
    )
