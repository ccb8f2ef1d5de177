"""Starting, marking, stopping and reaping of programs, with real ones."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.process import process_table, program_runner

PY = sys.executable
SILENT = program_runner.ProgramClocks(
    60, 0.5, 60
)  # over half a second after its last word, however late that comes
ENV = {"PATH": os.environ["PATH"]}

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read():
    time.sleep(0.01)
print("noted", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def effect():
    """An effect id of a run that nobody else has; what it leaves behind is stopped."""
    name = f"{uuid.uuid4().hex}:1:1"
    yield name
    program_runner.stop_tree(name.partition(":")[0], 0)


def run(*argv, clocks=60, effect="none:0:0", cwd=".", **more):
    return asyncio.run(program_runner.run_program(argv, cwd, ENV, clocks, effect, **more))


@contextlib.contextmanager
def sleeper(effect, code="import time; time.sleep(60)"):
    child = subprocess.Popen(
        [PY, "-c", code], env={**ENV, "STEERSMAN_EFFECT": effect}, stdout=subprocess.PIPE
    )
    try:
        while child.pid not in program_runner.alive(effect):
            time.sleep(0.005)
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def gone(pid):
    """A process that is dead or only waits to be reaped by somebody else."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_a_program_that_ends_is_recorded(effect):
    """Exit code, both streams and a duration come back."""
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    done = run(PY, "-c", code, effect=effect)
    assert (done.exit_code, done.output, done.errors) == (3, b"out\n", b"err\n")
    assert not done.timed_out
    assert done.micros > 0


def test_input_is_given_or_empty(effect):
    """A program reads the bytes it was given, and end-of-file when it was given none."""
    echo = "import sys; sys.stdout.write(repr(sys.stdin.read()))"
    big = b"x" * 300_000
    assert run(PY, "-c", echo, effect=effect).output == b"''"
    assert run(PY, "-c", echo, effect=effect, stdin_bytes=b"hello").output == b"'hello'"
    assert run(PY, "-c", "pass", effect=effect, stdin_bytes=big).exit_code == 0


def test_the_environment_is_what_was_given(effect, monkeypatch):
    """Only the given variables and the two marks reach a program."""
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    done = run(PY, "-c", "import os; print(sorted(os.environ))", effect=effect)
    names = set(eval(done.output)) - {"LC_CTYPE"}  # noqa: S307  our own list; the interpreter adds LC_CTYPE
    assert names == {"PATH", "STEERSMAN_EFFECT", "STEERSMAN_CALL"}


@for_each_case(
    ("argv", "cwd", "words"),
    [
        (("no-such-program-here",), ".", "was not found"),
        ((PY,), "/no/such/dir", "working directory"),
        ((), ".", "cannot start nothing"),
        ((PY, "a\0b"), ".", "cannot start"),
    ],
)
def test_what_cannot_start_is_a_fact(argv, cwd, words):
    """A program that cannot start gives no exit code and a reason, not an exception."""
    done = run(*argv, cwd=cwd)
    assert done.exit_code is None
    assert words in done.reason


def test_ten_megabytes_are_capped(effect):
    """Of a flood the head and the tail are kept, within the cap, and the program is not held up."""
    code = "import sys; w = sys.stdout.buffer.write; w(b'HEAD'); [w(b'x' * 1048576) for _ in range(10)]; w(b'TAIL')"
    done = run(PY, "-c", code, effect=effect)
    assert done.exit_code == 0
    assert len(done.output) <= program_runner.OUTPUT_CAP
    assert done.output.startswith(b"HEADx")
    assert done.output.endswith(b"xTAIL")
    assert b"bytes left out" in done.output


def test_output_is_left_out_between_lines(effect):
    """What is kept of a flood is whole lines, and the notice counts what is missing."""
    code = "import sys; [sys.stdout.buffer.write(b'line of a log\\n') for _ in range(40_000)]"
    done = run(PY, "-c", code, effect=effect)
    head, _, tail = done.output.partition(b"[... ")
    left_out, _, tail = tail.partition(b" bytes left out ...]\n")
    assert set((head + tail).splitlines()) == {b"line of a log", b""}
    assert len(head.rstrip()) + 1 + int(left_out) + len(tail) == 40_000 * 14


