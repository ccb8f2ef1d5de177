"""Findings keep their names from round to round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.contracts.replies import ReviewerReply
from steersman.judges.replies.agent_reply import find_unfounded_fixes, finding_id, identify_finding

ONE, TWO = finding_id("one"), finding_id("two")


@pytest.mark.parametrize(
    "other",
    [
        "the loop   never ends!", "The Loop never ends.", "`the loop` never\nends", "ＴＨＥ loop never ends",
        "(The loop) never ends…",
    ],
)  # fmt: skip
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


def reply(*must_fix, fixed=()):
    return ReviewerReply(
        nonce="n", decision="changes_requested", summary="read", must_fix=must_fix, nice_to_have=(), tests=(), security=(),
        fixed=fixed,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        f"[{ONE}] the loop", f"{ONE}: the loop", f"  [{ONE}]   the loop", f"{ONE} – the loop",
        f"[{ONE}]the loop",
    ],
)  # fmt: skip
def test_a_reviewer_speaks_of_an_open_finding_by_its_id(text):
    """A text that begins with the id of an open finding is that one, in whatever words."""
    assert identify_finding(text, {ONE: 1}) == (ONE, "the loop")


@pytest.mark.parametrize("text", [f"see [{ONE}]", f"[{TWO}] the loop", "the loop", "[f-1] the loop"])
def test_other_words_are_another_finding(text):
    """An id in the middle, of no open finding or of no form, names nothing: the words do."""
    assert identify_finding(text, {ONE: 1}) == (finding_id(text), text)


def test_an_id_alone_has_no_words():
    """The caller keeps the words it had."""
    assert identify_finding(f"[{ONE}]", {ONE: 1}) == (ONE, "")


def test_what_cannot_be_fixed_is_told():
    """An id that was not open, or that is to be fixed as well, is a problem of the reply; what fits is none."""
    assert find_unfounded_fixes(reply("x", fixed=(ONE,)), {ONE: 1, TWO: 1}) == ()
    assert find_unfounded_fixes(reply("x", fixed=(TWO, TWO)), {ONE: 1}) == (
        f"fixed: {TWO} is not an open finding; open are {ONE}",
    )
    assert find_unfounded_fixes(reply("x", fixed=(TWO,)), {}) == (
        f"fixed: {TWO} is not an open finding; open are none",
    )
    assert find_unfounded_fixes(reply(f"[{ONE}] still", fixed=(ONE,)), {ONE: 1}) == (
        f"fixed: {ONE} is in must_fix too; say one of both",
    )
    assert find_unfounded_fixes(reply("one", fixed=(ONE,)), {ONE: 1}) == (
        f"fixed: {ONE} is in must_fix too; say one of both",
    )
