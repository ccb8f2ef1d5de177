"""The small process between steersman and a program: whatever the program starts stays below it and is reaped by it.

Run as a script, without the rest of the package: `subreaper.py OWNER SPEC STATUS`. It is a child subreaper, so that a
process that forks twice, leaves its session and empties its environment is still its descendant. It ends when nothing
is left below it, the way the program ended; when its owner dies first, it stops everything below it.
**Invariant:** starts one program; reads and writes nothing of what that program reads and writes. Imports next to
nothing: every program waits for its start (`signal`, `contextlib` and `typing` alone would double it).
"""
# ruff: noqa: SIM105  for the same reason

import _signal as signal  # type: ignore[import-not-found]  # what `signal` dresses up
import os
import sys
import time

STOP_GRACE_SECONDS = 1.0
_SUBREAPER_POLL_SECONDS = 0.02
_SUBREAPER_KILL_ROUNDS = 64
_PR_SET_CHILD_SUBREAPER, _PR_SET_PDEATHSIG = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG


def find_descendants(pid: int) -> set[int]:
    """Every living process below this one."""
    pids: set[int] = set()
    pending = _read_child_pids(pid)
    while pending:
        child = pending.pop()
        if child not in pids:
            pids.add(child)
            pending += _read_child_pids(child)
    return {child for child in pids if is_process_alive(child)}


def _read_child_pids(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children += map(int, file.read().split())
    except OSError:
        pass  # it has already ended
    return children


def is_process_alive(pid: int) -> bool:
    """A zombie is dead, only not reaped yet; one whose first thread alone has ended is not dead."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        return state not in b"ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (OSError, IndexError):
        return False


def send_signal_to_all(pids: set[int], signal_number: int) -> None:
    """A signal to each that is still there."""
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except (ProcessLookupError, PermissionError):
            pass


def write_existing_file(path: bytes, content: bytes) -> None:
    """What the system takes or refuses; where there is no such file none is made."""
    try:
        file = os.open(path, os.O_WRONLY)
        try:
            os.write(file, content)
        finally:
            os.close(file)
    except OSError:
        pass


def pack_program_spec(argv: list[bytes], groups: list[bytes], env: list[bytes]) -> bytes:
    """The program and its environment as bytes; none of it can hold a NUL."""
    return b"\0".join([b"%d" % len(argv), *argv, b"%d" % len(groups), *groups, *env])


def _unpack_program_spec(packed: bytes) -> tuple[list[bytes], list[bytes], dict[bytes, bytes]]:
    fields = iter(packed.split(b"\0"))
    argv = [next(fields) for _ in range(int(next(fields)))]
    groups = [next(fields) for _ in range(int(next(fields)))]
    pairs = (pair.partition(b"=") for pair in fields if pair)
    return argv, groups, {name: value for name, _, value in pairs}


class Subreaper:
    """Keeps one program."""

    def __init__(self, owner: int, argv: list[bytes], groups: list[bytes], env: dict[bytes, bytes]) -> None:
        self._owner, self._argv, self._groups, self._env = owner, argv, groups, env
        self._killing_since: float | None = None  # or when its owner died
        self._killed: set[int] = set()

    def supervise(self, status_fd: int) -> None:
        """Starts the program, says so or why not, and ends when nothing is left below."""
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _call_prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _call_prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self._owner:
            os._exit(1)  # it died before it could be watched
        program, error_number = self._start_program()
        os.write(status_fd, b"e%d" % error_number if error_number else b"p%d" % program)
        _detach_streams()
        self._exit_code_of(self._reap_until_empty(program, status_fd))

    def _start_program(self) -> tuple[int, int]:
        read_end, write_end = os.pipe()  # closed by exec: nothing to read means that it has worked
        pid = os.fork()
        if pid == 0:
            try:
                self._exec_program()
            except OSError as error:
                os.write(write_end, b"%d" % (error.errno or 1))
            finally:
                os._exit(127)
        os.close(write_end)
        error_number = os.read(read_end, 16)
        os.close(read_end)
        return pid, int(error_number or b"0")

    def _exec_program(self) -> None:
        os.setsid()
        for group in self._groups:
            write_existing_file(group + b"/cgroup.procs", b"0")
        _call_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for signal_number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(self._argv[0], self._argv, self._env)  # noqa: S606  no shell on purpose

    def _reap_until_empty(self, program: int, status_fd: int) -> int:
        """Reaps every process that ends below; returns how the program ended once none is left."""
        wait_status = 0
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return wait_status
            if pid == program:
                wait_status = code
                os.close(status_fd)  # tells the owner; others may be left
            elif pid == 0:
                self._wait_for_change()

    def _wait_for_change(self) -> None:
        """Waits until a process has ended or the owner is gone; then stops what is left."""
        if self._killing_since is None:
            if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
                self._killing_since = time.monotonic()
                send_signal_to_all(find_descendants(os.getpid()), signal.SIGTERM)
            return
        if time.monotonic() - self._killing_since > STOP_GRACE_SECONDS:
            self._kill_descendants()
        signal.sigtimedwait({signal.SIGCHLD}, _SUBREAPER_POLL_SECONDS)

    def _kill_descendants(self) -> None:
        for group in self._groups:
            write_existing_file(group + b"/cgroup.kill", b"1")
        for _ in range(_SUBREAPER_KILL_ROUNDS):  # who forks and ends at once is met by looking again at once
            new_pids = find_descendants(os.getpid()) - self._killed
            if not new_pids:
                break
            send_signal_to_all(new_pids, signal.SIGKILL)
            self._killed |= new_pids
        self._killed.clear()  # a number may come back

    def _exit_code_of(self, wait_status: int) -> None:
        if self._killing_since is not None:
            self._take_away()
        if os.WIFSIGNALED(wait_status):
            _die_by_signal(os.WTERMSIG(wait_status))
        os._exit(os.WEXITSTATUS(wait_status))

    def _take_away(self) -> None:
        for _ in range(20):  # the dead leave a group a moment after they have left everything else
            for group in filter(os.path.isdir, self._groups):
                try:
                    os.rmdir(group)
                except OSError:
                    pass
            if not any(map(os.path.isdir, self._groups)):
                return
            time.sleep(_SUBREAPER_POLL_SECONDS)


def _die_by_signal(signal_number: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        signal.signal(signal_number, signal.SIG_DFL)
    except OSError:
        pass  # SIGKILL has no other way to act
    os.kill(os.getpid(), signal_number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal_number})
    os._exit(128 + signal_number)


def _detach_streams() -> None:
    """Who reads the program's output waits for its end, not for ours; the same for its folder."""
    null_fd = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null_fd, stream)
    os.close(null_fd)
    os.chdir("/")


def _call_prctl(option: int, value: int) -> None:
    import _ctypes  # what `ctypes` dresses up

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # typeshed does not know that None is this program
    prctl = _ctypes.dlsym(program, "prctl")
    if _ctypes.call_function(prctl, (option, value, 0, 0, 0)) != 0:
        raise OSError(1, f"prctl {option} was refused")  # nothing is started that could not be stopped


def main() -> None:
    """Reads what to start and keeps it."""
    owner, spec_fd, status_fd = map(int, sys.argv[1:4])
    os.set_inheritable(status_fd, False)
    with open(spec_fd, "rb") as file:
        packed = file.read()
    Subreaper(owner, *_unpack_program_spec(packed)).supervise(status_fd)


if __name__ == "__main__":
    main()
