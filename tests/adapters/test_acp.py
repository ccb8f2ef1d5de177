"""The Agent Client Protocol: against an agent made with the protocol's own library, and message by message."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.agents import acp_gemini, acp_opencode
from steersman.adapters.agents.acp import AcpAgent, AcpOptions, read_protocol_usage
from steersman.adapters.agents.acp_conversation import (
    MAX_ACP_REJECTIONS,
    MAX_ANSWER_BEGINNINGS,
    AcpAgentProfile,
    AcpConversation,
)
from steersman.adapters.agents.acp_errors import classify_acp_error, classify_stop_reason
from steersman.adapters.agents.acp_permission import allows_tool_call, choose_permission_option
from steersman.adapters.agents.headless import ProviderFailure
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.contracts.agent import AgentRequest, ProviderUsage

PEER = Path(__file__).parents[1] / "support" / "acp_peer.py"
OPEN = OpenSandbox("not asked for")


def asked(tree, **more):
    told = {"permissions": "edit", "writes": True, "seconds": 60, "effect": "acp:1:1", **more}
    return AgentRequest(
        role="coder", mode="implementation", prompt="hello", workdir=str(tree), nonce="n", **told
    )


def agent(tmp_path, behaviour, **more):
    options = AcpOptions(command=(sys.executable, str(PEER), behaviour), **more)
    return AcpAgent(tmp_path / "homes", OPEN, options)


@pytest.fixture
def tree(tmp_path):
    made = tmp_path / "tree"
    made.mkdir()
    return made


# ── with the library's own agent ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("behaviour", "error", "text"),
    [
        ("text", None, "You said: hello"),
        ("ask", "provider_permission_denied", ""),
        ("files", None, "refused: -32601"),
        ("no login", "provider_auth_error", ""),
        ("leave", "provider_crashed", ""),
    ],
)
def test_an_agent_of_the_library_is_understood(tmp_path, tree, behaviour, error, text):
    """What the protocol's own library says is heard as it was meant, and what it asks for is answered."""
    reply = asyncio.run(agent(tmp_path, behaviour).call(asked(tree)))
    assert (reply.error, reply.text) == (error, text), reply.detail
    assert reply.usage == (
        ProviderUsage(tokens=12) if error is None or behaviour == "ask" else ProviderUsage()
    )


def test_a_reader_hears_that_it_may_not(tmp_path, tree):
    """One that only reads is rejected, and that is no failure; a writer may write in the tree, once, and not outside."""
    reader = asyncio.run(agent(tmp_path, "ask").call(asked(tree, permissions="read", writes=False)))
    assert (reader.error, reader.text) == (None, "no no")
    writer = asyncio.run(agent(tmp_path, "ask").call(asked(tree, writes=False)))
    assert (writer.text, writer.denied) == ("once no", ("/etc/out.txt",))


def test_a_mode_is_chosen_before_the_prompt(tmp_path, tree):
    """The mode that a role names is set in the session."""
    reply = asyncio.run(agent(tmp_path, "text", mode="plan").call(asked(tree)))
    assert reply.text == "mode plan; You said: hello"


def test_a_cancel_is_told_and_then_seen_to(tmp_path, tree):
    """Cancelled, the agent is asked to stop its turn; the call raises, and nothing of the agent is alive."""

    async def cancelled():
        call = asyncio.ensure_future(agent(tmp_path, "wait").call(asked(tree)))
        assert await asyncio.to_thread(_appears, tree / "waiting.txt")
        assert _peers(tree)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert (tree / "cancelled.txt").exists()
    assert _peers(tree) == []


def _appears(path, seconds=40):
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return path.exists()


