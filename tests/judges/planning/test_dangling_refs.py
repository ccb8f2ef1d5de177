"""What an intent cites and nobody can find, as it is told: by field, line and fix."""

from tests.support.rule_contexts import BUILT_IN_REGISTRY, fact_bundle, plan_commands

from steersman.judges.planning.dangling_refs import (
    PROJECT_CHANGED_FIX,
    find_dangling_refs,
    find_ungrounded_commands,
)
from steersman.judges.planning.evidence import CitableEvidence

FACT, GONE = "fact://language/python", "scan://ev000000000000"
PIN = "registry://command/cmd_lint@9.9.9#000000000000"  # drifted, which the precheck tells


def looked(refs, whole=(), lines=None):
    intent = plan_commands("cmd_lint", planned_commands__0__evidence_refs=refs, evidence_refs=[FACT, *whole])
    return find_dangling_refs(
        intent, CitableEvidence(intent, BUILT_IN_REGISTRY, fact_bundle("language/python")), lines or {}
    )


def test_what_leads_is_not_told():
    """A fact that is there speaks for a command."""
    assert looked([FACT]) == ((), ())


def test_what_is_gone_is_told_with_its_place():
    """Each reference by itself; what a scan once found was there, and anything else has to be looked for."""
    place = ("planned_commands", 0, "evidence_refs", 1)
    found = looked([FACT, GONE, "doc://no/such.md", PIN], lines={place: 7}).of_commands
    assert [(p.field, p.message, p.line) for p in found] == [
        ("planned_commands[0].evidence_refs[1]", f"{GONE} leads nowhere", 7),
        ("planned_commands[0].evidence_refs[2]", "doc://no/such.md leads nowhere", 0),
    ]
    assert [p.fix == PROJECT_CHANGED_FIX for p in found] == [True, False]


def test_what_only_says_what_a_command_is_is_told():
    """Its entry in the registry leads, and speaks for nothing."""
    (found,) = looked(["registry://command/cmd_lint"]).of_commands
    assert found.field == "planned_commands[0].evidence_refs"
    assert "these references say what cmd_lint is" in found.message


def test_of_the_whole_only_what_no_command_cites():
    """One that a command cites too is told there."""
    found = looked([GONE], [GONE, "fact://ci/gone", PIN])
    assert [p.field for p in found.of_whole] == ["evidence_refs[2]"]
    assert len(found.of_commands) == 1


def test_commands_without_ground():
    """Only those that are left out, each with all that is missing."""
    intent = plan_commands(
        "cmd_lint", "cmd_build", planned_commands__0__evidence_refs=[GONE, "doc://a", FACT]
    )
    shelf = CitableEvidence(intent, BUILT_IN_REGISTRY, fact_bundle("language/python"))
    (found,) = find_ungrounded_commands(intent, shelf, {"cmd_lint"})
    assert (found.field, found.message) == (
        "planned_commands[0].evidence_refs",
        f"cmd_lint is left out: doc://a, {GONE} cannot be found",
    )
    assert found.fix.startswith(PROJECT_CHANGED_FIX)
    assert find_ungrounded_commands(intent, shelf, ()) == ()
