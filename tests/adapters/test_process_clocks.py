"""The three clocks of a program and the lines it is heard by, with real programs."""

import asyncio
import os
import sys
import time

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.process.program_runner import ProgramClocks, run_program

PY = sys.executable
ENV = {"PATH": os.environ["PATH"]}
TICKS = "import time\nfor n in range({}):\n    print(n, flush=True)\n    time.sleep({})"


def run(code, clocks=60, **more):
    return asyncio.run(run_program((PY, "-c", code), ".", ENV, clocks, "clocks:0:0", **more))


@for_each_case(
    ("code", "clocks", "expired"),
    [
        ("import time; time.sleep(60)", ProgramClocks(0.3, 60, 60), "start"),
        ("import time; print(1, flush=True); time.sleep(60)", ProgramClocks(20, 0.3, 60), "idle"),
        (TICKS.format(600, 0.05), ProgramClocks(20, 20, 0.8), "total"),
        ("import time; time.sleep(60)", 0.3, "total"),
        ("import os, time; os.close(1); os.close(2); time.sleep(60)", ProgramClocks(0.3, 60, 60), "start"),
    ],
)
def test_the_clock_that_was_over_is_named(code, clocks, expired):
    """Whichever of the three clocks runs out first stops the program and gives the outcome its name."""
    done = run(code, clocks)
    assert (done.expired, done.timed_out, done.stopped) == (expired, True, False)
    assert done.exit_code is not None
    assert done.exit_code < 0


def test_output_puts_the_idle_clock_off():
    """A program that keeps talking, on either stream, lives longer than its start and idle clocks."""
    code = "import sys, time\nfor n in range(8):\n    print(n, file=(sys.stdout, sys.stderr)[n % 2], flush=True)\n    time.sleep(0.4)"
    done = run(code, ProgramClocks(20, 2.5, 60))
    assert (done.exit_code, done.expired) == (0, "")
    assert (done.output, done.errors) == (b"0\n2\n4\n6\n", b"1\n3\n5\n7\n")


def test_lines_come_whole_and_once():
    """The listener gets each line of standard output without its newline, the last one also where it has none."""
    code = "import sys, time; w = sys.stdout.write; w('a\\nb'); sys.stdout.flush(); time.sleep(0.2); w('b\\n\\nc'); print('err', file=sys.stderr)"
    heard = []
    done = run(code, lines=heard.append)
    assert heard == [b"a", b"bb", b"", b"c"]
    assert (done.exit_code, done.stopped, done.output) == (0, False, b"a\nbb\n\nc")


def test_a_line_that_was_waited_for_stops_the_program_at_once():
    """When the listener returns something true the program is stopped, and no later line is told."""
    heard = []

    def listener(line):
        heard.append(line)
        return b"401" in line

    began = time.monotonic()
    done = run(
        "print('ok\\nerror 401\\nsuccess', flush=True)\nimport time; time.sleep(60)", 60, lines=listener
    )
    assert heard == [b"ok", b"error 401"]
    assert (done.stopped, done.expired, done.timed_out) == (True, "", False)
    assert time.monotonic() - began < 30


def test_a_listener_that_breaks_stops_the_program_and_is_heard():
    """What a listener raises ends the program and comes out of the call."""

    def listener(line):
        raise LookupError(line.decode())

    began = time.monotonic()
    with pytest.raises(LookupError, match="boom"):
        run("print('boom', flush=True)\nimport time; time.sleep(60)", 60, lines=listener)
    assert time.monotonic() - began < 30


def test_a_line_beyond_the_cap_is_cut_and_marked():
    """Of an endless line only the head is kept, with what is missing; the next line is whole again."""
    heard = []
    done = run("print('x' * 3_000_000); print('next')", lines=heard.append, line_cap=1000)
    assert heard == [b"x" * 1000 + b" [... 2999000 bytes of this line left out ...]", b"next"]
    assert done.exit_code == 0


def test_a_success_after_the_clock_is_not_heard():
    """A program that answers its stopping with a success and exit code 0 has still run out of time."""
    code = (
        "import signal, sys, time\n"
        "def late(*_):\n    print('success', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, late)\nprint('begun', flush=True)\ntime.sleep(60)"
    )
    heard = []
    done = run(code, ProgramClocks(20, 0.3, 60), lines=heard.append)
    assert (done.exit_code, done.expired, done.timed_out) == (0, "idle", True)
    assert heard == [b"begun"]


def test_standard_error_has_a_listener_of_its_own():
    """Where the streams are apart each has its listener, and either can stop the program."""
    said, told = [], []
    reading, writing = os.pipe()
    code = (
        "import sys, time\nprint('out', flush=True); sys.stdin.read()\n"
        "print('err', file=sys.stderr, flush=True); time.sleep(60)"
    )
    with open(reading, "rb") as stdin:
        done = run(
            code,
            60,
            stdin_bytes=stdin,
            lines=lambda line: said.append(line) or os.close(writing),  # only then it goes on
            error_lines=lambda line: told.append(line) or True,
        )
    assert (said, told, done.stopped) == ([b"out"], [b"err"], True)


def test_a_conversation_goes_through_a_pipe():
    """Standard input may be a pipe that the caller writes to: the program is heard and answered while it runs."""
    reading, writing = os.pipe()
    heard = []

    def listener(line):
        heard.append(line)
        os.write(writing, b"again\n") if len(heard) == 1 else os.close(writing)

    code = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(line.strip(), flush=True)"
    with open(reading, "rb") as stdin:
        done = run(code, 60, stdin_bytes=stdin, lines=listener)
    assert heard == [b"ready", b"again"]
    assert done.exit_code == 0
