"""Rules: typed when they are read, asked one by one, weighed in a stated order (001 §4)."""

import sys
from itertools import combinations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case
from tests.support.rule_contexts import (
    BUILT_IN_REGISTRY,
    decide_commands,
    fact_bundle,
    plan_commands,
    warning_rule,
)

from steersman.contracts.planning.decisions import RuleDecision
from steersman.errors import UserError
from steersman.judges.planning import cel
from steersman.judges.planning.environment import RULE_VARIABLES
from steersman.judges.planning.rule_evidence import compile_rules
from steersman.judges.planning.rules import weigh_fired_rules

READY = ("language/python", "test_command/pytest", "ci/github", "lock_file/uv", "package/click")


def faults(when):
    found = cel.compile_cel_expression(when)
    return [fault.message for fault in found] if isinstance(found, tuple) else []


# ── typed ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    "when",
    [
        "true", 'command.id == "cmd_lint"', '"write" in command.effects && !command.destructive',
        "intent.files.exists(f, f.endsWith('.sql'))", "facts.names['language'].exists_one(l, l == 'python')",
        "size(intent.areas.filter(a, a == 'infra')) > 0",
        r"command.id.matches(r'^cmd_\w+$') // a raw text, and this",
        "command.id . matches('a{1000}') && intent.files.exists(matches, matches == '')",
        "command.risk in (['high'])", "has(facts.names.ci)", """command.id == '"' || command.id == "'" """,
    ],
)  # fmt: skip
def test_typed(when):
    """What rules are written in compiles."""
    assert faults(when) == []


@for_each_case(
    ("when", "said"),
    [
        ("comand.id == 'x'", "undeclared reference to 'comand"),
        ("command.id == 3", "found no matching overload"),
        ("command.id", "says string, not yes or no"),
        ("[1, 'a'][0]", "says dyn, not yes or no"),
        ("1 ==", "Syntax error"),
        ("", "Syntax error"),
        ("dyn(1) == 1", "dyn() is not a function of rules"),
        ("intent.files.map(f, f) == []", "map() is not a function of rules"),
        ("{'a': 1} == {'a': 1}", "{ is not allowed in a rule"),
        ("b'a' == b'a'", "b' is not allowed in a rule"),
        ("'''a''' == 'a'", "''' is not allowed in a rule"),
        ("command.`id` == ''", "` is not allowed in a rule"),
        ("true" + " || true" * 400, "longer than 2000"),
        ("(" * 60 + "true" + ")" * 60, "nested too deep"),
        ("intent.id == '\ud800'", "not text that can be read"),
        ("'a'" + " + 'a'" * 21 + " == 'b'", "21 sums"),
        (" && ".join(["intent.files.all(f, f != '')"] * 7), "7 loops"),
        ("intent.files.all(a, intent.files . // so\n exists (b, intent.files.all(c, a + b != c)))", "nested 3 deep"),
        (")", "Syntax error"),
        ("command.id.matches('(')", "'(': invalid regular expression: missing )"),
        ("command.id.matches('(((a{1000}){1000}){1000})')", "invalid repetition size: {1000}"),
        (r"command.id.matches(r'\p{L}{1000}')", "regular expression too large"),
        ("command.id.matches('(((a{1000}){1000}){' + '1000})')", "a pattern that is not written out"),
        ("command.id.matches(intent.id)", "a pattern that is not written out"),
        ("matches(command.id, 'a')", "a pattern that is not written out"),
        (r"command.id.matches('\q')", "token recognition error"),
    ],
)  # fmt: skip
def test_refused(when, said):
    """What is not typed, not yes or no, or could grow beyond bounds is refused as it is read."""
    assert any(said in message for message in faults(when)), faults(when)


def test_a_near_name_is_told():
    """An unknown variable is answered with the one that was meant, or with where they are listed."""
    near, far = cel.compile_cel_expression("comand.id == ''"), cel.compile_cel_expression("zzz == ''")
    assert [f.fix for f in near] == ["did you mean command.id?"]
    assert [f.fix for f in far] == ["`steersman registry variables` lists what there is"]


