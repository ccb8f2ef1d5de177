"""What codex says, recorded from the real program, and what we make of it."""

import datetime as dt
import json
from pathlib import Path

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.agents.codex_events import CodexReader, classify_codex_message, parse_limit_reset
from steersman.adapters.agents.codex_rollout import (
    count_session_tokens,
    find_rollout_file,
    keep_codex_session,
    read_last_turn,
    restore_codex_session,
)
from steersman.adapters.agents.headless import AgentInvocation, build_agent_reply
from steersman.adapters.agents.sessions import SessionStore
from steersman.adapters.process.program_runner import ProgramClocks, ProgramResult
from steersman.contracts.agent import ProviderUsage

FIXTURES = Path(__file__).parents[1] / "agents" / "fixtures" / "codex-0.166.0"
NOW = dt.datetime(2026, 11, 16, 12, 0, tzinfo=dt.UTC)
CLASSES = {
    "text": None,
    "edit": None,
    "schema": None,
    "schema-not-met": None,  # codex does not validate: the parser of replies does
    "no-usage": None,
    "denied-tool": None,  # no event tells it: the session's record does
    "401": "provider_auth_error",
    "403": "provider_auth_error",
    "no-key": "provider_auth_error",
    "retried-401": "provider_auth_error",
    "429": "provider_rate_limited",
    "529": "provider_rate_limited",
    "500": "provider_network_error",
    "retried-500": "provider_network_error",
    "refused": "provider_network_error",
    "refused-for-ever": "provider_network_error",
    "dropped": "provider_network_error",
    "hangs-midway": "provider_timeout",
    "never-answers": "provider_timeout",
    "400": "provider_invalid_request",
    "bad-model": "provider_invalid_request",
    "bad-flag": "provider_invalid_request",
    "unknown-session": "provider_invalid_request",
    "no-prompt": "provider_invalid_request",
}


def played(name):
    """A recorded call, heard as a live one is; what had not ended was stopped by a clock."""
    data = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    reader = CodexReader(lambda: NOW)
    stopped = any(reader.feed(line.encode()) for line in data["stdout"])
    ended = data["exit"] is not None
    done = ProgramResult(
        data["exit"] if ended else -15,
        b"",
        timed_out=not ended,
        micros=1,
        errors=data["stderr"].encode(),
        expired="" if ended or stopped else "idle",
        stopped=stopped,
    )
    return build_agent_reply(
        AgentInvocation("codex", ("codex",), reader), done, ProgramClocks(1, 1, 1)
    ), stopped


def heard(*events):
    reader = CodexReader(lambda: NOW)
    for event in events:
        reader.feed(json.dumps(event).encode() if isinstance(event, dict) else event)
    return reader.read_result()


def test_every_recording_is_looked_at():
    """No recorded stream is left without a class."""
    assert {path.stem for path in FIXTURES.glob("*.json")} == set(CLASSES)


@for_each_case("name", CLASSES)
def test_a_recorded_call_has_its_class(name):
    """The class of each recorded call is the one that the table gives it."""
    reply, _ = played(name)
    assert reply.error == CLASSES[name]
    assert bool(reply.detail) == (reply.error is not None)


def test_an_answer_has_its_text_its_usage_and_its_session():
    """A turn that went well tells the last message, all its tokens, no cost, and the thread to continue."""
    reply, _ = played("edit")
    assert reply.text == "The scripted model has spoken."
    assert reply.usage == ProviderUsage(tokens=2468)
    assert len(reply.session) == 36


def test_waiting_for_the_network_is_not_waited_for():
    """codex would wait for ever: it is stopped when it says so for the second time."""
    _, stopped = played("refused-for-ever")
    assert stopped


def test_a_login_that_is_refused_is_not_tried_again():
    """The first retry over a 401 is enough to stop."""
    _, stopped = played("retried-401")
    assert stopped


def test_usage_of_nothing_is_unknown():
    """Nothing but zeros is what codex says when the server told it nothing: unknown, not free."""
    assert played("no-usage")[0].usage == ProviderUsage()


def test_an_exit_of_0_without_a_last_word_is_no_success():
    """A stream that stops before turn.completed is a protocol error whatever the exit code."""
    reader = CodexReader()
    reader.feed(b'{"type":"thread.started","thread_id":"t"}')
    reader.feed(b'{"type":"item.completed","item":{"type":"agent_message","text":"all done"}}')
    done = ProgramResult(0, b"", timed_out=False, micros=1)
    assert (
        build_agent_reply(AgentInvocation("codex", ("codex",), reader), done, ProgramClocks(1, 1, 1)).error
        == "provider_protocol_error"
    )


