"""What the recorded words of claude mean: no CLI is needed, only what it has said."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.adapters.agents.claude_events import (
    MAX_CLAUDE_DENIALS,
    ClaudeReader,
    classify_claude_failure,
    usage_since_resume,
)
from steersman.adapters.agents.headless import AgentInvocation, build_agent_reply
from steersman.adapters.process.program_runner import ProgramClocks, ProgramResult
from steersman.contracts.agent import PROVIDER_CLASSES, ProviderUsage

RECORDED = Path(__file__).parents[1] / "agents" / "fixtures"
CLOCKS = ProgramClocks(10, 20, 30)
NOW = 1_000_000_000_000
AUTH, RATE, NETWORK = "provider_auth_error", "provider_rate_limited", "provider_network_error"
INVALID, TIMEOUT, DENIED = "provider_invalid_request", "provider_timeout", "provider_permission_denied"


def fixtures():
    return [(f.parent.name, f.stem) for f in sorted(RECORDED.glob("claude-[0-9]*/*.json"))]


def recorded(name, version="claude-2.1.197"):
    return json.loads((RECORDED / version / f"{name}.json").read_text())


def read_recorded_reply(recording, *, writes=False, schema=False, expired=""):
    """The reply to a recorded stream; the program is stopped where the reader has heard enough."""
    reader = ClaudeReader(writes=writes, schema=schema, now=lambda: NOW)
    stopped = any(reader.feed(line.encode()) for line in recording["stdout"])
    code = -15 if stopped or expired else recording["exit"]
    done = ProgramResult(
        code, b"", bool(expired), 1, errors=recording["stderr"].encode(), expired=expired, stopped=stopped
    )
    return build_agent_reply(AgentInvocation("claude", ("claude",), reader), done, CLOCKS)


# What each recorded stream is, read as a reader's call unless it says otherwise.
CLASSES = {
    "text": None,
    "text-of-a-login": None,
    "edit": None,
    "schema": None,
    "schema-not-met": None,
    "schema-ignored": None,
    "not-offered": None,
    "denied": None,
    "401": AUTH,
    "403": AUTH,
    "no-key": AUTH,
    "429": RATE,
    "529": RATE,
    "limit-of-a-login": RATE,
    "500": NETWORK,
    "dropped": NETWORK,
    "refused": NETWORK,
    "never-answers": TIMEOUT,
    "400": INVALID,
    "bad-model": INVALID,
    "bad-flag": INVALID,
    "as-root": INVALID,
    "unknown-session": INVALID,
    "over-budget": INVALID,
    "denied-loop": DENIED,
    "hangs-midway": "provider_crashed",  # as recorded it was terminated by somebody else
    "terminated": "provider_crashed",
}


@for_each_case(("version", "name"), fixtures())
def test_every_recorded_stream_has_its_class(version, name):
    """A recorded stream is read as the class it was recorded for, and only a call without a class has a text."""
    reply = read_recorded_reply(recorded(name, version), schema=name.startswith("schema"))
    assert reply.error == CLASSES[name], reply.detail
    assert bool(reply.text) == (reply.error is None)
    assert bool(reply.detail) == (reply.error is not None)


def test_every_class_was_recorded():
    """No case of the table is left without a recording."""
    assert {name for _, name in fixtures()} == set(CLASSES)


def test_usage_is_what_was_told():
    """Tokens are those of all models, money is rounded up to the micro-dollar; a broken answer's cost is unknown."""
    assert read_recorded_reply(recorded("edit"), writes=True).usage == ProviderUsage(2468, 21_700)
    assert read_recorded_reply(recorded("over-budget")).usage == ProviderUsage(1234, 10_850)
    assert read_recorded_reply(recorded("403")).usage == ProviderUsage(0, 0)
    assert read_recorded_reply(recorded("dropped")).usage == ProviderUsage()
    assert read_recorded_reply(recorded("401")).usage == ProviderUsage()  # stopped at its first word of it
    assert read_recorded_reply(result(total_cost_usd=0.0000001, usage={})).usage == ProviderUsage(None, 1)
    assert read_recorded_reply(result(total_cost_usd=-1)).usage == ProviderUsage()
    assert read_recorded_reply(result(total_cost_usd=True)).usage == ProviderUsage()


