"""What programs leave behind, and that nothing of it is alive afterwards: hostile programs, real ones."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from functools import partial

import pytest
from tests.support.runaway_programs import (
    RUNAWAY_PROGRAMS,
    SANDBOX_ONLY_PROGRAMS,
    find_survivors,
    find_zombies,
    runaway_command,
)

from steersman.adapters.process import cgroups, child_process, process_table, program_runner
from steersman.adapters.process.subreaper import find_descendants

PY = sys.executable
PATIENCE = 30  # seconds; on a busy machine the end of a process takes its time
ENV = {"PATH": os.environ["PATH"]}
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a keeper needs a subreaper")
pytestmark = LINUX


@pytest.fixture
def token(tmp_path):
    """The name by which the processes of one test are found, whatever they do; what is left of them is killed."""
    name = tmp_path / f"hostile-{uuid.uuid4().hex}"
    yield name
    for pid in set(find_survivors(name)) - {0}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["group", "keeper"])
def fence(request, monkeypatch):
    """With a control group around each program where this machine lets us make one, and without."""
    if request.param == "keeper":
        monkeypatch.setattr(cgroups, "find_cgroup_hierarchies", lambda: ())
    elif (
        not cgroups.create_program_cgroup("probe:0:0", "0").remove() or not cgroups.find_cgroup_hierarchies()
    ):
        pytest.skip("no control group can be made here")
    return request.param


async def settled(token):
    """What is alive and what is unreaped, when that is nothing or after a while."""
    deadline = time.monotonic() + PATIENCE
    while (left := (find_survivors(token), find_zombies(token))) != ([], []) and time.monotonic() < deadline:  # noqa: ASYNC110  processes ring no bell
        await asyncio.sleep(0.05)
    return left


def fences_left(token):
    """The control groups of a test, when there are none or after a while."""
    deadline = time.monotonic() + PATIENCE
    while (left := cgroups.find_leftover_cgroup(token.name).folders) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


async def story(token, name, then, seconds=60.0):
    """One program, and what is left of it."""
    done = await program_runner.run_program(
        runaway_command(name, token, then), token.parent, ENV, seconds, f"{token.name}:1:1"
    )
    return done, await settled(token)


async def stories(token, names, then, seconds=60.0):
    """Many at once, and by how many descriptors this process has grown; one kills its parent and so needs no clock."""
    before = len(os.listdir("/proc/self/fd"))
    clocks = {name: 60.0 if name == "kills-its-parent" else seconds for name in names}
    told = await asyncio.gather(
        *(story(token.with_name(f"{token.name}-{name}-"), name, then, clocks[name]) for name in names)
    )
    await asyncio.sleep(0)
    return dict(zip(names, told, strict=True)), len(os.listdir("/proc/self/fd")) - before


def test_nothing_is_left_of_programs_that_are_stopped(token, fence):
    """However they hold on, after their clock no process of them is alive or a zombie, no descriptor is open."""
    told, descriptors = asyncio.run(stories(token, list(RUNAWAY_PROGRAMS), "hang", seconds=1.5))
    assert {name: left for name, (_, left) in told.items()} == dict.fromkeys(RUNAWAY_PROGRAMS, ([], []))
    ended = told.pop("kills-its-parent")[0]
    assert (ended.exit_code, ended.expired) == (-signal.SIGKILL, "")
    assert {name: done.expired for name, (done, _) in told.items()} == dict.fromkeys(told, "total")
    assert descriptors == 0
    assert fences_left(token) == ()


def test_nothing_is_left_of_programs_that_end(token, fence):
    """What they leave behind is stopped, their exit code is their own, and nobody waits for who holds the pipe."""
    names = [name for name in RUNAWAY_PROGRAMS if name not in ("stops-its-parent", "kills-its-parent")]
    told, descriptors = asyncio.run(stories(token, names, "exit"))
    assert {name: left for name, (_, left) in told.items()} == dict.fromkeys(names, ([], []))
    assert {(done.exit_code, done.expired, done.reason) for done, _ in told.values()} == {(0, "", "")}
    assert descriptors == 0
    assert fences_left(token) == ()


@pytest.mark.parametrize("alone", range(2))
@pytest.mark.parametrize("name", SANDBOX_ONLY_PROGRAMS)
def test_a_control_group_holds_what_kills_its_keeper_and_hides(name, alone, token, monkeypatch):
    """Without mark, session and parent only the fence around it tells whose process it is; either kind suffices."""
    places = cgroups.find_cgroup_hierarchies()[alone : alone + 1]
    monkeypatch.setattr(cgroups, "find_cgroup_hierarchies", lambda: places)
    group = cgroups.create_program_cgroup("probe:0:0", "0")
    if not group.folders:
        pytest.skip("no such control group can be made here")
    group.remove()
    done, left = asyncio.run(story(token, name, "hang"))
    assert done.exit_code == -signal.SIGKILL
    assert left == ([], [])
    assert fences_left(token) == ()


def test_a_control_group_bounds_the_number_of_processes(token, monkeypatch):
    """Beyond the bound a program cannot fork; what it has forked is stopped with it."""
    if not any("pids" in place.root for place in cgroups.find_cgroup_hierarchies()):
        pytest.skip("no control group bounds processes here")
    monkeypatch.setattr(cgroups, "MAX_CGROUP_PROCESSES", 20)
    code = (
        "import os, time\nfor n in range(60):\n    if not os.fork(): time.sleep(60)\n    print(n, flush=True)"
    )
    done = asyncio.run(program_runner.run_program((PY, "-c", code), ".", ENV, 60, f"{token.name}:1:1"))
    assert b"Resource temporarily unavailable" in done.errors
    assert 10 < len(done.output.split()) < 20
    assert program_runner.alive(token.name) == []


def test_marks_and_sessions_alone_hold_what_keeps_one_of_them(token, monkeypatch):
    """Where there is no keeper, who forks twice, ignores the question or breeds is found by what it inherited."""
    monkeypatch.setattr(child_process, "can_use_subreaper", lambda: False)
    names = ("forks-twice", "ignores-sigterm", "breeds")
    told, descriptors = asyncio.run(stories(token, names, "exit"))
    assert {(done.exit_code, tuple(alive)) for done, (alive, _) in told.values()} == {(0, ())}
    assert descriptors == 0


OWNER = """
import asyncio, os, sys
from steersman.adapters.process import cgroups, program_runner
if sys.argv[1] == "keeper": cgroups.find_cgroup_hierarchies = lambda: ()
asyncio.run(program_runner.run_program(sys.argv[3:], os.path.dirname(sys.argv[-2]), {"PATH": os.environ["PATH"]}, 60, sys.argv[2]))
"""


def owned(token, name, fence):
    """A process that executes the program; returned when the program has started all that it leaves behind."""
    argv = [PY, "-c", OWNER, fence, f"{token.name}:1:1", *runaway_command(name, token, "hang")]
    owner = subprocess.Popen(argv)
    ended = token.with_name(f"{token.name}.ended")
    deadline = time.monotonic() + PATIENCE
    while not ended.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert find_survivors(token)
    return owner


def killed(process):
    process.kill()
    process.wait()


@pytest.mark.parametrize("name", ["forks-twice", "hides", "ignores-sigterm", "runs-away"])
def test_what_a_killed_steersman_leaves_ends_by_itself(name, token, fence):
    """After kill -9 of the process that executes it, a keeper stops everything, unasked and unmarked ones too."""
    killed(owned(token, name, fence))
    assert asyncio.run(settled(token)) == ([], [])
    assert fences_left(token) == ()


def test_the_next_claim_finds_what_hides_behind_a_dead_keeper(token):
    """With steersman and the keeper both killed, the control group still tells whose process it is."""
    if not cgroups.find_cgroup_hierarchies():
        pytest.skip("no control group can be made here")
    owner = owned(token, "hides", "group")
    owner.send_signal(signal.SIGSTOP)  # it must not clean up after its keeper
    run = token.name
    for process in process_table.list_other_processes():
        if process.keeps and process.effect == f"{run}:1:1":
            os.kill(process.pid, signal.SIGKILL)
    killed(owner)
    while len(hidden := find_survivors(token)) > 1:  # the program itself dies with its keeper
        time.sleep(0.02)
    assert hidden
    assert program_runner.alive(f"{run}:") == hidden
    assert program_runner.stop_tree(f"{run}:", 0.5) == len(hidden)
    assert asyncio.run(settled(token)) == ([], [])
    assert cgroups.find_leftover_cgroup(run).folders == ()


def test_nobody_is_spared_for_calling_himself_a_keeper(token):
    """A program with a keeper's mark that replaces each child it loses is stopped all the same."""
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "until = time.monotonic() + 30\n"
        "while time.monotonic() < until:\n"
        "    if os.fork() == 0: os.execve('/bin/sleep', ['sleep', '30'], {'STEERSMAN_EFFECT': sys.argv[1]})\n"
        "    os.wait()\n"
    )
    effect = f"{token.name}:1:1"
    marks = {**ENV, process_table.EFFECT_VARIABLE: effect, process_table.SUBREAPER_VARIABLE: "1"}
    with subprocess.Popen([PY, "-c", code, effect], env=marks) as liar:
        while not find_descendants(liar.pid):  # it ignores SIGTERM by then
            time.sleep(0.02)
        assert program_runner.stop_tree(effect, 0.1) >= 2
        assert liar.wait(timeout=PATIENCE) == -signal.SIGKILL
    assert program_runner.alive(effect) == []


