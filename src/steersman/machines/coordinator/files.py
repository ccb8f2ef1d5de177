"""The files of a planning run that are made from its tape, in the forms that the specification gives them."""

from collections.abc import Iterator

import msgspec

from steersman.engine.machine_package import Artifact
from steersman.engine.projections import format_json_file
from steersman.engine.run_view import RunView
from steersman.kernel.snapshot import context_fields
from steersman.machines.coordinator.views.forms import build_run_tape
from steersman.machines.coordinator.views.log import build_audit_log
from steersman.machines.coordinator.views.outcome import build_plan_run_summary, read_failure_pack


def list_plan_artifacts(run_view: RunView) -> Iterator[Artifact]:
    """What the specification of the planner wants to be seen of every run, also of one that has failed."""
    yield "coordinator_run_tape.json", lambda: _json_file(render_run_tape(run_view))
    yield "audit_log.json", lambda: _json_file(render_audit_log(run_view))
    failure_pack = read_failure_pack(run_view.snapshot, run_view.text)
    if failure_pack is not None:
        yield "failure_pack.json", lambda: _json_file(failure_pack)
    run_summary = build_plan_run_summary(run_view.snapshot, run_view.text, run_view.entries)
    if run_summary is not None:
        yield "run_summary.json", lambda: _json_file(run_summary)


def render_run_tape(run_view: RunView) -> msgspec.Struct:
    """The tape as a CoordinatorRunTape."""
    context = context_fields(run_view.snapshot.context)
    return build_run_tape(run_view.machine, run_view.entries, context, run_view.text)


def render_audit_log(run_view: RunView) -> msgspec.Struct:
    """The tape as an audit log."""
    return build_audit_log(run_view.machine, run_view.entries, run_view.text)


def _json_file(document: msgspec.Struct) -> bytes:
    return format_json_file(msgspec.json.encode(document))
