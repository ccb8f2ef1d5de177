"""What the files of a commit say: names, and texts of bounded size, from git's objects alone.

Content is written by strangers: sizes are asked for before anything is read, and what is too long is not read at all.
**Invariant:** no working tree is looked at, no link followed, no filter or conversion of the repository applied.
"""

from collections.abc import Iterator, Sequence

from steersman.adapters.git_repository import Git
from steersman.adapters.git_survey import shown
from steersman.contracts.workspace import Text

_KEPT = 2  # listings: those of a base and of a change
_PLAIN = b"100"


class Texts:
    """The files of one repository's commits."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._listed: dict[str, dict[str, str]] = {}

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted."""
        return tuple(sorted(self._listing(commit)))

    def read(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[Text, ...]:
        """Those of these names that are plain files; one above a bound comes without its content."""
        blobs = self._listing(commit)
        wanted = {name: blobs[name] for name in names if name in blobs}
        sizes = self._sizes(list(dict.fromkeys(wanted.values())))
        left, taken = total, set()
        for blob, size in sizes.items():
            if size <= min(each, left):
                taken.add(blob)
                left -= size
        found = read_blobs(self._git, [blob for blob in sizes if blob in taken])
        contents = {blob: content.decode("utf-8", "replace") for blob, content in found.items()}
        return tuple(Text(name, contents.get(blob, ""), blob in taken) for name, blob in wanted.items())

    def _listing(self, commit: str) -> dict[str, str]:
        tree = self._git.tree_of(commit)
        if tree not in self._listed:
            if len(self._listed) >= _KEPT:
                self._listed.clear()
            lines = self._git.read_object(tree, "ls-tree", "-r", "-z", "--full-tree").split(b"\0")[:-1]
            self._listed[tree] = dict(_plain(lines))
        return self._listed[tree]

    def _sizes(self, blobs: list[str]) -> dict[str, int]:
        form = "--batch-check=%(objectname) %(objectsize)"
        told = self._git.read("cat-file", form, feed=_lines(blobs)).decode().split("\n")[:-1] if blobs else []
        return {blob: int(size) for blob, _, size in (line.partition(" ") for line in told)}


def read_blobs(git: Git, blobs: Sequence[str]) -> dict[str, bytes]:
    """What is in these objects, in one call of git."""
    told = git.read("cat-file", "--batch", feed=_lines(blobs)) if blobs else b""
    found: dict[str, bytes] = {}
    at = 0
    for blob in blobs:
        header_end = told.index(b"\n", at)
        begin = header_end + 1
        size = int(told[at:header_end].rsplit(b" ", 1)[1])
        found[blob] = told[begin : begin + size]
        at = begin + size + 1
    return found


def _plain(lines: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    for line in lines:
        told, _, name = line.partition(b"\t")
        if told.startswith(_PLAIN):
            yield shown(name), told.split(b" ")[2].decode()


def _lines(blobs: Sequence[str]) -> bytes:
    return "".join(f"{blob}\n" for blob in blobs).encode()
