"""Keeps programs in a box with bubblewrap, where this machine lets us; says plainly where not.

In a box: own pid, ipc, uts, user and (unless asked for) network namespaces, no capability, no further user namespace,
a read-only root that holds the system's programs and the toolchains of PATH, an empty home, a /tmp of its own, and
read-write what the box names. It ends with whoever started it.
**Invariant:** the store, the keys, the sockets and the locks cannot be named into a box, nor the home as a whole.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Literal

from steersman.adapters import sandbox_inside
from steersman.adapters import sandbox_view as view
from steersman.adapters.byte_code import soonest
from steersman.adapters.narrows import Narrows
from steersman.adapters.sandbox_etc import etc
from steersman.adapters.sandbox_git import git_of
from steersman.adapters.sandbox_view import Mount
from steersman.adapters.scratch import scratch
from steersman.adapters.space_limit import SpaceLimit
from steersman.adapters.toolchains import toolchain_mounts
from steersman.errors import UserError
from steersman.judges.text import clip, printable
from steersman.ports.sandbox import Box, Boxed, Doors, Sandbox

__all__ = ["Box", "Boxed", "BubblewrapSandbox", "OpenSandbox", "Sandbox", "probe"]

Mode = Literal["auto", "required", "off"]
SECONDS = 20  # for a start that only proves that one is possible
MEMORY_GB = 8  # that one process may fill, at most
DISK_GB = 20  # that one command may write, at most
PROCESSES = 2048
# The memory file systems of a box, and the part of the memory limit that each may hold; the home has an eighth.
_SHARES = {"/tmp": 2, "/dev/shm": 4, "/var/tmp": 16, "/run": 64}  # noqa: S108  the box's own
_ALWAYS = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "localhost"),
)
_INSIDE = os.path.abspath(sandbox_inside.__file__)
_PYTHON = os.path.abspath(sys.executable)  # called as `../bin/python` it leads through places that no box has
_WAY = "/run/narrows"
_DOORS = Doors("--info-fd", "--block-fd")
# Variables that lead out of a box, to the user's session or to steersman itself.
_NEVER = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"),
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "LD_PRELOAD", "LD_AUDIT", "STEERSMAN_TOKEN", "STEERSMAN_PERSON"),
)


class OpenSandbox:
    """No box: programs are started as they are, and everybody is told."""

    isolated = False

    def __init__(self, why: str, fix: str = "") -> None:
        self.why, self.fix = why, fix

    @asynccontextmanager
    async def wrap(
        self,
        argv: Sequence[str],
        box: Box,  # noqa: ARG002  there is none
        env: Mapping[str, str],
        cwd: str,  # noqa: ARG002  the same
    ) -> AsyncIterator[Boxed]:
        """The program as it is."""
        yield Boxed(tuple(argv), dict(env), [])


class BubblewrapSandbox:
    """A box for each program; `reads` are places that every box may read, `extra` the flags this bubblewrap knows."""

    isolated = True
    why = fix = ""

    def __init__(
        self,
        program: str,
        extra: frozenset[str] = frozenset(),
        reads: tuple[str, ...] = (),
        memory_gb: int = MEMORY_GB,
        disk_gb: int = DISK_GB,
    ) -> None:
        self._program, self._extra, self._reads = program, extra, reads
        self._memory, self._disk = memory_limit(memory_gb), disk_gb << 30

    def told(self, reads: tuple[str, ...], memory_gb: int, disk_gb: int) -> "BubblewrapSandbox":
        """The same, as a project wants it."""
        return BubblewrapSandbox(self._program, self._extra, reads, memory_gb, disk_gb)

    @asynccontextmanager
    async def wrap(
        self, argv: Sequence[str], box: Box, env: Mapping[str, str], cwd: str
    ) -> AsyncIterator[Boxed]:
        """What to start so that `argv` runs in the box."""
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(scratch())
            narrows = Narrows(box.network or ())
            way = await stack.enter_async_context(narrows.opened()) if box.network else ""
            words = self.words(argv, box, env, cwd, folder, way, narrows.ports)
            written = (*box.writes, *(bind.source for bind in box.binds if bind.writable))
            space = SpaceLimit(written, self._disk, tuple(filter(None, (*_SHARES, view.home()))))
            yield Boxed(words, environment(env, box), narrows.refused, _doors(), space)

    def words(
        self,
        argv: Sequence[str],
        box: Box,
        env: Mapping[str, str],
        cwd: str,
        folder: str,
        way: str = "",
        ports: tuple[int, ...] = (),
    ) -> tuple[str, ...]:
        """The whole command; what it shows of our making is in `folder`, `way` is the socket of a narrow network."""
        view.look_anew()
        out = (Mount(_WAY, ("--ro-bind", way, _WAY)),) if way else ()
        return (
            *(self._program, *_ALWAYS, *self._if_known("--disable-userns")),
            *(() if box.network is None else ("--unshare-net",)),
            *view.laid_out((*self._places(argv, box, env, folder), *out)),
            *(
                "--remount-ro",
                view.states(),
                "--remount-ro",
                "/dev",
                "--remount-ro",
                "/",
                "--chdir",
                cwd,
                "--",
            ),
            *(_PYTHON, "-I", "-S", soonest(_INSIDE)),
            *(limits(self._memory, self._disk), _WAY if way else "", ",".join(map(str, ports)), *argv),
        )

    def _places(self, argv: Sequence[str], box: Box, env: Mapping[str, str], folder: str) -> Iterator[Mount]:
        """Everything the program will see; what is named later counts more."""
        yield from view.system()
        yield from etc(network=box.network is None)
        yield from view.proc()
        yield Mount("/dev", ("--dev", "/dev"))
        yield from (self._empty(path) for path in (*_SHARES, *view.hidden()))
        yield from toolchain_mounts(argv, env)
        yield view.readable(soonest(_INSIDE))
        for path in (*self._reads, *box.reads):
            yield view.readable(view.named(path))
        for path in box.writes:
            yield view.writable(view.named(path))
        for bind in box.binds:
            yield Mount(
                bind.shown_at, ("--bind" if bind.writable else "--ro-bind", bind.source, bind.shown_at)
            )
        trees = {path: path for path in (*box.writes, *box.reads)}
        if box.tree:
            trees[view.named(box.tree)] = box.binds[0].shown_at
        for number, (path, shown_at) in enumerate(trees.items()):
            yield from git_of(path, os.path.join(folder, str(number)), shown_at)

    def _empty(self, path: str) -> Mount:
        size = self._memory // _SHARES.get(path, 8)
        return Mount(path, (*self._if_known("--size", str(size)), "--tmpfs", path))

    def _if_known(self, flag: str, *more: str) -> tuple[str, ...]:
        return (flag, *more) if flag in self._extra else ()


def environment(env: Mapping[str, str], box: Box) -> dict[str, str]:
    """What a program in a box is given: nothing that leads out of it, and a place for temporary files that is there."""
    kept = {name: value for name, value in env.items() if name not in _NEVER}
    if not view.below(kept.get("TMPDIR", ""), box.writes):
        kept["TMPDIR"] = "/tmp"  # noqa: S108  the box's own
    return kept


def memory_limit(memory_gb: int) -> int:
    """Bytes: what was asked for, and never more than three quarters of the machine's."""
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4, memory_gb << 30)


