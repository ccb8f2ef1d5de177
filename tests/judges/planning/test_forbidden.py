"""What a policy forbids is found by id, effect, risk and destruction, as the registry has it (001 §12)."""

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    make_command,
    make_intent,
    make_policy,
    make_registry,
    planned_command,
)

from steersman.contracts.planning.policy import PolicyConstraints
from steersman.judges.planning.policy import find_forbidden_commands

WRITES = ("planned_commands[1]",)


def fields(made, known=None, **changes):
    return tuple(
        p.field for p in find_forbidden_commands(made, known or make_registry(), make_policy(**changes))
    )


@for_each_case(
    ("changes", "found"),
    [
        ({}, ()),
        ({"constraints": PolicyConstraints(forbidden_operations=("edit_files",))}, WRITES),
        ({"constraints": PolicyConstraints(forbidden_operations=("write",))}, WRITES),
        ({"constraints": PolicyConstraints(forbidden_operations=("deploy", "other_command"))}, ()),
        ({"highest_risk": "low"}, WRITES),
        ({"highest_risk": "medium"}, ()),
    ],
)
def test_a_policy_forbids_by_id_effect_and_risk(changes, found):
    """One changed field of the policy decides."""
    assert fields(make_intent(), **changes) == found


def test_what_destroys_needs_to_be_allowed():
    """A destructive command is forbidden until the policy allows destruction."""
    known = make_registry(make_command("drop_table", "implementation", effects=("write",), destructive=True))
    made = make_intent(planned_commands=(planned_command("drop_table", effects=("write",)),))
    assert fields(made, known) == ("planned_commands[0]",)
    assert fields(made, known, constraints=PolicyConstraints(allow_destructive=True)) == ()


def test_an_intent_cannot_talk_a_command_down():
    """What the registry says of effects and risk holds, and a command it does not have is judged by what is said of it."""
    quiet = make_intent(
        planned_commands=(planned_command("edit_files", effects=("read",), risk_level="low"),)
    )
    never = PolicyConstraints(forbidden_operations=("write",))
    assert fields(quiet, constraints=never) == ("planned_commands[0]",)
    unknown = make_intent(planned_commands=(replace(planned_command("not_there"), effects=("write",)),))
    assert fields(unknown, constraints=never) == ("planned_commands[0]",)


def test_every_reason_names_what_to_change():
    """All reasons are told at once, each with a way out."""
    strict = make_policy(
        highest_risk="low", constraints=PolicyConstraints(forbidden_operations=("write", "edit_files"))
    )
    told = find_forbidden_commands(make_intent(), make_registry(), strict)
    assert len(told) == 3
    assert all("edit_files" in p.message and p.fix for p in told)
