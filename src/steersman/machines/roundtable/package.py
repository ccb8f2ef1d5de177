"""Everything that the rest of the product knows about `roundtable`."""

from steersman.engine.machine_package import MachinePackage, StartOptions, StartPlan
from steersman.machines.roundtable.table import MACHINE
from steersman.machines.roundtable.views import (
    list_roundtable_artifacts,
    read_roundtable_patch,
    roundtable_report_sections,
    roundtable_summary_fields,
)


def plan_roundtable_start(start: StartOptions) -> StartPlan:
    """Without another word a proposal is discussed first."""
    return StartPlan({"mode": "proposal", **start.given})


PACKAGE = MachinePackage(
    machine=MACHINE,
    folder="steersman.machines.roundtable",
    takes=frozenset({"mode", "max_iterations"}),
    plan_start=plan_roundtable_start,
    summary_fields=roundtable_summary_fields,
    report_sections=roundtable_report_sections,
    artifacts=list_roundtable_artifacts,
    read_patch=read_roundtable_patch,
    round_field="round",
)