def limits(memory: int, disk: int) -> str:
    """What a process in a box may use: no core file, files and memory of a size, processes of a number."""
    # What is written to, not what is reserved: interpreters reserve more address space than any machine has.
    bounds = {"core": 0, "fsize": disk, "data": memory}
    if _release() >= (5, 14):  # before, the processes of the same user outside were counted too
        bounds["nproc"] = PROCESSES
    return ",".join(f"{name}={value}" for name, value in bounds.items())


def _doors() -> Doors | None:
    """None where a process cannot be held by a descriptor: a keeper has to be around the box then."""
    return _DOORS if _release() >= (5, 3) else None


def _release() -> tuple[int, ...]:
    return tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2] if n.isdigit())


@cache
def probe(
    mode: Mode = "auto",
    reads: tuple[str, ...] = (),
    memory_gb: int = MEMORY_GB,
    disk_gb: int = DISK_GB,
) -> Sandbox:
    """The sandbox this machine has, proved by starting one; `required` raises UserError where there is none.

    `reads` are places that every box may read; `~/` is the user's home.
    """
    if mode == "off":
        return OpenSandbox("switched off", 'write mode = "auto" under [sandbox] in steersman.toml')
    found, why, fix = _probed()
    if found is not None:
        return found.told(tuple(map(_read, reads)), memory_gb, disk_gb)
    if mode == "required":
        raise UserError(f'steersman.toml, [sandbox] mode = "required", but {why}: {fix}')
    return OpenSandbox(why, fix)


def _read(path: str) -> str:
    try:
        return view.named(os.path.expanduser(path))
    except ValueError as error:
        raise UserError(f"steersman.toml, [sandbox] reads: {error}; correct it or take it out") from None


@cache
def _probed() -> tuple[BubblewrapSandbox | None, str, str]:
    """A sandbox that has started a program; or why there is none, and what to do about it."""
    if sys.platform != "linux":
        return None, "there is no bubblewrap on this system", "use Linux, or WSL, for boxed agents"
    program = shutil.which("bwrap")
    if program is None:
        return None, "bubblewrap is not installed", "install the package `bubblewrap` of your distribution"
    said = ""
    for extra in (_flags(program), frozenset[str]()):
        found = BubblewrapSandbox(program, extra)
        said = _started(found)
        if not said:
            return found, "", ""
    fix = f"allow unprivileged user namespaces for bwrap; it said: {clip(printable(said), 200)}"
    return None, "bubblewrap cannot start a program here", fix


def _flags(program: str) -> frozenset[str]:
    """Which of the flags that not every bubblewrap has this one knows."""
    done = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=SECONDS)
    said = (done.stdout + done.stderr).decode("utf-8", "replace").split()
    return frozenset({"--disable-userns", "--size"} & set(said))


def _started(found: BubblewrapSandbox) -> str:
    """Nothing when a program ran in a box, else what was said instead."""
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    with scratch() as folder:
        words = found.words(("true",), Box(), env, "/", folder)
        try:
            done = subprocess.run(words, env=env, capture_output=True, check=False, timeout=SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    said = done.stderr.decode("utf-8", "replace").strip()
    return "" if done.returncode == 0 else said or f"exit code {done.returncode}"