def _peers(tree):
    """The processes that run the agent in this tree; those of other tests are none of this one's."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and _runs_in(pid, tree)]


def _runs_in(pid, tree):
    try:
        here = os.path.samefile(os.readlink(f"/proc/{pid}/cwd"), tree)
        return here and str(PEER).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_session_is_not_begun_anew_in_silence(tmp_path, tree):
    """A session that is to be continued is not kept over this protocol, and that is said."""
    reply = asyncio.run(agent(tmp_path, "text").call(asked(tree, session="s-1")))
    assert reply.error == "provider_invalid_request"


# ── message by message ──────────────────────────────────────────────────────────────────────────────────────────────


class Talk:
    """A conversation with everything that was written."""

    def __init__(self, tree, **more):
        self.written = []
        profile = AcpAgentProfile("acp", (), **more.pop("options", {}))
        self.talk = AcpConversation(asked(tree, **more), self._write, profile, isolated=True)
        self.talk.begin()

    def _write(self, line):
        self.written.append(json.loads(line))

    def hear(self, message):
        return self.talk.feed(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answer(self, result):
        return self.hear({"id": self.written[-1]["id"], "result": result})

    def update(self, **update):
        return self.hear({"method": "session/update", "params": {"sessionId": "s", "update": update}})

    def say(self, text, **more):
        return self.update(
            sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **more
        )

    def opened(self):
        """Up to the prompt."""
        self.answer({"protocolVersion": 1})
        self.answer({"sessionId": "s"})
        assert self.written[-1]["method"] == "session/prompt"
        return self

    def ask(self, kind="edit", path="a.txt"):
        call = {"toolCallId": "t", "kind": kind, "title": kind, "locations": [{"path": path}]}
        options = [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]
        return self.hear(
            {
                "id": "p",
                "method": "session/request_permission",
                "params": {"toolCall": call, "options": options},
            }
        )


def test_the_answer_is_what_was_said_last(tree):
    """Words before a tool are words on the way; chunks of the last message are the answer."""
    talk = Talk(tree).opened()
    talk.say("I will look. ")
    talk.update(sessionUpdate="tool_call", toolCallId="t", status="pending")
    talk.update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
    talk.say('{"a":')
    talk.say(" 1}")
    assert talk.answer({"stopReason": "end_turn"})
    assert talk.talk.read_result().text == '{"a": 1}'
    assert talk.talk.read_result().ended


def test_a_message_with_a_new_name_is_a_new_message(tree):
    """Where messages have names, the last name's words are the answer."""
    talk = Talk(tree).opened()
    talk.say("first", messageId="1")
    talk.say("sec", messageId="2")
    talk.say("ond", messageId="2")
    talk.answer({"stopReason": "end_turn"})
    assert talk.talk.read_result().text == "second"


def test_an_answer_that_is_begun_again_and_again_is_stopped(tree):
    """A stream that breaks each time is begun anew without end; with a tool in between it is work."""
    talk = Talk(tree).opened()
    fed = [talk.say("I will", messageId=str(n)) for n in range(MAX_ANSWER_BEGINNINGS - 1)]
    talk.update(sessionUpdate="tool_call", toolCallId="t", status="pending")
    fed += [talk.say("I will", messageId=f"b{n}") for n in range(MAX_ANSWER_BEGINNINGS)]
    assert fed == [False] * (2 * MAX_ANSWER_BEGINNINGS - 2) + [True]
    assert talk.talk.read_result().failure.error == "provider_network_error"


def test_a_loop_of_rejections_is_stopped(tree):
    """Who asks again and again for what it may not do is stopped; a tool that worked begins the row anew."""
    talk = Talk(tree, permissions="read").opened()
    fed = [talk.ask() for _ in range(MAX_ACP_REJECTIONS - 1)]
    talk.update(sessionUpdate="tool_call_update", toolCallId="r", status="completed")
    fed += [talk.ask() for _ in range(MAX_ACP_REJECTIONS)]
    assert fed == [False] * (2 * MAX_ACP_REJECTIONS - 2) + [True]
    assert talk.talk.read_result().failure.error == "provider_permission_denied"