@for_each_case(
    ("before", "told", "own", "used"),
    [
        (ProviderUsage(100, 10), ProviderUsage(30, 3), 30, ProviderUsage(30, 3)),  # told for this call
        (
            ProviderUsage(100, 10),
            ProviderUsage(130, 13),
            30,
            ProviderUsage(30, 3),
        ),  # told for the whole session
        (ProviderUsage(100, None), ProviderUsage(130, 13), 30, ProviderUsage(30, None)),
        (ProviderUsage(100, 10), ProviderUsage(140, 14), 30, ProviderUsage()),  # neither: nobody knows
        (ProviderUsage(), ProviderUsage(130, 13), 30, ProviderUsage()),
        (ProviderUsage(100, 10), ProviderUsage(30, 3), None, ProviderUsage()),
    ],
)
def test_a_continued_session_counts_only_what_is_new(before, told, own, used):
    """Some versions tell what a call used, some what its whole session did; what fits neither is unknown."""
    assert usage_since_resume(before, told, own) == used


def test_a_reply_to_a_schema_is_the_structured_one():
    """The text that is judged is the structured output; one that never fits is judged too; a plain text is none."""
    assert json.loads(read_recorded_reply(recorded("schema"), schema=True).text)["decision"] == "approve"
    assert (
        json.loads(read_recorded_reply(recorded("schema-not-met"), schema=True).text)["decision"] == "perhaps"
    )
    assert read_recorded_reply(recorded("schema-ignored"), schema=True).text.startswith(
        "[no structured reply]\n"
    )


def test_a_limit_tells_when_it_is_over():
    """The reset of a login's limit is told as a moment, that of an API key as a delay; a short one is waited for."""
    assert read_recorded_reply(recorded("limit-of-a-login")).reset_at == 4_000_000_000_000
    assert read_recorded_reply(lines(retry(429, "rate_limit", 60_000))).reset_at == NOW + 60_000
    assert read_recorded_reply(recorded("429")).reset_at is None


def test_a_writer_that_was_denied_has_not_done_its_work():
    """Exit 0 and is_error false are no success for a writer whose tool was denied; a reader is told and goes on."""
    writer, reader = (
        read_recorded_reply(recorded("denied"), writes=True),
        read_recorded_reply(recorded("denied")),
    )
    assert (writer.error, writer.denied) == (DENIED, ("Bash",))
    assert (reader.error, reader.denied) == (None, ("Bash",))


def test_a_tool_that_was_not_on_offer_counts_as_denied_unless_another_did_it():
    """A writer whose last tool was not there is denied; one that found another way is not."""
    said = recorded("not-offered")
    assert read_recorded_reply(said, writes=True).error == DENIED
    worked = {
        "type": "user",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "x", "content": "ok"}]},
    }
    found = {**said, "stdout": [*said["stdout"][:-1], json.dumps(worked), said["stdout"][-1]]}
    assert read_recorded_reply(found, writes=True).error is None
    assert read_recorded_reply(found, writes=True).denied == ("Bash",)


def test_a_loop_of_denials_is_ended():
    """After a few denials in a row the program is stopped: it will not get further."""
    reader = ClaudeReader(writes=False, schema=False)
    fed = [reader.feed(line.encode()) for line in recorded("denied-loop")["stdout"]]
    assert (
        sum(
            b'"tool_result"' in line.encode()
            for line in recorded("denied-loop")["stdout"][: fed.index(True) + 1]
        )
        == MAX_CLAUDE_DENIALS
    )
    assert reader.read_result().denied == ("Bash",)
    assert reader.read_result().failure.error == DENIED


def test_the_first_401_ends_the_call():
    """A login that is refused is not tried again: the first word of it stops the program."""
    reader = ClaudeReader(writes=False, schema=False)
    assert [reader.feed(line.encode()) for line in recorded("401")["stdout"]].index(True) == 2
    assert reader.read_result().failure.error == AUTH


def test_our_clock_is_told_by_the_cause_of_the_last_retry():
    """Where a clock is over while the CLI tries again, the class is that of what it tries again for."""
    unreached = lines(retry(None, "unknown", 500))
    assert read_recorded_reply(unreached, expired="idle").error == NETWORK
    assert read_recorded_reply(recorded("hangs-midway"), expired="idle").error == TIMEOUT
    assert read_recorded_reply(lines(), expired="start").detail == "no sign of life within 10 seconds"


def test_a_retry_that_helped_is_no_cause():
    """What went wrong before an answer came is forgotten."""
    said = recorded("text")
    again = {
        **said,
        "stdout": [said["stdout"][0], json.dumps(retry(500, "server_error", 500)), *said["stdout"][1:]],
    }
    assert read_recorded_reply(again).error is None


