"""A run that was parked under an older machine: it goes on, is refused with the difference, or is migrated."""

import asyncio

import msgspec
import pytest
from tests.support.letter_versions import NEW_LETTERS, OLD_LETTERS, PlaceFacts, WeighFacts

from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.engine.active_run import read_snapshot
from steersman.engine.audit import replay_run
from steersman.engine.driver import Driver
from steersman.engine.start import StartRequest
from steersman.errors import ContractError, UserError
from steersman.kernel.replay import typed_event_data, verify_chain
from steersman.testing import FakeChance, fake_config, fake_ports

GRAMS = 30  # little for the new guard, much for the old one


async def _weigh(_call):
    return WeighFacts(grams=GRAMS)


async def _weigh_less(_call):
    return WeighFacts(grams=10)


@pytest.fixture
def store(tmp_path):
    """A store on disk, as an upgrade finds it."""
    journal = SqliteJournal(tmp_path / "store.db")
    yield journal
    journal.close()


def helm(tmp_path, store, m, weigh=_weigh, seed="0"):
    """A bridge over the store, with the machine that is installed now."""
    ports = fake_ports(
        tmp_path, {"letters": m}, journal=store, performers={"scales": weigh}, chance=FakeChance(seed)
    )
    return RunService(ports)


def begin(bridge):
    """A new run, parked at its first gate."""

    async def go():
        driver, lock, live = await bridge.start(StartRequest("letters", "a letter", "ann", fake_config()))
        return await driver.drive(live.run, held=lock, live=live)

    return asyncio.run(go()).run


def say(bridge, run, choice="approve"):
    """Answers the open gate and drives the run as far as it goes."""
    posted = bridge.answer(bridge.gate(run), choice, "ann")
    verdict, _ = asyncio.run(bridge.settle(run, posted))
    assert verdict["result"] == "taken"
    return bridge.head(run)


def on_the_shelf(tmp_path, store):
    """A run of the old version that waits to be fetched: what was weighed lies behind it."""
    bridge = helm(tmp_path, store, OLD_LETTERS, _weigh_less, seed="1")
    run = begin(bridge)
    assert say(bridge, run).state == "shelf"
    return run


def kinds(store, run):
    return [entry.kind for entry, _ in verify_chain(store.rows(run), run)]


def test_a_run_goes_on_when_what_it_can_still_reach_is_unchanged(tmp_path, store):
    """Guard, fold, row and context have changed behind it: its context is upcast, and it ends as it would have."""
    run = on_the_shelf(tmp_path, store)
    head = say(helm(tmp_path, store, NEW_LETTERS), run)
    assert (head.state, head.outcome, head.status, head.definition) == (
        "sent", "sent", "done", NEW_LETTERS.digest,
    )  # fmt: skip
    after = read_snapshot(store, run)
    assert (after.context["grams"], after.context["postage"], after.context_version) == (10, 0, 2)
    assert "migrated" not in kinds(store, run)


def test_a_run_that_only_waits_is_taken_over_at_once(tmp_path, store):
    """Driven with nothing to do, it is on the new definition and context: what comes next is explained by the tape."""
    run = on_the_shelf(tmp_path, store)
    asyncio.run(Driver(helm(tmp_path, store, NEW_LETTERS).ports).drive(run))
    after = read_snapshot(store, run)
    assert (after.state, after.definition, after.context_version) == ("shelf", NEW_LETTERS.digest, 2)
    assert kinds(store, run)[-1] == "claimed"


def test_a_run_is_refused_with_the_difference(tmp_path, store):
    """What it can still reach has changed: it is told what, state by state, and nothing is written."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    before = store.head(run)
    bridge = helm(tmp_path, store, NEW_LETTERS)
    with pytest.raises(UserError, match="parts that it can still reach have changed") as told:
        asyncio.run(Driver(bridge.ports).drive(run))
    assert "desk: a new row on put_off" in str(told.value)
    assert "scales: its work changed" in str(told.value)
    assert "scales: its rows on light changed (fold)" in str(told.value)
    assert "desk: its rows on noted changed (event_version)" in str(told.value)
    assert f"steersman machine migrate {run} --reason" in str(told.value)
    assert store.head(run) == before


def test_an_answer_to_a_refused_run_is_kept(tmp_path, store):
    """What a person said before the migration is not lost: it is taken after it."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    bridge = helm(tmp_path, store, NEW_LETTERS)
    posted = bridge.answer(bridge.gate(run), "approve", "ann")
    with pytest.raises(UserError, match="have changed"):
        asyncio.run(bridge.settle(run, posted))
    asyncio.run(bridge.migrate(run, "ann", "only the scales are new"))
    verdict, _ = asyncio.run(bridge.settle(run, posted))
    assert (verdict["result"], bridge.head(run).state) == ("taken", "shelf")