def test_a_writer_that_found_another_way_has_done_its_work(tree):
    """A rejection that was got over is told and is no failure."""
    talk = Talk(tree).opened()
    talk.ask(path="/etc/x")
    talk.update(sessionUpdate="tool_call_update", toolCallId="t2", status="completed")
    talk.say("done")
    talk.answer({"stopReason": "end_turn"})
    assert talk.talk.read_result().denied == ("edit",)
    assert talk.talk.read_result().failure is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"\xff", b"null", b"[]", b'{"id":1}', b'{"id":1,"result":null}', b'{"id":99,"result":{}}'),
        *(
            b"[" * 9999,
            b'{"method":"session/update"}',
            b'{"method":"session/update","params":{"update":{"sessionUpdate":7}}}',
        ),
    ],
    ids=lambda line: repr(line[:40]),
)
def test_no_message_breaks_it(tree, line):
    """Whatever is said is heard without an exception and is never success."""
    talk = Talk(tree)
    talk.talk.feed(line)
    assert not talk.talk.read_result().ended


def test_another_version_and_a_refusal_are_failures(tree):
    """Each has its class: a protocol that is not ours, and a model that says no."""
    talk = Talk(tree)
    talk.answer({"protocolVersion": 99})
    assert talk.talk.read_result().failure.error == "provider_protocol_error"
    talk = Talk(tree).opened()
    talk.answer({"stopReason": "refusal"})
    assert talk.talk.read_result().failure.error == "provider_invalid_request"


def test_an_answer_to_nothing_ends_nothing(tree):
    """A result under a number that was not asked, or was answered before, changes nothing."""
    talk = Talk(tree).opened()
    assert not talk.hear({"id": 1, "result": {"stopReason": "end_turn"}})
    assert not talk.hear({"id": 77, "result": {"stopReason": "end_turn"}})
    assert not talk.talk.read_result().ended


def test_half_a_character_in_a_prompt_is_sent(tree):
    """A prompt with a byte that was no text goes out as JSON all the same."""
    talk = Talk(tree)
    talk.talk._request = asked(tree)
    talk.talk._send({"params": {"text": "a\udcffb"}})
    assert talk.written[-1]["params"]["text"] == "a\\udcffb"


def test_what_standard_error_tells_counts_while_there_is_no_end(tree):
    """A cause may pass: it stands for the end only while there is none, unless it is said to be enough."""
    cause = ProviderFailure("provider_network_error", "fetch failed")
    talk = Talk(tree).opened()
    assert not talk.talk.fail(cause, now=False)
    assert talk.talk.read_result().failure == cause
    talk.answer({"stopReason": "end_turn"})
    assert talk.talk.read_result().ended
    other = Talk(tree).opened()
    assert other.talk.fail(cause, now=True)
    assert other.talk.read_result().failure == cause


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "path", "permissions", "isolated", "fine"),
    [
        ("read", "a.txt", "read", True, True),
        ("read", "/etc/passwd", "shell", True, False),
        ("search", None, "read", False, True),
        ("edit", "a.txt", "read", True, False),
        ("edit", "a.txt", "edit", False, True),
        ("edit", "sub/../../x", "edit", True, False),
        ("edit", "link/x", "edit", True, False),
        ("edit", None, "edit", False, False),
        ("edit", None, "edit", True, True),
        ("delete", "a.txt", "edit", True, True),
        ("execute", None, "edit", True, False),
        ("execute", None, "shell", True, True),
        ("execute", None, "shell", False, False),
        ("fetch", None, "shell", True, False),
        ("switch_mode", None, "shell", True, False),
        (None, "a.txt", "shell", True, False),
        ("edit", "a\0b", "edit", True, False),
    ],
)
def test_what_a_role_may(tree, kind, path, permissions, isolated, fine):
    """By role, by kind of tool and by place; what is not understood is rejected, a command needs a box."""
    (tree / "link").symlink_to("/etc")
    call = {"kind": kind, "locations": [{"path": path}] if path else []}
    assert allows_tool_call(call, permissions, str(tree), isolated=isolated) is fine