def test_success_and_then_a_crash_is_a_crash():
    """turn.completed followed by an exit code is not believed."""
    reader = CodexReader()
    reader.feed(b'{"type":"turn.completed","usage":{}}')
    done = ProgramResult(101, b"", timed_out=False, micros=1, errors=b"thread main panicked")
    assert (
        build_agent_reply(AgentInvocation("codex", ("codex",), reader), done, ProgramClocks(1, 1, 1)).error
        == "provider_crashed"
    )


def test_a_warning_is_no_failure():
    """An item of type error is a warning inside a turn that goes on."""
    warned = {"type": "item.completed", "item": {"type": "error", "message": "unexpected status 401"}}
    assert heard(warned, {"type": "turn.completed", "usage": {}}).failure is None


def test_a_retry_that_came_through_is_forgotten():
    """After turn.completed the cause of an earlier retry is no failure."""
    retried = {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected before completion: x)"}
    told = heard(retried, {"type": "turn.completed", "usage": {}})
    assert told.ended
    assert told.failure is None
    assert heard(retried).failure.error == "provider_network_error"


@for_each_case(
    "line",
    [
        *(b"", b"\xff\xfe", b"[1]", b"null", b'{"type":7}', b'{"type":"turn.failed"}', b"[" * 100_000),
        *(
            b'{"type":"item.completed","item":{"type":"command_execution"}}',
            b'{"type":"error","message":null}',
        ),
    ],
)
def test_no_line_breaks_it(line):
    """Whatever a line is, it is heard without an exception and never as success."""
    assert not heard(line).ended


@pytest.mark.parametrize("output", ["a.txt: Read-only file system", "bash: x: Permission denied"])
def test_a_command_that_met_the_sandbox_is_denied(output):
    """A failed command whose output is that of a sandbox is told as denied; the same words in a good one are not."""
    ran = {"type": "command_execution", "command": "touch a", "aggregated_output": output, "exit_code": 1}
    assert heard({"type": "item.completed", "item": ran}).denied == ("touch a",)
    assert heard({"type": "item.completed", "item": {**ran, "exit_code": 0}}).denied == ()
    assert heard({"type": "item.completed", "item": {**ran, "status": "declined"}}).denied == ("touch a",)


def test_a_loop_of_denials_is_stopped():
    """Four denials in a row, and it is stopped; a tool that works in between begins the row anew."""
    no = {"type": "command_execution", "command": "touch a", "aggregated_output": "", "status": "declined"}
    yes = {"type": "command_execution", "command": "ls", "aggregated_output": "", "exit_code": 0}
    reader = CodexReader()
    fed = [
        reader.feed(json.dumps({"type": "item.completed", "item": item}).encode())
        for item in (no, no, no, yes, no, no, no, no)
    ]
    assert fed == [False] * 7 + [True]
    assert reader.read_result().failure.error == "provider_permission_denied"


@for_each_case(
    ("sentence", "error"),
    [
        ("You've hit your usage limit. Try again at 3:04 PM.", "provider_rate_limited"),
        ("You hit your spend cap set in your workspace. Increase it.", "provider_rate_limited"),
        ("Quota exceeded. Check your plan and billing details.", "provider_rate_limited"),
        ("Selected model is at capacity. Please try a different model.", "provider_rate_limited"),
        ("stream disconnected before completion: Rate limit reached for m", "provider_rate_limited"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "provider_auth_error"),
        ("unexpected status 503 Service Unavailable: x", "provider_network_error"),
        ("unexpected status 408 Request Timeout: x", "provider_timeout"),
        ("request timed out", "provider_timeout"),
        ("Codex ran out of room in the model's context window.", "provider_invalid_request"),
        ("internal error; agent loop died unexpectedly", "provider_crashed"),
        ("the model says: unexpected status 401, Connection failed", "provider_invalid_request"),
    ],
)  # fmt: skip
def test_a_sentence_has_its_class_by_its_beginning(sentence, error):
    """The class comes from the beginning of codex's own sentence, never from the server's words inside it."""
    assert classify_codex_message(sentence, NOW).error == error


@for_each_case(
    ("sentence", "moment"),
    [
        ("Please try again in 11.5s.", NOW + dt.timedelta(seconds=11.5)),
        ("Please try again in 28ms.", NOW + dt.timedelta(milliseconds=28)),
        ("Try again at 3:04 PM.", NOW.replace(hour=15, minute=4)),
        ("or try again at Dec 1st, 2026 12:30 AM.", dt.datetime(2026, 12, 1, 0, 30, tzinfo=dt.UTC)),
        ("Try again at Xyz 99th, 2026 1:00 AM.", None),
        ("Try again later.", None),
    ],
)
def test_the_end_of_a_limit_is_read(sentence, moment):
    """Where codex says when a limit ends, that moment is known; where it does not, it is unknown."""
    assert parse_limit_reset(sentence, NOW) == (int(moment.timestamp() * 1000) if moment else None)