def test_all_faults_at_once():
    """A condition tells everything that is wrong with it, and so does a rule."""
    assert len(faults("comand.id == '' && dyn(1) == 1 && intent.idd == ''")) == 3
    broken = warning_rule(
        "rule_broken", "command.id == 3 && 'ci' in facts.kinds", scope={}, decision="require_review",
        then={"review": []}, evidence_required=["weather", "intent"],
    )  # fmt: skip
    assert [p.field for p in compile_rules([broken]).problems] == [
        "rule_broken.when", "rule_broken.scope", "rule_broken.evidence_required[0]",
        "rule_broken.evidence_required", "rule_broken.then.review",
    ]  # fmt: skip


def test_without_the_library(monkeypatch):
    """Where the library is missing, the error says what to install."""
    cel._cel_environment.cache_clear()
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    with pytest.raises(UserError, match=r'pip install "steersman\[plan\]"'):
        cel.compile_cel_expression("true")


def test_every_variable_has_a_value():
    """Each declared variable can be asked for and has the declared type for every built-in command."""
    shown = {
        "string": "{} == {}", "bool": "{} == {}", "int": "{} >= {}", "list(string)": "{}.all(x, x in {})",
        "map(string, list(string))": "size({}) >= size({})",
    }  # fmt: skip
    rules = [
        warning_rule(f"rule_{n}", shown[v.shape].format(v.name, v.name), evidence_required=["known:ci"])
        for n, v in enumerate(RULE_VARIABLES)
    ]
    commands = [c.id for c in BUILT_IN_REGISTRY.all_usable("command")]
    for decision in decide_commands(plan_commands(*commands), fact_bundle(*READY), *rules):
        assert [r.rule_id for r in decision.rules if r.outcome != "fired"] == []


# ── asked ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def one(intent, known, *rules, **more):
    (decision,) = decide_commands(intent, known, *rules, **more)
    return decision


def test_scope():
    """A rule looks at commands, effects, risks and phases; what it leaves empty leaves nothing out."""
    rules = [
        warning_rule("rule_id", scope={"commands": ["cmd_lint"]}),
        warning_rule("rule_effect", scope={"effects": ["read", "deploy"]}),
        warning_rule("rule_risk", scope={"risks": ["low"]}),
        warning_rule("rule_phase", scope={"phases": ["validation"]}),
        warning_rule("rule_both", scope={"effects": ["read"], "risks": ["high"]}),
    ]
    asked = {
        d.command_id: [r.rule_id for r in d.rules]
        for d in decide_commands(
            plan_commands("cmd_lint", "cmd_edit_files", "cmd_publish_package"), fact_bundle(), *rules
        )
    }
    assert asked == {
        "cmd_lint": ["rule_effect", "rule_id", "rule_risk"],
        "cmd_edit_files": ["rule_effect"],
        "cmd_publish_package": ["rule_effect"],
    }


def test_phases_are_the_selected_ones():
    """A command is in the phases that it has and the intent wants; where none is wanted, in all of its own."""
    only = warning_rule("rule_x", "command.phases == ['implementation']")
    wide = warning_rule("rule_x", "command.phases == ['implementation', 'validation']")
    both = [{"workflow_id": "wf_bug_fix", "phases": ["implementation", "validation"]}]
    other = [{"workflow_id": "wf_bug_fix", "phases": ["review"]}]
    assert one(plan_commands("cmd_lint"), fact_bundle(), only).decision == "warn"
    assert one(plan_commands("cmd_lint", selected_workflows=both), fact_bundle(), wide).decision == "warn"
    assert one(plan_commands("cmd_lint", selected_workflows=other), fact_bundle(), wide).decision == "warn"


def test_nothing_is_talked_down():
    """The registry's effects and risk hold together with the intent's, the graver one and all of them."""
    low = {"planned_commands__0__effects": ["network"], "planned_commands__0__risk_level": "low"}
    told = warning_rule(
        "rule_x", "command.understated && command.risk == 'high' && command.effects == ['write', 'network']"
    )
    assert one(plan_commands("cmd_delete_files", **low), fact_bundle(), told).decision == "warn"
    more = {"planned_commands__0__risk_level": "critical"}
    graver = warning_rule("rule_x", "!command.understated && command.risk == 'critical'")
    assert one(plan_commands("cmd_delete_files", **more), fact_bundle(), graver).decision == "warn"


