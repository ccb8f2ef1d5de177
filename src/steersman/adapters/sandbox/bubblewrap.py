"""Runs programs in a sandbox with bubblewrap, or reports why this machine has none.

In a sandbox: own pid, ipc, uts, user and (unless asked for) network namespaces, no capability, no further user namespace,
a read-only root that holds the system's programs and the toolchains of PATH, an empty home, a /tmp of its own, and
read-write what the sandbox names. It ends with the process that started it.
**Invariant:** the store, the keys, the sockets and the locks cannot be named into a sandbox, nor the home as a whole.
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

from steersman.adapters.process.child_process import prefer_cached_bytecode
from steersman.adapters.sandbox import machine_view as view
from steersman.adapters.sandbox import sandbox_init
from steersman.adapters.sandbox.egress_proxy import EgressProxy
from steersman.adapters.sandbox.machine_view import SandboxMount, etc_mounts, list_git_mounts
from steersman.adapters.sandbox.space_limit import SpaceLimit, scratch_directory
from steersman.adapters.sandbox.toolchains import toolchain_mounts
from steersman.errors import UserError
from steersman.judges.text import clip_text, printable_text
from steersman.ports.sandbox import Sandbox, SandboxDescriptors, SandboxLaunch, SandboxPolicy

__all__ = ["BubblewrapSandbox", "OpenSandbox", "Sandbox", "SandboxLaunch", "SandboxPolicy", "probe_sandbox"]

SandboxMode = Literal["auto", "required", "off"]
PROBE_SECONDS = 20  # for a start that only proves that one is possible
DEFAULT_MEMORY_GB = 8  # that one process may fill, at most
DEFAULT_DISK_GB = 20  # that one command may write, at most
MAX_SANDBOX_PROCESSES = 2048
# The memory file systems of a sandbox, and the part of the memory limit that each may hold; the home has an eighth.
_MEMORY_SHARES = {"/tmp": 2, "/dev/shm": 4, "/var/tmp": 16, "/run": 64}  # noqa: S108  the sandbox's own
_BUBBLEWRAP_FLAGS = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "localhost"),
)
_SANDBOX_INIT_SCRIPT = os.path.abspath(sandbox_init.__file__)
# Called as `../bin/python` it leads through places that no sandbox has.
_PYTHON_PATH = os.path.abspath(sys.executable)
_EGRESS_SOCKET = "/run/narrows"
_BUBBLEWRAP_DOORS = SandboxDescriptors("--info-fd", "--block-fd")
# Variables that lead out of a sandbox, to the user's session or to steersman itself.
_DROPPED_VARIABLES = (
    *("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"),
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "LD_PRELOAD", "LD_AUDIT", "STEERSMAN_TOKEN", "STEERSMAN_PERSON"),
)


class OpenSandbox:
    """No sandbox: programs are started as they are, and the run says so."""

    isolated = False

    def __init__(self, why: str, fix: str = "") -> None:
        self.why, self.fix = why, fix

    @asynccontextmanager
    async def wrap(
        self,
        argv: Sequence[str],
        policy: SandboxPolicy,  # noqa: ARG002  there is none
        env: Mapping[str, str],
        cwd: str,  # noqa: ARG002  the same
    ) -> AsyncIterator[SandboxLaunch]:
        """The program as it is."""
        yield SandboxLaunch(tuple(argv), dict(env), [])


class BubblewrapSandbox:
    """A sandbox for each program; `reads` are places that every sandbox may read, `extra` the flags this bubblewrap knows."""

    isolated = True
    why = fix = ""

    def __init__(
        self,
        program: str,
        extra: frozenset[str] = frozenset(),
        reads: tuple[str, ...] = (),
        memory_gb: int = DEFAULT_MEMORY_GB,
        disk_gb: int = DEFAULT_DISK_GB,
    ) -> None:
        self._program, self._extra, self._reads = program, extra, reads
        self._memory, self._disk = memory_limit_bytes(memory_gb), disk_gb << 30

    def with_options(self, reads: tuple[str, ...], memory_gb: int, disk_gb: int) -> "BubblewrapSandbox":
        """The same, as a project wants it."""
        return BubblewrapSandbox(self._program, self._extra, reads, memory_gb, disk_gb)

    @asynccontextmanager
    async def wrap(
        self, argv: Sequence[str], policy: SandboxPolicy, env: Mapping[str, str], cwd: str
    ) -> AsyncIterator[SandboxLaunch]:
        """What to start so that `argv` runs in the sandbox."""
        async with AsyncExitStack() as stack:
            directory = stack.enter_context(scratch_directory())
            proxy = EgressProxy(policy.network) if policy.network else None
            socket_path = await stack.enter_async_context(proxy.open_socket()) if proxy else ""
            ports = proxy.ports if proxy else ()
            command = self.build_argv(argv, policy, env, cwd, directory, socket_path, ports)
            write_paths = (*policy.writes, *(bind.source for bind in policy.binds if bind.writable))
            space = SpaceLimit(
                write_paths, self._disk, tuple(filter(None, (*_MEMORY_SHARES, view.find_home_directory())))
            )
            yield SandboxLaunch(
                command,
                sandbox_environment(env, policy),
                proxy.refused if proxy else [],
                _supported_doors(),
                space,
            )

    def build_argv(
        self,
        argv: Sequence[str],
        sandbox_spec: SandboxPolicy,
        env: Mapping[str, str],
        cwd: str,
        directory: str,
        socket_path: str = "",
        ports: tuple[int, ...] = (),
    ) -> tuple[str, ...]:
        """The whole command; what it shows of our making is in `folder`, `way` is the socket of a narrow network."""
        view.clear_path_caches()
        mounts = (
            (SandboxMount(_EGRESS_SOCKET, ("--ro-bind", socket_path, _EGRESS_SOCKET)),) if socket_path else ()
        )
        return (
            *(self._program, *_BUBBLEWRAP_FLAGS, *self._if_known("--disable-userns")),
            *(() if sandbox_spec.network is None else ("--unshare-net",)),
            *view.build_mount_arguments((*self._list_binds(argv, sandbox_spec, env, directory), *mounts)),
            *(
                "--remount-ro",
                view.real_state_root(),
                "--remount-ro",
                "/dev",
                "--remount-ro",
                "/",
                "--chdir",
                cwd,
                "--",
            ),
            *(_PYTHON_PATH, "-I", "-S", prefer_cached_bytecode(_SANDBOX_INIT_SCRIPT)),
            *(
                format_resource_limits(self._memory, self._disk),
                _EGRESS_SOCKET if socket_path else "",
                ",".join(map(str, ports)),
                *argv,
            ),
        )

    def _list_binds(
        self, argv: Sequence[str], sandbox_spec: SandboxPolicy, env: Mapping[str, str], directory: str
    ) -> Iterator[SandboxMount]:
        """Everything the program will see; what is named later counts more."""
        yield from view.system_mounts()
        yield from etc_mounts(network=sandbox_spec.network is None)
        yield from view.proc_mounts()
        yield SandboxMount("/dev", ("--dev", "/dev"))
        yield from (self._bind_empty(path) for path in (*_MEMORY_SHARES, *view.list_hidden_directories()))
        yield from toolchain_mounts(argv, env)
        yield view.read_only_mount(prefer_cached_bytecode(_SANDBOX_INIT_SCRIPT))
        for path in (*self._reads, *sandbox_spec.reads):
            yield view.read_only_mount(view.check_sandbox_path(path))
        for path in sandbox_spec.writes:
            yield view.writable_mount(view.check_sandbox_path(path))
        for bind in sandbox_spec.binds:
            yield SandboxMount(
                bind.shown_at, ("--bind" if bind.writable else "--ro-bind", bind.source, bind.shown_at)
            )
        trees = {path: path for path in (*sandbox_spec.writes, *sandbox_spec.reads)}
        if sandbox_spec.tree:
            trees[view.check_sandbox_path(sandbox_spec.tree)] = sandbox_spec.binds[0].shown_at
        for number, (path, shown_at) in enumerate(trees.items()):
            yield from list_git_mounts(path, os.path.join(directory, str(number)), shown_at)

    def _bind_empty(self, path: str) -> SandboxMount:
        size = self._memory // _MEMORY_SHARES.get(path, 8)
        return SandboxMount(path, (*self._if_known("--size", str(size)), "--tmpfs", path))

    def _if_known(self, flag: str, *values: str) -> tuple[str, ...]:
        return (flag, *values) if flag in self._extra else ()


def sandbox_environment(env: Mapping[str, str], sandbox_spec: SandboxPolicy) -> dict[str, str]:
    """What a program in a sandbox is given: nothing that leads out of it, and a place for temporary files that is there."""
    variables = {name: value for name, value in env.items() if name not in _DROPPED_VARIABLES}
    if not view.is_path_below(variables.get("TMPDIR", ""), sandbox_spec.writes):
        variables["TMPDIR"] = "/tmp"  # noqa: S108  the sandbox's own
    return variables


def memory_limit_bytes(memory_gb: int) -> int:
    """Bytes: what was asked for, and never more than three quarters of the machine's."""
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4, memory_gb << 30)