def test_a_run_is_migrated_and_goes_on(tmp_path, store):
    """With a person's reason on tape it goes on under the new machine: new guard, new fold, new field, new row."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    bridge = helm(tmp_path, store, NEW_LETTERS)
    head = asyncio.run(bridge.migrate(run, "ann", "only the scales are new"))
    assert (head.definition, head.state) == (NEW_LETTERS.digest, "desk")
    entry = next(e for e, _ in verify_chain(store.rows(run), run) if e.kind == "migrated")
    assert (entry.actor, entry.why, entry.context["postage"]) == ("person:ann", "only the scales are new", 0)
    posted = bridge.send(run, "put_off", {}, "ann")
    assert asyncio.run(bridge.settle(run, posted))[0]["result"] == "taken"
    assert say(bridge, run).state == "shelf"  # 30 g: the old guard would have torn it up
    assert say(bridge, run).outcome == "sent"
    after = read_snapshot(store, run)
    assert (after.context["grams"], after.context["postage"]) == (GRAMS, 2)


def test_the_old_machine_would_have_ended_otherwise(tmp_path, store):
    """The change matters: under the old version the same facts lead elsewhere."""
    bridge = helm(tmp_path, store, OLD_LETTERS)
    assert say(bridge, begin(bridge)).state == "torn"


def test_replay_says_which_entries_it_could_decide_again(tmp_path, store):
    """Entries of the other version are counted and named, the others are decided again to the same."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    bridge = helm(tmp_path, store, NEW_LETTERS)
    asyncio.run(bridge.migrate(run, "ann", "only the scales are new"))
    say(bridge, run)
    say(bridge, run)
    by_new, by_old = replay_run(store, NEW_LETTERS, run), replay_run(store, OLD_LETTERS, run)
    assert (by_new.same, by_new.different, by_new.other_version) == (3, 0, 1)
    assert [(d.seq, d.verdict, d.detail) for d in by_new.decisions] == [
        (1, "other version", OLD_LETTERS.digest)
    ]
    assert (by_old.same, by_old.different, by_old.other_version) == (1, 0, 3)
    whole = on_the_shelf(tmp_path, store)
    assert replay_run(store, OLD_LETTERS, whole).same == 3


@pytest.mark.parametrize("reason", ["", "   ", "\u200b\u2060"])
def test_a_migration_needs_a_reason(tmp_path, store, reason):
    """Nobody takes a run over without saying why."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    with pytest.raises(UserError, match="a migration needs --reason"):
        asyncio.run(helm(tmp_path, store, NEW_LETTERS).migrate(run, "ann", reason))


def test_a_migration_of_a_current_run_is_refused(tmp_path, store):
    """A run that is on the current definition has nowhere to go."""
    bridge = helm(tmp_path, store, OLD_LETTERS)
    with pytest.raises(UserError, match="is on the current definition already"):
        asyncio.run(bridge.migrate(begin(bridge), "ann", "because"))


def test_a_run_that_is_driven_is_not_migrated(tmp_path, store):
    """Two never move one run: whoever drives it has to stop first."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    bridge = helm(tmp_path, store, NEW_LETTERS)
    assert bridge.ports.locks.acquire(run) is not None
    with pytest.raises(UserError, match="is driven by"):
        asyncio.run(bridge.migrate(run, "ann", "because"))


def test_an_older_machine_does_not_take_a_newer_run(tmp_path, store):
    """Going back is refused: the older version would lose what it does not know."""
    bridge = helm(tmp_path, store, NEW_LETTERS)
    run = begin(bridge)
    say(bridge, run)
    with pytest.raises(
        ContractError, match="its context is version 2, this letters knows 1: upgrade steersman"
    ):
        asyncio.run(Driver(helm(tmp_path, store, OLD_LETTERS).ports).drive(run))


def test_an_old_event_is_read_in_its_new_form(tmp_path, store):
    """What the first version recorded is upcast when the second one reads it."""
    bridge = helm(tmp_path, store, OLD_LETTERS)
    run = begin(bridge)
    posted = bridge.send(run, "noted", {"at": "harbour"}, "ann")
    assert asyncio.run(bridge.settle(run, posted))[0]["result"] == "taken"
    (entry,) = [e for e, _ in verify_chain(store.rows(run), run) if e.event == "noted"]
    assert (entry.event_version, entry.data) == (1, {"at": "harbour"})
    assert typed_event_data(NEW_LETTERS, entry) == PlaceFacts(place="harbour", by="unknown")


def test_a_definition_that_the_store_does_not_have_is_not_guessed(tmp_path, store):
    """Without the old definition nothing can be compared: the run is refused until somebody looks at it."""
    run = begin(helm(tmp_path, store, OLD_LETTERS))
    store._write.execute("DELETE FROM definition")
    with pytest.raises(ContractError, match="which the store does not have"):
        asyncio.run(Driver(helm(tmp_path, store, NEW_LETTERS).ports).drive(run))
    head = asyncio.run(helm(tmp_path, store, NEW_LETTERS).migrate(run, "ann", "the store was rebuilt"))
    assert msgspec.json.decode(store.definition(NEW_LETTERS.digest))["name"] == "letters"
    assert head.definition == NEW_LETTERS.digest
