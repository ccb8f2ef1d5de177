"""A run whose programs are in no box says so when it begins, once; one that must have a box does not begin."""

import asyncio

import pytest
from tests.support.packages import PACKAGES

from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.engine.start import StartRequest, start_run
from steersman.errors import UserError
from steersman.kernel.tape import read_entry
from steersman.machines.roundtable import MACHINE
from steersman.testing.fake_ports import fake_config, fake_ports


def begun(tmp_path, sandbox):
    """The reasons in the entries of a new run."""
    ports = fake_ports(tmp_path, {"roundtable": MACHINE}, sandbox=sandbox, packages=PACKAGES)
    live, lock = asyncio.run(start_run(ports, StartRequest("roundtable", "a task", "ann", fake_config())))
    lock.release()
    return [read_entry(body).why for _, body, _ in ports.journal.rows(live.run)]


def test_it_is_said_once_in_the_first_entry(tmp_path):
    """The entries that the machine adds by itself in the same commit do not repeat it."""
    assert begun(tmp_path, lambda _config: OpenSandbox("switched off")) == [
        "approval not isolated: switched off",
        "",
    ]


def test_where_nothing_is_ever_started_there_is_nothing_to_say(tmp_path):
    """Ports of fakes have no programs and no box."""
    assert begun(tmp_path, None) == ["", ""]


def test_a_box_that_must_be_there_is_asked_for_first(tmp_path):
    """Nothing of the run is stored."""

    def required(_config):
        raise UserError("no box here")

    with pytest.raises(UserError, match="no box here"):
        begun(tmp_path, required)
