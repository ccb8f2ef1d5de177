"""Hostile programs in a box, which has no keeper: nothing of them is alive when the call returns, nor after a kill."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
from tests.support.runaway_programs import (
    RUNAWAY_PROGRAMS,
    SANDBOX_ONLY_PROGRAMS,
    find_survivors,
    runaway_command,
)

from steersman.adapters.process import cgroups, child_process, program_runner
from steersman.adapters.sandbox.bubblewrap import SandboxPolicy

ENV = {"PATH": os.environ["PATH"]}
NAMES = [*RUNAWAY_PROGRAMS, *SANDBOX_ONLY_PROGRAMS]


@pytest.fixture
def token(tmp_path):
    """The name by which the processes of one test are found, whatever they do."""
    return tmp_path / f"hostile-{uuid.uuid4().hex}"


async def boxed(sandbox, token, argv, seconds):
    """One program in a box, and who is alive at the moment the call returns."""
    place = str(token.parent)
    async with sandbox.wrap(argv, SandboxPolicy((place,)), ENV, place) as found:
        done = await program_runner.run_program(
            found.argv, place, found.env, seconds, f"{token.name}:1:1", doors=found.doors
        )
        return done, [pid for pid in find_survivors(token) if pid]


async def stories(sandbox, token, then, seconds):
    """Many at once, and by how many descriptors this process has grown."""
    tokens = {name: token.with_name(f"{token.name}-{nth}-") for nth, name in enumerate(NAMES)}
    await boxed(sandbox, token, ("true",), 10)  # what is made once is made
    before = len(os.listdir("/proc/self/fd"))
    told = await asyncio.gather(
        *(
            boxed(
                sandbox,
                mark,
                runaway_command(name, mark, then),
                2.0 if name in SANDBOX_ONLY_PROGRAMS else seconds,
            )  # they never exit
            for name, mark in tokens.items()
        )
    )
    await asyncio.sleep(0)
    return dict(zip(NAMES, told, strict=True)), len(os.listdir("/proc/self/fd")) - before


@pytest.mark.parametrize(("then", "seconds"), [("hang", 2.0), ("exit", 60.0)])
def test_nothing_is_left(sandbox, token, then, seconds):
    """Whatever they do inside, whether they end or their clock ends them."""
    told, descriptors = asyncio.run(stories(sandbox, token, then, seconds))
    assert {name: alive for name, (_, alive) in told.items() if alive} == {}
    assert len(told) == len(NAMES)
    assert descriptors == 0
    assert cgroups.find_leftover_cgroup(token.name).folders == ()
    if then == "hang":
        assert {name: done.expired for name, (done, _) in told.items()} == dict.fromkeys(NAMES, "total")


def test_a_cancelled_call_leaves_nothing(sandbox, token):
    """A cancel while it holds on returns when everyone is gone."""

    async def cancelled():
        call = asyncio.create_task(
            boxed(sandbox, token, runaway_command("ignores-sigterm", token, "hang"), 60)
        )
        while len(find_survivors(token)) < 3:  # noqa: ASYNC110  processes ring no bell
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return find_survivors(token)

    assert asyncio.run(cancelled()) == []


OWNER = """
import asyncio, os, sys
from steersman.adapters.process import program_runner
from steersman.adapters.sandbox.bubblewrap import SandboxPolicy, probe_sandbox
async def main(place, effect, argv):
    async with probe_sandbox("required").wrap(argv, SandboxPolicy((place,)), {"PATH": os.environ["PATH"]}, place) as found:
        await program_runner.run_program(found.argv, place, found.env, 60, effect, doors=found.doors)
asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
"""


def test_a_killed_steersman_takes_the_box_along(sandbox, token):
    """After kill -9 of the process that executes it nobody inside goes on."""
    argv = [
        sys.executable, "-c", OWNER, str(token.parent), f"{token.name}:1:1",
        *runaway_command("hides", token, "hang"),
    ]  # fmt: skip
    with subprocess.Popen(argv) as owner:
        while len(find_survivors(token)) < 4:  # the owner, the box, the program and what it hides
            time.sleep(0.02)
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while find_survivors(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert find_survivors(token) == []


def test_a_fence_bounds_what_is_in_a_box(sandbox, token, monkeypatch):
    """The program does not begin before it is inside: beyond the bound nothing can be forked."""
    if not any("pids" in place.root for place in cgroups.find_cgroup_hierarchies()):
        pytest.skip("no control group bounds processes here")
    monkeypatch.setattr(cgroups, "MAX_CGROUP_PROCESSES", 20)
    code = (
        "import os, time\nfor n in range(60):\n    if not os.fork(): time.sleep(60)\n    print(n, flush=True)"
    )
    done, alive = asyncio.run(boxed(sandbox, token, (sys.executable, "-c", code), 60))
    assert b"Resource temporarily unavailable" in done.errors
    assert alive == []


def test_byte_code_counts_only_with_its_source(tmp_path):
    """A script whose byte code is missing, old or of another interpreter is started itself."""
    script = tmp_path / "a.py"
    script.write_text("import sys; print('old')\n")
    assert child_process.prefer_cached_bytecode(str(script)) == str(script)
    subprocess.run([sys.executable, "-m", "py_compile", str(script)], check=True)
    fast = child_process.prefer_cached_bytecode(str(script))
    assert (
        subprocess.run([sys.executable, "-I", "-S", fast], capture_output=True, check=True).stdout == b"old\n"
    )
    assert fast.endswith(".pyc")
    script.write_text("import sys; print('newer')\n")
    assert child_process.prefer_cached_bytecode(str(script)) == str(script)
