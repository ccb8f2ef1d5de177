"""Programs that do not want to end: they fork twice, hide, ignore, close, hold, and kill who keeps them.

Each carries a token in its command line and notes the number of every process it starts, so that what is left of it is
found without any help of the code under test.
**Invariant:** a few processes each, and only as long as a test: without anyone stopping them all end within a minute.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

_QUIET_SECONDS = 0.3  # seconds without a sign of life
_PROGRAM_PRELUDE = """
import os, signal, sys, time
token, then = sys.argv[1:3]
def note():
    with open(token + ".pids", "a") as file: file.write(f"{os.getpid()}\\n")
def linger(seconds=60): time.sleep(seconds); os._exit(0)
def child(work):
    if os.fork() == 0:
        note(); work(); os._exit(0)
def daemon(work):
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note()
            if work is not hidden: os.close(write)  # else it is closed when the other program begins
            work(); os._exit(0)
        os._exit(0)
    os.close(write); os.wait(); os.read(read, 1)
def hidden(seconds="60"):
    import shutil
    os.execve(shutil.which("sleep"), ["sleep-" + os.path.basename(token), seconds], {})
def deaf(): [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
def end():
    print("done", flush=True); open(token + ".ended", "w").close()
    if then == "hang": linger()
    os._exit(0)
note()
"""

RUNAWAY_PROGRAMS = {
    "ends": "end()",
    "forks-twice": "daemon(linger); end()",
    "hides": "daemon(hidden); end()",
    "ignores-sigterm": "deaf(); child(linger); child(hidden); end()",
    "closes-its-output": "os.close(1); os.close(2); child(linger)\nif then == 'hang': linger()",
    "leaves-zombies": "[child(lambda: None) for _ in range(20)]; time.sleep(0.05); daemon(linger); end()",
    "holds-the-pipe": "child(lambda: (deaf(), linger())); end()",
    "forks-when-asked": (
        "def again(*_):\n"
        "    for _ in range(3): child(lambda: (deaf(), linger()))\n"
        "signal.signal(signal.SIGTERM, again); daemon(linger); end()"
    ),
    "runs-away": (
        "def run():\n"
        "    until = time.monotonic() + 20\n"
        "    while time.monotonic() < until:\n"
        "        os.close(os.open(token + '.beat', os.O_CREAT | os.O_WRONLY)); os.utime(token + '.beat')\n"
        "        os.setsid() if os.getpid() != os.getsid(0) else None\n"
        "        if os.fork(): os._exit(0)\n"
        "daemon(lambda: (deaf(), run())); end()"
    ),
    "loses-its-first-thread": (
        "import _thread, ctypes, platform\n"
        "def work():\n"
        "    deaf(); _thread.start_new_thread(linger, ()); time.sleep(0.05)\n"
        "    ctypes.CDLL(None).syscall({'x86_64': 60}.get(platform.machine(), 93), 0)\n"
        "daemon(work); end()"
    ),
    "stops-itself": "child(lambda: os.kill(os.getpid(), signal.SIGSTOP))\nif then == 'hang': os.kill(os.getpid(), signal.SIGSTOP)\nend()",
    "stops-its-parent": "daemon(linger); os.kill(os.getppid(), signal.SIGSTOP); end()",
    "kills-its-parent": "child(linger); daemon(linger); os.kill(os.getppid(), signal.SIGKILL); end()",
    "breeds": "def breed(n):\n    for _ in range(3 if n else 0): child(lambda: breed(n - 1))\n    linger()\nchild(lambda: breed(2)); time.sleep(0.1); end()",
}
# Held by a control group or a box alone: it kills its keeper, and what it leaves carries no mark.
SANDBOX_ONLY_PROGRAMS = {
    "hides-and-kills-its-parent": "daemon(hidden); os.kill(os.getppid(), signal.SIGKILL); linger()"
}


def runaway_command(name: str, token: Path, then: str = "exit") -> tuple[str, ...]:
    """The command of one; `then` is what it does when it has done its worst: exit or hang."""
    source = _PROGRAM_PRELUDE + {**RUNAWAY_PROGRAMS, **SANDBOX_ONLY_PROGRAMS}[name]
    return (sys.executable, "-I", "-S", "-c", source, str(token), then)


def find_survivors(token: Path) -> list[int]:
    """The living processes whose command line names the token; 0 for one that runs away too fast to be seen."""
    name = os.fsencode(token.name)
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    living = {pid for pid in pids if name in _process_command_line(pid)}
    with contextlib.suppress(FileNotFoundError):
        if time.time() - Path(f"{token}.beat").stat().st_mtime < _QUIET_SECONDS:
            living.add(0)
    return sorted(living)


def find_zombies(token: Path) -> list[int]:
    """The processes it has noted that are dead and that nobody has reaped."""
    noted = Path(f"{token}.pids")
    pids = set(map(int, noted.read_text().split())) if noted.exists() else set()
    return sorted(pid for pid in pids if _process_state(pid) == "Z" and _count_threads(pid) <= 1)


def _process_command_line(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        if _process_state(pid) != "Z" or _count_threads(pid) > 1:
            return Path(f"/proc/{pid}/cmdline").read_bytes() or _thread_command_line(pid)
    return b""


def _thread_command_line(pid: int) -> bytes:
    """The command line of a process whose first thread is gone: one of the others still has it."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            if command_line := Path(f"/proc/{pid}/task/{thread}/cmdline").read_bytes():
                return command_line
    return b""


def _process_state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _count_threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