# ── the record of a session ─────────────────────────────────────────────────────────────────────────────────────────

THREAD = "01a1e29b-b5b1-7542-b727-632f1e22b509"
STARTED = {"type": "event_msg", "payload": {"type": "task_started"}}


def used(tokens):
    return {
        "type": "token_usage_record",
        "payload": {"thread_token_usage": {"input_tokens": tokens, "output_tokens": 0}},
    }


def called(command, output):
    call = {"type": "function_call", "call_id": "c", "name": "exec_command"}
    return (
        {"type": "response_item", "payload": {**call, "arguments": json.dumps({"cmd": command})}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": output}},
    )  # fmt: skip


def recorded(folder, *records):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-11-16T04-26-57-{THREAD}.jsonl"
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records), encoding="utf-8")
    return path


def test_what_a_session_has_used_is_known(tmp_path):
    """A session that is continued is not paid for twice: its record tells what it had used before."""
    assert (
        count_session_tokens(
            recorded(tmp_path, STARTED, used(1000), "half a li", STARTED, used(1200), used(1450))
        )
        == 1450
    )
    assert count_session_tokens(recorded(tmp_path, STARTED)) is None
    assert count_session_tokens(None) is None


def test_a_silent_denial_is_found_in_the_record(tmp_path):
    """codex tells no event for a command that its sandbox stopped: its record does, for the last turn alone."""
    denied = called("touch a", "Process exited with code 1\nOutput:\ntouch: a: Read-only file system")
    path = recorded(tmp_path, STARTED, *called("rm b", denied[1]["payload"]["output"]), STARTED, *denied)
    assert read_last_turn(path).denied == ("touch a",)
    fine = called("cat a", "Process exited with code 0\nOutput:\nRead-only file system")
    assert read_last_turn(recorded(tmp_path, STARTED, *fine)).denied == ()


def test_a_denial_that_was_got_over_is_no_dead_end(tmp_path):
    """A writer is stuck when nothing has worked since the last denial, not when it found another way."""
    denied = called("touch /a", "Process exited with code 1\nOutput:\ntouch: /a: Permission denied")
    fine = called("touch a", "Process exited with code 0\nOutput:\n")
    assert read_last_turn(recorded(tmp_path, STARTED, *fine, *denied)).stuck
    assert not read_last_turn(recorded(tmp_path, STARTED, *denied, *fine)).stuck


def test_the_record_tells_the_model(tmp_path):
    """Where nobody chose a model, the one that codex chose is known from its record."""
    context = {"type": "turn_context", "payload": {"model": "m-1"}}
    assert read_last_turn(recorded(tmp_path, STARTED, context)).model == "m-1"


def test_a_rejected_patch_is_denied(tmp_path):
    """A patch that codex rejects by its own rules is a denial, too; also when a program of the model's made it."""
    patch = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "tools.apply_patch(…)"}
    said = [{"type": "input_text", "text": "Script error:\npatch rejected: writing is blocked"}]
    output = {"type": "custom_tool_call_output", "call_id": "c", "output": said}
    path = recorded(
        tmp_path, {"type": "response_item", "payload": patch}, {"type": "response_item", "payload": output}
    )
    assert read_last_turn(path).denied == ("exec tools.apply_patch(…)",)


def test_a_session_is_kept_and_lent(tmp_path):
    """What one call has made of a session is there for the next one, in another home."""
    made, home = tmp_path / "made" / "2026", tmp_path / "home"
    path = recorded(made, STARTED, used(7))
    shelf = SessionStore(tmp_path / "kept")
    name = keep_codex_session(shelf, "r-1:1:1", find_rollout_file(tmp_path / "made", THREAD), THREAD)
    assert restore_codex_session(shelf.find(name), home) == 7
    assert find_rollout_file(home, THREAD).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("thread", [None, "../../etc/passwd", "*", ""])
def test_an_odd_thread_has_no_record(tmp_path, thread):
    """A session's name is looked up only when it is one."""
    recorded(tmp_path, STARTED)
    assert find_rollout_file(tmp_path, thread) is None


def test_a_link_is_no_record(tmp_path):
    """An agent that puts a link in place of its record gets nothing read and nothing kept."""
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(used(5)), encoding="utf-8")
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    link = sessions / f"rollout-x-{THREAD}.jsonl"
    link.symlink_to(secret)
    assert (
        keep_codex_session(
            SessionStore(tmp_path / "kept"), "r-1:1:1", find_rollout_file(sessions, THREAD), THREAD
        )
        is None
    )
    assert count_session_tokens(link) is None
    (tmp_path / "all").symlink_to(sessions)
    assert find_rollout_file(tmp_path / "all", THREAD) is None
    assert not (tmp_path / "kept").exists()
