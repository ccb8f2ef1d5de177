"""Parked runs of every released version wake up under the present one and come to the same end, for ever."""

import asyncio
import json

import pytest
from msgspec.structs import replace
from tests.support.golden_runs import (
    FIXED_BY_ROUND,
    GOLDEN_FOLDER,
    open_run_service,
    restore_golden_run,
    run_git,
)

from steersman.engine.driver import Driver
from steersman.errors import UserError
from steersman.kernel.machine import definition_digest
from steersman.kernel.replay import BadEntry, decision_hash, verify_chain
from steersman.machines.roundtable import MACHINE

VERSIONS = sorted(p.stem for p in GOLDEN_FOLDER.glob("roundtable-*.sql"))


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def woken(tmp_path, version):
    """The kept store with its repository, and a bridge over both."""
    journal = restore_golden_run(tmp_path, version)
    yield journal, open_run_service(tmp_path, journal, "later"), tmp_path / "repository"
    journal.close()


def titled(journal, title):
    return next(h for h in journal.heads() if h.title == title)


def entries(journal, run):
    links = list(verify_chain(journal.rows(run), run))
    assert not [link for link in links if isinstance(link, BadEntry)]
    return [entry for entry, _ in links]


def go_on(bridge, run, choice=None):
    """Drives a run on, migrated where what it can still reach has changed since; answers its gate first when told to."""
    gate = bridge.gate(run) if choice else None
    posted = bridge.answer(gate, choice, "bob", digest=gate.digest) if gate else None

    async def on():
        driver = Driver(bridge.ports)
        try:
            await driver.drive(run)
        except UserError:  # of another kind, a migration would refuse it too
            await bridge.migrate(run, "bob", "a kept run is resumed")
            await driver.drive(run)
        if posted is not None:
            assert bridge.ports.journal.verdict(posted)["result"] == "taken"

    asyncio.run(on())
    return bridge.head(run)


def content(repo, ref):
    return run_git(repo, "show", f"{ref}:calc.py").decode()


def test_something_is_kept():
    """There are kept runs of at least the first release, each with what was decided then."""
    assert "roundtable-0.1.0" in VERSIONS
    assert [p.stem for p in sorted(GOLDEN_FOLDER.glob("roundtable-*.json"))] == VERSIONS


def test_what_was_decided_stays_decided(woken, version):
    """The tapes are whole, and the hash over what was decided on them is the one that was written down then."""
    journal, _, _ = woken
    told = {h.title: decision_hash(entries(journal, h.run)) for h in journal.heads()}
    assert told == json.loads((GOLDEN_FOLDER / f"{version}.json").read_text())


def test_a_proposal_that_waited_is_confirmed(woken):
    """The operator comes back after the upgrade, approves what was proposed, and it is built, checked and delivered."""
    journal, bridge, repo = woken
    run = titled(journal, "Fix add, after a proposal").run
    head = go_on(bridge, run, "approve")
    assert (head.state, head.outcome, head.status) == ("finalize", "approved", "done")
    events = [e.event for e in entries(journal, run) if e.kind == "transition"]
    assert events[-1] == "delivered"
    assert {"review_changes_requested", "tests_passed", "implementation_confirmed"} <= set(events)
    assert content(repo, f"refs/heads/steersman/{run}") == FIXED_BY_ROUND[2]


def test_a_round_that_was_interrupted_is_taken_up(woken):
    """A run that was let go in its second round goes on with that round, and says that it may have run twice."""
    journal, bridge, repo = woken
    parked = titled(journal, "Fix add, half done")
    assert (parked.state, parked.status) == ("build", "working")
    head = go_on(bridge, parked.run)
    assert (head.outcome, head.status) == ("approved", "done")
    after = entries(journal, parked.run)[parked.seq :]
    again = next(e for e in after if e.kind == "effect_started")
    assert again.retry.retry_reason == "interrupted"
    assert content(repo, f"refs/heads/steersman/{parked.run}") == FIXED_BY_ROUND[2]


def test_a_merge_that_waited_is_granted(woken):
    """An approved change whose merge waited for somebody is merged into what it was to be merged into."""
    journal, bridge, repo = woken
    run = titled(journal, "Fix add, and merge it").run
    head = go_on(bridge, run, "approve")
    assert (head.outcome, head.status) == ("approved", "done")
    assert content(repo, "refs/heads/main") == FIXED_BY_ROUND[2]


def test_under_another_table_it_is_migrated_to_the_same_end(tmp_path, version):
    """Where what it can still reach has changed, a kept run is refused, migrated by a person, and ends the same."""
    journal = restore_golden_run(tmp_path, version)
    namings = {**MACHINE.namings, "review": replace(MACHINE.namings["review"], version=99)}
    changed = replace(MACHINE, namings=namings)
    bridge = open_run_service(tmp_path, journal, "later", replace(changed, digest=definition_digest(changed)))
    run = titled(journal, "Fix add, after a proposal").run
    head = go_on(bridge, run, "approve")
    assert (head.outcome, head.status) == ("approved", "done")
    (migration,) = [e for e in entries(journal, run) if e.kind == "migrated"]
    assert (migration.actor, migration.why) == ("person:bob", "a kept run is resumed")
    journal.close()