def test_nothing_is_allowed_for_ever(tree):
    """Only `once` is chosen; where it is not on offer, a question is left without a yes."""
    always = [{"optionId": "a", "kind": "allow_always"}, {"optionId": "r", "kind": "reject_always"}]
    assert choose_permission_option(always, allow=True) == {"outcome": "cancelled"}
    assert choose_permission_option(always, allow=False) == {"outcome": "selected", "optionId": "r"}
    assert choose_permission_option("nonsense", allow=True) == {"outcome": "cancelled"}
    diff = {"kind": "edit", "content": [{"type": "diff", "path": "/etc/x"}], "locations": []}
    assert not allows_tool_call(diff, "edit", str(tree), isolated=True)


# ── what agents mean ────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("error", "status", "expected"),
    [
        ({"code": -32000, "message": "Authentication required"}, None, "provider_auth_error"),
        ({"code": 401, "message": "{}"}, None, "provider_auth_error"),
        ({"code": 429, "message": "quota"}, None, "provider_rate_limited"),
        ({"code": 500, "message": "fetch failed"}, None, "provider_network_error"),
        ({"code": -32603, "message": "Internal error: no", "data": {"errorName": "APIError"}}, 401, "provider_auth_error"),
        ({"code": -32603, "message": "x", "data": {"errorName": "ProviderAuthError"}}, None, "provider_auth_error"),
        ({"code": -32603, "message": "x", "data": {"errorKind": "authentication_failed"}}, None, "provider_auth_error"),
        ({"code": -32603, "message": "x", "data": {"errorKind": "rate_limit"}}, None, "provider_rate_limited"),
        ({"code": -32603, "message": "x", "data": {"statusCode": 404}}, None, "provider_invalid_request"),
        ({"code": -32603, "message": "Internal error", "data": {"message": "unexpected status 401 Unauthorized"}}, None, "provider_auth_error"),
        ({"code": -32603, "message": "Internal error: API Error: 529 x", "data": {"errorKind": "server_error"}}, None, "provider_rate_limited"),
        ({"code": -32602, "message": "Invalid params"}, None, "provider_invalid_request"),
        ({"code": -32601, "message": "Method not found"}, None, "provider_protocol_error"),
        ({"code": -32603, "message": "Internal error"}, None, "provider_crashed"),
        ("nonsense", None, "provider_protocol_error"),
        ({}, None, "provider_crashed"),
    ],
)  # fmt: skip
def test_an_error_has_its_class(error, status, expected):
    """Codes differ from agent to agent: an HTTP status, the protocol's codes, names in the data, then the words."""
    assert classify_acp_error(error, status).error == expected


@for_each_case(
    ("reason", "error"),
    [
        ("end_turn", None),
        ("max_tokens", "provider_invalid_request"),
        ("cancelled", "provider_crashed"),
        (None, "provider_protocol_error"),
    ],
)
def test_only_end_turn_is_a_good_end(reason, error):
    """Every other reason to stop is a failure."""
    found = classify_stop_reason(reason)
    assert (found.error if found else None) == error


@for_each_case(
    ("line", "error", "now"),
    [
        ("Attempt 1 failed with status 429. Retrying with backoff...", "provider_rate_limited", False),
        ("Attempt 2 failed with status 503. Retrying", "provider_network_error", True),
        ("Attempt 2 failed. Retrying with backoff... TypeError: fetch failed", "provider_network_error", True),
        ("When using Gemini API, you must specify the GEMINI_API_KEY environment variable", "provider_auth_error", False),
    ],
)  # fmt: skip
def test_gemini_complains_on_standard_error(line, error, now):
    """A failed attempt is told nowhere else; the second is enough."""
    found = acp_gemini.parse_gemini_stderr(line)
    assert (found.failure.error, found.now) == (error, now)
    assert acp_gemini.parse_gemini_stderr("Ripgrep is not available.") is None


def test_gemini_takes_a_broken_stream_for_an_answer():
    """It says end_turn where no model has answered to the end: that no model has used anything tells it."""
    used = [{"model": "m", "token_count": {}}]
    assert (
        acp_gemini.check_gemini_result({"_meta": {"quota": {"model_usage": []}}}).error
        == "provider_network_error"
    )
    assert acp_gemini.check_gemini_result({"_meta": {"quota": {"model_usage": used}}}) is None
    assert acp_gemini.check_gemini_result({}) is None


