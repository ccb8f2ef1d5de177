"""Runs that only an anchor remembers: what a store that is gone, or that has lost a run, cannot say itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.app.runs import Ports
    from steersman.faces.cli.context import CommandContext


def open_ports_without_store(context: "CommandContext") -> "Ports | None":
    """The anchors of a project whose store is gone; None where nothing of it was ever kept, so that looking makes nothing."""
    has_state_only = (
        not context.has_store() and context.services.project_state_directory(context.project).is_dir()
    )
    return context.ports if has_state_only else None


def find_project_missing_runs(context: "CommandContext") -> list[str]:
    """Every run with a genuine anchor that the store does not list."""
    from steersman.app.audit import find_missing_runs

    if not context.has_store():
        ports = open_ports_without_store(context)
        return find_missing_runs(ports, has_store=False) if ports is not None else []
    return find_missing_runs(context.services.open_ports(context.project, journal=context.journal))


def missing_runs_hint(context: "CommandContext", runs: list[str]) -> str:
    """What is missing, and the next step."""
    store_text = "the store lacks" if context.has_store() else "the store is gone, and with it"
    names = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
    return f"{store_text} what anchors vouch for: {names}; restore it from a backup, or see `{context.command_prefix} audit verify`"
