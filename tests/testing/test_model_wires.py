"""The scripted model over the wires of claude, codex, opencode and gemini."""

import json
import urllib.error
import urllib.request

import pytest
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    HttpFailure,
    ModelServer,
    RunShell,
    SayText,
    StructuredReply,
    WriteFile,
)

USER = {"role": "user", "content": "Fix it, nonce abc-1"}
SCHEMA = {"type": "object"}


def _anthropic(tools=(), results=0):
    outputs = [{"type": "tool_result", "tool_use_id": "c", "content": "a result"}] * results
    return "/v1/messages?beta=true", {
        "model": "m",
        "stream": True,
        "messages": [USER, {"role": "user", "content": outputs}],
        "tools": [*({"name": name} for name in tools), {"name": "StructuredOutput", "input_schema": SCHEMA}],
    }


def _responses(tools=(), results=0):
    outputs = [{"type": "function_call_output", "call_id": "c", "output": "a result"}] * results
    message = {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": USER["content"]}],
    }  # fmt: skip
    added = {"type": "additional_tools", "tools": [{"type": "namespace", "name": "functions", "tools": []}]}
    return "/v1/responses", {
        "model": "m",
        "input": [added, message, *outputs],
        "tools": [{"type": "function", "name": name} for name in tools],
        "text": {"format": {"schema": SCHEMA}},
    }


def _chat(tools=(), results=0):
    outputs = [{"role": "tool", "content": "a result"}] * results
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return "/v1/chat/completions", {
        "model": "m",
        "stream": True,
        "messages": [USER, *outputs],
        "tools": offered,
        "response_format": {"json_schema": {"schema": SCHEMA}},
    }


def _gemini(tools=(), results=0):
    outputs = [{"functionResponse": {"response": {"output": "a result"}}}] * results
    return "/v1beta/models/m:streamGenerateContent?alt=sse", {
        "contents": [{"role": "user", "parts": [{"text": USER["content"]}, *outputs]}],
        "tools": [{"functionDeclarations": [{"name": name} for name in tools]}],
        "generationConfig": {"responseJsonSchema": SCHEMA},
    }


WIRES = {"anthropic": _anthropic, "responses": _responses, "chat": _chat, "gemini": _gemini}
# The tool by which each CLI writes, and how the call looks on the wire.
WRITERS = {
    "anthropic": ("Write", '"name": "Write"'),
    "responses": ("exec_command", '"type": "function_call", "name": "exec_command"'),
    "chat": ("write", '"function": {"name": "write"'),
    "gemini": ("write_file", '"functionCall": {"name": "write_file"'),
}


def always(answer):
    return lambda turn: answer if turn.model else None


def _post(url, path, body, key=MODEL_SERVER_KEY):
    headers = {"authorization": f"Bearer {key}", "x-goog-api-key": key, "content-type": "application/json"}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)  # noqa: S310  loopback
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310  the same
        return response.read().decode()


@pytest.mark.parametrize("wire", WIRES)
def test_a_turn_is_read_the_same_over_every_wire(wire):
    """Prompt, nonce, tools, results, schema and key are the same turn whatever protocol carries them."""
    path, body = WIRES[wire](("one", "two"), results=2)
    with ModelServer(always(SayText("hello"))) as server:
        _post(server.url, path, body)
        (turn,) = server.turns
    assert (turn.wire, turn.model, turn.key, turn.nonce) == (wire, "m", MODEL_SERVER_KEY, "abc-1")
    assert {"one", "two"} <= set(turn.tools)
    assert (turn.results, turn.schema) == (2, SCHEMA)
    assert "a result" in turn.last


@pytest.mark.parametrize(
    "wire", [wire for wire in WIRES if wire != "anthropic"]
)  # test_models.py has its stream
def test_a_text_and_its_usage_are_told(wire):
    """A text arrives whole, with the tokens that the script says."""
    path, body = WIRES[wire]()
    with ModelServer(always(SayText("hello there"))) as server:
        said = _post(server.url, path, body)
    assert "hello there" in said
    assert "1234" in said


@pytest.mark.parametrize("wire", WIRES)
def test_a_file_is_written_with_the_tool_on_offer(wire):
    """An intent to write becomes a call of the tool that this CLI has for it."""
    tool, call = WRITERS[wire]
    path, body = WIRES[wire]((tool,))
    with ModelServer(always(WriteFile("a.txt", "x"))) as server:
        assert call in _post(server.url, path, body)


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_is_worded_as_the_provider_does(wire):
    """An HTTP error carries an error object; a wrong key is a 401 before any script is asked."""
    path, body = WIRES[wire]()
    with ModelServer(always(HttpFailure(429))) as server:
        with pytest.raises(urllib.error.HTTPError) as limited:
            _post(server.url, path, body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            _post(server.url, path, body, key="another")
    assert limited.value.code == 429
    assert json.loads(limited.value.read())["error"]["message"] == "scripted failure"
    assert refused.value.code == 401


def test_tools_inside_a_program_are_called_through_it():
    """A model of codex that has one tool, a program in JavaScript, runs its command from there."""
    path, body = _responses()
    body["input"][0]["tools"][0]["tools"] = [{"type": "custom", "name": "exec"}]
    with ModelServer(always(RunShell("ls -l"))) as server:
        said = _post(server.url, path, body)
    assert '"type": "custom_tool_call", "name": "exec"' in said
    assert r"tools.exec_command({\"cmd\": \"ls -l\"})" in said


@pytest.mark.parametrize("wire", ["chat", "gemini"])
def test_what_was_not_asked_for_as_a_stream_comes_whole(wire):
    """A request without a stream gets one JSON object."""
    path, body = WIRES[wire]()
    body = {**body, "stream": False}
    path = path.replace("streamGenerateContent?alt=sse", "generateContent")
    with ModelServer(always(StructuredReply({"a": 1}))) as server:
        assert r"{\"a\": 1}" in json.dumps(json.loads(_post(server.url, path, body)))