def test_silence():
    """Where no rule fires, the command is allowed, and the decision says how many were asked."""
    decision = one(
        plan_commands("cmd_lint"), fact_bundle(), warning_rule("rule_a", "false"),
        warning_rule("rule_b", "false"),
    )  # fmt: skip
    assert (decision.decision, decision.severity, decision.hard) == ("allow", "info", False)
    assert decision.reason == "no rule objects, of 2 that were asked"
    assert [(r.rule_id, r.outcome) for r in decision.rules] == [("rule_a", "silent"), ("rule_b", "silent")]
    assert decision.evidence_used == (
        "doc://why",
        f"registry://command/cmd_lint@1.0.0#{BUILT_IN_REGISTRY.entries['command', 'cmd_lint'].digest[:12]}",
    )


def test_each_decision_is_explained():
    """A decision has the rule's version, the evidence it went by, its reason, changes and reviews."""
    told = warning_rule(
        "rule_x", "'ci' in facts.kinds", decision="require_review",
        then={"required_changes": ["do that"], "review": ["security", "data"]},
        evidence_required=["ci", "policy", "memory", "doc://why", "known:database", "registry"],
    )  # fmt: skip
    decision = one(plan_commands("cmd_lint", evidence_refs=["doc://why"]), fact_bundle(*READY), told)
    (said,) = decision.rules
    assert (said.rule_version, said.outcome, said.reason) == ("1.0.0", "fired", "rule_x says so")
    assert said.evidence_used == (
        "rule://rule_x@1.0.0", "fact://ci/github", "doc://policy/policy_interactive",
        "memory://mem_000000000000", "doc://why", "doc://scan/ffffffffffff",
    )  # fmt: skip
    assert set(said.evidence_used) < set(decision.evidence_used)
    assert decision.reason == "rule_x (warn, require_review): rule_x says so"
    assert (decision.required_changes, decision.review) == (("do that",), ("data", "security"))


def test_the_order_is_the_intents():
    """One decision for each planned command, in the intent's order; the same inputs give the same bytes."""
    intent = plan_commands("cmd_lint", "cmd_build", "cmd_lint")
    first = decide_commands(intent, fact_bundle(*READY))
    assert [d.command_id for d in first] == ["cmd_lint", "cmd_build", "cmd_lint"]
    assert len({d.decision_id for d in first}) == 3
    assert msgspec.json.encode(decide_commands(intent, fact_bundle(*READY))) == msgspec.json.encode(first)


def test_an_unknown_command():
    """A command that the registry does not have, or that is not active, can be decided by nobody."""
    decision = one(plan_commands("cmd_nowhere"), fact_bundle())
    assert (decision.decision, decision.undecidable, decision.rules) == ("deny", True, ())


# ── undecidable ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("1 / size(intent.modules) == 1", "divide by zero"),
        ("intent.files[7] == ''", "index=7"),
        ("facts.names['weather'] == []", "Key not found"),
    ],
)
def test_an_error_is_undecidable(when, said):
    """A rule that fails is told as one that cannot be decided, with the reason; its silence is not an answer."""
    broken = warning_rule("rule_x", when, decision="deny", evidence_required=["known:ci"])
    decision = one(plan_commands("cmd_lint"), fact_bundle(*READY), broken, warning_rule("rule_y"))
    assert (decision.undecidable, decision.decision, decision.hard) == (True, "warn", False)
    (undecided,) = [r for r in decision.rules if r.outcome == "undecidable"]
    assert said in undecided.reason
    assert said in decision.reason


def test_loops_are_bounded():
    """A rule that would turn more often than the library lets it is undecidable, and soon."""
    many = [f"f{n}" for n in range(200)]
    decision = one(
        plan_commands("cmd_lint", scope__targets__files=many),
        fact_bundle(),
        warning_rule("rule_x", "intent.files.all(a, intent.files.all(b, a + b != ''))"),
    )
    assert decision.undecidable
    assert "Iteration budget exceeded" in decision.reason


