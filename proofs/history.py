"""How often the evidence gate would open over the history of public repositories, if every old test passes.

    python -m proofs.history click=/path/to/click.git got=… cobra=…

Each of the last 200 commits of a repository is judged as if it were a coder's change on its first parent: by the same
function, from the same texts. Nothing of a repository is executed, and nothing of it is kept but the figures in
`history.json`. Dependencies, CI and agents' instructions always open the gate, so that they are counted apart.
"""

import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

from steersman.contracts.workspace import Change, FileText, TouchedPath
from steersman.engine.effects.change_context import read_change_context
from steersman.judges.changes.review_reasons import find_suspicious_files

COMMITS = 200
ALWAYS = ("dependencies", "ci", "agents")
CHECKS = {"go.mod": ("go", "test", "./..."), "package.json": ("npm", "test"), "pyproject.toml": ("pytest",)}


class History:
    """One repository, read with git alone: what a workspace would tell of its commits."""

    def __init__(self, place: str) -> None:
        self._git = ("git", "--git-dir", place)

    def _read(self, *words: str, feed: bytes = b"") -> bytes:
        return subprocess.run((*self._git, *words), input=feed, capture_output=True, check=True).stdout

    def commits(self) -> list[str]:
        """The last commits of the main line that change something."""
        return self._read("log", "--first-parent", "--format=%H", f"-{COMMITS + 1}").decode().split()

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit."""
        listed = self._read("ls-tree", "-r", "-z", commit).decode("utf-8", "replace").split("\0")[:-1]
        return tuple(line.partition("\t")[2] for line in listed if line.startswith("100"))

    def read_texts(self, commit: str, names: list[str], each: int, total: int) -> tuple[FileText, ...]:  # noqa: ARG002
        """Files of a commit with their contents."""
        asked = "".join(f"{commit}:{name}\n" for name in names if "\n" not in name).encode()
        out, found, at = self._read("cat-file", "--batch", feed=asked), [], 0
        for name in (name for name in names if "\n" not in name):
            head, at = out[at : out.index(b"\n", at)], out.index(b"\n", at) + 1
            if head.endswith(b" missing"):
                continue
            size = int(head.rsplit(b" ", 1)[1])
            body, at = out[at : at + size], at + size + 1
            found.append(
                FileText(name, body.decode("utf-8", "replace") if size <= each else "", size <= each)
            )
        return tuple(found)

    def change(self, commit: str, base: str) -> Change:
        """What a commit changes."""
        raw = self._read("diff-tree", "-r", "--no-renames", "--raw", "-z", base, commit).decode(
            "utf-8", "replace"
        )
        parts = raw.split("\0")
        touched = []
        for fields, path in zip(parts[::2], parts[1::2], strict=False):
            old_mode, mode, old, new, _ = fields[1:].split(" ")
            kind = "link" if "120000" in (mode, old_mode) else "file"
            touched.append(TouchedPath(path, old.strip("0") and old, new.strip("0") and new, kind))
        return Change(commit, "", tuple(t.path for t in touched), "", 0, 0, tuple(touched))


def judged(place: str) -> dict[str, object]:
    """How many of the commits would wait for a person, and why."""
    history = History(place)
    commits = history.commits()
    check = next(argv for name, argv in CHECKS.items() if name in history.paths(commits[0]))
    kinds: Counter[str] = Counter()
    gated, always, files = 0, 0, Counter[str]()
    for commit, base in pairwise(commits):
        change = history.change(commit, base)
        found = find_suspicious_files(
            change.touched, [check], read_change_context(history, base, change, [check])
        )  # type: ignore[arg-type]
        apart = {s.kind for s in found}
        kinds.update(apart)
        always += bool(apart & set(ALWAYS))
        gated += bool(apart - set(ALWAYS))
        files.update(s.path for s in found if s.kind not in ALWAYS)
    total = min(COMMITS, len(commits) - 1)
    return {
        "commits": total,
        "gated": gated,
        "gated share": round(gated / total, 3),
        "always gated": always,
        "always gated share": round(always / total, 3),
        "by kind": dict(kinds.most_common()),
        "files": dict(files.most_common(10)),
    }


def main() -> None:
    """Prints the figures and writes them down."""
    kept = Path(__file__).with_name("history.json")
    found = json.loads(kept.read_text()) if kept.exists() else {}
    found |= {name: judged(place) for name, place in (word.split("=", 1) for word in sys.argv[1:])}
    kept.write_text(json.dumps(found, indent=2) + "\n")
    for name, told in found.items():
        print(f"{name}: {told}")


if __name__ == "__main__":
    main()
