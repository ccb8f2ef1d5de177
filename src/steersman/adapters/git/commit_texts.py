"""What the files of a commit say: names, and texts of bounded size, from git's objects alone.

Content is written by strangers: sizes are asked for before anything is read, and what is too long is not read at all.
**Invariant:** no working tree is looked at, no link followed, no filter or conversion of the repository applied.
"""

from collections.abc import Sequence

from steersman.adapters.git.git_command import decode_git_path
from steersman.adapters.git.repository import GitRepository
from steersman.contracts.workspace import FileText

_MAX_CACHED_LISTINGS = 2  # listings: those of a base and of a change
_PLAIN_FILE_MODE = "100"


class CommitTexts:
    """The files of one repository's commits."""

    def __init__(self, git: GitRepository) -> None:
        self._git = git
        self._listed: dict[str, dict[str, str]] = {}

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted."""
        return tuple(sorted(self._listing(commit)))

    def read(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[FileText, ...]:
        """Those of these names that are plain files; one above a bound comes without its content."""
        blobs = self._listing(commit)
        requested = {name: blobs[name] for name in names if name in blobs}
        sizes = self._sizes(list(dict.fromkeys(requested.values())))
        remaining, selected = total, set()
        for blob, size in sizes.items():
            if size <= min(each, remaining):
                selected.add(blob)
                remaining -= size
        blob_contents = self._git.read_blobs(blob for blob in sizes if blob in selected)
        contents = {blob: content.decode("utf-8", "replace") for blob, content in blob_contents.items()}
        return tuple(
            FileText(name, contents.get(blob, ""), blob in selected) for name, blob in requested.items()
        )

    def _listing(self, commit: str) -> dict[str, str]:
        tree = self._git.tree_of(commit)
        listing = self._listed.get(tree)  # threads share this cache, and each may clear it
        if listing is None:
            if len(self._listed) >= _MAX_CACHED_LISTINGS:
                self._listed.clear()
            listing = self._listed[tree] = {
                decode_git_path(entry.path): entry.object_id
                for entry in self._git.list_tree(tree, recursive=True)
                if entry.mode.startswith(_PLAIN_FILE_MODE)
            }
        return listing

    def _sizes(self, blobs: list[str]) -> dict[str, int]:
        feed = "".join(f"{blob}\n" for blob in blobs).encode()
        format_flag = "--batch-check=%(objectname) %(objectsize)"
        lines = self._git.read("cat-file", format_flag, feed=feed).decode().split("\n")[:-1] if blobs else []
        return {blob: int(size) for blob, _, size in (line.partition(" ") for line in lines)}
