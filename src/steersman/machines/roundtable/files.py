"""The files of a roundtable run that are made from its tape: the contract of its discussion, and its change."""

from collections.abc import Iterator

import msgspec

from steersman.engine.machine_package import Artifact
from steersman.engine.projections import format_json_file
from steersman.engine.run_view import RunView
from steersman.machines.roundtable.context import RoundtableContext
from steersman.machines.shared.tree_files import check_result_files

CONTRACT_TEXTS = ("task", "followup", "core_plan", "reviewer_notes", "tester_notes")


def list_roundtable_artifacts(run_view: RunView) -> Iterator[Artifact]:
    """The discussion's contract, the change as a patch, and the results of the checks."""
    context: RoundtableContext = run_view.snapshot.context
    if context.contract:
        yield "discussion_contract.json", lambda: _render_contract(context, run_view)
    if context.patch_ref:
        yield "code/diff.patch", lambda: run_view.text(context.patch_ref).encode()
    yield from check_result_files(run_view)


def _render_contract(context: RoundtableContext, run_view: RunView) -> bytes:
    """The contract with its digest, and the texts that its names stand for."""
    contract = context.contract
    texts = {name: run_view.text(contract[name]) for name in CONTRACT_TEXTS if contract.get(name)}
    document = {"digest": context.contract_digest, "contract": contract, "texts": texts}
    return format_json_file(msgspec.json.encode(document))