@for_each_case(
    ("files", "when", "decision", "fires"),
    [
        (["src/"], "intent.files.exists(f, f.startsWith('src/pay/'))", "deny", True),
        (["src/pay"], "intent.files.exists(f, f.startsWith('src/pay/'))", "deny", True),
        (["."], "intent.files.exists(f, f.startsWith(r'src/pay/'))", "warn", True),
        (["src/"], "'src/pay/a.py' in intent.files", "deny", True),
        (["docs/", "src/pa"], "intent.files.exists(f, f.startsWith('src/pay/'))", "deny", False),
        (["src/"], "intent.files.exists(f, f.startsWith('src/pay/'))", "allow", False),
        ([], "intent.files.exists(f, f.startsWith('src/pay/'))", "deny", False),
    ],
)
def test_a_folder_in_scope_touches_what_a_rule_names_in_it(files, when, decision, fires):
    """Whoever may change a folder may change what is in it; only an allow speaks about nothing but what is named."""
    then = {"decision": decision, "reason": "a test says so"}
    found = one(
        plan_commands("cmd_lint", scope__targets__files=files),
        fact_bundle(*READY),
        warning_rule("rule_x", when, then=then),
    )
    assert found.rules[0].outcome == ("fired" if fires else "silent")


def test_a_rule_with_a_fault():
    """A rule that does not compile makes every command in its scope undecidable."""
    decision = one(plan_commands("cmd_lint"), fact_bundle(), warning_rule("rule_x", "command.idd == ''"))
    assert decision.undecidable
    assert "undeclared reference" in decision.reason


@for_each_case(
    ("required", "facts", "complete", "outcome"),
    [
        ("ci", ["ci/github"], True, "fired"),
        ("ci", ["ci/github"], False, "fired"),
        ("ci", [], True, "undecidable"),
        ("known:ci", [], True, "silent"),
        ("known:ci", [], False, "undecidable"),
        ("known:ci", ["ci/github"], False, "fired"),
    ],
)
def test_required_evidence(required, facts, complete, outcome):
    """A kind of fact has to be there; `known:` is content with knowing that there is none, by a complete scan."""
    asked = warning_rule("rule_x", "'ci' in facts.kinds", evidence_required=[required])
    decision = one(plan_commands("cmd_lint"), fact_bundle(*facts, complete=complete), asked)
    assert [r.outcome for r in decision.rules] == [outcome]
    assert ("cannot be decided without" in decision.reason) == (outcome == "undecidable")


def test_evidence_that_is_not_needed():
    """A rule whose evidence is lacking is asked without the facts: where it knows anyway, it answers."""
    asked = warning_rule("rule_x", "'ci' in facts.kinds && command.destructive", evidence_required=["ci"])
    assert [
        d.rules[0].outcome
        for d in decide_commands(plan_commands("cmd_lint", "cmd_delete_files"), fact_bundle(), asked)
    ] == ["silent", "undecidable"]


def test_a_reference_that_is_required():
    """A required reference has to be cited by the intent or be in the context."""
    asked = warning_rule("rule_x", evidence_required=["doc://guide"])
    assert (
        one(plan_commands("cmd_lint"), fact_bundle(), asked).decision == "warn"
    )  # its condition needs no fact
    facts = warning_rule("rule_x", "facts.complete", evidence_required=["doc://guide", "known:ci"])
    assert one(plan_commands("cmd_lint"), fact_bundle(), facts).undecidable
    assert not one(plan_commands("cmd_lint", evidence_refs=["doc://guide"]), fact_bundle(), facts).undecidable


# ── weighed ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ORDER = ("allow", "warn", "require_review", "deny")
SEVERITY = ("info", "warn", "error", "block")


