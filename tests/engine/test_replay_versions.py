"""Deciding a tape again under a table that has changed since."""

import asyncio

from msgspec.structs import replace

from steersman.engine.audit import replay_run
from steersman.engine.driver import Driver
from steersman.engine.start import StartRequest, start_run
from steersman.kernel.machine import definition_digest
from steersman.machines.roundtable import MACHINE
from steersman.testing import fake_config, fake_ports


def changed(name):
    """The same machine but for the version of one naming."""
    namings = {**MACHINE.namings, name: replace(MACHINE.namings[name], version=2)}
    other = replace(MACHINE, namings=namings)
    return replace(other, digest=definition_digest(other))


def test_only_the_changed_part_is_of_another_version(tmp_path):
    """Of a tape made under another definition, what the change does not touch is decided again all the same."""
    ports = fake_ports(tmp_path, {MACHINE.name: MACHINE})

    async def proposed():
        live, lock = await start_run(ports, StartRequest("roundtable", "a task", "ann", fake_config()))
        await Driver(ports).drive(live.run, held=lock, live=live)
        return live.run

    run = asyncio.run(proposed())
    whole = replay_run(ports.journal, MACHINE, run)
    assert (whole.same, whole.different, whole.other_version) == (8, 0, 0)
    again = replay_run(ports.journal, changed("discuss_review"), run)
    assert (again.same, again.different, again.other_version) == (7, 0, 1)
    (other,) = again.decisions
    assert (other.seq, other.verdict, other.detail) == (7, "other version", MACHINE.digest)
