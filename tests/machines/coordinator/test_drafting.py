"""A first intent from a goal: which workflow, which commands, which evidence; every draft can be planned as it stands."""

from pathlib import Path

from tests.support.cases import for_each_case

from steersman.adapters.storage.registry_files import FileRegistries
from steersman.contracts.planning.context import FactPack, ProjectFact, ScanBounds, ScanEvidence
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import POLICY_PRESETS
from steersman.contracts.replies import PlannerReply
from steersman.judges.planning import goals
from steersman.judges.planning.drafting import IntentRequest, amend_intent_draft, draft_intent
from steersman.judges.planning.precheck import collect_precheck_problems, has_passed_precheck, precheck_intent
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.schema_errors import convert_valid_document
from steersman.judges.planning.semantics import find_intent_remarks
from steersman.kernel.canonical import plain_value

REGISTRY = FileRegistries(Path("/nowhere"), Path("/nowhere")).built_in().registry
EVIDENCE = ScanEvidence(
    id="ev0123456789ab", source_file="pyproject.toml", first_line=1, last_line=2, digest="0" * 64, snippet=""
)
BOUNDS = ScanBounds(files_seen=1, files_read=1, bytes_read=1, skipped=0, complete=True)


def fact(kind, name):
    return ProjectFact(kind=kind, name=name, evidence=(EVIDENCE.id,))


EVERYTHING = tuple(
    fact(kind, "one")
    for kind in (
        "language", "package", "test_command", "build_command", "lint_command", "format_command", "type_command", "ci",
        "lock_file", "database",
    )
)  # fmt: skip


def facts(*found):
    return FactPack(project_id="shop", fingerprint="0" * 64, facts=found, evidence=(EVIDENCE,), bounds=BOUNDS)


def drafted(goal="Fix the login", found=EVERYTHING, registry=REGISTRY, choice=None, **more):
    wish = IntentRequest(goal, "shop", "ada", "2026-01-25T09:30:00Z", **more)
    return draft_intent(wish, choice or goals.choose_workflow(goal, registry), facts(*found), registry)


@for_each_case("mode", ["interactive", "semi_auto", "full_auto"])
@for_each_case("workflow", [w.id for w in REGISTRY.all_usable("workflow")])
def test_every_draft_passes(workflow, mode):
    """Whatever the workflow and the mode, the draft passes the precheck under the policy of its mode, with no remark."""
    choice = goals.WorkflowChoice(REGISTRY.usable("workflow", workflow), "asked for")
    value = drafted(choice=choice, mode=mode).value
    report = precheck_intent(value, plain_value(POLICY_PRESETS[mode]), REGISTRY)
    assert has_passed_precheck(report), collect_precheck_problems(report)
    assert find_intent_remarks(value, REGISTRY) == ()
    assert convert_valid_document(value, ExecutionIntent, "execution_intent").budgets.max_tokens <= 2_000_000


def test_the_same_wish_gives_the_same_draft():
    """Nothing but the wish, the facts and the registry is in it."""
    assert drafted() == drafted()


def test_what_is_dangerous_is_left_out_and_named():
    """Destructive and critical commands are for a person to add; high ones where nobody is asked."""
    choice = goals.WorkflowChoice(REGISTRY.usable("workflow", "wf_data_migration"), "asked for")
    left = dict(drafted(choice=choice).left_out)
    assert "destroys" in left["cmd_apply_migration"]
    release = goals.WorkflowChoice(REGISTRY.usable("workflow", "wf_release"), "asked for")
    assert "critical" in dict(drafted(choice=release).left_out).get("cmd_deploy_production", "critical")
    for mode, there in (("interactive", True), ("full_auto", False)):
        ids = {c["command_id"] for c in drafted(choice=release, mode=mode).value["planned_commands"]}
        high = {id_ for id_ in ids if REGISTRY.get("command", id_).risk_level == "high"}
        assert bool(high) is there


def test_commands_need_facts():
    """A command whose fact the project lacks is left out, and so is everything where nothing was found."""
    value = drafted(found=(fact("language", "python"),))
    assert dict(value.left_out)["cmd_run_unit_tests"] == "the project has no test_command"
    assert {r for c in value.value["planned_commands"] for r in c["evidence_refs"]} == {
        "fact://language/python",
        "scan://ev0123456789ab",
    }
    nothing = drafted(found=())
    assert nothing.value["planned_commands"] == []
    assert nothing.value["risk"]["overall"] == "low"
    assert dict(nothing.left_out)["cmd_read_code"] == "nothing that was found speaks for it"
    other = drafted(found=(fact("licence", "mit"), fact("licence", "no name of one")))
    assert other.value["planned_commands"][0]["evidence_refs"] == [
        "fact://licence/mit", "scan://ev0123456789ab", "fact://licence/no%20name%20of%20one",
    ]  # fmt: skip


def test_scope():
    """What may be touched: as the person says, else by the words of the goal."""
    assert drafted(files=("a.py",), areas=("ops",)).value["scope"]["targets"] == {
        "files": ["a.py"],
        "areas": ["ops"],
    }
    assert drafted("Fix the docs").value["scope"]["targets"] == {"files": [], "areas": ["docs"]}


