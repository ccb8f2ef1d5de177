"""The summary of a run that works on a tree: its checks, its change, where it went, and the files beside it."""

from collections.abc import Iterator
from typing import Any, Protocol

from steersman.engine.machine_package import Artifact
from steersman.engine.projections import format_json_file
from steersman.engine.run_view import RunView
from steersman.kernel.snapshot import Snapshot
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.run_summary import (
    CheckStatus,
    PayloadReader,
    RunFacts,
    known_failure_names,
    read_checks,
    running_checks,
)


class TreeContext(Protocol):
    """What the contexts of machines that work on a tree have in common."""

    config_ref: str
    base_commit: str
    base_tree: str
    baseline_ref: str
    results_ref: str
    commit: str
    tree: str
    delivered_ref: str
    delivered_commit: str
    url_ref: str
    reverted_commit: str
    detail_ref: str


def tree_summary_fields(facts: RunFacts, context: TreeContext) -> dict[str, Any]:
    """The fields of a summary that are read the same way from every such context."""
    text = facts.text
    return {
        "checks": latest_checks(facts.snapshot, context, text),
        "base_checks": read_base_checks(context, text),
        "delivered": context.delivered_ref,
        "url": text(context.url_ref),
        "reverted": context.reverted_commit,
        "commit": context.delivered_commit or context.commit,
        "tree": context.tree,
        "base": context.base_commit,
        "detail": text(context.detail_ref),
    }


def latest_checks(snapshot: Snapshot, context: TreeContext, text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The last results: of checks that run now, else of the last round."""
    running = running_checks(snapshot)
    if running is not None:
        return running
    known = known_failure_names(text(context.config_ref))
    return read_checks(text(context.results_ref), text(context.baseline_ref), known)


def read_base_checks(context: TreeContext, text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The results before any change."""
    results = text(context.baseline_ref)
    return read_checks(results, results, known_failure_names(text(context.config_ref)))


def base_problem_of_outcome(outcome: str) -> str:
    """Why a run stopped on its base tree; nothing where it did not."""
    return outcome if outcome in BASE_PROBLEMS else ""


def check_result_files(run_view: RunView) -> Iterator[Artifact]:
    """The recorded results of the last checks."""
    context: TreeContext = run_view.snapshot.context
    if context.results_ref:
        yield "test-results.json", lambda: format_json_file(run_view.text(context.results_ref).encode())
