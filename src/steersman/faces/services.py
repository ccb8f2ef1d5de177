"""What a face is given by `wiring.py`: one value with a function for each thing outside that a face needs.

**Invariant:** nothing heavy is imported to build it; each function imports its adapter when it is first called.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.app.runs import MachinePackage, Ports
    from steersman.contracts.limits import LoadedConfig
    from steersman.judges.commands.tester_commands import CommandReach, CommandRules
    from steersman.kernel.machine import Machine
    from steersman.ports.chat import Chats
    from steersman.ports.documents import DocumentFiles
    from steersman.ports.journal import Journal
    from steersman.ports.memory import Memories
    from steersman.ports.registry import Registries
    from steersman.ports.scanner import FactScanner
    from steersman.ports.trust import TrustRecords


class Services(NamedTuple):
    """The project's store, runs and surroundings; each function opens what it names when it is called."""

    # ── the project ──────────────────────────────────────────────────────────────────────────────────────────────────
    find_repository_root: Callable[
        [str], str
    ]  # the top of the repository around a directory, or the directory
    project_state_directory: "Callable[[Path], Path]"
    has_store: Callable[[str], bool]  # whether a run was ever made here
    list_anchored_runs: Callable[[str], set[str]]  # the runs in the project's file of anchors, genuine or not
    find_run_owner: Callable[[str, str], str | None]  # (project, run) -> which process drives the run
    list_known_secrets: Callable[[str], tuple[str, ...]]  # values that no output may contain

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    open_journal: "Callable[..., Journal]"  # (project, create=, reading=)
    open_ports: "Callable[..., Ports]"  # (project, **replacements); with `journal=None` without a store
    open_chats: "Callable[[Journal], Chats]"  # conversations in the store
    installed_machines: "Callable[[], Mapping[str, Machine]]"
    installed_packages: "Callable[[], Mapping[str, MachinePackage]]"
    find_calling_effect: Callable[[str], str]  # the effect of a run here that this process works for, or ""
    list_calling_effects: Callable[[], tuple[str, ...]]  # the same for runs that cannot be seen from here
    load_decision_lockfile: Callable[[], Any]  # writes and checks the lock over every deciding function

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────
    # With `only_look=True` settings beyond the machine's limits are no error, and `excesses` lists them.
    load_limited_config: "Callable[..., LoadedConfig]"
    open_trust_file: "Callable[[Path], TrustRecords]"
    detect_project_checks: "Callable[[Path], Mapping[str, tuple[str, ...]]]"  # from the project's own files
    installed_agents: Callable[
        [], Mapping[str, str]
    ]  # the agent CLIs on this machine, in order of preference
    list_worktree_includes: (
        "Callable[[Path], tuple[str, ...]]"  # the lines of the checkout's `.worktreeinclude`
    )
    render_project_config: Callable[..., str]  # a commented steersman.toml
    open_project_sandbox: Callable[
        [Any], Any
    ]  # the sandbox of a configuration on this machine (`ports.sandbox`)
    sqlite_version: Callable[[], str]

    # ── documents and plans ──────────────────────────────────────────────────────────────────────────────────────────
    open_documents: "Callable[[], DocumentFiles]"
    open_registries: "Callable[[Path], Registries]"
    open_memories: "Callable[[Path], Memories]"
    open_fact_scanner: "Callable[[Path], FactScanner]"

    # ── commands that a tester proposes ──────────────────────────────────────────────────────────────────────────────
    command_rules: "Callable[..., CommandRules]"  # (checks, commands): what may be proposed beside the checks
    command_reach_problem: "Callable[[str, CommandReach], str | None]"  # (tree, reach), or None
    file_placement_problem: Callable[[str, str], str | None]  # (folder, name): why not to write it, or None
