"""What every adapter of the `Journal` port does with budgets and with lists of runs; part of `JournalConformance`.

**Invariant:** speaks to the adapter through the port alone.
"""

import pytest

from steersman.errors import OverBudget
from steersman.ports.journal import BudgetRow, Journal, Spend
from steersman.testing.journal_samples import SAMPLE_RUN, SAMPLE_TIME, journal_contents, sample_batch


class JournalListsConformance:
    """One claim of the port per method; `journal` comes from the inheriting class."""

    # ── budgets ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_a_bound_reservation_refuses(self, journal: Journal) -> None:
        """What fits is reserved to the last unit; one more is OverBudget, which names run and figure."""
        journal.append(
            sample_batch(spends=(Spend(SAMPLE_RUN, "tokens", limit=10), Spend(SAMPLE_RUN, "turns", limit=2)))
        )
        journal.append(
            sample_batch(
                seq=2,
                spends=(
                    Spend(SAMPLE_RUN, "tokens", spent=4),
                    Spend(SAMPLE_RUN, "tokens", reserved=6, bound=True),
                ),
            )
        )
        before = journal_contents(journal)
        with pytest.raises(OverBudget) as caught:
            journal.append(
                sample_batch(
                    seq=3,
                    spends=(
                        Spend(SAMPLE_RUN, "turns", reserved=1, bound=True),
                        Spend(SAMPLE_RUN, "tokens", reserved=1, bound=True),
                    ),
                )
            )
        assert (caught.value.run, caught.value.name) == (SAMPLE_RUN, "tokens")
        assert journal_contents(journal) == before
        assert journal.budget(SAMPLE_RUN) == [BudgetRow("tokens", 4, 6, 10), BudgetRow("turns", 0, 0, 2)]

    def test_settling_is_never_refused(self, journal: Journal) -> None:
        """What was really used is written down even beyond the limit."""
        journal.append(
            sample_batch(
                spends=(
                    Spend(SAMPLE_RUN, "tokens", limit=10),
                    Spend(SAMPLE_RUN, "tokens", reserved=5, bound=True),
                )
            )
        )
        journal.append(sample_batch(seq=2, spends=(Spend(SAMPLE_RUN, "tokens", spent=50, reserved=-5),)))
        assert journal.budget(SAMPLE_RUN) == [BudgetRow("tokens", 50, 0, 10)]

    def test_a_raised_limit_counts_at_once(self, journal: Journal) -> None:
        """A limit and a reservation that fits it may come in one batch; a figure without a limit has none."""
        journal.append(
            sample_batch(
                spends=(
                    Spend(SAMPLE_RUN, "tokens", limit=1),
                    Spend(SAMPLE_RUN, "ms", reserved=10**12, bound=True),
                )
            )
        )
        raised = (
            Spend(SAMPLE_RUN, "tokens", limit=100),
            Spend(SAMPLE_RUN, "tokens", reserved=100, bound=True),
        )
        journal.append(sample_batch(seq=2, spends=raised))
        assert journal.budget(SAMPLE_RUN) == [
            BudgetRow("ms", 0, 10**12, None),
            BudgetRow("tokens", 0, 100, 100),
        ]

    def test_a_reservation_at_an_ancestor_counts_for_all(self, journal: Journal) -> None:
        """Two children share what their parent has left; the refused one keeps nothing anywhere."""
        journal.append(sample_batch("top", spends=(Spend("top", "turns", limit=1),)))

        def spends(run: str) -> tuple[Spend, ...]:
            return tuple(Spend(owner, "turns", reserved=1, bound=True) for owner in (run, "top"))

        journal.append(sample_batch("one", spends=spends("one")))
        with pytest.raises(OverBudget) as caught:
            journal.append(sample_batch("two", spends=spends("two")))
        assert (caught.value.run, journal.head("two"), journal.budget("two")) == ("top", None, [])

    # ── listing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_heads_are_listed_newest_first(self, journal: Journal) -> None:
        """All of them, or only the unfinished ones, as many as asked for."""
        statuses = ("working", "done", "waiting for you", "stopped", "waiting until")
        for n, status in enumerate(statuses):
            journal.append(sample_batch(f"r{n}", head={"status": status, "created": SAMPLE_TIME + n}))
        assert [h.run for h in journal.heads()] == ["r4", "r3", "r2", "r1", "r0"]
        assert [h.run for h in journal.heads(unfinished=True)] == ["r4", "r2", "r0"]
        assert [h.run for h in journal.heads(limit=2)] == ["r4", "r3"]
        assert [h.run for h in journal.heads(unfinished=True, limit=1)] == ["r4"]

    def test_heads_of_one_moment_have_an_order(self, journal: Journal) -> None:
        """Runs of the same millisecond are listed by name, the last first."""
        for run in ("b", "c", "a"):
            journal.append(sample_batch(run, head={"created": SAMPLE_TIME}))
        assert [h.run for h in journal.heads()] == ["c", "b", "a"]

    def test_a_run_that_ends_leaves_the_unfinished(self, journal: Journal) -> None:
        """The list follows the last batch."""
        journal.append(sample_batch())
        journal.append(sample_batch(seq=2, head={"status": "done", "outcome": "approved"}))
        assert journal.heads(unfinished=True) == []
        journal.append(sample_batch(seq=3, head={"status": "working"}))
        assert [h.run for h in journal.heads(unfinished=True)] == [SAMPLE_RUN]

    def test_runs_are_found_by_prefix(self, journal: Journal) -> None:
        """In order, at most 20; signs that mean something in a query mean nothing here."""
        for run in ("ab", "abc", "ab.1.1", "b", "a%", "a_", "aé", *(f"z{n:02}" for n in range(30))):
            journal.append(sample_batch(run))
        assert journal.find_runs("ab") == ["ab", "ab.1.1", "abc"]
        assert (journal.find_runs("a%"), journal.find_runs("a_"), journal.find_runs("aé")) == (
            ["a%"],
            ["a_"],
            ["aé"],
        )
        assert (journal.find_runs("x"), len(journal.find_runs("z"))) == ([], 20)

    def test_children_are_found(self, journal: Journal) -> None:
        """By their parent, in the order of their creation; without a parent there are none."""
        journal.append(sample_batch("p"))
        for n, child in enumerate(("p.2.1", "p.1.1", "p.3.1")):
            journal.append(sample_batch(child, head={"parent": "p", "root": "p", "created": SAMPLE_TIME + n}))
        assert [h.run for h in journal.children("p")] == ["p.2.1", "p.1.1", "p.3.1"]
        assert (journal.children("p.1.1"), journal.children("")) == ([], [])

    def test_a_tree_is_found(self, journal: Journal) -> None:
        """Everything that shares a root, in the order of its creation."""
        for n, (run, root) in enumerate((("r", "r"), ("fork", "r"), ("r.1.1", "r"), ("s", "s"))):
            journal.append(sample_batch(run, head={"root": root, "created": SAMPLE_TIME + n}))
        assert [h.run for h in journal.tree("r")] == ["r", "fork", "r.1.1"]
        assert journal.tree("x") == []

    def test_due_runs_are_found(self, journal: Journal) -> None:
        """Those whose time has come, the longest due first."""
        for run, due in (("a", SAMPLE_TIME + 5), ("b", SAMPLE_TIME + 3), ("c", None), ("d", SAMPLE_TIME + 9)):
            journal.append(sample_batch(run, head={"due": due}))
        assert [h.run for h in journal.due(SAMPLE_TIME + 5)] == ["b", "a"]
        journal.append(sample_batch("b", 2, head={"due": None}))
        assert [h.run for h in journal.due(SAMPLE_TIME + 5)] == ["a"]
