"""A few of the hostile runs and of the vectors in a box; the proof takes them all."""

import asyncio

import hostile_programs
import processes as proof
import pytest

from steersman.adapters.sandbox.bubblewrap import probe_sandbox

QUICK = ("PRC-006", "PRC-019", "PRC-023", "PRC-024", "PRC-028", "PRC-030")


def test_hostile_runs(tmp_path):
    """Behind every fence there is here: no survivor, no zombie, no descriptor, hardly a byte, always a name."""
    sandbox = probe_sandbox("auto")
    around = proof.fences(sandbox)
    told = asyncio.run(proof.held(proof.cases(6, around), tmp_path, sandbox))
    assert told["faults"] == []
    assert (told["survivors"], told["zombies"], told["leaked_descriptors"]) == (0, 0, 0)
    assert told["growth_kib"] < hostile_programs.GROWTH >> 10
    assert sum(told["outcomes"].values()) == 6
    assert "" not in told["outcomes"]


def test_a_flood():
    """Both streams at once are read to their end in bounded memory."""
    told = asyncio.run(proof.flooded(0.02))
    assert told["faults"] == []
    assert told["bytes"] > 40_000_000


def test_vectors_in_a_box():
    """Each has its outcome; the store, the token and the tree are untouched by it."""
    sandbox = probe_sandbox("auto")
    if not sandbox.isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {sandbox.why}")
    with hostile_programs.open_attacked_project("sample", sandbox) as (project, reached):
        told = [
            asyncio.run(hostile_programs.run_vector(project, v))
            for v in hostile_programs.load_vectors()
            if v.id in QUICK
        ]
    assert [fault for one in told for fault in one.faults] == []
    assert (len(told), reached) == (len(QUICK), [])
