"""Patterns that are compiled when they are first asked."""

import re

import pytest

from steersman.judges.text import lazy_pattern


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_asked_like_a_pattern(flags):
    """It answers as the compiled pattern does, the first time and every time after."""
    text, word = "a1 B22", r"([a-z])\d+"
    compiled = re.compile(word, flags)
    for lazy in (lazy_pattern(word, flags),) * 2:
        assert lazy.findall(text) == compiled.findall(text)
        assert [m.span() for m in lazy.finditer(text)] == [m.span() for m in compiled.finditer(text)]
        assert lazy.sub(r"\1", text) == compiled.sub(r"\1", text)
        assert lazy.split(text) == compiled.split(text)
        for ask in ("search", "match", "fullmatch"):
            assert str(getattr(lazy, ask)(text)) == str(getattr(compiled, ask)(text))


def test_compiled_late():
    """What is wrong with one is told by whoever asks first; its text is there without."""
    wrong = lazy_pattern("(")
    assert wrong.pattern == "("
    with pytest.raises(re.error):
        wrong.search("")


def test_nothing_more():
    """What no pattern is asked for here is not there."""
    with pytest.raises(AttributeError, match="scanner"):
        lazy_pattern("x").scanner("x")
