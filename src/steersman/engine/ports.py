"""The ports that the engine needs, as one value: `wiring` fills it with adapters, tests with fakes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.ports.sandbox import NOT_ISOLATED

if TYPE_CHECKING:
    from steersman.contracts.config import Config, FrozenConfig, Role
    from steersman.engine.machine_package import MachinePackage
    from steersman.kernel.machine import Machine
    from steersman.ports.agent import Agent
    from steersman.ports.anchors import Anchors
    from steersman.ports.artifacts import Artifacts
    from steersman.ports.chat import Chats
    from steersman.ports.clock import Chance, Clock
    from steersman.ports.commands import CommandRunner
    from steersman.ports.journal import Journal
    from steersman.ports.ownership import BackgroundProcess, DriverWakeup, Locks, Processes
    from steersman.ports.plans import PlanDirectories
    from steersman.ports.registry import Registries
    from steersman.ports.sandbox import Sandbox
    from steersman.ports.scanner import FactScanner
    from steersman.ports.workspace import Workspace


class Ports(msgspec.Struct, frozen=True, eq=False):
    """Every port of one project, and what is built from a configuration."""

    journal: "Journal"
    machines: "Mapping[str, Machine]"
    clock: "Clock"
    chance: "Chance"
    locks: "Locks"
    processes: "Processes"
    bell: "DriverWakeup"
    workspace: "Callable[[Config], Workspace]"
    commands: "Callable[[Config], CommandRunner]"
    agent: "Callable[[str, FrozenConfig], Agent]"  # by role
    prompt: Callable[[str, str], str]  # (machine, name) -> the Markdown
    artifacts: "Artifacts"
    packages: "Mapping[str, MachinePackage]" = {}  # each machine's package, by its name
    chats: "Chats | None" = None  # conversations beside the runs
    planning: "Callable[[], PlanningPorts] | None" = None  # what the planner needs
    # The path at which an agent sees a working tree.
    tree_path: "Callable[[Config, str], str]" = lambda _config, path: path
    secrets: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda _named: ()  # the values to redact
    forget: Callable[[str], None] = lambda _run: None  # drops the sessions that agents keep of a run
    # Why a call would not begin, with the next step.
    role_obstacle: "Callable[[Role], str]" = lambda _role: ""
    sandbox: "Callable[[Config], Sandbox] | None" = None  # None: nothing starts programs here
    # Applies today's limits: the limited configuration, what changed in it, and what it asks for beyond a limit.
    limit_config: "Callable[[FrozenConfig], tuple[FrozenConfig, list[str], list[str]]]" = lambda c: (
        c,
        [],
        [],
    )
    performers: Mapping[str, Callable[[Any], Any]] = {}  # in place of the built-in ones
    # (run, seq, hash, at): anchors a run that has its outcome.
    sealed: Callable[[str, int, str, int], None] | None = None
    anchors: "Mapping[str, Anchors]" = {}  # the places for anchors, by name
    start_driver: "Callable[[str], BackgroundProcess] | None" = None  # drives a run in a process of its own


class PlanningPorts(msgspec.Struct, frozen=True, eq=False):
    """What the planner needs: registries, facts, memories, folders of frozen plans, and the key that signs them."""

    registries: "Registries"
    scanner: "FactScanner"
    memories: Any
    plans: "PlanDirectories"
    sign: Callable[[bytes], tuple[str, bytes]]  # bytes -> (name of the key, signature)
    maker_key: Callable[[str], str]  # the public key in a file; without a file, the project's own, or empty
    is_signed: Callable[[str, bytes, bytes], bool]  # (public key, bytes, signature)


def require_planning(ports: Ports) -> PlanningPorts:
    """Returns what the planner needs; raises UserError where it is not connected."""
    if ports.planning is None:
        raise UserError("nothing here can plan: registry, scanner and memory are not wired")
    return ports.planning()


# ── isolation notice ────────────────────────────────────────────────────────────────────────────────────────────────────

# Warns about runs without a sandbox, where programs could reach the store and approve a change themselves.


def isolation_warning(ports: Ports, config: Config) -> str:
    """Returns `approval not isolated: why`; nothing where there is a sandbox. Raises UserError where one is required."""
    if ports.sandbox is None:
        return ""
    sandbox = ports.sandbox(config)
    return "" if sandbox.isolated else f"{NOT_ISOLATED}: {sandbox.why}"
