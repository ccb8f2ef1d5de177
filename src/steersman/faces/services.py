"""What a face is handed: the few functions it needs, filled in by `wiring` and by nobody else."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.contracts.commands import Argv
    from steersman.contracts.grammars import Commands
    from steersman.engine.ports import Ports
    from steersman.engine.runs import RunService
    from steersman.judges.commands.grammar import CommandReach
    from steersman.judges.commands.tester_commands import CommandRules
    from steersman.kernel.build import Machine
    from steersman.ports.documents import DocumentFiles
    from steersman.ports.journal import Journal
    from steersman.ports.memory import Memories
    from steersman.ports.plans import PlanDirectories
    from steersman.ports.registry import Registries
    from steersman.ports.scanner import FactScanner


class Services(Protocol):
    """The project's store, its bridge and its surroundings, each opened when it is first asked for."""

    def find_repository_root(self, start: str) -> str:
        """The top of the repository around a directory, or the directory itself where there is none."""
        ...

    def project_state_directory(self, project: "Path") -> "Path": ...

    def has_store(self, project: str) -> bool:
        """Whether anything has been run here."""
        ...

    def list_anchored_runs(self, project: str) -> set[str]:
        """The runs that the project's own file of anchors names, genuine or not: cheap, to know whether to look closer."""
        ...

    def open_journal(self, project: str, *, create: bool = True, reading: bool = False) -> "Journal": ...

    def open_run_service(
        self, start: "Path", *, kind: str = "command", create: bool = True
    ) -> "RunService": ...

    def open_ports(self, project: "Path", **instead: Any) -> "Ports":
        """Everything outside; with `journal=None` without a store."""
        ...

    def load_limited_config(self, start: "Path", *, only_look: bool = False) -> Any:
        """The configuration (`config`), the file it came from (`path`, or None), its `digest`, the `powerful` lines
        that need a person's trust, and what the machine's limits `tightened`. With `only_look` what they do not allow
        is no error: `excesses` lists it."""
        ...

    def open_trust_file(self, project: "Path") -> Any:
        """What a person trusts of a project's settings: `read`, `record`, `revoke`."""
        ...

    def find_run_owner(self, project: str, run: str) -> str | None:
        """Who drives a run now, in words."""
        ...

    def installed_machines(self) -> "Mapping[str, Machine]": ...

    def detect_project_checks(self, project: "Path") -> Mapping[str, tuple[str, ...]]:
        """The checks that a project's own files name."""
        ...

    def installed_agents(self) -> Mapping[str, str]:
        """The agent CLIs found on this machine, by the name a role calls them, in the order of preference."""
        ...

    def find_role_obstacle(self, role: Any) -> str:
        """Why a call of this role (its table) would not even begin, with the next step; or nothing."""
        ...

    def list_worktree_includes(self, project: "Path") -> tuple[str, ...]:
        """What `.worktreeinclude` of the checkout lists."""
        ...

    def render_project_config(self, **values: Any) -> str:
        """A commented steersman.toml."""
        ...

    def open_project_sandbox(self, config: Any) -> Any:
        """The box of a project on this machine: whether it isolates, else why not and what to do (`ports.sandbox`)."""
        ...

    def load_decision_lockfile(self) -> Any:
        """Writes and checks the lock over every function that decides."""
        ...

    def open_documents(self) -> "DocumentFiles":
        """Documents that people write: read strictly, written whole."""
        ...

    def open_registries(self, project: "Path") -> "Registries":
        """The registries of a project: what is built in with what it adds."""
        ...

    def open_memories(self, project: "Path") -> "Memories":
        """What was learnt in a project before."""
        ...

    def open_fact_scanner(self, project: "Path") -> "FactScanner":
        """What finds a project's facts."""
        ...

    def open_frozen_plans(self, project: "Path") -> "PlanDirectories":
        """The folders in which frozen plans lie."""
        ...

    def read_maker_public_key(self, project: "Path", file: str = "") -> str:
        """The public key in a file, else this project's own; empty where it has none yet."""
        ...

    def has_valid_signature(self, key: str, data: bytes, signature: bytes) -> bool:
        """Whether a public key has signed some bytes."""
        ...

    def sqlite_version(self) -> str: ...

    def list_known_secrets(self, project: str) -> tuple[str, ...]:
        """Values that are never told."""
        ...

    def command_rules(self, checks: "tuple[Argv, ...]", commands: "Commands") -> "CommandRules":
        """What a tester may propose beside these checks."""
        ...

    def command_reach_problem(self, root: str, reach: "CommandReach") -> str | None:
        """Why a command may not touch what it names in this tree, or None."""
        ...

    def file_placement_problem(self, root: str, name: str) -> str | None:
        """Why a file of this name must not be written below a folder as it is now, or None."""
        ...

    def driver_argv(self, project: "Path", run: str) -> list[str]:
        """The command that drives a run in a process of its own."""
        ...

    def find_calling_effect(self, project: str) -> str:
        """The effect of a run here that this process works for, or nothing: a person's word never comes from inside."""
        ...

    def list_calling_effects(self) -> tuple[str, ...]:
        """Every effect that this process was started for, also of runs that cannot be seen from here."""
        ...