def format_resource_limits(memory: int, disk: int) -> str:
    """What a process in a sandbox may use: no core file, files and memory of a size, processes of a number."""
    # What is written to, not what is reserved: interpreters reserve more address space than any machine has.
    limit_values = {"core": 0, "fsize": disk, "data": memory}
    if _kernel_release() >= (5, 14):  # before, the processes of the same user outside were counted too
        limit_values["nproc"] = MAX_SANDBOX_PROCESSES
    return ",".join(f"{name}={value}" for name, value in limit_values.items())


def _supported_doors() -> SandboxDescriptors | None:
    """None where a process cannot be held by a descriptor: a subreaper has to be around the sandbox then."""
    return _BUBBLEWRAP_DOORS if _kernel_release() >= (5, 3) else None


def _kernel_release() -> tuple[int, ...]:
    return tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2] if n.isdigit())


def probe_sandbox(
    mode: SandboxMode = "auto",
    reads: tuple[str, ...] = (),
    memory_gb: int = DEFAULT_MEMORY_GB,
    disk_gb: int = DEFAULT_DISK_GB,
) -> Sandbox:
    """The sandbox this machine has, proved by starting one; `required` raises UserError where there is none.

    `reads` are places that every sandbox may read; `~/` is the user's home.
    """
    if mode == "off":
        return OpenSandbox("switched off", 'write mode = "auto" under [sandbox] in steersman.toml')
    sandbox, reason, fix = _probe_bubblewrap(shutil.which("bwrap"))
    if sandbox is not None:
        return sandbox.with_options(tuple(map(_resolve_read_path, reads)), memory_gb, disk_gb)
    if mode == "required":
        raise UserError(f'steersman.toml, [sandbox] mode = "required", but {reason}: {fix}')
    return OpenSandbox(reason, fix)