def test_exit_codes_never_make_a_success():
    """Success needs its last word and exit 0: without the word it is a protocol error, with another code a crash."""
    said = recorded("text")
    assert read_recorded_reply({**said, "exit": 3}).error == "provider_crashed"
    assert read_recorded_reply({**said, "stdout": said["stdout"][:-1]}).error == "provider_protocol_error"
    assert (
        read_recorded_reply({**said, "stdout": [*said["stdout"], said["stdout"][-1]]}).error
        == "provider_protocol_error"
    )
    assert read_recorded_reply({"exit": 1, "stdout": [], "stderr": ""}).error == "provider_crashed"
    assert read_recorded_reply({"exit": 1, "stdout": [], "stderr": "fetch failed"}).error == NETWORK


def test_the_order_of_keys_means_nothing():
    """Later versions write `type` elsewhere: events are parsed, not matched by their beginning."""
    said = recorded("edit")
    turned = [json.dumps(dict(reversed(json.loads(line).items()))) for line in said["stdout"]]
    assert read_recorded_reply({**said, "stdout": turned}, writes=True) == read_recorded_reply(
        said, writes=True
    )


@for_each_case(
    ("status", "kind", "words", "expected"),
    [
        (401, None, "", AUTH),
        (402, "billing_error", "", AUTH),
        (None, "authentication_failed", "Not logged in", AUTH),
        (429, "unknown", "", RATE),
        (None, "overloaded", "", RATE),
        (503, None, "", NETWORK),
        (413, None, "too long", INVALID),
        (None, "server_error", "Request timed out", TIMEOUT),
        (None, "server_error", "Unable to connect to API (ECONNRESET)", NETWORK),
        (None, "unknown", "The socket connection was closed unexpectedly", NETWORK),
        (None, "unknown", "API returned an empty or malformed response (HTTP 200)", "provider_protocol_error"),
        (None, None, "", "provider_protocol_error"),
    ],
)  # fmt: skip
def test_first_match_wins(status, kind, words, expected):
    """A status counts more than a kind, a kind more than words."""
    assert classify_claude_failure(status, kind, words) == expected


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                lambda v: json.dumps(v).encode(),
                st.recursive(
                    st.none()
                    | st.booleans()
                    | st.integers()
                    | st.floats(allow_nan=False)
                    | st.text(max_size=5)
                    | st.sampled_from(
                        [
                            "system",
                            "assistant",
                            "user",
                            "result",
                            "init",
                            "api_retry",
                            "tool_result",
                            "tool_use",
                        ]
                    ),
                    lambda inner: (
                        st.lists(inner, max_size=3)
                        | st.dictionaries(
                            st.sampled_from(
                                [
                                    "type",
                                    "subtype",
                                    "message",
                                    "content",
                                    "error",
                                    "error_status",
                                    "retry_delay_ms",
                                    "is_error",
                                    "usage",
                                    "modelUsage",
                                    "total_cost_usd",
                                    "permission_denials",
                                    "structured_output",
                                    "tool_use_id",
                                    "id",
                                    "name",
                                    "rate_limit_info",
                                    "resetsAt",
                                    "status",
                                    "errors",
                                    "session_id",
                                    "model",
                                    "tools",
                                ]
                            ),
                            inner,
                            max_size=6,
                        )
                    ),
                    max_leaves=12,
                ),
            ),
        ),
        max_size=8,
    ),
    st.integers(0, 2),
)
def test_no_words_make_it_raise(said, code):
    """Whatever a program writes, the reply is a class or a text that a last word came with."""
    reader = ClaudeReader(writes=True, schema=True)
    for line in said:
        reader.feed(line)
    reply = build_agent_reply(
        AgentInvocation("claude", ("claude",), reader),
        ProgramResult(code, b"", timed_out=False, micros=1),
        CLOCKS,
    )
    assert reply.error is None or reply.error in PROVIDER_CLASSES


def retry(status, kind, delay):
    fields = {"error_status": status, "error": kind, "retry_delay_ms": delay}
    return {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 1, **fields}


def result(**fields):
    told = {"type": "result", "subtype": "success", "is_error": False, "result": "done", **fields}
    return {"exit": 0, "stdout": [json.dumps(told)], "stderr": ""}


def lines(*events):
    return {"exit": 143, "stdout": [json.dumps(event) for event in events], "stderr": ""}
