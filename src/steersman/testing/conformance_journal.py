"""What every adapter of the `Journal` port has to do; a test module inherits the suite and supplies one fixture.

    class TestMine(JournalConformance):
        @pytest.fixture
        def journal(self, tmp_path): ...   # empty; closed by the suite

**Invariant:** speaks to the adapter through the port alone.
"""

import threading
from collections.abc import Iterator

import pytest
from msgspec import structs

from steersman.errors import OverBudget, StaleError
from steersman.ports.journal import Batch, BudgetRow, Journal, Spend
from steersman.testing.conformance_journal_lists import JournalListsConformance
from steersman.testing.journal_samples import (
    SAMPLE_RUN,
    SAMPLE_TIME,
    full_sample_batch,
    journal_contents,
    sample_batch,
    sample_entry,
    sample_gate,
    sample_head,
)


class JournalConformance(JournalListsConformance):
    """One claim of the port per method; `journal` comes from the inheriting class."""

    @pytest.fixture(autouse=True)
    def _closed(self, journal: Journal) -> Iterator[None]:
        yield
        journal.close()

    # ── append and its fence ────────────────────────────────────────────────────────────────────────────────────────

    def test_an_empty_store_has_nothing(self, journal: Journal) -> None:
        """Whatever is asked for by name is not there, and lists are empty."""
        assert journal_contents(journal) == [None, [], None, [], None, None, [], [], [], [], []]
        assert (journal.gate("g"), journal.verdict(1), journal.payload(SAMPLE_RUN, "p")) == (None, None, None)
        assert (journal.quarantined(), journal.due(SAMPLE_TIME), journal.children(SAMPLE_RUN)) == ({}, [], [])
        assert journal.list_traced_runs() == []

    def test_what_is_appended_is_there(self, journal: Journal) -> None:
        """Every part of a batch is read back as it was given."""
        full_batch = full_sample_batch()
        journal.append(full_batch)
        assert (journal.head(SAMPLE_RUN), journal.list_traced_runs()) == (full_batch.head, [SAMPLE_RUN])
        assert list(journal.rows(SAMPLE_RUN)) == list(full_batch.entries)
        assert journal.snapshot(SAMPLE_RUN) == (1, b"snapshot")
        assert (journal.payload(SAMPLE_RUN, "p-1"), list(journal.payload_refs(SAMPLE_RUN))) == (
            b"text",
            ["p-1"],
        )
        assert (journal.key(SAMPLE_RUN), journal.definition("d1")) == (b"k" * 32, b'{"name":"table"}')
        assert (
            journal.gates()
            == journal.gates(SAMPLE_RUN)
            == [sample_gate()]
            == [journal.gate(sample_gate().id)]
        )
        assert journal.budget(SAMPLE_RUN) == [BudgetRow("turns", 0, 1, 10)]
        (posted,) = journal.pending("other")
        assert (posted.kind, posted.body, posted.at) == ("child", {"item": "x"}, full_batch.head.at)

    def test_a_run_is_created_once(self, journal: Journal) -> None:
        """Creating it again is refused and changes nothing."""
        journal.append(sample_batch())
        before = journal_contents(journal)
        with pytest.raises(StaleError, match=f"run {SAMPLE_RUN} exists already"):
            journal.append(full_sample_batch())
        assert journal_contents(journal) == before

    @pytest.mark.parametrize(
        "wrong", [{"expect_epoch": 0}, {"expect_epoch": 2}, {"expect_seq": 2}, {"expect_seq": 9}]
    )
    def test_a_stale_writer_changes_nothing(self, journal: Journal, wrong: dict[str, int]) -> None:
        """A writer with another epoch or another position gets the error that it does not own the run."""
        journal.append(sample_batch())
        before = journal_contents(journal)
        late = structs.replace(
            full_sample_batch(), head=sample_head(seq=2), **{"expect_seq": 1, "expect_epoch": 1, **wrong}
        )
        with pytest.raises(StaleError, match=f"run {SAMPLE_RUN} has moved on"):
            journal.append(late)
        assert journal_contents(journal) == before

    def test_a_run_that_is_not_there_cannot_go_on(self, journal: Journal) -> None:
        """Appending to nothing is stale."""
        with pytest.raises(StaleError):
            journal.append(sample_batch(seq=2))
        assert journal_contents(journal) == [None, [], None, [], None, None, [], [], [], [], []]

    def test_a_new_owner_shuts_out_the_old_one(self, journal: Journal) -> None:
        """After a claim with the next epoch the owner before it is stale, whatever position it thinks it has."""
        journal.append(sample_batch())
        journal.append(sample_batch(seq=2, head={"epoch": 2}))
        for position in (1, 2):
            with pytest.raises(StaleError):
                journal.append(sample_batch(seq=position + 1))
        journal.append(sample_batch(seq=3, expect_epoch=2, head={"epoch": 2}))
        assert [row[0] for row in journal.rows(SAMPLE_RUN)] == [1, 2, 3]

    def test_what_a_run_was_created_as_stays(self, journal: Journal) -> None:
        """Root, parent, machine, title and creation are never changed by a later batch."""
        first = sample_batch(head={"title": "first", "parent": "p", "root": "r"})
        journal.append(first)
        other = {"title": "x", "parent": "y", "root": "r", "machine": "z", "created": 1, "state": "build"}
        journal.append(sample_batch(seq=2, head=other))
        now = journal.head(SAMPLE_RUN)
        assert now == structs.replace(sample_head(seq=2, state="build"), title="first", parent="p", root="r")

    def test_a_quiet_batch_moves_a_run_on(self, journal: Journal) -> None:
        """State, position and time are new, all else is as it was stored; the fence holds."""
        journal.append(sample_batch(head={"due": SAMPLE_TIME, "status": "waiting until"}))
        new = {
            "state": "build",
            "due": None,
            "status": "done",
            "outcome": "x",
            "definition": "d2",
            "epoch": 9,
        }
        with pytest.raises(StaleError):
            journal.append(sample_batch(seq=2, quiet=True, expect_epoch=9, head=new))
        journal.append(sample_batch(seq=2, quiet=True, head=new))
        assert journal.head(SAMPLE_RUN) == sample_head(
            seq=2, state="build", due=SAMPLE_TIME, status="waiting until"
        )

    def test_several_entries_in_one_commit(self, journal: Journal) -> None:
        """A batch may hold many entries; they are read in order, from any place on."""
        journal.append(sample_batch())
        more = tuple(sample_entry(SAMPLE_RUN, n) for n in range(2, 6))
        journal.append(structs.replace(sample_batch(seq=5), expect_seq=1, expect_epoch=1, entries=more))
        assert [row[0] for row in journal.rows(SAMPLE_RUN)] == [1, 2, 3, 4, 5]
        assert list(journal.rows(SAMPLE_RUN, 3)) == [sample_entry(SAMPLE_RUN, 4), sample_entry(SAMPLE_RUN, 5)]
        assert list(journal.rows(SAMPLE_RUN, 5)) == []

    def test_a_batch_without_entries_still_counts(self, journal: Journal) -> None:
        """A verdict alone can be written; the position stays, and the fence holds for it too."""
        journal.append(sample_batch())
        posted = journal.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME)
        same = Batch(
            head=sample_head(), expect_seq=1, expect_epoch=1, taken=((posted, {"result": "refused"}),)
        )
        journal.append(same)
        assert (journal.head(SAMPLE_RUN), journal.verdict(posted)) == (sample_head(), {"result": "refused"})
        with pytest.raises(StaleError):
            journal.append(structs.replace(same, expect_epoch=0, taken=()))

    def test_atomicity(self, journal: Journal) -> None:
        """When the last part of a batch fails, nothing of the others is kept."""
        journal.append(sample_batch(spends=(Spend(SAMPLE_RUN, "turns", limit=1),)))
        journal.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME)
        before = journal_contents(journal)
        rest = structs.replace(
            full_sample_batch(),
            head=sample_head(seq=2),
            expect_seq=1,
            expect_epoch=1,
            entries=(sample_entry(SAMPLE_RUN, 2),),
        )
        over = (*rest.spends[1:], Spend(SAMPLE_RUN, "turns", reserved=1, bound=True))
        with pytest.raises(OverBudget):
            journal.append(structs.replace(rest, taken=((1, {}),), spends=over))
        assert journal_contents(journal) == before

    # ── many at once ────────────────────────────────────────────────────────────────────────────────────────────────

    def test_a_stale_item_of_a_group_fails_alone(self, journal: Journal) -> None:
        """Of many submitted together each gets its own verdict; the others are kept."""
        journal.append(sample_batch("r0"))
        batches = [
            *(sample_batch(f"r{n}") for n in range(1, 9)),
            sample_batch("r0"),
            sample_batch("r0", 2, expect_epoch=7),
            sample_batch(
                "r9", spends=(Spend("r9", "turns", limit=0), Spend("r9", "turns", reserved=1, bound=True))
            ),
            *(sample_batch(f"r{n}") for n in range(10, 14)),
        ]
        errors = _submit_batches(journal, batches)
        kinds = [type(error) for error in errors]
        none = type(None)
        assert kinds == [none] * 8 + [StaleError, StaleError, OverBudget] + [none] * 4
        assert sorted(journal.find_runs("r")) == sorted(
            ["r0", *(f"r{n}" for n in range(1, 9)), "r10", "r11", "r12", "r13"]
        )
        assert journal.head("r9") is None
        assert journal.budget("r9") == []

    def test_a_chain_of_submits_keeps_its_order(self, journal: Journal) -> None:
        """Batches of one run that are submitted one after the other are kept one after the other."""
        errors = _submit_batches(journal, [sample_batch(seq=n) for n in range(1, 31)])
        assert errors == [None] * 30
        assert [row[0] for row in journal.rows(SAMPLE_RUN)] == list(range(1, 31))

    def test_a_poisoned_item_of_a_group_fails_alone(self, journal: Journal) -> None:
        """A batch that cannot be stored at all does not take its neighbours with it."""
        bad = structs.replace(sample_batch("bad"), entries=((1, b"x", "not a hash"), (1, b"x", "nor this")))
        errors = _submit_batches(journal, [sample_batch("a"), bad, sample_batch("b")])
        assert (errors[0], errors[2]) == (None, None)
        assert journal.find_runs("") in (["a", "b"], ["a", "b", "bad"])

    # ── inbox and gates ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_the_inbox_keeps_its_order(self, journal: Journal) -> None:
        """What is posted first is pending first, for each run on its own, with what it carries."""
        ids = [
            journal.post(run, "event", {"n": n, "ü": [None, True]}, SAMPLE_TIME + n)
            for n, run in enumerate("abab")
        ]
        assert ids == sorted(set(ids))
        items = [(p.id, p.run, p.kind, p.body, p.at) for p in journal.pending("a")]
        assert items == [(ids[n], "a", "event", {"n": n, "ü": [None, True]}, SAMPLE_TIME + n) for n in (0, 2)]

    def test_a_posted_event_is_taken_once(self, journal: Journal) -> None:
        """It has no verdict, then one, for ever; taking it again is stale and changes nothing."""
        journal.append(sample_batch())
        posted = journal.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME)
        assert (journal.verdict(posted), len(journal.pending(SAMPLE_RUN))) == (None, 1)
        journal.append(sample_batch(seq=2, taken=((posted, {"result": "taken", "seq": 2}),)))
        assert (journal.verdict(posted), journal.pending(SAMPLE_RUN)) == ({"result": "taken", "seq": 2}, [])
        before = journal_contents(journal)
        with pytest.raises(StaleError, match=f"inbox item {posted} was taken already"):
            journal.append(sample_batch(seq=3, taken=((posted, {"result": "taken", "seq": 3}),)))
        assert journal_contents(journal) == before
        assert journal.verdict(posted) == {"result": "taken", "seq": 2}

    def test_an_unknown_inbox_item_cannot_be_taken(self, journal: Journal) -> None:
        """A verdict about nothing is refused."""
        with pytest.raises(StaleError):
            journal.append(sample_batch(taken=((99, {}),)))
        assert journal.head(SAMPLE_RUN) is None

    def test_a_gate_is_answered_once(self, journal: Journal) -> None:
        """The first answer is in the inbox and shown on the gate; the second gets None and changes nothing."""
        journal.append(sample_batch(gates=(sample_gate(),)))
        first = journal.answer(
            sample_gate().id, "tree", {"choice": "approve", "person": "ann", "digest": "tree"}, SAMPLE_TIME
        )
        before = journal_contents(journal)
        assert (
            journal.answer(sample_gate().id, "tree", {"choice": "reject", "person": "bob"}, SAMPLE_TIME)
            is None
        )
        assert journal_contents(journal) == before
        (posted,) = journal.pending(SAMPLE_RUN)
        answer_body = {"gate": sample_gate().id, "choice": "approve", "person": "ann", "digest": "tree"}
        assert (posted.id, posted.kind, posted.body, posted.at) == (first, "answer", answer_body, SAMPLE_TIME)
        assert journal.gate(sample_gate().id) == sample_gate(answer="approve", person="ann")

    def test_an_answer_about_something_else_is_none(self, journal: Journal) -> None:
        """Another digest, or a gate that is not there, takes no answer."""
        journal.append(sample_batch(gates=(sample_gate(),)))
        before = journal_contents(journal)
        assert journal.answer(sample_gate().id, "another tree", {"choice": "approve"}, SAMPLE_TIME) is None
        assert journal.answer("nobody:1:1", "tree", {"choice": "approve"}, SAMPLE_TIME) is None
        assert journal_contents(journal) == before

    def test_a_closed_gate_is_gone(self, journal: Journal) -> None:
        """Closing removes it; closing what is not there is nothing."""
        journal.append(sample_batch(gates=(sample_gate(), sample_gate(f"{SAMPLE_RUN}:1:2"))))
        journal.append(sample_batch(seq=2, closed=(sample_gate().id, f"{SAMPLE_RUN}:1:9")))
        assert journal.gates(SAMPLE_RUN) == [sample_gate(f"{SAMPLE_RUN}:1:2")]
        assert journal.answer(sample_gate().id, "tree", {"choice": "approve"}, SAMPLE_TIME) is None

    def test_an_opened_gate_is_not_opened_anew(self, journal: Journal) -> None:
        """A gate that is there keeps its answer when a batch names it again."""
        journal.append(sample_batch(gates=(sample_gate(),)))
        journal.answer(sample_gate().id, "tree", {"choice": "approve", "person": "ann"}, SAMPLE_TIME)
        journal.append(sample_batch(seq=2, gates=(sample_gate(digest="other"),)))
        assert journal.gate(sample_gate().id) == sample_gate(answer="approve", person="ann")

    def test_many_answer_one_wins(self, journal: Journal) -> None:
        """Of answers from several threads exactly one is taken."""
        journal.append(sample_batch(gates=(sample_gate(),)))
        won: list[int | None] = []
        threads = [
            threading.Thread(
                target=lambda n=n: won.append(
                    journal.answer(
                        sample_gate().id, "tree", {"choice": "approve", "person": str(n)}, SAMPLE_TIME
                    )
                )
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), won.count(None), len(journal.pending(SAMPLE_RUN))) == (8, 7, 1)

    # ── payloads ────────────────────────────────────────────────────────────────────────────────────────────────────

    @pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 3_000_000])
    def test_payloads_of_any_size(self, journal: Journal, size: int) -> None:
        """Small or large, they come back byte for byte; a name keeps its first bytes; roots are apart."""
        data = bytes(n % 251 for n in range(256)) * (size // 256 + 1)
        data = data[:size]
        journal.append(sample_batch(payloads=(("p-1", data), ("p-2", b"\xff\x00"))))
        journal.append(sample_batch(seq=2, payloads=(("p-1", b"other"),)))
        assert journal.payload(SAMPLE_RUN, "p-1") == data
        assert journal.payload(SAMPLE_RUN, "p-2") == b"\xff\x00"
        assert list(journal.payload_refs(SAMPLE_RUN)) == ["p-1", "p-2"]
        assert journal.payload("another root", "p-1") is None

    def test_payloads_can_be_kept_before_their_event(self, journal: Journal) -> None:
        """A person's longer words are there before what names them is posted."""
        journal.append(sample_batch())
        journal.store_payloads(SAMPLE_RUN, (("p-1", b"words"), ("p-2", b"w" * 100_000)))
        assert (journal.payload(SAMPLE_RUN, "p-1"), len(journal.payload(SAMPLE_RUN, "p-2") or b"")) == (
            b"words",
            100_000,
        )

    def test_a_refused_batch_leaves_no_payload(self, journal: Journal) -> None:
        """A large payload of a stale batch is not there afterwards."""
        journal.append(sample_batch())
        with pytest.raises(StaleError):
            journal.append(sample_batch(payloads=(("p-1", b"x" * 100_000),)))
        assert (journal.payload(SAMPLE_RUN, "p-1"), list(journal.payload_refs(SAMPLE_RUN))) == (None, [])

    # ── snapshots, definitions, keys ────────────────────────────────────────────────────────────────────────────────

    def test_a_snapshot_is_replaced(self, journal: Journal) -> None:
        """Only the newest is kept, with its position; a batch without one leaves it."""
        journal.append(sample_batch(snapshot=b"one"))
        journal.append(sample_batch(seq=2, snapshot=b"two"))
        journal.append(sample_batch(seq=3))
        assert journal.snapshot(SAMPLE_RUN) == (2, b"two")

    def test_definition_and_key_are_kept_once(self, journal: Journal) -> None:
        """The first definition of a digest and the first key of a tree stay."""
        journal.append(sample_batch(definition=("d1", b'{"n":1}'), key=b"1" * 32))
        journal.append(sample_batch(seq=2, definition=("d1", b'{"n":2}'), key=b"2" * 32))
        assert (journal.definition("d1"), journal.key(SAMPLE_RUN)) == (b'{"n":1}', b"1" * 32)

    # ── keeping house ───────────────────────────────────────────────────────────────────────────────────────────────

    def test_prune_drops_texts_and_key(self, journal: Journal) -> None:
        """With its batch, or not at all; tape and head stay."""
        payloads = (("p-1", b"text"), ("p-2", b"x" * 100_000))
        journal.append(sample_batch(payloads=payloads, key=b"k" * 32, head={"status": "done"}))
        journal.append(sample_batch("other", payloads=payloads, key=b"o" * 32))
        with pytest.raises(StaleError):
            journal.prune(sample_batch(seq=2, expect_epoch=9), SAMPLE_RUN)
        assert (journal.payload(SAMPLE_RUN, "p-2"), journal.key(SAMPLE_RUN)) == (b"x" * 100_000, b"k" * 32)
        assert journal.prune(sample_batch(seq=2, head={"status": "done"}), SAMPLE_RUN) == 2
        assert (
            list(journal.payload_refs(SAMPLE_RUN)),
            journal.payload(SAMPLE_RUN, "p-1"),
            journal.payload(SAMPLE_RUN, "p-2"),
        ) == ([], None, None)
        assert (journal.key(SAMPLE_RUN), [row[0] for row in journal.rows(SAMPLE_RUN)]) == (None, [1, 2])
        assert (journal.payload("other", "p-2"), journal.key("other")) == (b"x" * 100_000, b"o" * 32)

    def test_quarantine_names_a_run(self, journal: Journal) -> None:
        """It is listed with its reason, once, the last reason counting; the run can still be read."""
        journal.append(sample_batch())
        journal.quarantine(SAMPLE_RUN, "entry 1: unreadable")
        journal.quarantine(SAMPLE_RUN, "entry 2: missing")
        assert journal.quarantined() == {SAMPLE_RUN: "entry 2: missing"}
        assert journal.head(SAMPLE_RUN) is not None

    def test_a_quarantine_is_lifted_once(self, journal: Journal) -> None:
        """The run released is no longer listed, the others are; a second release, or one of an unknown run, finds nothing."""
        journal.append(sample_batch())
        journal.quarantine(SAMPLE_RUN, "entry 1: unreadable")
        journal.quarantine("other", "entry 2: missing")
        assert journal.lift_quarantine(SAMPLE_RUN)
        assert journal.quarantined() == {"other": "entry 2: missing"}
        assert not journal.lift_quarantine(SAMPLE_RUN)
        assert not journal.lift_quarantine("nobody")

    def test_rows_of_runs_that_are_not_there(self, journal: Journal) -> None:
        """What a run has written is no stray; rows of a run that the store does not have are, table by table."""
        journal.append(
            sample_batch(payloads=(("p-1", b"x"),), key=b"k" * 32, spends=(Spend(SAMPLE_RUN, "turns", 1),))
        )
        journal.post(SAMPLE_RUN, "event", {}, SAMPLE_TIME)
        assert journal.list_strays() == []
        journal.post("nobody", "event", {}, SAMPLE_TIME)
        journal.quarantine("nobody", "forged")
        journal.store_payloads("nobody", (("p-1", b"x"),))
        assert journal.list_strays() == [
            f"there are rows in {table} of run nobody, which the store does not have"
            for table in ("inbox", "quarantine", "payload")
        ]

    def test_a_store_in_use_is_whole(self, journal: Journal) -> None:
        """Nothing is wrong with it, new or written to."""
        assert journal.integrity() == []
        journal.append(full_sample_batch())
        assert journal.integrity() == []

    def test_a_change_is_noticed(self, journal: Journal) -> None:
        """The number differs after something was written."""
        before = journal.changed()
        journal.append(sample_batch())
        assert journal.changed() != before


def _submit_batches(journal: Journal, batches: list[Batch]) -> list[BaseException | None]:
    """Submits all and waits for every verdict, in the order of the batches."""
    errors: dict[int, BaseException | None] = {}
    ready = threading.Event()

    def done(n: int, error: BaseException | None) -> None:
        errors[n] = error
        if len(errors) == len(batches):
            ready.set()

    for n, batch_item in enumerate(batches):
        journal.submit(batch_item, lambda error, n=n: done(n, error))  # type: ignore[misc]  # n is bound now
    assert ready.wait(30), f"only {len(errors)} of {len(batches)} got a verdict"
    return [errors[n] for n in range(len(batches))]