def test_opencode_is_stopped_when_it_tries_again_and_again():
    """It would try for ever without a word; attempts for a title do not count."""
    line = (
        'level=ERROR message="stream error" providerID=x small={} agent=b error.error="AI_APICallError: no"'
    )
    complaints = acp_opencode.OpencodeStderrReader()
    assert complaints.hear(line.format("true")) is None
    assert not complaints.hear(line.format("false")).now
    assert complaints.hear(line.format("false")).now


def test_opencode_takes_no_other_model(tree):
    """A model that it does not know it replaces in silence: then nothing is said to it at all."""
    options = [{"id": "mode"}, {"id": "model", "currentValue": "opencode/free"}]

    def look(result):
        return acp_opencode.find_model_mismatch(result, "mine/m")

    assert look({"configOptions": [{"id": "model", "currentValue": "mine/m"}]}) is None
    assert look({}).error == "provider_invalid_request"
    talk = Talk(tree, options={"opened": look})
    talk.answer({"protocolVersion": 1})
    assert talk.answer({"sessionId": "s", "configOptions": options})
    assert talk.written[-1]["method"] == "session/new"
    assert "opencode/free" in talk.talk.read_result().failure.detail


def test_the_status_is_in_opencode_s_own_record(tmp_path):
    """What the model's server said is read from the record's bytes; a link or nothing at all tells nothing."""
    assert acp_opencode.read_opencode_status(tmp_path) is None
    error = b'x"error":{"name":"APIError","data":{"message":"no","statusCode":%d,"isRetryable":false'
    (tmp_path / "opencode.db-wal").write_bytes(error % 500 + b"\0" + error % 403)
    assert acp_opencode.read_opencode_status(tmp_path) == 403
    (tmp_path / "opencode.db-wal").unlink()
    (tmp_path / "real").write_bytes(error % 401)
    (tmp_path / "opencode.db").symlink_to("real")
    assert acp_opencode.read_opencode_status(tmp_path) is None


# ── what the real ones have said ────────────────────────────────────────────────────────────────────────────────────

FIXTURES = Path(__file__).parents[1] / "agents" / "fixtures"
KINDS = {
    "gemini-0.61.0": lambda: {
        "usage": acp_gemini.read_gemini_usage,
        "doubt": acp_gemini.check_gemini_result,
        "complaint": acp_gemini.parse_gemini_stderr,
    },
    "opencode-1.18.33": lambda: {"complaint": acp_opencode.OpencodeStderrReader().hear},
    "claude-acp-0.49.0": lambda: {"usage": read_protocol_usage},
}
RECORDINGS = [path for name in KINDS for path in sorted((FIXTURES / name).glob("*.json"))]


def test_every_agent_is_recorded():
    """There are recordings of each agent that is known by name, of the version that is tested."""
    assert {path.parent.name for path in RECORDINGS} == set(KINDS)
    assert len(RECORDINGS) >= 8 * len(KINDS)


@for_each_case("path", RECORDINGS)
def test_a_recorded_talk_has_its_class(path):
    """What a real agent has said, line by line, comes to the class that the call had."""
    data = json.loads(path.read_text(encoding="utf-8"))
    profile = AcpAgentProfile("acp", (), status=lambda: data["status"], **KINDS[path.parent.name]())
    request = asked("/tree", permissions=data["permissions"], writes=data["writes"])
    talk = AcpConversation(request, lambda _: None, profile, isolated=True)
    talk.begin()
    for stream, line in data["heard"]:
        if stream == "out":
            talk.feed(line.encode())
        elif (found := profile.complaint(line)) is not None:
            talk.fail(found.failure, now=found.now)
    heard = talk.read_result()
    good = ("ok", "provider_timeout")  # whose clock was over had told nothing
    assert (heard.failure.error if heard.failure else None) == (
        None if data["class"] in good else data["class"]
    )
    assert heard.ended == (data["class"] == "ok")
