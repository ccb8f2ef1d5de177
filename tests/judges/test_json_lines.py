"""Where each key and item of a JSON text stands."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.judges.config.json_lines import MAX_JSON_LINES_DEPTH, find_json_lines

TEXT = """{
  "a": [1,
    {"b": "x, {y}\\n",
     "c": null}],
  "\\u0064": {},
  "a": 2
}"""


def test_lines():
    """Every key and every item has the line on which it begins; a key that is given twice keeps the first."""
    found = find_json_lines(TEXT)
    assert found.lines == {
        (): 1,
        ("a",): 2,
        ("a", 0): 2,
        ("a", 1): 3,
        ("a", 1, "b"): 3,
        ("a", 1, "c"): 4,
        ("d",): 5,
    }
    assert found.repeated == ((("a",), 6),)


def test_one_scalar():
    """A text of one word has one line."""
    assert find_json_lines('\n\n"x"').lines == {(): 3}


def test_a_key_that_is_no_json():
    """A key with an escape that JSON lacks is known as it is written."""
    assert find_json_lines('{\n"\\q": 1}').lines == {(): 1, ('"\\q"',): 2}


def _paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _paths(item, (*path, n))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    )
)
@settings(max_examples=80, deadline=None)
def test_every_path_has_a_line(value):
    """Nothing of a value is left out, however it is written."""
    for indent in (None, 1):
        text = json.dumps(value, indent=indent)
        found = find_json_lines(text)
        assert set(found.lines) == set(_paths(value))
        assert all(1 <= line <= text.count("\n") + 1 for line in found.lines.values())
        assert found.repeated == ()


@given(st.text(alphabet='{}[],:"\\ \na1', max_size=30))
@settings(max_examples=150, deadline=None)
def test_total(text):
    """Whatever the text is."""
    assert isinstance(find_json_lines(text).lines, dict)


def test_endless_nesting_ends():
    """Deeper than anybody reads, nothing more is noted."""
    found = find_json_lines('{"a":' * 5_000)
    assert len(found.lines) <= MAX_JSON_LINES_DEPTH + 1
    assert find_json_lines("[" * 5_000).lines[()] == 1


def test_a_quote_without_an_end_is_looked_for_once():
    """Of a text that breaks off inside a string the lines before are told; half a million escaped quotes cost no more than others."""
    found = find_json_lines('{"a": 1,\n "b": "' + '\\"' * 250_000)
    assert found.lines == {(): 1, ("a",): 1, ("b",): 2}
