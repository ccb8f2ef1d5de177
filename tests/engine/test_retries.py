"""Errors that can pass are tried again, later, a bounded number of times; a reply that does not fit is asked for again."""

import asyncio

import pytest
from tests.support.cases import for_each_case
from tests.support.small_machines import (
    begin_run,
    budget_rows,
    drive_run,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
)

from steersman.contracts.agent import PROVIDER_CLASSES, TRANSIENT_PROVIDER_ERRORS, AgentReply, ProviderUsage
from steersman.contracts.config import Budget, Role, Unattended
from steersman.engine.active_run import load_active_run
from steersman.testing import FakeAgent, fake_config, fake_reply
from steersman.testing.clock import FAKE_START_MS

GOOD = {
    "decision": "approve", "summary": "read", "must_fix": [], "nice_to_have": [], "tests": [], "security": [],
}  # fmt: skip
PLAN = {"test_plan": "all of it", "commands": [["true"]], "expected_results": ["ok"]}


def crew(request):
    """A crew that does what is wanted: the coder changes a file, the others agree."""
    match request.role, request.mode:
        case _, "proposal":
            return fake_reply(request, "fine")
        case "coder", _:
            with open(f"{request.workdir}/README", "w") as file:
                file.write(f"round {request.round}\n")
            return fake_reply(request, "done")
        case "reviewer", _:
            return fake_reply(request, GOOD)
        case _:
            return fake_reply(request, PLAN)


def failing(error, times, reset_at=None, role="coder"):
    """The same crew, with one whose first attempts fail."""

    def answer(request):
        if request.role == role and request.attempt <= times:
            return AgentReply(
                error=error, detail="no", reset_at=reset_at, usage=ProviderUsage(5, 1), provider="fake"
            )
        return crew(request)

    return FakeAgent(answer)


def hurried(ports, run, ms=60_000):
    """Drives a run while time flies."""

    async def play():
        drive = asyncio.create_task(drive_run(ports, run))
        while not drive.done():
            await asyncio.sleep(0.02)
            ports.clock.forward(ms)
        return await drive

    return asyncio.run(play())


def started(ports, **more):
    """An implementation that was started: its run."""
    return asyncio.run(begin_run(ports, "roundtable", mode="implementation", **more))


@pytest.mark.parametrize("error", sorted(TRANSIENT_PROVIDER_ERRORS - {"provider_rate_limited"}))
def test_what_can_pass_is_tried_again(tmp_path, error):
    """With a wait that doubles; each further attempt is on tape with its number and reason before it begins."""
    ports = fake_ports_with_machines(tmp_path, agent=failing(error, 2))
    run = started(ports)
    head = hurried(ports, run)
    waits = [e for e in read_run_tape(ports, run) if e.kind == "timer_set"]
    assert head.outcome == "approved"
    assert [(e.retry.retry_count, e.retry.retry_reason) for e in waits] == [(1, error), (2, error)]
    assert [e.held[0].due - e.at for e in waits] == [1_000, 2_000]
    assert [e.held[0].attempt for e in waits] == [2, 3]
    done = next(e for e in read_run_tape(ports, run) if e.event == "start_reviewer")
    assert (done.retry.retry_count, done.retry.retry_reason) == (2, error)


def test_attempts_are_bounded(tmp_path):
    """After the last retry the error is the outcome; every attempt was paid for."""
    ports = fake_ports_with_machines(tmp_path, agent=failing("provider_timeout", 99))
    run = started(ports)
    head = hurried(ports, run)
    assert (head.status, head.outcome) == ("stopped", "provider_timeout")
    assert [r.attempt for r in ports.agent("coder", None).asked] == [1, 2, 3]
    assert budget_rows(ports, run)["tokens"][:2] == (15, 0)
    assert budget_rows(ports, run)["turns"][:2] == (3, 0)


@for_each_case("error", [e for e in PROVIDER_CLASSES if e not in TRANSIENT_PROVIDER_ERRORS])
def test_what_cannot_pass_is_an_outcome_at_once(tmp_path, error):
    """Trying again would change nothing."""
    ports = fake_ports_with_machines(tmp_path, agent=failing(error, 99))
    head = play_run(ports, "roundtable", mode="implementation")
    assert (head.outcome, len(ports.agent("coder", None).asked)) == (error, 1)


def test_no_retries_where_none_are_wanted(tmp_path):
    """A role with retries = 0 has one attempt."""
    ports = fake_ports_with_machines(tmp_path, agent=failing("provider_timeout", 99))
    roles = {name: Role(agent="fake", retries=0) for name in ("coder", "reviewer", "tester")}
    head = play_run(ports, "roundtable", fake_config(roles=roles), mode="implementation")
    assert (head.outcome, len(ports.agent("coder", None).asked)) == ("provider_timeout", 1)


