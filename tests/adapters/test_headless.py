"""One call of a CLI, shown with a CLI that is a few lines of Python: environment, clocks, classes, clean-up."""

import asyncio
import json
import os
import sys
import time

import pytest

from steersman.adapters.agents.headless import AgentInvocation, CallSummary, ProviderFailure, run_agent_cli
from steersman.adapters.process import program_runner
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.contracts.agent import AgentRequest, ProviderUsage

OPEN = OpenSandbox("a test")


class Words:
    """Reads lines `text …`, `fail …`, `stop`; `bye` is the last word."""

    def __init__(self):
        self.lines = []

    def feed(self, line):
        self.lines.append(line.decode())
        return line == b"stop"

    def read_result(self):
        said = [line.removeprefix("text ") for line in self.lines if line.startswith("text ")]
        failed = [line.removeprefix("fail ") for line in self.lines if line.startswith("fail ")]
        failure = ProviderFailure("provider_auth_error", failed[-1], 5) if failed else None
        ended = "bye" in self.lines
        return CallSummary(
            ended=ended, failure=failure, text="".join(said), usage=ProviderUsage(1, 2), session="s",
            model="m",
        )  # fmt: skip

    def explain_exit(self, code, errors):  # noqa: ARG002  the reader's own name for it
        return ProviderFailure("provider_invalid_request", errors) if "bad flag" in errors else None


@pytest.fixture
def call(tmp_path):
    def go(program, *, clocks=(20, 20, 30), **more):
        script = tmp_path / "cli.py"
        script.write_text(program)
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        start, idle, total = clocks
        asked = AgentRequest(
            role="coder", mode="implementation", prompt="the prompt", workdir=str(work), writes=True,
            effect=f"headless-{os.getpid()}:1:1", nonce="n", start_seconds=start, idle_seconds=idle,
            seconds=total,
        )  # fmt: skip
        given = {"argv": (sys.executable, str(script)), "reader": Words(), "stdin": b"the prompt", **more}
        return asyncio.run(run_agent_cli(asked, AgentInvocation("fake", **given), OPEN))

    return go


def test_a_call_that_ends_well(call):
    """The text, usage, session and model that the events told, and a digest of everything that was said."""
    reply = call("import sys; print('text', sys.stdin.read()); print('bye')")
    assert (reply.error, reply.text, reply.provider) == (None, "the prompt", "fake")
    assert (reply.usage, reply.session, reply.model) == (ProviderUsage(1, 2), "s", "m")
    assert len(reply.transcript) == 64


def test_the_environment_is_an_allowlist(call, monkeypatch):
    """Of our environment a program gets the few names of the list, those its adapter keeps, and what it sets."""
    monkeypatch.setenv("STEERSMAN_PERSON", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "no")
    monkeypatch.setenv("MY_LOGIN", "yes")
    monkeypatch.setenv("TZ", "UTC")
    program = "import os, json; print('text', json.dumps(dict(os.environ))); print('bye')"
    data = json.loads(call(program, keeps=("MY_LOGIN",), env={"OWN": "1"}).text)
    assert (data["MY_LOGIN"], data["OWN"], data["TZ"]) == ("yes", "1", "UTC")
    assert data["STEERSMAN_EFFECT"].startswith("headless-")
    allowed = {
        "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
    }  # fmt: skip
    ours = {name for name in data if name.startswith("STEERSMAN_")}
    assert not ours & {"STEERSMAN_PERSON", "STEERSMAN_TOKEN"}
    assert set(data) - allowed - ours <= {"MY_LOGIN", "OWN", "PWD", "PYTHONDONTWRITEBYTECODE"}


def test_a_program_that_is_not_there(call):
    """A missing program is told before anything is started, with what to do."""
    reply = call("", argv=("no-such-cli",))
    assert reply.error == "provider_not_found"
    assert "install it" in reply.detail


@pytest.mark.parametrize(
    ("program", "error", "told"),
    [
        ("print('text x')", "provider_protocol_error", "without a last word"),
        ("pass", "provider_protocol_error", "without a last word"),
        ("print('bye'); raise SystemExit(3)", "provider_crashed", "it reported success and then exit code 3"),
        ("import sys; sys.exit('out of luck')", "provider_crashed", "exit code 1: out of luck"),
        ("import sys; sys.exit('bad flag')", "provider_invalid_request", "bad flag"),
        ("import os; os.kill(os.getpid(), 11)", "provider_crashed", "killed by signal 11"),
        ("print('fail no login'); print('bye')", "provider_auth_error", "no login"),
        ("print('fail no login'); raise SystemExit(7)", "provider_auth_error", "no login"),
    ],
)
def test_every_end_has_a_class(call, program, error, told):
    """Exit 0 alone is no success, a success with another exit is none, and what the CLI told comes before its exit."""
    reply = call(program)
    assert (reply.error, reply.text) == (error, "")
    assert told in reply.detail


@pytest.mark.parametrize(
    ("program", "clocks", "told"),
    [
        ("import time; time.sleep(60)", (1, 20, 30), "no sign of life within 1 seconds"),
        ("import time; print('text x', flush=True); time.sleep(60)", (20, 1, 30), "no sign of life for 1 seconds"),
        ("import time\nwhile True: print('text x', flush=True); time.sleep(.1)", (20, 20, 1), "not done within 1 seconds"),
    ],
    ids=["start", "idle", "total"],
)  # fmt: skip
def test_each_clock_is_told_by_name(call, program, clocks, told):
    """Start, silence and all of it have a clock each; what is over is a timeout that says which."""
    began = time.monotonic()
    reply = call(program, clocks=clocks)
    assert (reply.error, reply.detail) == ("provider_timeout", told)
    assert time.monotonic() - began < 40


def test_a_cause_that_was_told_comes_before_the_clock(call):
    """A CLI that tries again until the clock is over is classed by what it tried again for."""
    program = "import time; print('fail no login', flush=True); time.sleep(60)"
    assert call(program, clocks=(20, 1, 30)).error == "provider_auth_error"


def test_a_word_that_is_enough_stops_the_program(call):
    """The program is stopped at the word after which nothing can change, with all it has started."""
    program = (
        "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('fail no login'); print('stop', flush=True); time.sleep(60)"
    )
    began = time.monotonic()
    assert call(program).error == "provider_auth_error"
    assert time.monotonic() - began < 40
    assert program_runner.alive(f"headless-{os.getpid()}:1:1") == []


def test_an_event_may_hold_a_whole_file(call):
    """A line of megabytes is one event; a line is never cut into two."""
    reply = call("print('text ' + 'x' * 3_000_000); print('bye')")
    assert len(reply.text) == 3_000_000
