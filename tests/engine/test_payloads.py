"""Outside texts by name: hidden, stored once, there for whoever commits next."""

import threading

from steersman.engine.active_run import PayloadStore
from steersman.testing.memory import MemoryJournal

TEXT = '{"said": "password=hunter2 in a document"}'


def payloads(known=lambda: ()):
    return PayloadStore(MemoryJournal(), "run", b"k" * 32, known)


def test_equal_texts_once():
    """The same text has the same name, and one commit carries it once."""
    kept = payloads()
    assert kept.add_text(TEXT) == kept.add_text(TEXT)
    assert len(kept.take()) == 1


def test_a_text_whose_commit_is_under_way_is_carried_again():
    """Until it is stored nobody relies on somebody else's commit."""
    kept = payloads()
    ref = kept.add_text(TEXT)
    first = kept.take()
    assert kept.add_text(TEXT) == ref
    assert kept.take() == first


def test_what_is_to_be_hidden_can_change():
    """A value that becomes known later is hidden in a text that was put before, too."""
    known = [()]
    kept = payloads(lambda: known[0])
    before = kept.add_text("a word like swordfish")
    known[0] = ("swordfish",)
    after = kept.add_text("a word like swordfish")
    assert "swordfish" in kept.get(before)
    assert "swordfish" not in kept.get(after)


def test_letters_that_stand_for_others():
    """A lone surrogate and its number written out are two texts, though they are stored alike."""
    kept = payloads()
    assert kept.add_text("\ud800") == kept.add_text("\\ud800")
    assert kept.get(kept.add_text("\ud800")) == "\\ud800"


def test_an_empty_text_is_a_text():
    """A file with nothing in it is kept like any other, and is there before its commit."""
    kept = payloads()
    ref = kept.put_redacted("")
    assert kept.get(ref) == ""
    assert kept.take() == ((ref, b""),)


def test_what_is_put_while_a_commit_is_made_is_carried_by_the_next():
    """Effects put texts beside the loop: none is lost, whenever a commit takes what is there."""
    kept = payloads()
    texts = [f"text {n}" for n in range(3_000)]
    effect = threading.Thread(target=lambda: [kept.put_redacted(text) for text in texts])
    effect.start()
    taken = []
    while effect.is_alive():
        taken += kept.take()
    taken += kept.take()
    assert sorted(data.decode() for _, data in taken) == sorted(texts)
