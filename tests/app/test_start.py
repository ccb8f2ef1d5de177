"""Orders that cannot be started are refused with the next step; a driver in the background has claimed its run."""

import msgspec
import pytest
from tests.support.small_machines import fake_ports_with_machines, play_run

from steersman.app.principal import Principal
from steersman.app.start import (
    ISSUE_TASK_TEXT,
    RunOrder,
    check_order,
    describe_unused_changes,
    drive_in_background,
    plan_request,
)
from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.testing import fake_config
from steersman.wiring import installed_packages, open_ports

ANN = Principal("ann", command_prefix="steersman --project /x")


@pytest.fixture
def installed(tmp_path):
    """The ports of an empty folder, with the machines that are installed."""
    return open_ports(tmp_path, journal=None)


@pytest.mark.parametrize(
    ("machine", "option", "hint"),
    [
        ("roundtable", "after", "roundtable does not take --after: use --as task"),
        ("task", "max_iterations", "task does not take --max-iterations: use --as roundtable"),
        ("roundtable", "nonsense", "roundtable does not take --nonsense$"),
    ],
)
def test_an_option_of_another_machine_is_refused_with_the_machine_that_takes_it(
    installed, machine, option, hint
):
    """The hint names the machine; an option that no machine takes has none."""
    order = RunOrder(machine=machine, task="Fix it", given={option: 3})
    with pytest.raises(UserError, match=hint):
        plan_request(installed, ANN, Config(), order)


def test_an_order_needs_a_task(installed):
    """Words that a person cannot see are none; the text of an issue is enough."""
    for task in ("", " \u200b"):
        with pytest.raises(UserError, match="a run needs a task"):
            plan_request(installed, ANN, Config(), RunOrder(machine="roundtable", task=task))
    request = plan_request(installed, ANN, Config(), RunOrder(machine="roundtable", issue="It is broken."))
    assert (request.task, request.issue, request.person) == (ISSUE_TASK_TEXT, "It is broken.", "ann")


def test_an_order_names_a_machine_that_carries_something_out():
    """The errors list the machines, and send an order for the planner to its own command."""
    machines = installed_packages()
    with pytest.raises(
        UserError, match="Choose one of coordinator, roundtable, task, or see `steersman machine list`"
    ):
        check_order(machines, RunOrder(machine="nope", task="x"))
    with pytest.raises(UserError, match="use `steersman --project /x plan`"):
        check_order(machines, RunOrder(machine="coordinator", task="x"), ANN.command_prefix)


def test_a_run_that_fixes_its_base_says_so(installed):
    """The option reaches the machine beside its own defaults."""
    order = RunOrder(machine="roundtable", task="Fix it", fix_base=True)
    assert plan_request(installed, ANN, Config(), order).options == {"mode": "proposal", "red_base": "fix"}


def test_a_clean_checkout_has_nothing_to_say(tmp_path):
    """Where the run uses everything of the checkout, there is no note."""
    assert describe_unused_changes(fake_ports_with_machines(tmp_path), fake_config()) == []


def test_no_run_starts_outside_a_repository(installed):
    """The problem of the workspace is the error, before anything is made."""
    with pytest.raises(UserError, match="git"):
        describe_unused_changes(installed, Config())


class _Driver:
    """A background process that claims its run, or ends, after a few looks."""

    def __init__(self, ports, run, *, claims):
        self.log, self._ports, self._run, self._claims, self._looks = "driver.log", ports, run, claims, 0

    def has_ended(self):
        self._looks += 1
        if self._looks == 3 and self._claims:
            self._ports.locks.acquire(self._run)
        return self._looks >= 3 and not self._claims


@pytest.mark.parametrize("claims", [True, False])
def test_a_background_driver_is_waited_for(tmp_path, claims):
    """The call returns when the driver has claimed the run, or has ended without it."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports, "watch", after=0).run
    ports = msgspec.structs.replace(ports, start_driver=lambda name: _Driver(ports, name, claims=claims))
    started = drive_in_background(ports, run)
    assert (started.run, started.log) == (run, "driver.log")
    assert (ports.locks.owner(run) is not None) == claims


def test_where_no_process_can_be_started_the_error_says_so(tmp_path):
    """Ports without a way to start a driver refuse."""
    with pytest.raises(UserError, match="drive the run in this one"):
        drive_in_background(fake_ports_with_machines(tmp_path), "261116-abc123")
