"""Mutated verdicts against an oracle of another make; the proof takes two hundred thousand."""

import random

import oracle
import verdicts


def test_no_mutated_verdict_is_judged_wrongly():
    """Accepted exactly where the oracle accepts, with the same values; refused with reasons; nothing raises."""
    told = verdicts.judged(2_000, 7)
    assert told["examples"] == []
    assert told["accepted"] + told["refused"] == 2_000
    assert told["accepted"] > 50


def test_the_oracle_knows_good_from_bad():
    """An oracle that said yes or no to everything would prove nothing."""
    chance = random.Random(3)  # noqa: S311  repeatable
    assert all(oracle.accepts(verdicts.good(chance)) is not None for _ in range(200))
    for bad in (
        "",
        "{}",
        '{"decision":"approve","summary":"x","must_fix":[],"must_fix":[]}',
        "[1]",
        "1",
        '"x"',
        "{",
    ):
        assert oracle.accepts(bad) is None
