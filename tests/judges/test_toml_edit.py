"""Texts are added to a list at the top of a TOML file, and every other character stays."""

import tomllib

from tests.support.cases import for_each_case

from steersman.judges.config.toml_lines import add_to_toml_list

KEY = "known_failures"
TABLES = '\n# what proves a change\n[checks]\nunit = ["a"]  # here\nknown_failures = ["not this"]\n'


@for_each_case(
    ("before", "after"),
    [
        ("# ours\n\nversion = 1  # first\n", '# ours\n\nversion = 1  # first\nknown_failures = [\n    "x.a",\n    "x\\"b",\n]\n'),
        ("version = 1\n# about tables\n", 'version = 1\nknown_failures = [\n    "x.a",\n    "x\\"b",\n]\n# about tables\n'),
        ("known_failures = []  # none\n", 'known_failures = ["x.a", "x\\"b"]  # none\n'),
        ('known_failures = ["o",]\n', 'known_failures = ["o", "x.a", "x\\"b"]\n'),
        (
            'known_failures = [\n  "o",  # why ] this\n]\nversion = 1\n',
            'known_failures = [\n  "o",  # why ] this\n  "x.a",\n  "x\\"b",\n]\nversion = 1\n',
        ),
        ("a = {b = [1]}\n", 'known_failures = [\n    "x.a",\n    "x\\"b",\n]\na = {b = [1]}\n'),
    ],
)  # fmt: skip
def test_only_the_list_grows(before, after):
    """Comments, order and spelling of everything else are as they were, with tables below or without."""
    for rest in ("", TABLES):
        new = add_to_toml_list(before + rest, KEY, ["x.a", 'x"b'])
        assert new == after + rest
        assert tomllib.loads(new)[KEY][-2:] == ["x.a", 'x"b']


def test_a_file_without_a_whole_statement_at_its_top():
    """The list comes first."""
    assert add_to_toml_list("version = 1", KEY, ["x"]) == 'known_failures = [\n    "x",\n]\nversion = 1'
    assert (
        add_to_toml_list("[checks]\na = 1\n", KEY, ["x"])
        == 'known_failures = [\n    "x",\n]\n[checks]\na = 1\n'
    )


@for_each_case(
    "text",
    ["version = ", 'version = """\nx"""\n', "version = [\n1]\n", "known_failures.a = 1\n", 'known_failures = "x"\n', "[known_failures]\na = 1\n"],
)  # fmt: skip
def test_what_cannot_be_edited_safely_is_left_alone(text):
    """No TOML, or another kind of value under the name: nothing is guessed."""
    assert add_to_toml_list(text, KEY, ["x"]) is None