def test_a_daemon_with_an_empty_environment_still_knows_whom_it_works_for(token, fence):
    """Whoever asks from inside a run's tree is found out: the keeper above it carries the effect."""
    asks = (
        "from steersman.adapters.process.process_table import list_own_effects; print(*list_own_effects(), flush=True)\n"
        "open('asked', 'w').close()"
    )
    code = (
        "import os, sys, time\nif os.fork(): os.wait(); sys.exit(0)\nos.setsid()\nparent = os.getpid()\n"
        "if os.fork(): os._exit(0)\n"
        "while os.getppid() == parent: time.sleep(0.01)\n"
        f"os.execve({PY!r}, [{PY!r}, '-c', {asks!r}], {{}})"
    )
    waits = (
        f"import os, subprocess, time; subprocess.run([{PY!r}, '-c', {code!r}])\n"
        "while not os.path.exists('asked'): time.sleep(0.02)"
    )
    effect = f"{token.name}:1:1"
    done = asyncio.run(program_runner.run_program((PY, "-c", waits), token.parent, ENV, 60, effect))
    assert done.output.decode().strip() == effect


def test_a_loop_that_ends_leaves_nothing_behind(token, fence):
    """When every task is cancelled at once, those that clean up among them, the program is still stopped."""

    async def broken():
        task = asyncio.create_task(story(token, "ignores-sigterm", "hang"))
        while len(find_survivors(token)) < 3:  # noqa: ASYNC110  the same
            await asyncio.sleep(0.02)
        assert not task.done()
        raise LookupError("the end")

    with pytest.raises(LookupError, match="the end"):
        asyncio.run(broken())
    assert asyncio.run(settled(token)) == ([], [])


