"""What a process can know of itself, and the ways in which one ends: told alike from a fresh start and from the fork server."""

import atexit
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

LEFTOVERS: list[str] = []  # what a call leaves for the next one, if it could


def process_facts() -> dict[str, Any]:
    """All but its numbers: nothing of how it was started can be told apart."""
    return {
        "argv": sys.argv,
        "path": sys.path,
        "main": (__name__, __spec__.name if __spec__ else None, sys.modules["__main__"].__dict__ is globals()),
        "flags": str(sys.flags),
        "cwd": os.getcwd(),
        "environment": dict(os.environ),
        "of what it starts": subprocess.run(["env"], capture_output=True, check=True).stdout.decode(),
        "streams": {name: stream_facts(name) for name in ("stdin", "stdout", "stderr")},
        "descriptors": [n for n in map(int, os.listdir("/proc/self/fd")) if is_open(n)],
        "signals": {s.name: str(signal.getsignal(s)).partition(" at ")[0] for s in signal.valid_signals() if isinstance(s, signal.Signals)},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
        "session": (os.getsid(0), os.getpgid(0)),
        "mask": (os.umask(0), os.nice(0)),
        "threads": threading.active_count(),
        "warnings": [str(f[:3]) for f in warnings.filters],
        "kept": LEFTOVERS,
    }  # fmt: skip


def stream_facts(name: str) -> dict[str, Any]:
    it = getattr(sys, name)
    asked = ("name", "mode", "encoding", "errors", "line_buffering", "write_through", "newlines")
    same = it is getattr(sys, f"__{name}__")
    return {n: getattr(it, n) for n in asked} | {
        "seeks": it.seekable(), "tty": it.isatty(), "number": it.fileno(), "same": same, "below": (type(it.buffer).__name__, it.buffer.mode)
    }  # fmt: skip


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:  # of the listing itself
        return False
    return True


def end_process(words: list[str]) -> int | None:
    """Ends in the way that is asked for."""
    match words:
        case ["exit", code]:
            return int(code)
        case ["raise"]:
            raise ValueError("raised")
        case ["say", word]:
            sys.exit(word)
        case ["signal", name]:
            os.kill(os.getpid(), getattr(signal, name))
        case ["thread"]:
            threading.Timer(0.1, print, ("from a thread",)).start()
        case ["at exit"]:
            atexit.register(print, "at exit")
        case ["much"]:
            print("o" * 300_000, file=sys.stdout)
            print("e" * 300_000, file=sys.stderr)
        case ["hard"]:
            print("lost")
            os._exit(7)
        case ["read"]:
            print(len(sys.stdin.read()))
        case ["keep"]:
            LEFTOVERS.append("kept")
            os.environ["HOME"] = "/elsewhere"
            os.chdir("/")
            os.umask(0o777)
            sys.path.clear()
        case ["parent"]:
            print(os.getppid())
        case ["sleep", file]:
            with open(file, "w") as told:
                print(os.getpid(), file=told)
            time.sleep(120)
        case _:
            print(json.dumps(process_facts()))
    return None


if __name__ == "__main__":
    sys.exit(end_process(sys.argv[1:]))
