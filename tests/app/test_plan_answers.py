"""What a person answers to a plan's questions, before it counts."""

from types import SimpleNamespace

import pytest
from tests.support.cases import for_each_case

from steersman.app.run_words import require_complete_answers
from steersman.errors import UserError

ASKED = (SimpleNamespace(id="q-1", text="Negative?"), SimpleNamespace(id="q-2", text="Which?"))


@for_each_case("text", ["[1]", " [] ", '["yes", "no"]', '[{"q-1": "yes"}]'])
def test_a_list_answers_nothing(text):
    """JSON that is neither an object by question nor words is a slip: it is refused, not taken for both answers."""
    with pytest.raises(UserError, match="a JSON list answers no question"):
        require_complete_answers(text, ASKED)


@for_each_case(
    "text", ["yes, both", '"yes"', "5", "true", "[1] is the better one", '{"q-1": "a", "q-2": "b"}']
)
def test_words_and_answers_by_question(text):
    """Words answer all of it, also a number or one in quotes; an object answers each."""
    assert require_complete_answers(text, ASKED) is None
