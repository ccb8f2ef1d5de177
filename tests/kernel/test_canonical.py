"""Bytes: canonical JSON equal to RFC 8785, and nothing on tape that has no canonical form."""

import hashlib

import msgspec
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.kernel.canonical import (
    LARGEST_TAPE_INTEGER,
    canonical_bytes,
    digest_of,
    find_unacceptable_value,
    plain_value,
    sha256_hex,
)

# Private-use keys sort differently by UTF-16 unit and by code point; control characters and astral ones have escapes.
alphabets = st.one_of(
    st.characters(exclude_categories=("Cs",)), st.characters(min_codepoint=0xE000, max_codepoint=0xFFFF),
    st.characters(min_codepoint=0x10000, max_codepoint=0x10FFFF), st.characters(max_codepoint=0x1F),
    st.sampled_from('"\\/\x7f\u2028\u2029'),
)  # fmt: skip
texts = st.text(alphabets, max_size=8)
integers = st.integers(-LARGEST_TAPE_INTEGER, LARGEST_TAPE_INTEGER)
values = st.recursive(
    st.none() | st.booleans() | integers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_canonical_bytes_are_those_of_rfc_8785(value):
    """For every JSON value without floats the bytes are the ones that the reference makes."""
    assert canonical_bytes(value) == rfc8785.dumps(value)
    assert find_unacceptable_value(value) is None
    assert plain_value(value) == value


@given(
    st.dictionaries(
        st.text(
            st.characters(min_codepoint=0xD7F0, max_codepoint=0x10010, exclude_categories=("Cs",)), max_size=3
        ),
        st.integers(0, 9),
    )
)
def test_keys_around_the_surrogates_sort_as_utf_16(value):
    """Keys on both sides of the surrogate range come in the order of their UTF-16 units."""
    assert canonical_bytes(value) == rfc8785.dumps(value)


def test_a_digest_is_the_sha_256_of_the_bytes():
    """Digests are hex SHA-256 of canonical bytes, for structs as for dicts."""
    made = msgspec.defstruct("Made", [("b", int), ("a", int)])(b=2, a=1)
    assert digest_of(made) == sha256_hex(b'{"a":1,"b":2}') == hashlib.sha256(b'{"a":1,"b":2}').hexdigest()


# fmt: off
REFUSED = [
    (1.5,                      "value: float cannot go on tape"),
    (b"x",                     "value: bytes cannot go on tape"),
    ({1, 2},                   "value: set cannot go on tape"),
    (float("nan"),             "value: float cannot go on tape"),
    (LARGEST_TAPE_INTEGER + 1,              "value: integer beyond 2^53"),
    (-LARGEST_TAPE_INTEGER - 1,             "value: integer beyond 2^53"),
    ("\ud800",                 "value: text with a lone surrogate"),
    ({"a": [0, {"b": 2.0}]},   "value.a[1].b: float cannot go on tape"),
    ((1, "\udfff"),            "value[1]: text with a lone surrogate"),
    ({1: "x"},                 "value: a key is not text"),
    ({"\ud800": "x"},          "value: a key is not text"),
]
# fmt: on


@for_each_case(("value", "why"), REFUSED)
def test_what_may_not_go_on_tape_is_named(value, why):
    """A value without a canonical form is refused at the edge, with the place."""
    assert find_unacceptable_value(value) == why


@for_each_case(
    "value",
    [
        None, True, 0, LARGEST_TAPE_INTEGER, -LARGEST_TAPE_INTEGER, "é", "\ue000", [], {},
        {"a": [None, (1, 2)]},
    ],
)  # fmt: skip
def test_what_may_go_on_tape_is_let_through(value):
    """Plain JSON without floats is acceptable; True is a truth value, not a number."""
    assert find_unacceptable_value(value) is None
