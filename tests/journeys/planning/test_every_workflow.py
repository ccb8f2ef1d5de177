"""Every workflow that comes with the program can be planned to its end (001 §3, §6)."""

import pytest
from tests.support.plan_project import PlanProject

from steersman.adapters.storage.registry_files import load_built_in_yaml

WORKFLOWS = [workflow.id for workflow in load_built_in_yaml().registry.all_usable("workflow")]


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_built_in_workflow_is_planned(shop_project, workflow):
    """A draft of each built-in workflow ends with a plan once its questions have their defaults."""
    plans = PlanProject(shop_project)
    told = plans.plan(plans.write(plans.intent("--workflow", workflow, mode="semi_auto")))
    for _ in range(3):
        if told.state == "AWAITING_ANSWERS":
            told = plans.defaults(told.run)
    assert (told.code, told.state) == (0, "DONE"), told.told
