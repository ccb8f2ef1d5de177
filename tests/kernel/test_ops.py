"""Ops: the only way a context changes, the same on a typed context and on what is read back from the tape."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import DefinitionError
from steersman.kernel.canonical import canonical_bytes, plain_value
from steersman.kernel.ops import Log, apply_count_ops, apply_ops, apply_ops_to_plain


class Context(msgspec.Struct, kw_only=True):
    """One field of each kind, with defaults that are not empty."""

    word: str = "begin"
    number: int = 7
    table: dict[str, int] = msgspec.field(default_factory=lambda: {"a": 1})
    items: list[str] = []
    log: Log = Log()


class Carried(msgspec.Struct, frozen=True):
    """What an event carries; nothing is left out."""

    word: str = "x"
    items: list[str] = []


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an event carries; defaults are left out."""

    word: str = "x"
    items: list[str] = msgspec.field(default_factory=list)
    asked: int


keys = st.sampled_from(("a", "b", "\ue000"))
ops = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.just("word"), st.text(max_size=3)),
        st.tuples(st.just("set"), st.just("items"), st.lists(st.text(max_size=2), max_size=2)),
        st.tuples(st.just("take"), st.just("word"), st.just("word")),
        st.tuples(st.just("take"), st.just("items"), st.just("items")),
        st.tuples(st.just("add"), st.just("number"), st.integers(-9, 9)),
        st.tuples(st.just("put"), st.just("table"), keys, st.integers(0, 9)),
        st.tuples(st.just("drop"), st.just("table"), keys),
        st.tuples(st.just("append"), st.just("log"), st.dictionaries(keys, st.integers(0, 9), max_size=2)),
    ),
    max_size=12,
)


@given(ops, st.builds(Carried, word=st.text(max_size=3), items=st.lists(st.text(max_size=2), max_size=2)))
def test_live_and_plain_application_agree(ops, data):
    """Ops on the typed context and, read back, on its plain form give the same context."""
    live = apply_ops(Context(), ops, data)
    back = apply_ops_to_plain(plain_value(Context()), plain_value(ops), plain_value(data))
    assert canonical_bytes(back) == canonical_bytes(live)


@given(ops)
def test_the_given_context_is_left_alone(ops):
    """Applying ops gives a new context; whoever holds the old one sees nothing."""
    before = Context()
    kept = canonical_bytes(before)
    apply_ops(before, ops, Carried())
    apply_ops_to_plain(plain_value(before), plain_value(ops), plain_value(Carried()))
    assert canonical_bytes(before) == kept


def test_a_context_without_a_field_yet_gets_it():
    """On a tape of an older version, whose context lacks a field, ops still apply."""
    steps = [("add", "n", 2), ("put", "t", "k", 1), ("drop", "u", "k"), ("append", "l", 1), ("set", "w", 0)]
    after = apply_ops_to_plain({}, [*steps, ("take", "v", "word")], {"word": "x"})
    assert after["v"] == "x"
    assert (after["n"], after["t"], after["u"], after["w"], after["l"]["count"]) == (2, {"k": 1}, {}, 0, 1)


def test_an_unknown_op_is_refused():
    """An op that this version does not know stops the reading: it is never skipped."""
    with pytest.raises(ValueError, match="unknown op 'twist': this tape was written by a newer steersman"):
        apply_ops(Context(), [("twist", "word", 1)])


@pytest.mark.parametrize("name", ["word", "items"])
def test_a_default_that_is_left_out_cannot_be_taken(name):
    """Taking a value that the entry's data leaves out would be unreadable later: it is stopped at once."""
    with pytest.raises(DefinitionError, match=f"a fold takes {name} from a Sparse that leaves it out"):
        apply_ops(Context(), [("take", name, name)], Sparse(asked=1))
    assert apply_ops(Context(), [("take", "number", "asked")], Sparse(asked=1)).number == 1
    assert apply_ops(Context(), [("take", "word", "word")], Sparse(word="y", asked=1)).word == "y"


def test_a_log_is_known_by_count_and_rolling_digest():
    """Two logs with the same items in the same order are equal, and another order is another log."""
    one = Log().after(1).after(2)
    assert one == Log().after(1).after(2)
    assert one != Log().after(2).after(1)
    assert (one.count, len(one.digest)) == (2, 64)


def test_tallies_count_and_clear():
    """Counters add up by key; clearing a cap clears its keys and no namesake's."""
    counts = apply_count_ops(
        {},
        [
            ("count", "a:x", 1),
            ("count", "a:y", 1),
            ("count", "a:x", 1),
            ("count", "ab", 1),
            ("count", "a", 1),
        ],
    )
    assert counts == {"a:x": 2, "a:y": 1, "ab": 1, "a": 1}
    assert apply_count_ops(counts, [("clear", "a")]) == {"ab": 1}