@for_each_case(
    ("goal", "id_", "title"),
    [
        ("Fix the login!", "intent_fix_the_login", "Fix the login!"),
        ("修复登录", "intent_", "Goal: 修复登录"),
        ("x", "intent_", "Goal: x"),
        ("Add\n many  words " * 40, "intent_add_many_words_add_many_words_add_many_w", None),
    ],
)
def test_names(goal, id_, title):
    """An id and a title that fit their form, whatever the goal."""
    value = drafted(goal).value
    assert value["id"].startswith(id_)
    assert title in (None, value["title"])
    assert has_passed_precheck(precheck_intent(value, plain_value(POLICY_PRESETS["interactive"]), REGISTRY))


def test_registries_that_lack_something():
    """Without agents there is no whole intent, and nothing raises; a command that is no more is passed over."""
    bare = Registry(tuple(i for i in REGISTRY.items if not i.content.id.startswith("agent_")))
    value = drafted(registry=bare).value
    assert value["selected_agents"] == []
    assert value["budgets"]["max_tokens"] == 0
    few = Registry(tuple(i for i in REGISTRY.items if i.content.id not in ("cmd_commit", "agent_architect")))
    value = drafted(registry=few).value
    assert "cmd_commit" not in str(value)
    assert has_passed_precheck(precheck_intent(value, plain_value(POLICY_PRESETS["interactive"]), few))


# ── goals ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("goal", "workflow"),
    [
        ("Fix the login for names with a dot", "wf_bug_fix"),
        ("The import crashes on empty files", "wf_bug_fix"),
        ("Add an export to CSV", "wf_feature"),
        ("Prices in euro", "wf_feature"),
        ("Upgrade requests to 3.0", "wf_dependency_upgrade"),
        ("Renaming Foo to Bar", "wf_refactor"),
        ("Write a guide in the README", "wf_documentation"),
        ("Ship 2.0", "wf_release"),
        ("Fixing a security leak", "wf_security_fix"),
        ("Migrate the schema", "wf_data_migration"),
        ("production is down", "wf_incident"),
        ("Fix production", "wf_incident"),
        ("Deploy a hotfix to production", "wf_incident"),
        ("Deploy to production", "wf_release"),
        ("Release version 2 and deploy to production", "wf_release"),
        ("Build it, then deploy it to staging", "wf_release"),
        ("Roll out 2.1", "wf_release"),
        ("部署到生产", "wf_release"),
        ("Fix the deploy script", "wf_bug_fix"),
        ("Deploy fails on Mondays", "wf_bug_fix"),
        ("Document how we deploy to staging", "wf_documentation"),
        ("修复登录错误", "wf_bug_fix"),
    ],
)
def test_workflow_by_words(goal, workflow):
    """The workflow with the most words of the goal."""
    assert goals.choose_workflow(goal, REGISTRY).workflow.id == workflow


def test_every_workflow_can_be_asked_for():
    """No built-in workflow is without words, and no words are without their workflow."""
    assert set(goals.WORKFLOW_WORDS) == {w.id for w in REGISTRY.all_usable("workflow")}


def test_no_workflow_at_all():
    """An empty registry has nothing to choose from; without the usual one the first will do."""
    assert goals.choose_workflow("Fix it", Registry(())) is None
    alone = Registry(tuple(i for i in REGISTRY.items if i.content.id == "wf_release"))
    assert goals.choose_workflow("Paint it", alone).workflow.id == "wf_release"


def test_files_of_a_goal():
    """What looks like a file, in its order, once."""
    assert goals.find_goal_files("Move src/a.py and b.py, see src/a.py (docs/x/y.md).") == (
        "src/a.py", "b.py", "docs/x/y.md",
    )  # fmt: skip
    assert goals.find_goal_files("nothing here, 1.0 or /etc/passwd or ~/x.py") == ()


# ── an agent's hand ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_adds_caution_and_takes_commands_away():
    """Its words and scope are taken; reviews are only added, commands only left out, and the seal is broken."""
    first = drafted()
    reply = PlannerReply(
        nonce="n", title="Dots in names", description="why", success_criteria=("a test",),
        non_goals=("mail",), files=("src/a.py",), areas=(), risk_drivers=("it is the login",),
        requires_review=("security",), leave_out=("cmd_lint", "cmd_unknown"),
    )  # fmt: skip
    now = amend_intent_draft(first, reply)
    assert now.value["risk"]["requires_review"] == ["architecture", "security"]
    assert now.value["risk"]["drivers"] == [*first.value["risk"]["drivers"], "it is the login"]
    ids = [c["command_id"] for c in now.value["planned_commands"]]
    assert ids == [c["command_id"] for c in first.value["planned_commands"] if c["command_id"] != "cmd_lint"]
    assert now.left_out[-1].command_id == "cmd_lint"
    report = precheck_intent(now.value, plain_value(POLICY_PRESETS["interactive"]), REGISTRY)
    assert not report.checksum_matches
    assert report.schema_valid
    assert now.value["title"] == "Dots in names"