def test_a_cancellation_at_any_moment_of_the_start_leaves_nothing(token, fence):
    """Cancelled before, while or just after its keeper and the program are started, nothing of it is left."""

    async def cancelled(nth):
        mark = token.with_name(f"{token.name}-{nth}-")
        run = program_runner.run_program(
            runaway_command("hides", mark, "hang"), mark.parent, ENV, 60, f"{token.name}:1:{nth}"
        )
        task = asyncio.create_task(run)
        await asyncio.sleep(nth / 200)
        task.cancel()
        result = await asyncio.gather(task, return_exceptions=True)
        return isinstance(result[0], asyncio.CancelledError), await settled(mark)

    async def all_of_them():
        before = len(os.listdir("/proc/self/fd"))
        told = [await cancelled(nth) for nth in range(16)]
        await asyncio.sleep(0)
        return told, len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(all_of_them()) == ([(True, ([], []))] * 16, 0)
    assert fences_left(token) == ()


def test_a_cancellation_beats_a_late_success(token, fence):
    """A program that answers its stopping with exit code 0 was cancelled all the same."""
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('on', flush=True); time.sleep(60)"
    heard = asyncio.Event()

    async def cancelled():
        run = program_runner.run_program(
            (PY, "-c", code), ".", ENV, 60, f"{token.name}:1:1", lines=lambda _: heard.set()
        )
        task = asyncio.create_task(run)
        await heard.wait()
        task.cancel()
        return await asyncio.gather(task, return_exceptions=True)

    (result,) = asyncio.run(cancelled())
    assert isinstance(result, asyncio.CancelledError)


def test_a_clock_that_is_over_before_the_program_began_is_still_the_outcome(token, fence):
    """With no time at all the outcome is the clock, not a failed start, and nothing is started late."""
    done, left = asyncio.run(story(token, "hides", "hang", seconds=0.001))
    assert (done.expired, done.reason, left) == ("total", "", ([], []))


def test_a_program_that_may_not_be_executed_is_told_apart(tmp_path, fence):
    """Not found and not permitted are two causes, for programs by name and by path."""
    plain = tmp_path / "plain"
    plain.write_text("no program")
    run = partial(program_runner.run_program, cwd=tmp_path, env=ENV, clocks=10, effect="none:0:0")
    for argv, cause in [
        (("./plain",), "permission"),
        (("/no/such/binary",), "not_found"),
        (("nowhere",), "not_found"),
    ]:
        done = asyncio.run(run(argv))
        assert (done.exit_code, done.cause) == (None, cause), done
        assert done.reason.startswith(f"cannot start {argv[0]}: ")


def test_the_process_above_a_program_holds_no_secret(fence):
    """Its parent's environment has the two marks and nothing of what the program was given."""
    code = "import os; print(open(f'/proc/{os.getppid()}/environ').read())"
    done = asyncio.run(
        program_runner.run_program((PY, "-c", code), ".", {**ENV, "API_KEY": "s3cret"}, 10, "none:0:0")
    )
    names = {pair.partition("=")[0] for pair in done.output.decode().strip().split("\0") if pair}
    assert names == {
        process_table.EFFECT_VARIABLE, process_table.CALL_VARIABLE, process_table.SUBREAPER_VARIABLE,
    }  # fmt: skip
