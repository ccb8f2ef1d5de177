"""What an intent cites (001 §5): a reference leads where it ends at something, and speaks where that is a reason."""

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.rule_contexts import (
    BUILT_IN_REGISTRY,
    SCANNED_FILES,
    decide_commands,
    fact_bundle,
    plan_commands,
    warning_rule,
)

from steersman.judges.planning.evidence import CitableEvidence
from steersman.judges.planning.registry import format_pin
from steersman.judges.planning.risk import assess_plan_risk
from steersman.kernel.canonical import sha256_hex

INTENT = plan_commands("cmd_lint")
OWN = f"intent://{INTENT.id}"
KNOWN = fact_bundle("ci/github_actions")
SECRET = replace(
    SCANNED_FILES[0], id="ev00000000000a", source_file=".env", first_line=0, last_line=0,
    digest=sha256_hex(b""),
)  # fmt: skip
CONTEXT = replace(KNOWN, facts=replace(KNOWN.facts, evidence=(*SCANNED_FILES, SECRET)))
SHELF = CitableEvidence(INTENT, BUILT_IN_REGISTRY, CONTEXT)

SPEAKS = [
    "fact://ci/github_actions", "memory://mem_000000000000", "doc://why", "doc://why#L1", "doc://why#L9", "doc://guide#L2-L9",
    f"{OWN}/objective", f"{OWN}/objective/goal", f"{OWN}/objective/success_criteria/0", f"{OWN}/description",
]  # fmt: skip
SAYS_NOTHING = [
    OWN, f"{OWN}/title", f"{OWN}/scope/targets", f"{OWN}/planned_commands", f"{OWN}/planned_commands/cmd_lint",
    f"{OWN}/planned_commands/0/evidence_refs", f"{OWN}/selected_agents/agent_coder", f"{OWN}/evidence_refs",
    f"{OWN}/budgets/max_files", f"{OWN}/constraints/no_fabrication", "rule://rule_reading_is_free",
    "registry://agent/agent_coder", "registry://command/cmd_lint", format_pin(BUILT_IN_REGISTRY.entries["command", "cmd_lint"]),
]  # fmt: skip
NOWHERE = [
    f"{OWN}/nothing/at/all/here", f"{OWN}/../../etc", f"{OWN}/", f"{OWN}//objective", f"{OWN}/objective/", f"{OWN}/objective/goal/0",
    f"{OWN}/objective/non_goals", f"{OWN}/objective/success_criteria/99", f"{OWN}/objective/success_criteria/00",
    f"{OWN}/objective/success_criteria/-1", f"{OWN}/planned_commands/cmd_build", f"{OWN}/audit/none", "intent://intent_another_one/objective",
    "doc://why#L10", "doc://why#L8-L10", "doc://why#L3-L2", "doc://why#L0", "doc://why#L", "doc://why#", "doc://why#top",
    "doc://why#L1-2", "doc://why#L\u0661", "doc://other", "doc://.env", "doc://.env#L1", "fact://ci/gitlab", "scan://ev000000000000",
    "memory://mem_ffffffffffff", "answer://q_0123456789abcdef", "rule://rule_gone", "rule://rule_reading_is_free@9.0.0",
    "rule://Rule", "registry://agent/agent_gone", "registry://thing/agent_coder", "http://e", "why",
]  # fmt: skip


@for_each_case("ref", SPEAKS)
def test_what_speaks_for_a_command(ref):
    """Facts, memories, lines that the scan has shown, and what the author wants."""
    assert SHELF.leads(ref)
    assert SHELF.speaks(ref)


@for_each_case("ref", SAYS_NOTHING)
def test_what_leads_and_says_nothing(ref):
    """A command is not right because the registry has it, a rule is about it, or the intent plans it."""
    assert SHELF.leads(ref)
    assert not SHELF.speaks(ref)


@for_each_case("ref", NOWHERE)
def test_what_leads_nowhere(ref):
    """A name that looks like evidence is none: the thing behind it has to be there."""
    assert not SHELF.leads(ref)
    assert not SHELF.speaks(ref)


def test_references_that_lead_and_those_that_do_not():
    """The first in their order, the others sorted, each once."""
    assert SHELF.leading(("doc://why", "doc://x", "doc://guide")) == ("doc://why", "doc://guide")
    assert SHELF.missing(("doc://x", "doc://why", "doc://a", "doc://x")) == ("doc://a", "doc://x")


def test_a_rule_is_not_satisfied_by_what_the_intent_makes_up():
    """001 §4: the intent may point at what a rule requires; that it is there is for the context to say."""
    asked = warning_rule(
        "rule_x", evidence_required=["fact://ci/github_actions", "known:ci"], when="facts.complete"
    )
    made_up = plan_commands("cmd_lint", evidence_refs=["fact://ci/github_actions"])
    (without,) = decide_commands(made_up, fact_bundle(), asked)
    assert without.undecidable
    assert "without fact://ci/github_actions" in without.reason
    (there,) = decide_commands(made_up, fact_bundle("ci/github_actions"), asked)
    assert not there.undecidable


def test_what_leads_nowhere_is_not_used_and_not_seen_by_rules():
    """001 §4: a decision lists what it went by, and a rule about evidence sees what can be found."""
    raw = plan_commands("cmd_lint", evidence_refs=["doc://why"])
    (command,) = raw.planned_commands
    cited = replace(raw, planned_commands=(replace(command, evidence_refs=("doc://nowhere", "doc://why")),))
    (found,) = decide_commands(
        cited, fact_bundle(), warning_rule("rule_x", when="command.evidence == ['doc://why']")
    )
    assert [r.outcome for r in found.rules] == ["fired"]
    assert "doc://nowhere" not in found.evidence_used


def test_what_the_intent_as_a_whole_makes_up_is_a_risk():
    """What is cited and cannot be found is told with the plan, and makes it no less than medium."""
    for refs, told in ((["doc://why", "doc://b", "doc://a"], ["doc://a, doc://b"]), (["doc://why"], [])):
        intent = plan_commands("cmd_lint", evidence_refs=refs, risk__overall="low")
        risk = assess_plan_risk(
            intent, BUILT_IN_REGISTRY, decide_commands(intent, fact_bundle("test_command/pytest", "ci/x")),
            fact_bundle("test_command/pytest", "ci/x"),
        )  # fmt: skip
        found = [f for f in risk.factors if "cannot be found" in f.what]
        assert [f.what.partition(": ")[2] for f in found] == told
        assert risk.overall_risk == ("medium" if told else "low")