# ── rate limits ───────────────────────────────────────────────────────────────────────────────────────────────────────


def limited(tmp_path, wait, on_limit):
    """A run whose coder is limited once, for `wait` milliseconds."""
    ports = fake_ports_with_machines(
        tmp_path, agent=failing("provider_rate_limited", 1, FAKE_START_MS + wait)
    )
    config = fake_config(unattended=Unattended(on_limit=on_limit))
    return ports, asyncio.run(begin_run(ports, "roundtable", config, mode="implementation"))


def test_a_rate_limit_is_waited_for(tmp_path):
    """Until the moment the provider named: the run parks, shows until when, and goes on after it."""
    ports, run = limited(tmp_path, 3_600_000, "wait")
    head = asyncio.run(drive_run(ports, run))
    assert (head.status, head.due) == ("waiting until", ports.clock.now() + 3_600_000)
    assert asyncio.run(drive_run(ports, run)) == head, "too early: nothing happens"
    ports.clock.forward(3_600_000)
    after = asyncio.run(drive_run(ports, run))
    assert after.outcome == "approved"
    assert "timer_fired" in [e.kind for e in read_run_tape(ports, run)]


def test_a_long_rate_limit_stops_where_that_is_wanted(tmp_path):
    """With on_limit = stop a limit of hours is the outcome; one of a moment is sat out all the same."""
    ports, run = limited(tmp_path / "long", 3_600_000, "stop")
    assert asyncio.run(drive_run(ports, run)).outcome == "provider_rate_limited"
    ports, run = limited(tmp_path / "short", 2_000, "stop")
    assert hurried(ports, run, 1_000).outcome == "approved"


# ── replies that do not fit ───────────────────────────────────────────────────────────────────────────────────────────


def garbling(times, text):
    """A crew whose reviewer answers with `text` at first."""

    def answer(request):
        if request.role == "reviewer" and request.attempt <= times:
            return fake_reply(request, text)
        return crew(request)

    return FakeAgent(answer)


def test_an_invalid_reply_is_asked_for_again(tmp_path):
    """At once, with all its problems in the prompt and on tape as a payload."""
    bad = '{"decision": "maybe", "must_fix": "x", "extra": 1}'
    ports = fake_ports_with_machines(tmp_path, agent=garbling(1, bad))
    head = play_run(ports, "roundtable", mode="implementation")
    assert head.outcome == "approved"
    again = next(e for e in read_run_tape(ports, head.run) if e.kind == "effect_started")
    assert (again.retry.retry_count, again.retry.retry_reason) == (1, "reply_invalid")
    problems = load_active_run(ports, head.run).payloads.get(again.held[0].hint)
    asked = [r.prompt for r in ports.agent("reviewer", None).asked if r.role == "reviewer"]
    assert "your last reply was refused" not in asked[0]
    assert problems in asked[1].partition("your last reply was refused")[2]
    assert all(word in problems for word in ("decision", "must_fix", "extra", "nonce", "nice_to_have"))


def test_an_agent_that_never_fits_is_stopped(tmp_path):
    """After its retries the specification's own event says so."""
    ports = fake_ports_with_machines(tmp_path, agent=garbling(99, "I think it is fine."))
    head = play_run(ports, "roundtable", mode="implementation")
    assert head.outcome == "review_schema_invalid"
    assert [r.attempt for r in ports.agent("x", None).asked if r.role == "reviewer"] == [1, 2, 3]


def test_every_attempt_has_a_nonce_of_its_own(tmp_path):
    """A reply kept from the attempt before is refused."""
    kept = []

    def answer(request):
        if request.role != "reviewer":
            return crew(request)
        kept.append(fake_reply(request, GOOD))
        return fake_reply(request, "garbage") if request.attempt == 1 else kept[0]

    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(answer))
    head = play_run(ports, "roundtable", mode="implementation")
    assert head.outcome == "review_schema_invalid"
    assert len({r.nonce for r in ports.agent("x", None).asked}) == len(ports.agent("x", None).asked)


def test_what_a_retry_costs_counts(tmp_path):
    """A budget of turns is used up by re-asks too."""
    ports = fake_ports_with_machines(tmp_path, agent=garbling(2, "garbage"))
    head = play_run(ports, "roundtable", fake_config(budget=Budget(turns=4)), mode="implementation")
    assert (head.status, budget_rows(ports, head.run)["turns"]) == ("waiting for you", (4, 0, 4))
