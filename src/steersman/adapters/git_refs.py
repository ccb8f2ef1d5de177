"""Lists what runs have left in a repository, pinned trees and delivered branches, each with the entry it came from."""

from steersman.adapters.git_repository import Git

_PINNED, _BRANCHES = "refs/steersman/", "refs/heads/steersman/"
_ANCHORS = f"{_PINNED}anchors/"
_ENTRY = "trailers:key=Steersman-Entry,valueonly"


def recorded_refs(git: Git, run: str = "") -> dict[str, int]:
    """The refs of a run, or of all runs, with the number of the entry that each came from; 0 where none is told."""
    patterns = (f"{_PINNED}{run}".rstrip("/"), f"{_BRANCHES}{run}".rstrip("/"))
    told = git.read("for-each-ref", f"--format=%(refname)%00%(contents:{_ENTRY})%00", *patterns)
    parts = told.decode("utf-8", "backslashreplace").split("\0")
    refs = {ref.strip(): entry.strip() for ref, entry in zip(parts[::2], parts[1::2], strict=False)}
    return {ref: _number(_of(git, ref, entry)) for ref, entry in refs.items() if not ref.startswith(_ANCHORS)}


def _of(git: Git, ref: str, told: str) -> str:
    """What a pinned commit's trailer says, or the end of its name; of a branch what its run's newest commit says."""
    if ref.startswith(_BRANCHES):
        trailer = f"^Steersman-Run: {ref.removeprefix(_BRANCHES)}$"
        return git.line("log", "-1", f"--format=%({_ENTRY})", f"--grep={trailer}", ref, "--").strip()
    label = ref.rpartition("/")[2]
    return told or ("" if label.startswith(("start-", "delivery-")) else label.rpartition("-")[2])


def _number(told: str) -> int:
    return int(told) if told.isdecimal() and len(told) < 10 else 0
