"""A sample of the intent proof: mutated intents, files, policies, answers and rules (issue, must show 7)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "proofs"))

import intents as proof
import pytest

pytestmark = pytest.mark.untraced

SAMPLE = {"intents": 150, "files": 60, "policies": 40, "answers": 60, "rules": 40}


@pytest.mark.parametrize("kind", proof.JUDGES)
def test_sample(kind):
    """Nothing raises, nothing that breaks a red line passes, and every refusal says why."""
    told = proof.judged({**dict.fromkeys(SAMPLE, 0), kind: SAMPLE[kind]}, seed=7)
    assert not told["examples"], "\n".join(told["examples"])
    assert sum(told["found"][kind].values()) == SAMPLE[kind]


def test_the_oracle_can_object():
    """An oracle that never sees anything would prove nothing."""
    good = proof.INTENTS[0]
    asked = {"policy": {}, "risks": proof.RISKS, "known": proof.KNOWN, "planted": {"ｅｘｅｃ"}}
    assert proof.oracle.broken(good, **asked) == set()
    assert proof.oracle.is_sealed(good)
    assert proof.oracle.broken({**good, "a": [{"ｅｘｅｃ": 1}]}, **asked) == {"I1"}
    assert proof.oracle.broken({**good, "constraints": {}}, **asked) == {"I1", "I5"}
