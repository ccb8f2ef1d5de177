"""The page on plans says every word that an answer can be."""

from docs.plans import MEANT, SAID

from steersman.contracts.planning.questions import QuestionCause
from steersman.judges.planning import choices


def test_every_word_and_every_cause_is_on_the_page():
    """What the planner knows and what the page tells are the same."""
    words = {value for name, value in vars(choices).items() if name.isupper() and isinstance(value, str)}
    assert SAID.keys() == words
    assert MEANT.keys() == set(QuestionCause.__args__)
