"""Setting a tree up, checking it before any change, and judging what was checked: what machines on a tree share.

A machine declares these jobs as the work of its states, its events carry the facts, and `base_namings` says what those
facts come to. Which state follows, and what is remembered, is in the machine's own rows.
"""

from steersman.contracts.facts import BaselineFacts, SetupFacts
from steersman.kernel.definition import EventDef, Guard, Naming, effect, naming, otherwise

PREPARE = effect("prepare", SetupFacts, "setup")
MEASURE = effect("measure", BaselineFacts, "baseline")
MEASURE_AGAIN = effect("measure_again", BaselineFacts, "baseline")

# fmt: off
UNSTARTED = Guard("unstarted", "a check could not be started on the base tree", lambda _, e: bool(e.error) or e.unstarted > 0)
RED = Guard("red", "checks fail on the base tree, nobody has acknowledged that, and this run is not there to fix them", lambda c, e: e.red > 0 and c.red_base == "stop")
TOUCHES = Guard("touches", "the change touches what decides about tests or agents", lambda _, e: e.infrastructure > 0)
LOST_COMMITS = Guard("lost_commits", "the branch was rewritten: it no longer has commits that the change was made on", lambda _, e: e.rewritten > 0)
ACCEPTS = Guard("accepts", "the person accepts the results on this very tree", lambda c, e: e.choice == "approve" and e.digest == c.tree)
# fmt: on


def base_namings(
    ready: Guard,
    *,
    workspace_ready: EventDef,
    setup_failed: EventDef,
    check_cannot_start: EventDef,
    base_not_green: EventDef,
    baseline_recorded: EventDef,
) -> tuple[Naming, ...]:
    """What becomes of setup, by the machine's own guard that the tree is ready, and of the checks before any change."""
    return (
        naming(PREPARE, (ready, workspace_ready), (otherwise, setup_failed)),
        naming(MEASURE_AGAIN, (otherwise, baseline_recorded)),
        naming(
            MEASURE,
            (UNSTARTED, check_cannot_start),
            (RED, base_not_green),
            (otherwise, baseline_recorded),
            version=2,
        ),
    )
