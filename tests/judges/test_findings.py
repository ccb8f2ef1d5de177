"""Findings keep their names from round to round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.judges.findings import compare, finding_id


@pytest.mark.parametrize(
    "other",
    [
        "the loop   never ends!",
        "The Loop never ends.",
        "`the loop` never\nends",
        "ＴＨＥ loop never ends",
        "(The loop) never ends…",
    ],
)
def test_same_words(other):
    """Case, spacing, punctuation and width do not make a new finding."""
    assert finding_id(other) == finding_id("The loop never ends")


@pytest.mark.parametrize(
    ("one", "other"), [("a < b", "a > b"), ("fix a", "fix b"), ("???", "!!!"), ("x = 1", "x 1")]
)
def test_other_words(one, other):
    """Other words, and symbols that carry meaning, are another finding."""
    assert finding_id(one) != finding_id(other)


@given(st.text(st.characters()))
def test_shape(text):
    """Any text has an id: f- and ten hex digits, the same each time."""
    name = finding_id(text)
    assert name == finding_id(text)
    assert name.startswith("f-")
    assert len(bytes.fromhex(name[2:])) == 5


def test_compare():
    """Ids are sorted into opened, still open and fixed, each once, in a stable order."""
    found = compare({"a": 1, "b": 1, "c": 2}, ["d", "b", "d", "e"])
    assert (found.opened, found.still, found.fixed) == (("d", "e"), ("b",), ("a", "c"))


def test_compare_nothing():
    """Nothing before and nothing now is nothing."""
    found = compare({}, [])
    assert (found.opened, found.still, found.fixed) == ((), (), ())
