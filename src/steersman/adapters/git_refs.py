"""Lists what runs have left in a repository, pinned trees and delivered branches, each with the entry it came from."""

from msgspec.structs import replace

from steersman.adapters.git_repository import Git
from steersman.contracts.workspace import RecordedRef

_PINNED, _BRANCHES = "refs/steersman/", "refs/heads/steersman/"
_ANCHORS = f"{_PINNED}anchors/"
_ENTRY = "trailers:key=Steersman-Entry,valueonly"
_OURS = "%(contents:trailers:key=Steersman-Run,key=Steersman-Entry)"  # git 2.39 merges two such fields


def recorded_refs(git: Git, run: str = "") -> dict[str, RecordedRef]:
    """The refs of a run, or of all runs, with what each names and the entry that it came from."""
    patterns = (f"{_PINNED}{run}".rstrip("/"), f"{_BRANCHES}{run}".rstrip("/"))
    told = git.read("for-each-ref", f"--format=%(refname)%00%(objectname)%00%(tree)%00{_OURS}%00", *patterns)
    parts = [part.strip() for part in told.decode("utf-8", "backslashreplace").split("\0")]
    refs = {
        name: _ref(
            name, commit, tree, dict(line.split(": ", 1) for line in ours.splitlines() if ": " in line)
        )
        for name, commit, tree, ours in zip(*(parts[n::4] for n in range(4)), strict=False)
        if not name.startswith(_ANCHORS)
    }
    pinned = {ref.commit for name, ref in refs.items() if name.startswith(_PINNED)}
    return {
        name: _delivered(git, name, ref) if name.startswith(_BRANCHES) and ref.commit not in pinned else ref
        for name, ref in refs.items()
    }


def _ref(name: str, commit: str, tree: str, trailers: dict[str, str]) -> RecordedRef:
    entry = trailers.get("Steersman-Entry", _end(name))
    return RecordedRef(commit, tree, trailers.get("Steersman-Run", ""), _number(entry))


def _delivered(git: Git, name: str, ref: RecordedRef) -> RecordedRef:
    """A branch that is not where its run left it, with the entry of the newest commit that the run has delivered."""
    trailer = f"^Steersman-Run: {name.removeprefix(_BRANCHES)}$"
    entry = git.line("log", "-1", f"--format=%({_ENTRY})", f"--grep={trailer}", name, "--")
    return replace(ref, entry=_number(entry.strip()))


def _end(name: str) -> str:
    """The number at the end of a pinned tree's name; what other names end with is none."""
    label = name.rpartition("/")[2] if name.startswith(_PINNED) else ""
    return "" if label.startswith(("start-", "delivery-")) else label.rpartition("-")[2]


def _number(told: str) -> int:
    return int(told) if told.isdecimal() and len(told) < 10 else 0
