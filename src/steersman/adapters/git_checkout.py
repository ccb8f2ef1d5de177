"""The person's own checkouts: looked at, and moved forward together with their branch.

**Invariant:** a checkout with uncommitted changes is never written to, nor is a file that a filter of theirs would
have to write; files, index and branch move together (`git_branch_move`) or not at all.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from steersman.adapters.config import FILE_NAME
from steersman.adapters.git_branch_move import (
    BranchMove,
    CheckedOutError,
    MoveMarker,
    TreeEntry,
    place_for_files,
    read_markers,
)
from steersman.adapters.git_cli import Answer, Setting, as_environment
from steersman.adapters.git_hull import Found, Hull, located, look, plain
from steersman.adapters.git_repository import Git
from steersman.adapters.removal import delete
from steersman.errors import BranchMovedError, WorkspaceError

_TRIES = 3
_STATUS = ("status", "--porcelain", "-z", "--ignore-submodules=all")


class Checkouts:
    """Those of one repository; the private trees below `trees` do not count."""

    def __init__(self, git: Git, trees: Path) -> None:
        self._git = git
        self._trees = trees

    def dirty(self) -> bool:
        """Has the person's own checkout changes that are in no commit? steersman.toml is read from there, and is none."""
        found = self._git.found
        excluded = (("core.excludesFile", str(name)),) if (name := _excluded_by_person()) else ()
        answer = self._call(self._git.hull, found, *_STATUS, more=excluded)
        if answer.code != 0:
            raise WorkspaceError(f"git cannot read {found.top}: {answer.err.strip()[:500]}; mend that first")
        names = (entry[3:] for entry in os.fsdecode(answer.out).split("\0") if entry)
        return any(name != FILE_NAME and not name.startswith(f"{FILE_NAME}.bak") for name in names)

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

    def forward(self, run: str, ref: str, old: str, new: str) -> None:
        """Moves a branch from `old` to `new`, with the checkout that the person has of it, if there is one."""
        for _ in range(_TRIES):
            with suppress(CheckedOutError):
                return self._forward(run, ref, old, new)
        raise BranchMovedError(
            f"{ref.removeprefix('refs/heads/')} is checked out and left all the time; deliver again"
        )

    def _forward(self, run: str, ref: str, old: str, new: str) -> None:
        place = self.of(ref)
        if place is None:
            self._check_not_rebased(ref)
        try:
            self._move(run, ref, old, new, place).carry_out(self._check)
            if place is None and old and (place := self.of(ref)) is not None:
                # A `git switch` had read the branch before it moved and has left the old files.
                self._move(run, ref, old, new, place).carry_along()
        except OSError as error:
            raise WorkspaceError(_cut_short(ref, error)) from error

    def settle(self) -> list[str]:
        """Finishes or undoes moves that were cut short; says what was done."""
        done = []
        for folder, marker in read_markers(self._git.found.common):
            try:
                done.append(self._settle(folder, marker))
            except OSError as error:
                raise WorkspaceError(_cut_short(marker.ref, error)) from error
        return done

    def _settle(self, folder: Path, marker: MoveMarker) -> str:
        name, tip = marker.ref.removeprefix("refs/heads/"), self._git.resolve(marker.ref)
        if marker.top and not (Path(marker.top) / ".git").exists():
            delete(folder)
            return f"the checkout that run {marker.run} was being delivered into is gone: {marker.top}"
        move = BranchMove(self._git, self._call, marker)
        if tip is not None and self._git.contains(tip, marker.new):
            move.finish()
            if marker.top and not marker.staged and tip == marker.new:
                move.carry_along()
            return f"finished the delivery of run {marker.run} into {name}"
        changed = move.undo()
        left = f"; left as they are, because they were changed since: {', '.join(changed)}" if changed else ""
        return f"undid the delivery of run {marker.run} into {name}, which was cut short{left}"

    def _move(self, run: str, ref: str, old: str, new: str, place: Path | None) -> BranchMove:
        found = None if place is None else located(place)
        places = ("", "") if found is None else (str(found.top), str(place_for_files(found)))
        return BranchMove(self._git, self._call, MoveMarker(run, ref, old, new, *places))

    def _check_not_rebased(self, ref: str) -> None:
        """A rebase of the branch ends by putting the branch where it thinks it belongs."""
        common = self._git.found.common
        for gitdir in (common, *common.glob("worktrees/*")):
            for name in ("rebase-merge", "rebase-apply"):
                if plain(gitdir / name / "head-name").strip() == ref.encode():
                    raise WorkspaceError(
                        f"{ref.removeprefix('refs/heads/')} is being rebased; finish that or abort it, and try again"
                    )

    def _check(self, own: Hull, found: Found, entries: list[TreeEntry]) -> None:
        if blocked := self._in_the_way(found, entries):
            raise WorkspaceError(
                f"{blocked} of {found.top} is in no commit and would be overwritten; move it away and try again"
            )
        if filtered := self._filtered(own, found, entries):
            raise WorkspaceError(
                f"{filtered} passes a filter of {found.top} that steersman does not run; "
                "switch to another branch there and try again"
            )

    def _in_the_way(self, found: Found, entries: list[TreeEntry]) -> str | None:
        """A file of the person's where a new one belongs: git would take an ignored one for worthless."""
        tracked = {entry.path for entry in entries if entry.old_mode.strip("0")}
        for entry in entries:
            if entry.path in tracked:
                continue
            path = Path(os.fsdecode(entry.path))
            for at in (path, *path.parents[:-1]):
                there = found.top / at
                if (
                    os.path.lexists(there)
                    and (there.is_symlink() or not there.is_dir())
                    and bytes(at) not in tracked
                ):
                    return str(at)
        return None

    def _filtered(self, own: Hull, found: Found, entries: list[TreeEntry]) -> str | None:
        """A changed file whose content the person's git would convert (large file storage, encryption)."""
        names = b"".join(entry.path + b"\0" for entry in entries)
        listed = self._call(own, found, "check-attr", "-z", "--stdin", "filter", feed=names).out.split(b"\0")
        for name, value in zip(listed[::3], listed[2::3], strict=False):
            if value not in {b"unspecified", b"unset"}:
                return os.fsdecode(name)
        return None

    def _call(
        self,
        own: Hull,
        found: Found,
        *args: str,
        feed: bytes = b"",
        more: tuple[Setting, ...] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Answer:
        """git on the person's files and index, as their own settings say these are to be read."""
        settings = dict(as_environment((*found.checkout, *more)))
        places = {"GIT_WORK_TREE": str(found.top), "GIT_INDEX_FILE": str(found.gitdir / "index")}
        places |= {"GIT_DIR": str(own.path), **(env or {})}
        return self._git.call(*args, cwd=cwd or found.top, env={**settings, **places}, feed=feed)


def _with_files(place: Path, ref: str) -> Path:
    """A checkout has a `.git`; of one whose git directory was put elsewhere git knows only that directory."""
    if not (place / ".git").exists():
        raise WorkspaceError(
            f"{ref.removeprefix('refs/heads/')} is checked out somewhere, and {place} does not say where; "
            "switch to another branch there and try again"
        )
    return place


def _cut_short(ref: str, error: OSError) -> str:
    name = ref.removeprefix("refs/heads/")
    return f"the delivery into {name} was cut short: {error}. Put that right, then run `steersman resume` to finish or undo it"


def _excluded_by_person() -> Path | None:
    """The file of names that the person's git ignores everywhere, where it is in its usual place."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    usual = Path(home, "git", "ignore")
    return usual if usual.is_file() else None