def _resolve_read_path(path: str) -> str:
    try:
        return view.check_sandbox_path(os.path.expanduser(path))
    except ValueError as error:
        raise UserError(f"steersman.toml, [sandbox] reads: {error}; correct it or take it out") from None


@cache
def _probe_bubblewrap(program: str | None) -> tuple[BubblewrapSandbox | None, str, str]:
    """A sandbox that has started a program; or why there is none, and what to do about it."""
    if sys.platform != "linux":
        return None, "there is no bubblewrap on this system", "use Linux, or WSL, for sandboxed agents"
    if program is None:
        return None, "bubblewrap is not installed", "install the package `bubblewrap` of your distribution"
    error_output = ""
    for flags in (_detect_bubblewrap_flags(program), frozenset[str]()):
        sandbox = BubblewrapSandbox(program, flags)
        error_output = _try_bubblewrap(sandbox)
        if not error_output:
            return sandbox, "", ""
    fix = f"allow unprivileged user namespaces for bwrap; it said: {clip_text(printable_text(error_output), 200)}"
    return None, "bubblewrap cannot start a program here", fix


def _detect_bubblewrap_flags(program: str) -> frozenset[str]:
    """Which of the flags that not every bubblewrap has this one knows."""
    process = subprocess.run([program, "--help"], capture_output=True, check=False, timeout=PROBE_SECONDS)
    help_words = (process.stdout + process.stderr).decode("utf-8", "replace").split()
    return frozenset({"--disable-userns", "--size"} & set(help_words))


def _try_bubblewrap(sandbox: BubblewrapSandbox) -> str:
    """Empty when a program ran in a sandbox, else the error."""
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    with scratch_directory() as directory:
        command = sandbox.build_argv(("true",), SandboxPolicy(), env, "/", directory)
        try:
            process = subprocess.run(
                command, env=env, capture_output=True, check=False, timeout=PROBE_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    error_output = process.stderr.decode("utf-8", "replace").strip()
    return "" if process.returncode == 0 else error_output or f"exit code {process.returncode}"
