"""What can be done with a run by the words of its machine, and what is known of it."""

import asyncio

import pytest
from tests.support.small_machines import begin_run, fake_ports_with_machines, play_run, settle_post

from steersman.app.actions import ActionInput, ActionNotLegalNowError, RunActions, fork_run_at
from steersman.app.principal import Principal
from steersman.app.runs import (
    RunService,
    explain_run,
    read_run_details,
    read_run_outcome,
    read_run_report,
    read_run_timeline,
)
from steersman.errors import UserError

ANN = Principal("ann")


@pytest.fixture
def asked(tmp_path):
    """The actions of a run of `watch` that waits at its gate."""
    ports = fake_ports_with_machines(tmp_path)
    return RunActions(RunService(ports), ANN, play_run(ports, "watch", after=0).run)


def test_the_legal_words_are_those_of_the_machine(asked):
    """The choices of the open gate come first, then the events that a person may cause."""
    assert [action.word for action in asked.list()] == ["approve", "reject", "changed"]


def test_a_gates_word_answers_the_gate(asked):
    """The run goes on as the machine decides."""
    posted = asked.act("approve", ActionInput(reason="looks right"))
    ports = asked.runs.ports
    assert settle_post(ports, asked.run, posted.message_id)["result"] == "taken"
    assert ports.journal.head(asked.run).state == "granted"
    assert asked.list() == ()


def test_an_events_word_sends_the_event(asked):
    """What the event carries is taken from what was given."""
    posted = asked.act("changed")
    assert settle_post(asked.runs.ports, asked.run, posted.message_id)["result"] == "taken"
    assert asked.runs.ports.journal.head(asked.run).state == "asking"


def test_the_abort_has_its_word(tmp_path):
    """A machine with a row for it ends through that row."""
    ports = fake_ports_with_machines(tmp_path)
    run = asyncio.run(begin_run(ports, "captain", child="watch", options={"after": 10**9}))
    posted = RunActions(RunService(ports), ANN, run).act("abort")
    assert posted.wants_end
    assert settle_post(ports, run, posted.message_id)["result"] == "taken"


def test_another_word_is_refused_with_the_legal_ones(asked):
    """Nothing is posted; the error has exit code 4."""
    with pytest.raises(ActionNotLegalNowError, match="legal now: approve, reject, changed") as refused:
        asked.act("dance")
    assert refused.value.exit_code == 4
    assert asked.runs.ports.journal.pending(asked.run) == []


def test_a_run_is_found_by_a_unique_beginning(asked):
    """Its whole id and a unique prefix find it; nothing and an unknown one are errors with the next command."""
    runs, run = asked.runs, asked.run
    assert (runs.find(run), runs.find(run[:-1])) == (run, run)
    for name in ("", "nope"):
        with pytest.raises(UserError, match="steersman runs --all"):
            runs.find(name)


def test_what_is_known_of_a_run(asked):
    """Summary, reasons, report, timeline and the words at the end agree about where it is."""
    ports, run = asked.runs.ports, asked.run
    details = read_run_details(ports, run)
    assert (details.summary.state, details.driven_by) == ("asking", None)
    explained = explain_run(ports, run, "steersman")
    assert (explained.state, explained.meaning) == ("asking", "Somebody is asked.")
    assert any(f"steersman approve {run}" in reason.commands for reason in explained.reasons)
    assert run in read_run_report(ports, run).report
    assert read_run_timeline(ports, run)[-1].to == "asking"
    assert read_run_outcome(ports, run).view.status.gates


def test_a_fork_begins_after_an_entry(tmp_path):
    """Without a number it is the last one; the new run knows where it comes from."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports).run
    forked = asyncio.run(fork_run_at(RunService(ports), ANN, run, 1))
    assert (forked.source, forked.entry, ports.journal.head(forked.run).state) == (run, 1, "out")
