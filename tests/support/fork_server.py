"""A process that has imported the command already and forks for each call of it; `command_launcher.py` is how to call.

The child takes the call's streams, directory, environment and words, and is `python -m steersman …` from there to its
end: its exit code, its signals, its threads, what it does at exit.
**Invariant:** nothing of one call is there in another; no thread runs and no store is open where it forks.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

NOT_IMPORTED = (
    "steersman.__main__",
    "steersman.testing",
    "steersman.adapters.checks.reporters",
)  # what no command imports
STREAMS = ("stdin", "stdout", "stderr")
EXIT_CODES: list[int] = []  # the exit code of this process, once it is known
LIBRARIES = (  # what they import where they first need it
    *("cel_expr_python", "concurrent.futures.thread", "cryptography.hazmat.primitives.asymmetric.ed25519"),
    *("importlib.readers", "jsonschema_rs", "resource"),
)
PATTERN_USERS = (  # functions that compile patterns when they are first called, and what to call them with
    ("judges.evidence.runners", "count_printed_tests", ("",)),
    ("judges.redaction.named_secrets", "find_named_secrets", ("password = 'secret'",)),
    ("adapters.checks.setup_layers", "_is_install_input", ("a", ())),
    ("adapters.checks.setup_layers", "_is_from_sources", ("a",)),
)


class ForkedCommand(NamedTuple):
    """A child at work, what is readable when it has ended, and the line to whoever called."""

    pid: int
    ended: int
    line: int


class ForkServer:
    """Where children are forked, and which of them are at work."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._poll = channel, select.poll()
        self._calls: dict[int, ForkedCommand] = {}  # by either descriptor
        self._poll.register(channel, select.POLLIN)

    def serve(self) -> list[str]:
        """Forks for each call. Only a child returns, with its words; the end comes when nobody can call any more."""
        while True:
            for ready, _ in self._poll.poll():
                if ready == self._channel.fileno():
                    _, lent, _, _ = socket.recv_fds(self._channel, 1, 4)
                    if not lent:
                        self._leave()
                    elif (pid := os.fork()) == 0:
                        return self._become_command(*lent)
                    else:
                        self._register(pid, *lent)
                elif call := self._calls.get(ready):
                    (self._reap if ready == call.ended else self._kill)(call)

    def _register(self, pid: int, *lent: int) -> None:
        *streams, line = lent
        for descriptor in streams:
            os.close(descriptor)
        call = ForkedCommand(pid, os.pidfd_open(pid), line)
        self._calls |= {call.ended: call, call.line: call}
        self._poll.register(call.ended, select.POLLIN)
        self._poll.register(call.line, select.POLLRDHUP)

    def _kill(self, call: ForkedCommand) -> None:
        """Whoever called waits no longer for the work, but still for its end."""
        with suppress(KeyError):
            self._poll.unregister(call.line)
        os.kill(call.pid, signal.SIGKILL)

    def _reap(self, call: ForkedCommand) -> None:
        _, status = os.waitpid(call.pid, 0)
        with suppress(OSError):  # nobody may be there any more
            os.write(call.line, b"%d" % os.waitstatus_to_exitcode(status))
        for descriptor in (call.ended, call.line):
            del self._calls[descriptor]
            with suppress(KeyError):
                self._poll.unregister(descriptor)
            os.close(descriptor)

    def _leave(self) -> None:
        for call in {*self._calls.values()}:
            self._kill(call)
            self._reap(call)
        os._exit(0)

    def _become_command(self, *lent: int) -> list[str]:
        """Becomes what a fresh start would be, as far as anything can tell that is not told at the start."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in (self._channel.detach(), *self._calls):
            os.close(descriptor)
        *streams, line = lent
        for number, (name, descriptor) in enumerate(zip(STREAMS, streams, strict=True)):
            os.dup2(descriptor, number)
            os.close(descriptor)
            setattr(sys, name, _reopen_stream(number, getattr(sys, name)))
            setattr(sys, f"__{name}__", getattr(sys, name))
        with open(line, "rb") as orders:
            order = json.loads(orders.readline())
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        sys.path[0] = os.getcwd()
        words: list[str] = order["words"]
        return words


def _reopen_stream(number: int, old: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream as the interpreter opens it: whether it can seek is found out when it is made."""
    buffer = os.fdopen(number, old.buffer.mode, closefd=False)
    buffer.raw.name = old.name
    new = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", old.line_buffering)
    new.mode = old.mode
    return new


def import_package(package: str) -> None:
    """Imports whatever a command may need, and learns once whether this machine has a sandbox."""
    root = importlib.import_module(package)
    below = pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}.", onerror=lambda _: None)
    for name in (*LIBRARIES, *(found.name for found in below)):
        if not name.startswith(NOT_IMPORTED):
            with suppress(Exception):  # whoever needs it will tell
                importlib.import_module(name)
    with suppress(ImportError):  # every call of the command would start a sandbox to know that it can
        importlib.import_module(f"{package}.adapters.sandbox.bubblewrap").probe_sandbox("auto")
    compile_patterns(package)
    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing after a fork"
    gc.collect()
    gc.freeze()


def compile_patterns(package: str) -> None:
    """Compiles what every command would compile again."""
    for module, name, arguments in PATTERN_USERS:
        with suppress(ImportError):
            found = getattr(importlib.import_module(f"{package}.{module}"), name)(*arguments)
            if isinstance(found, Iterator):
                list(found)
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"{package}."):
            for value in vars(module).values():
                if type(value).__name__ == "_LazyPattern":
                    value.search("")


def _exit_at_once() -> None:
    """The last thing at exit: to take down what was imported before the fork would only copy it."""
    if EXIT_CODES:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_CODES.pop())


if __name__ == "__main__":
    atexit.register(_exit_at_once)  # first of all, so that it runs last of all
    place, module = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    import_package(module)
    channel = socket.socket(fileno=int(place))
    channel.send(b".")
    sys.argv[1:] = ForkServer(channel).serve()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            EXIT_CODES.append(end.code)
        raise
