"""What comes before a planned command (001 §5), and that the rule about backups means it."""

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.rule_contexts import BUILT_IN_REGISTRY, decide_commands, fact_bundle, plan_commands

from steersman.judges.planning.registry import Registry, RegistryItem
from steersman.judges.planning.sequence import find_preceding_commands

SAVED, APPLIED = "cmd_back_up_database", "cmd_apply_migration"
FLOW = BUILT_IN_REGISTRY.get("workflow", "wf_data_migration")


def flow_of(*phases):
    """The workflow with other phases, each by name, commands and what else it says."""
    made = tuple(
        replace(FLOW.phases[0], phase=name, commands=commands, after=(), **more)
        for name, commands, more in phases
    )
    return replace(FLOW, phases=made)


def before(*phases, plans=(SAVED, APPLIED)):
    """The decision about the migration, and what comes before it."""
    flow = flow_of(*phases)
    items = (*(i for i in BUILT_IN_REGISTRY.items if i.content.id != flow.id), RegistryItem(flow, "project"))
    registry = Registry(items)
    chosen = [{"workflow_id": flow.id, "phases": [name for name, *_ in phases]}]
    intent = plan_commands(*plans, registry=registry, selected_workflows=chosen)
    rules = [r for r in registry.all_usable("rule") if r.id == "rule_backup_before_migration"]
    said = {
        d.command_id: d.decision for d in decide_commands(intent, fact_bundle(), *rules, registry=registry)
    }
    return said[APPLIED], find_preceding_commands(intent, registry).get(APPLIED, ())


@for_each_case(
    ("phases", "plans", "allowed"),
    [
        ([("release", (SAVED, APPLIED), {})], (APPLIED, SAVED), True),
        ([("release", (APPLIED, SAVED), {})], (SAVED, APPLIED), False),
        ([("release", (), {})], (SAVED, APPLIED), True),
        ([("release", (), {})], (APPLIED, SAVED), False),
        ([("release", (APPLIED,), {})], (APPLIED,), False),
        ([("setup", (SAVED,), {}), ("release", (APPLIED,), {})], (APPLIED, SAVED), True),
        ([("release", (APPLIED,), {}), ("operations", (SAVED,), {})], (SAVED, APPLIED), False),
        ([("setup", (SAVED,), {"condition": "if at all"}), ("release", (APPLIED,), {})], (SAVED, APPLIED), False),
        ([("release", (SAVED, APPLIED), {}), ("operations", (APPLIED,), {})], (SAVED, APPLIED), True),
        ([("release", (SAVED, APPLIED), {"condition": "x"}), ("operations", (APPLIED,), {})], (SAVED, APPLIED), False),
        ([("analysis", (), {})], (SAVED, APPLIED), False),
    ],
)  # fmt: skip
def test_a_backup_comes_before_a_migration_or_it_is_none(phases, plans, allowed):
    """`rule_backup_before_migration`: earlier in the phase or in a phase before, wherever the migration is applied."""
    decision, earlier = before(*phases, plans=plans)
    assert (decision == "allow", SAVED in earlier) == (allowed, allowed)


def test_what_stands_beside_it_does_not_come_before_it():
    """Two commands that only read are in one step: neither is before the other."""
    intent = plan_commands("cmd_read_code", "cmd_search_code", "cmd_edit_files", selected_workflows=[
        {"workflow_id": "wf_bug_fix", "phases": ["analysis", "implementation"]}])  # fmt: skip
    found = find_preceding_commands(intent, BUILT_IN_REGISTRY)
    assert (found["cmd_read_code"], found["cmd_search_code"]) == ((), ())
    assert found["cmd_edit_files"] == ("cmd_read_code", "cmd_search_code")
