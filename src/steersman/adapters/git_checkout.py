"""The person's own checkouts: looked at, and moved forward together with their branch.

**Invariant:** a checkout with uncommitted changes is never written to, nor is a file that a filter of theirs would
have to write; files, index and branch move together or not at all.
"""

import os
from pathlib import Path

from steersman.adapters.git_cli import Answer, Setting, as_environment
from steersman.adapters.git_hull import Found, Hull, hull, located, look
from steersman.adapters.git_repository import Git
from steersman.errors import WorkspaceError

_STATUS = ("status", "--porcelain", "-z", "--ignore-submodules=all")


class Checkouts:
    """Those of one repository; the private trees below `trees` do not count."""

    def __init__(self, git: Git, trees: Path) -> None:
        self._git = git
        self._trees = trees

    def dirty(self) -> bool:
        """Has the person's own checkout changes that are in no commit?"""
        found = self._git.found
        excluded = (("core.excludesFile", str(name)),) if (name := _excluded_by_person()) else ()
        answer = self._call(self._git.hull, found, *_STATUS, more=excluded)
        if answer.code != 0:
            raise WorkspaceError(f"git cannot read {found.top}: {answer.err.strip()[:500]}; mend that first")
        return bool(answer.out)

    def of(self, ref: str) -> Path | None:
        """Where the person has this branch checked out."""
        if look(self._git.place, "symbolic-ref", "--quiet", "HEAD").out == f"{ref}\n".encode():
            return self._git.found.top
        answer = look(self._git.place, "worktree", "list", "--porcelain", "-z")
        if answer.code != 0:
            raise WorkspaceError(
                f"git cannot list its checkouts: {answer.err.strip()[:500]}; mend that first"
            )
        for record in os.fsdecode(answer.out).split("\0\0"):
            fields = dict(field.partition(" ")[::2] for field in record.split("\0"))
            place = Path(fields.get("worktree", ""))
            if fields.get("branch") == ref and place.is_dir() and not place.is_relative_to(self._trees):
                return _with_files(place, ref)
        return None

    def forward(self, place: Path, ref: str, old: str, new: str) -> None:
        """Moves the branch and the files in `place` from `old` to `new`."""
        found = located(place)
        own, name = hull(found, self._git.folder), ref.removeprefix("refs/heads/")
        # A file that was written anew with the same bytes is not changed; git takes it for that until told.
        self._call(own, found, "update-index", "-q", "--refresh", "--ignore-submodules")
        if not self._stands_at(own, found, new):  # else we were stopped halfway, and go on
            self._check(own, found, name, old, new)
            answer = self._call(own, found, "read-tree", "-m", "-u", old, new)
            if answer.code != 0:
                raise WorkspaceError(_not_moved(name, found, answer))
        answer = self._call(own, found, "update-ref", "-m", "steersman: deliver", ref, new, old)
        if answer.code != 0:
            self._call(own, found, "read-tree", "-m", "-u", new, old)
            raise WorkspaceError(_not_moved(name, found, answer))

    def _stands_at(self, own: Hull, found: Found, commit: str) -> bool:
        staged = self._call(
            own, found, "diff-index", "--cached", "--quiet", "--ignore-submodules=all", commit
        )
        changed = self._call(own, found, "diff-files", "--quiet", "--ignore-submodules=all")
        return staged.code == 0 and changed.code == 0

    def _check(self, own: Hull, found: Found, name: str, old: str, new: str) -> None:
        if self._call(own, found, *_STATUS, "--untracked-files=no").out:
            raise WorkspaceError(
                f"{name} is checked out in {found.top} with uncommitted changes; "
                "commit or stash them there, or switch to another branch, and try again"
            )
        if blocked := self._in_the_way(found, old, new):
            raise WorkspaceError(
                f"{blocked} of {found.top} is in no commit and would be overwritten; move it away and try again"
            )
        if filtered := self._filtered(own, found, old, new):
            raise WorkspaceError(
                f"{filtered} passes a filter of {found.top} that steersman does not run; "
                "switch to another branch there and try again"
            )

    def _in_the_way(self, found: Found, old: str, new: str) -> str | None:
        """A file of the person's where a new one belongs: git would take an ignored one for worthless."""
        flags = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
        for name in self._git.read("diff-tree", *flags, old, new).split(b"\0")[:-1]:
            path, top = Path(os.fsdecode(name)), found.top
            if os.path.lexists(top / path) and not (top / path).is_dir():
                return str(path)
            above = next(
                (p for p in path.parents if os.path.lexists(top / p) and not (top / p).is_dir()), None
            )
            if above is not None and self._git.resolve(f"{old}:{above}") is None:
                return str(above)
        return None

    def _filtered(self, own: Hull, found: Found, old: str, new: str) -> str | None:
        """A changed file whose content the person's git would convert (large file storage, encryption)."""
        names = self._git.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        listed = self._call(own, found, "check-attr", "-z", "--stdin", "filter", feed=names).out.split(b"\0")
        for name, value in zip(listed[::3], listed[2::3], strict=False):
            if value not in {b"unspecified", b"unset"}:
                return os.fsdecode(name)
        return None

    def _call(
        self, own: Hull, found: Found, *args: str, feed: bytes = b"", more: tuple[Setting, ...] = ()
    ) -> Answer:
        """git on the person's files and index, as their own settings say these are to be read."""
        settings = dict(as_environment((*found.checkout, *more)))
        places = {"GIT_WORK_TREE": str(found.top), "GIT_INDEX_FILE": str(found.gitdir / "index")}
        return self._git.call(
            *args, cwd=found.top, env={**settings, **places, "GIT_DIR": str(own.path)}, feed=feed
        )


def _with_files(place: Path, ref: str) -> Path:
    """A checkout has a `.git`; of one whose git directory was put elsewhere git knows only that directory."""
    if not (place / ".git").exists():
        raise WorkspaceError(
            f"{ref.removeprefix('refs/heads/')} is checked out somewhere, and {place} does not say where; "
            "switch to another branch there and try again"
        )
    return place


def _not_moved(name: str, found: Found, answer: Answer) -> str:
    said = answer.err.strip()[:500]
    if "index.lock" in said:
        said += f" (if no git is at work there, remove {found.gitdir / 'index.lock'})"
    return f"{name} in {found.top} could not be moved forward: {said}; put that right there and try again"


def _excluded_by_person() -> Path | None:
    """The file of names that the person's git ignores everywhere, where it is in its usual place."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    usual = Path(home, "git", "ignore")
    return usual if usual.is_file() else None
