"""Lines of TOML keys."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines

TEXT = '''version = 1 # x = 3
deliver = """
a = 1
[x]
""" # four quotes end it too: """"
[worktree]
include = [
  "a", # [
  ".env]",
]
setup = [["uv", "sync"],
 ["b=1"]]
[roles."co der"]
agent.name = 'x'
"mo\\u0064el" = {a = 1, b = [1,
2]}
"\\U0001F680" = 1
'lit' = 1
[[list]]
q = 1
'''


def test_lines():
    """Every table and key has the line it starts on; strings, arrays and comments hide nothing and add nothing."""
    assert find_toml_lines(TEXT) == {
        ("version",): 1, ("deliver",): 2, ("worktree",): 6, ("worktree", "include"): 7,
        ("worktree", "setup"): 11, ("roles",): 13, ("roles", "co der"): 13, ("roles", "co der", "agent"): 14,
        ("roles", "co der", "agent", "name"): 14, ("roles", "co der", "model"): 15,
        ("roles", "co der", "\\U0001F680"): 17, ("roles", "co der", "lit"): 18, ("list",): 19,
        ("list", "q"): 20,
    }  # fmt: skip


def test_nearest():
    """A place inside a value has the line of its key; the whole file has none."""
    lines = find_toml_lines(TEXT)
    assert find_nearest_toml_line(lines, ("worktree", "setup", 1, 0)) == 11
    assert find_nearest_toml_line(lines, ("worktree", "nothing")) == 6
    assert find_nearest_toml_line(lines, ("nothing",)) is None
    assert find_nearest_toml_line(lines, ()) is None


def test_unclosed_header():
    """A header that never closes does not swallow the next line."""
    assert find_toml_lines("[a\nb = 1\n]\n") == {("b",): 2}


NAMES = st.text("abc_-1", min_size=1, max_size=4)
VALUES = st.sampled_from(
    ["1", '"x"', "'y'", "[\n1,\n2]", '"""\n[z]\n"""', "{ k = [1] }", "true", "1979-05-27T07:32:00Z"]
)


@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3),
)
def test_agrees_with_the_reader(top, tables):
    """Every key the reader finds has a line, and that line holds it."""
    tables = {f"t-{name}": table for name, table in tables.items()}
    text = "".join(f"{k} = {v}\n" for k, v in top.items())
    for name, table in tables.items():
        text += f"\n[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in table.items())
    lines, rows = find_toml_lines(text), text.split("\n")
    for key, value in tomllib.loads(text).items():
        assert key in rows[lines[(key,)] - 1]
        for inner in value if key in tables else ():
            assert rows[lines[(key, inner)] - 1].startswith(inner)


@given(st.text("[]{}=,.#\"'\\\n ab"))
def test_total(text):
    """Any text has an answer."""
    assert all(1 <= line <= text.count("\n") + 1 for line in find_toml_lines(text).values())