@for_each_case("severity", SEVERITY)
@for_each_case(("milder", "stricter"), list(combinations(ORDER, 2)))
def test_equal_severity(severity, milder, stricter):
    """At equal severity the stricter decision holds; a deny and an allow at `block` cannot be weighed."""
    ruling = weigh_fired_rules(
        (
            warning_rule("rule_a", severity=severity, decision=milder),
            warning_rule("rule_b", severity=severity, decision=stricter),
        )
    )
    assert (ruling.decision, ruling.severity) == (stricter, severity)
    assert [r.id for r in ruling.winners] == ["rule_b"]
    torn = severity == "block" and (milder, stricter) == ("allow", "deny")
    assert bool(ruling.conflict) == torn


@for_each_case("graver", range(1, 4))
@for_each_case("decision", ORDER)
@for_each_case("other", ORDER)
def test_graver_severity(graver, decision, other):
    """001 §4: the graver severity holds, but a deny holds against every milder decision of any severity."""
    fired = (
        warning_rule("rule_a", severity=SEVERITY[graver], decision=decision),
        warning_rule("rule_b", severity=SEVERITY[graver - 1], decision=other),
    )
    ruling, lesser = weigh_fired_rules(fired), other == "deny" != decision
    wanted = ("deny", SEVERITY[graver - 1], "") if lesser else (decision, SEVERITY[graver], "")
    assert (ruling.decision, ruling.severity, ruling.conflict) == wanted


def test_what_is_outweighed_is_told():
    """The reason names the rules that hold, and those that they outweigh."""
    decision = one(
        plan_commands("cmd_lint"), fact_bundle(), warning_rule("rule_a", severity="error", decision="allow"),
        warning_rule("rule_b", decision="deny"),
    )  # fmt: skip
    assert (decision.decision, decision.hard) == ("deny", False)
    assert decision.reason == "rule_b (warn, deny): rule_b says so; outweighs rule_a (error, allow)"


def test_a_conflict():
    """Deny against allow at severity block is told as a conflict, with both names."""
    decision = one(
        plan_commands("cmd_lint"), fact_bundle(), warning_rule("rule_no", severity="block", decision="deny"),
        warning_rule("rule_yes", severity="block", decision="allow"),
    )  # fmt: skip
    assert decision.conflict == "rule_no against rule_yes: deny and allow, both at severity block"
    assert (decision.decision, decision.hard) == ("deny", True)


@for_each_case(
    ("command", "severity", "hard"),
    [
        ("cmd_lint", "error", False),
        ("cmd_edit_files", "warn", False),
        ("cmd_lint", "block", True),
        ("cmd_delete_files", "info", True),
        ("cmd_deploy_production", "warn", True),
    ],
)
def test_hard_and_soft(command, severity, hard):
    """A deny is hard at severity block, and on a command of high or critical risk."""
    assert (
        one(
            plan_commands(command), fact_bundle(), warning_rule("rule_x", severity=severity, decision="deny")
        ).hard
        == hard
    )


# ── never a traceback ───────────────────────────────────────────────────────────────────────────────────────────────

PIECES = st.sampled_from(
    [
        *(v.name for v in RULE_VARIABLES),
        *sorted(cel.CEL_FUNCTIONS),
        *(
            "(", ")", "[", "]", "{", "}", ".", ",", "&&", "||", "!", "==", "!=", "<", "+", "-", "/", "?", ":",
            "in",
        ),
        *(
            "'a'", '"', "'", "'''", "b'", "r'", "1", "1.5", "0x1", "true", "null", "x", "//", "\n", "`", "\x00",
            "é",
        ),
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25), st.text(max_size=20))
def test_mutated_conditions(pieces, text):
    """Whatever stands in a condition, it is refused with reasons or decides: fired, silent or undecidable."""
    for when in (" ".join(pieces), "".join(pieces), text):
        asked = warning_rule("rule_x", "true")
        asked = msgspec.structs.replace(asked, when=when, evidence_required=("known:ci",))
        book = compile_rules([asked])
        assert all(p.message for p in book.problems)
        decision = one(plan_commands("cmd_lint"), fact_bundle(*READY), asked)
        assert decision.rules[0].outcome in ("fired", "silent", "undecidable")
        assert decision.undecidable or not book.problems
        msgspec.convert(msgspec.to_builtins(decision), RuleDecision)
