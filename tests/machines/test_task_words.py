"""What stands after a word of the prompt: read as the command line would read it, and refused where it says more."""

import pytest
from tests.support.cases import for_each_case

from steersman.errors import UserError
from steersman.machines.task.words import parse_override_words


@for_each_case(
    ("words", "read"),
    [
        ('--override "I accept the risk"', ("I accept the risk", "")),
        ("--override in a hurry", ("in a hurry", "")),
        ('--override "x" --to test', ("x", "test")),
        ('--to test --override "x"', ("x", "test")),
        ("--override it's fine", ("it's fine", "")),
        ('--override "it is fine', ("it is fine", "")),
        ('--override "', ("", "")),
        ('--override "use --to test"', ("use --to test", "")),
    ],
)
def test_an_override_has_a_reason_and_perhaps_a_phase(words, read):
    """Quoted or not; half a quotation is plain words; what is quoted is no option."""
    assert parse_override_words(words) == read


@for_each_case("words", ["now", "--to test", '--override "x" --force', "--override x --to", "--override x --to y"])  # fmt: skip
def test_nothing_else_goes_with_next(words):
    """An option that there is not is no part of a reason."""
    with pytest.raises(UserError):
        parse_override_words(words)
