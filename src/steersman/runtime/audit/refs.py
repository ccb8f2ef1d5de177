"""Holds the branches and refs that runs left in git against their tapes.

A store that was rolled back together with its anchors fits itself; git still has what came later.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from steersman.contracts.config import Config
from steersman.errors import SteersmanError
from steersman.kernel.snapshot import Snapshot, fields
from steersman.runtime.audit.verdict import Verdict
from steersman.runtime.live import read_snapshot
from steersman.runtime.world import World

PINNED, BRANCHES = "refs/steersman/", "refs/heads/steersman/"


def compare_refs(world: World, verdict: Verdict) -> Verdict:
    """The verdict on a tape that fits, with what git knows beyond it and what git has lost of it."""
    last = read_snapshot(world.journal, verdict.run)
    if not isinstance(last, Snapshot) or not fields(last.context).get("base_commit"):
        return verdict  # it never worked on a tree
    try:
        refs = world.workspace(Config()).recorded_refs(verdict.run)
    except SteersmanError as error:
        return replace(verdict, unseen=(*verdict.unseen, f"its branches and refs in git: {error}"))
    newer = tuple(_newer(refs, last))
    return replace(
        verdict,
        ok=not newer,
        problems=(*verdict.problems, *newer),
        gone=tuple(_gone(refs, last)),
    )


def unknown_runs(world: World, known: list[str]) -> tuple[str, ...]:
    """Runs that git has refs of and this store does not know: another store's, or a store that was rolled back."""
    try:
        refs = world.workspace(Config()).recorded_refs()
    except SteersmanError:
        return ()
    runs = {ref.removeprefix(PINNED).removeprefix(BRANCHES).split("/")[0]: ref for ref in sorted(refs)}
    return tuple(
        f"run {run}: git has {ref}, and this store does not know the run: it is of another state directory, or the store was rolled back"
        for run, ref in runs.items()
        if run not in known
    )


def _newer(refs: Mapping[str, int], last: Snapshot) -> Iterator[str]:
    """Refs of entries that the tape does not have."""
    for ref, entry in refs.items():
        if entry > last.seq:
            yield f"{ref} is of entry {entry}, but the tape ends with entry {last.seq}: the store was rolled back, or its end was cut off"


def _gone(refs: Mapping[str, int], last: Snapshot) -> Iterator[str]:
    """What the tape says was there; a person or a `git gc` may have removed it."""
    branch = f"{BRANCHES}{last.run}"
    c = fields(last.context)
    if str(c.get("delivered_ref", "")).endswith(branch) and branch not in refs:
        yield f"the branch {branch.removeprefix('refs/heads/')} that it delivered"
    if c.get("commit") and not any(ref.startswith(PINNED) for ref in refs):
        yield f"its recorded trees below {PINNED}{last.run}/"