def test_a_program_that_ignores_the_question_is_killed(effect):
    """SIGTERM comes first; what ignores it is killed a second later."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    done = run(PY, "-c", code, clocks=SILENT, effect=effect)
    assert done.timed_out
    assert (done.exit_code, done.output) == (-signal.SIGKILL, b"on\n")


def test_cancellation_stops_the_whole_tree(effect, tmp_path):
    """Cancelling the task, even twice, stops everything first and is then passed on."""
    note = tmp_path / "pid"

    async def story():
        task = asyncio.create_task(
            program_runner.run_program((PY, "-c", DAEMON, str(note), "60"), ".", ENV, 60, effect)
        )
        while not note.exists() or not note.read_text():  # noqa: ASYNC110  the other side is a process
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert gone(int(note.read_text()))
    assert program_runner.alive(effect) == []


def test_two_executions_of_one_effect_do_not_stop_each_other(effect):
    """The end of one execution leaves another one of the same effect alone."""

    async def story():
        slow = program_runner.run_program(
            (PY, "-c", "import time; time.sleep(0.6); print('slow')"), ".", ENV, 60, effect
        )
        fast = program_runner.run_program((PY, "-c", "print('fast')"), ".", ENV, 60, effect)
        return await asyncio.gather(slow, fast)

    slow, fast = asyncio.run(story())
    assert (slow.output, fast.output) == (b"slow\n", b"fast\n")


def test_descriptors_do_not_leak(effect):
    """Many executions, failed starts among them, leave no descriptor open."""

    async def story():
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            await program_runner.run_program((PY, "-c", "print(1)"), ".", ENV, 10, effect)
            await program_runner.run_program(("no-such-program-here",), ".", ENV, 10, effect)
        await asyncio.sleep(0)
        return len(os.listdir("/proc/self/fd")) - before

    assert asyncio.run(story()) == 0


@pytest.mark.parametrize("source", ["_list_from_proc", "_list_from_psutil"])
def test_a_prefix_means_the_effect_and_what_is_below_it(effect, source, monkeypatch):
    """`run:` finds the run's effects and not those of a run whose id only begins the same."""
    monkeypatch.setattr(process_table, "_list_processes", getattr(process_table, source))
    run_id = effect.partition(":")[0]
    with (
        sleeper(f"{run_id}:1:1") as one,
        sleeper(f"{run_id}:1:10") as ten,
        sleeper(f"{run_id}0:1:1") as other,
    ):
        assert program_runner.alive(f"{run_id}:") == sorted([one.pid, ten.pid])
        assert program_runner.alive(run_id) == sorted([one.pid, ten.pid])
        assert program_runner.alive(f"{run_id}:1:1") == [one.pid]
        assert program_runner.alive(f"{run_id}:1:") == sorted([one.pid, ten.pid])
        assert program_runner.alive(f"{run_id}0") == [other.pid]
        assert program_runner.stop_tree(f"{run_id}:", 30) == 2
        assert (one.wait(), ten.wait(), other.poll()) == (-signal.SIGTERM, -signal.SIGTERM, None)
        assert program_runner.stop_tree(f"{run_id}:", 1) == 0


def test_children_that_dropped_the_mark_are_stopped_with_their_parent(effect):
    """A child with an emptied environment belongs to the tree of the marked process above it."""
    code = (
        "import subprocess; c = subprocess.Popen(['sleep', '60'], env={}); print(c.pid, flush=True); c.wait()"
    )
    with sleeper(effect, code) as parent:
        child = int(parent.stdout.readline())
        assert child not in program_runner.alive(effect)
        assert program_runner.stop_tree(effect, 0.5) == 2
        assert gone(child)


def test_a_process_never_stops_itself_or_its_ancestors(effect):
    """A process inside the tree that stops the tree stops neither itself nor the parent that started it."""
    inner = (
        "import sys; from steersman.adapters.process import program_runner as p;"
        f"print(p.alive({effect!r}), p.stop_tree({effect!r}, 0.1))"
    )
    outer = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {inner!r}]).returncode)"
    done = run(PY, "-c", outer, effect=effect)
    assert (done.exit_code, done.output) == (0, b"[] 0\n")


@pytest.mark.parametrize("prefix", ["", ":", "::"])
def test_an_empty_prefix_is_refused(prefix):
    """Nobody can stop every run's processes by leaving the id out."""
    with pytest.raises(ValueError, match="effect id is needed"):
        program_runner.stop_tree(prefix, 0)
