"""The scripted model server: what it takes, what it answers, and that it is alone."""

import http.client
import json
import socket

import pytest
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    DropConnection,
    HangMidway,
    HttpFailure,
    ModelServer,
    ModelTokens,
    ModelTurn,
    RunShell,
    SayText,
    StructuredReply,
    UseTool,
    WriteFile,
    unused_address,
)
from tests.support.model_server.cases import CASE_SCRIPTS
from tests.support.model_server.script import make_concrete_answer

TOOLS = [{"name": "Write", "input_schema": {}}, {"name": "Bash", "input_schema": {}}]
ASKED = {
    "model": "m-1", "stream": True, "system": [{"type": "text", "text": "be brief"}], "tools": TOOLS,
    "messages": [{"role": "user", "content": "hello, nonce abc-1: now"}],
}  # fmt: skip


def post(server, body, headers=None, path="/v1/messages?beta=true"):
    """Status, headers and body of one request."""
    way = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        way.request("POST", path, json.dumps(body), headers or {"x-api-key": MODEL_SERVER_KEY})
        answer = way.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        way.close()


def events(body):
    """The JSON of each server-sent event."""
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def test_a_text_is_streamed_with_its_usage():
    """An answer is a stream from message_start to message_stop and tells the tokens of the script."""
    with ModelServer(lambda _: SayText("hi", ModelTokens(7, 9))) as server:
        _, headers, body = post(server, ASKED)
    kinds = [event["type"] for event in events(body)]
    assert headers["content-type"] == "text/event-stream"
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert events(body)[0]["message"]["usage"]["input_tokens"] == 7
    assert events(body)[-2]["usage"] == {"output_tokens": 9}


@pytest.mark.parametrize(
    "headers", [{"x-api-key": "another"}, {"authorization": "Bearer another"}, {"x-no": "1"}]
)
def test_another_key_is_refused_before_any_script(headers):
    """A request without the server's key gets 401, and no script is asked."""
    asked = []
    with ModelServer(asked.append) as server:
        status, _, body = post(server, ASKED, headers)
    assert (status, asked) == (401, [])
    assert json.loads(body)["error"]["type"] == "authentication_error"


def test_a_failure_has_its_status_headers_and_body():
    """A scripted failure is the provider's own form of it, unless the script says otherwise."""
    with ModelServer(lambda _: HttpFailure(429, {"retry-after": "60"})) as server:
        status, headers, body = post(server, ASKED)
    assert (status, headers["retry-after"]) == (429, "60")
    assert json.loads(body)["error"]["type"] == "rate_limit_error"
    with ModelServer(lambda _: HttpFailure(502, body=b"<html>")) as server:
        assert post(server, ASKED)[2] == b"<html>"


def test_a_dropped_stream_ends_before_its_end():
    """A drop cuts the connection; what came before it is a beginning without an end."""
    with (
        ModelServer(lambda _: DropConnection()) as server,
        pytest.raises((ConnectionError, http.client.IncompleteRead)),
    ):
        post(server, ASKED)
    with (
        ModelServer(lambda _: DropConnection(midway=False)) as server,
        pytest.raises((ConnectionError, http.client.HTTPException)),
    ):
        post(server, ASKED)


def test_a_hanging_answer_ends_with_the_server():
    """A stream that hangs has begun, and closing the server does not wait for whoever holds it."""
    with ModelServer(lambda _: HangMidway("so far")) as server:
        way = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        body = json.dumps(ASKED).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {MODEL_SERVER_KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
        way.sendall(head.encode() + body)
        seen = b""
        while b"so far" not in seen:
            seen += way.recv(4096)
    way.close()
    assert b"message_stop" not in seen


def test_what_no_wire_knows_is_kept_and_not_found():
    """A request for something else gets 404 and is kept: nobody calls out unseen."""
    with ModelServer(CASE_SCRIPTS["text"]) as server:
        assert post(server, {}, path="/v1/telemetry")[0] == 404
    assert [(seen.path, seen.turn) for seen in server.requests] == [("/v1/telemetry", None)]


def test_it_listens_on_loopback_alone():
    """The server is bound to 127.0.0.1, and an address of nobody is refused."""
    with ModelServer(CASE_SCRIPTS["text"]) as server:
        assert server.url.startswith("http://127.0.0.1:")
    port = int(unused_address().rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_intents_become_calls_of_what_is_on_offer():
    """The same script serves every CLI: a file is written with its tool, or with its shell where it has no other."""

    def said(answer, *tools):
        return make_concrete_answer(answer, ModelTurn("w", "m", "k", "p", tools))

    assert said(WriteFile("a", "b"), "write", "bash") == UseTool("write", {"filePath": "a", "content": "b"})
    assert said(WriteFile("a", "b c"), "exec_command") == UseTool(
        "exec_command", {"cmd": "printf %s 'b c' > a"}
    )
    assert said(RunShell("ls"), "shell").args == {"command": ["bash", "-lc", "ls"]}
    assert said(RunShell("ls")).tool == "Bash"
    assert said(StructuredReply({"a": 1}), "StructuredOutput") == UseTool("StructuredOutput", {"a": 1})
    assert said(StructuredReply({"a": 1})) == SayText('{"a": 1}')
    assert said(SayText("x")) == SayText("x")


def test_a_script_that_fails_is_told_where_it_was_started():
    """A mistake in a script is not taken for a failure of the CLI: leaving the server raises it."""
    with pytest.raises(ZeroDivisionError), ModelServer(lambda turn: SayText(str(turn.results / 0))) as server:
        assert post(server, ASKED)[0] == 500
