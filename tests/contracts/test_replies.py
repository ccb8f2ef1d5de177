"""The reply contracts and what an agent is shown of them."""

import msgspec
import pytest
from tests.support.cases import for_each_case

from steersman.app.reply_contracts import list_reply_contracts
from steersman.contracts import replies
from steersman.wiring import installed_packages

CONTRACTS = list_reply_contracts(installed_packages())


@for_each_case("contract", CONTRACTS)
def test_schema(contract):
    """Each schema is closed, names every field as required and needs no reference to be read."""
    schema = CONTRACTS[contract].schema
    assert schema["additionalProperties"] is False
    assert sorted(schema["required"]) == sorted(schema["properties"])
    assert b"$ref" not in msgspec.json.encode(schema)
    assert "nonce" in schema["properties"]


def test_bounds_are_shown():
    """The agent is told the bounds it will be held to."""
    commands = replies.reply_schema(replies.TesterReply)["properties"]["commands"]
    assert (commands["minItems"], commands["maxItems"]) == (1, 20)
    assert (commands["items"]["minItems"], commands["items"]["maxItems"]) == (1, 64)


def test_frozen():
    """A reply cannot be changed after it was judged."""
    reply = replies.TesterReply(nonce="n", test_plan="p", commands=(("x",),), expected_results=())
    with pytest.raises(AttributeError):
        reply.test_plan = "other"
