"""How much a plan may ask when intent and policy both have a say (001 §6, RED LINE #2)."""

import msgspec
from tests.support.cases import for_each_case

from steersman.contracts.planning.intent import IntentInteraction
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.judges.planning.intent import resolve_effective_asking


class _Intent(msgspec.Struct):
    interaction: IntentInteraction


def _effective(mode, budget, asking, policy, **changed):
    intent = _Intent(IntentInteraction(mode=mode, question_budget=budget, question_policy=asking))
    return resolve_effective_asking(intent, msgspec.structs.replace(POLICY_PRESETS[policy], **changed))


@for_each_case(
    ("mode", "budget", "asking", "policy", "expected"),
    [
        ("interactive", 10, "conceptual_only", "interactive", ("interactive", "conceptual_only", 10)),
        ("interactive", 10, "blockers_only", "interactive", ("interactive", "blockers_only", 10)),
        ("interactive", 10, "conceptual_only", "semi_auto", ("semi_auto", "blockers_only", 3)),
        ("semi_auto", 2, "conceptual_only", "interactive", ("semi_auto", "blockers_only", 2)),
        ("interactive", 10, "conceptual_only", "full_auto", ("full_auto", "never", 0)),
        ("full_auto", 0, "never", "interactive", ("full_auto", "never", 0)),
        ("interactive", 10, "never", "interactive", ("interactive", "never", 0)),
    ],
)
def test_the_stricter_of_intent_and_policy_holds(mode, budget, asking, policy, expected):
    """Whichever allows fewer questions wins, in each respect by itself."""
    assert _effective(mode, budget, asking, policy) == expected


def test_full_auto_never_keeps_a_budget():
    """RED LINE #2: even a broken pair of documents leaves no question to a run without a person."""
    assert _effective("full_auto", 50, "conceptual_only", "interactive").budget == 0
    assert _effective("interactive", 50, "conceptual_only", "full_auto", question_budget=9).budget == 0
