"""Who can be talked to, as steersman.toml says it."""

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.config.toml_file import parse_config
from steersman.errors import UserError

GOOD = """version = 1
[chat]
host = "猫猫"
[chat.agents."猫猫"]
agent = "scripted"
script = "a.yaml"
aliases = ["cat", "喵"]
[chat.agents.bob]
agent = "claude"
model = "sonnet"
prompt = "You are Bob."
[chat.budget]
usd = 0.5
turns = 3
"""


def test_a_chat():
    """Names may be in any script; money is whole micro-dollars; what is left out has its default."""
    chat = parse_config(GOOD, "x").chat
    assert list(chat.agents) == ["猫猫", "bob"]
    assert (chat.agents["猫猫"].aliases, chat.agents["bob"].prompt) == (("cat", "喵"), "You are Bob.")
    assert (chat.host, chat.history, chat.history_bytes) == ("猫猫", 20, 65_536)
    assert (chat.budget.micro_usd, chat.budget.turns, chat.budget.tokens) == (500_000, 3, None)


def test_an_agents_own_options():
    """What is no field of ours is the agent's, as in a role's table; `options` takes any name, fractions become text."""
    more = 'command = ["tools/bob", "{prompt_file}"]\nheat = 0.5\noptions = { modell = "x" }\n[chat.budget]'
    bob = parse_config(GOOD.replace("[chat.budget]", more), "x").chat.agents["bob"]
    assert bob.options == {"command": ["tools/bob", "{prompt_file}"], "heat": "0.5", "modell": "x"}
    assert (bob.agent, bob.model) == ("claude", "sonnet")


@for_each_case(
    ("old", "new", "said"),
    [
        ('host = "猫猫"', 'host = "x"', "line 3: chat.host: there is no agent 'x'"),
        ('"喵"', '"BOB"', "line 7: chat.agents.猫猫.aliases[1]: 'BOB' is a name of 'bob' already"),
        ('"喵"', '"猫猫"', "line 7: chat.agents.猫猫.aliases[1]: '猫猫' is a name of '猫猫' already"),
        ("agents.bob", 'agents."CAT"', "line 7: chat.agents.猫猫.aliases[0]: 'cat' is a name of 'CAT' already"),
        ('"喵"', '"a b"', "line 7: chat.agents.猫猫.aliases[1]: "),
        ('"喵"', '"\\u200b"', "line 7: chat.agents.猫猫.aliases[1]: '\\u200b' has a character that cannot be seen"),
        ('"喵"', '"\\u3164"', "chat.agents.猫猫.aliases[1]: "),
        ("agents.bob", 'agents."b\\u200bob"', "has a character that cannot be seen"),
        ("agents.bob", 'agents."b@b"', 'chat.agents: "b@b" does not match'),
        ('script = "a.yaml"', "", "chat.agents.猫猫.script: is missing: the scripted agent needs one"),
        ('model = "sonnet"', 'script = "b.yaml"', 'line 10: chat.agents.bob.script: needs agent = "scripted"'),
        ("model =", "modell =", "line 10: chat.agents.bob.modell: is not a known field; did you mean `model`?"),
        ('script = "a.yaml"', 'script = "a.yaml"\nheat = 1', "chat.agents.猫猫.heat: is nothing the scripted agent takes"),
        ('model = "sonnet"', "model = 4.5", "line 10: chat.agents.bob.model: 4.5 does not belong here"),
        ("usd = 0.5", "usd = -1", "line 13: chat.budget.usd: -1 is not a number above 0"),
        ("usd = 0.5", "micro_usd = 5", "line 13: chat.budget.micro_usd: is not a known field; known here are tokens"),
        ("turns = 3", "hours = 3", "line 14: chat.budget.hours: is not a known field"),
        ("turns = 3", "turns = 1.5", "line 14: chat.budget.turns: "),
    ],
)  # fmt: skip
def test_problems(old, new, said):
    """Each is named with its line and its field."""
    with pytest.raises(UserError) as error:
        parse_config(GOOD.replace(old, new), "x")
    assert said in str(error.value)
