"""A repository without git: commits are digests of a dict of files, kept as JSON below one folder.

It survives its process, so that a run can be killed and resumed over it, and costs no program to be started.
**Invariant:** what is recorded depends on content and parents alone; text files only.
"""

import difflib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from steersman.contracts.workspace import (
    Change,
    Checkout,
    Delivery,
    FileText,
    RebasedChange,
    RecordedRef,
    RunBase,
    TouchedPath,
)
from steersman.errors import (
    AlreadyRevertedError,
    BranchMovedError,
    ChangeConflictError,
    ChangeNotOnBranchError,
    WorkspaceError,
)
from steersman.kernel.canonical import digest_of
from steersman.testing.fake_trees import (
    CommitFiles,
    fill_working_tree,
    is_tree_in_use,
    read_tree_note,
    scan_tree_files,
    working_tree_paths,
    write_file_atomically,
)

RECORDED_MESSAGE = "recorded tree"  # the message of commits that hold what an agent has written


class FakeWorkspace:
    """Implements ports.workspace.Workspace below `root`; `files` are committed on `branch` when there is nothing yet."""

    def __init__(self, root: Path, files: Mapping[str, str] | None = None, branch: str = "main") -> None:
        self._root, self._branch = root, branch
        self._lock = threading.RLock()
        if self._tip(branch) is None:
            self._point(branch, self._commit(dict(files or {}), (), "base"))

    def find_start_problem(self) -> str | None:
        return None

    def base(self, ref: str | None) -> RunBase:
        name = (ref or self._branch).removeprefix("refs/heads/")
        commit = self._tip(name) or (name if self._has(name) else None)
        if commit is None:
            raise WorkspaceError(
                f"there is no commit called {name!r}; choose a branch or a commit that is there"
            )
        return RunBase(commit, self._tree(commit), name if self._tip(name) else None)

    def base_commit(self, ref: str | None) -> str:
        return self.base(ref).commit

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        with self._lock:
            return self._checkout(
                self._root / "trees" / _check_fake_name("run", run), commit, effect, untouched
            )

    def _checkout(self, folder: Path, commit: str, effect: str, untouched: bool) -> Checkout:
        wanted, kind = self._files(commit), str(untouched)
        free = [p for p in working_tree_paths(folder) if not is_tree_in_use(p, effect)]
        free = [p for p in free if (read_tree_note(p) or {}).get("untouched", kind) == kind]
        for path in free:
            note = read_tree_note(path)
            if (
                note is not None
                and (not untouched or note["maker"] == effect)
                and scan_tree_files(path) == wanted
            ):
                return self._handed_out(
                    path, commit, effect, (read_tree_note(path) or {}).get("maker", ""), kind
                )
        new_tree = folder / str(max((int(p.name) for p in working_tree_paths(folder)), default=0) + 1)
        fill_working_tree(new_tree, wanted)
        for path in free:
            shutil.rmtree(path, ignore_errors=True)
            path.with_suffix(".json").unlink(missing_ok=True)
        return self._handed_out(new_tree, commit, effect, effect, kind)

    def _handed_out(self, path: Path, commit: str, effect: str, maker: str, kind: str) -> Checkout:
        note = {"owner": effect, "maker": maker, "holder": str(os.getpid()), "untouched": kind}
        write_file_atomically(path.with_suffix(".json"), json.dumps(note))
        changed = self._read(commit)["message"] == RECORDED_MESSAGE
        return Checkout(str(path), commit, self._tree(commit), fresh=maker == effect, changed=changed)

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        place = Path(path)
        if (
            place.parent != self._root / "trees" / _check_fake_name("run", run)
            or read_tree_note(place) is None
        ):
            raise WorkspaceError(f"{path} is not a working tree of run {run}; check one out first")
        _check_fake_name("label", label)
        with self._lock:
            return self._recorded(scan_tree_files(place), base)

    def change(self, commit: str, base: str) -> Change:
        with self._lock:
            return replace(self._recorded(self._files(commit), base), commit=commit)

    def compose(self, run: str, commit: str, other: str, paths: Sequence[str], label: str) -> RunBase:
        _check_fake_name("run", run)
        _check_fake_name("label", label)
        with self._lock:
            source = self._files(other)
            files = {n: text for n, text in self._files(commit).items() if n not in paths}
            files |= {n: source[n] for n in paths if n in source}
            composed = self._commit(files, (commit,), "recorded tree")
            return RunBase(composed, self._tree(composed))

    def rebase_change(self, run: str, commit: str, base: str, target: str, label: str) -> RebasedChange:
        _check_fake_name("run", run)
        _check_fake_name("label", label)
        with self._lock:
            tip = self._there(target)
            was, ours = self._files(base), self._files(commit)
            if tip == base and self._read(commit)["parents"][:1] == [base]:
                return RebasedChange(False, tip, self._tree(tip))
            files, clash = _merge_three_way(was, self._files(tip), ours)
            change = None if clash else self._recorded(files, tip)
            history = set(self._history(tip))
            start = base
            while self._read(start)["message"] == "recorded tree" and self._read(start)["parents"]:
                start = self._read(start)["parents"][0]
            dropped = tuple(
                f"{c[:12]} {self._read(c)['message'].partition(chr(10))[0]}"
                for c in self._history(start)
                if c not in history
            )
            return RebasedChange(True, tip, self._tree(tip), change, tuple(clash), dropped)

    def _recorded(self, new: CommitFiles, base: str) -> Change:
        old = self._files(base)
        commit = self._commit(new, (base,), RECORDED_MESSAGE)
        patch = _unified_patch(old, new)
        lines = patch.splitlines()
        files = tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))
        return Change(
            commit,
            digest_of(new)[:40],
            files,
            patch,
            sum(line.startswith("+") and not line.startswith("+++") for line in lines),
            sum(line.startswith("-") and not line.startswith("---") for line in lines),
            tuple(
                TouchedPath(n, _blob_digest(old, n), _blob_digest(new, n), empty=new.get(n) == "")
                for n in files
            ),
        )

    def write_files(self, path: str, commit: str, names: Sequence[str], *, links: bool) -> None:  # noqa: ARG002  none here
        files = self._files(commit)
        for name in names:
            (Path(path) / name).unlink(missing_ok=True)
            if name in files:
                (Path(path) / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(path) / name).write_text(files[name], encoding="utf-8", newline="")

    def read_contents(self, commit: str, names: Sequence[str]) -> dict[str, bytes]:
        return {name: text.encode() for name, text in self._files(commit).items() if name in names}

    def paths(self, commit: str) -> tuple[str, ...]:
        return tuple(sorted(self._files(commit)))

    def read_texts(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[FileText, ...]:
        files, bytes_left, commit_texts = self._files(commit), total, []
        for name in names:
            if name in files:
                size = len(files[name].encode())
                is_whole = size <= min(each, bytes_left)
                bytes_left -= size if is_whole else 0
                commit_texts.append(FileText(name, files[name] if is_whole else "", is_whole))
        return tuple(commit_texts)

    def project_path(self, word: str) -> str:
        path = os.path.normpath(word)
        return "" if os.path.isabs(path) or path == "." or path.startswith("..") else path

    def keep_program(self, commit: str, path: str, *, alone: bool) -> str:  # noqa: ARG002  nothing is started here
        return digest_of(self._files(commit)[path]) if path in self._files(commit) else ""

    def checked_out(self, path: str) -> bytes | None:
        tip = self._tip(self._branch)
        return self.read_contents(tip, (path,)).get(path) if tip else None

    def links(self, commit: str) -> tuple[str, ...]:  # noqa: ARG002  text files only
        return ()

    def link_targets(self, commit: str) -> dict[str, str]:  # noqa: ARG002  text files only
        return {}

    def find_delivery_problem(self, form: str, target: str | None) -> str | None:
        missing = form in {"merge", "draft-pr"} and target is None
        return f'deliver = "{form}" needs a branch to go into; start the run on one' if missing else None

    def deliver(
        self,
        run: str,
        commit: str,
        base: str,
        form: str,
        target: str | None,
        message: str,
        body: str = "",
        *,
        at: int = 0,
    ) -> Delivery:
        _check_fake_name("run", run)
        if form == "draft-pr" and target is not None:
            write_file_atomically(
                self._root / "pulls" / f"{run}.json", json.dumps({"base": target, "body": body})
            )
        with self._lock:
            new_commit = self._commit(self._files(commit), (base,), message, at)
            return self._delivered(run, new_commit, base, form, target)

    def _delivered(self, run: str, new_commit: str, base: str, form: str, target: str | None) -> Delivery:
        match form, target:
            case "branch", _:
                self._point(f"steersman/{run}", new_commit)
                return Delivery(form, f"steersman/{run}", new_commit, self._tree(new_commit))
            case "merge", str():
                return self._merge(run, new_commit, base, target)
            case "draft-pr", str():
                self._point(f"steersman/{run}", new_commit)
                url = f"https://forge.invalid/pulls/{run}"
                return Delivery(form, f"steersman/{run}", new_commit, self._tree(new_commit), url)
            case "merge" | "draft-pr", None:
                raise WorkspaceError(f"a {form} needs a branch to go into; start the run on one")
            case _:
                raise WorkspaceError(
                    f"{form!r} is no form of delivery here; choose branch, merge or draft-pr"
                )

    def revert(
        self, run: str, commit: str, target: str, message: str, *, also: Sequence[str] = (), at: int = 0
    ) -> Delivery:
        _check_fake_name("run", run)
        with self._lock:
            new = self._reverted(run, (commit, *also), target, message, at)
            self._point(target, new)
            return Delivery("revert", target, new, self._tree(new))

    def _reverted(self, run: str, commits: Sequence[str], target: str, message: str, at: int) -> str:
        tip = self._there(target)
        now, history = self._files(tip), list(self._history(tip))
        there = [delivered for delivered in commits if delivered in history]
        files = self._undone(commits, now)
        if not there and files in (None, now):
            raise ChangeNotOnBranchError(f"run {run} is not in {target}: merge it there first")
        unreverted = [delivered for delivered in there if not self._taken_back(tip, delivered)]
        if files is None:
            files = now
            for delivered in unreverted:
                files = self._without(run, delivered, target, files)
        if files == now and len(unreverted) < len(there):
            return next(
                c for c in history if any(_is_revert_of(self._read(c), delivered) for delivered in there)
            )
        if files == now:
            changed = set().union(*map(self._touched, there))
            by = next(c for c in history if self._touched(c) & changed)
            raise AlreadyRevertedError(
                f"run {run} is undone in {target} already: reverting it changes nothing there", by
            )
        return self._commit(
            files, (tip,), message + "".join(f"\nreverts {delivered}" for delivered in commits), at
        )

    def _undone(self, commits: Sequence[str], now: CommitFiles) -> CommitFiles | None:
        before = self._standing_on(commits)
        if before is None:
            return None
        files, clash = _merge_three_way(self._files(commits[0]), now, before)
        return None if clash else files

    def _standing_on(self, commits: Sequence[str]) -> CommitFiles | None:
        files = self._files(commits[0])
        for delivered in commits:
            parents = self._read(delivered)["parents"]
            files, clash = (
                _merge_three_way(self._files(delivered), files, self._files(parents[0]))
                if parents
                else ({}, ["x"])
            )
            if clash:
                return None
        return files

    def _without(self, run: str, delivered: str, target: str, now: CommitFiles) -> CommitFiles:
        files, clash = _merge_three_way(
            self._files(delivered), now, self._files(self._read(delivered)["parents"][0])
        )
        if clash:
            where = f"later commits have changed the same lines of {', '.join(clash)}"
            raise ChangeConflictError(
                f"run {run} cannot be reverted on {target}: {where}; nothing was changed"
            )
        return files

    def _taken_back(self, tip: str, delivered: str) -> bool:
        return any(_is_revert_of(self._read(c), delivered) for c in self._history(tip))

    def contains_deliveries(self, tip: str, commits: Sequence[str]) -> bool:
        with self._lock:
            now, before = self._files(tip), self._standing_on(commits)
            if before is not None:
                files, clash = _merge_three_way(before, now, self._files(commits[0]))
                if not clash and files == now:
                    return True
                if self._undone(commits, now) == now:
                    return False
            history = list(self._history(tip))
            return all(delivered in history and not self._taken_back(tip, delivered) for delivered in commits)

    def compose_delivery_base(self, run: str, commits: Sequence[str], label: str) -> RunBase:
        _check_fake_name("run", run)
        _check_fake_name("label", label)
        with self._lock:
            files = self._standing_on(commits)
            if files is None:
                raise WorkspaceError(
                    f"what run {run} has delivered cannot be separated from what others did in between"
                )
            commit = self._commit(files, tuple(self._read(commits[-1])["parents"][:1]), "recorded tree")
            return RunBase(commit, self._tree(commit))

    def _touched(self, commit: str) -> set[str]:
        old, new = self._files(self._read(commit)["parents"][0]), self._files(commit)
        return {n for n in old.keys() | new.keys() if old.get(n) != new.get(n)}

    def _merge(self, run: str, new_commit: str, base: str, target: str) -> Delivery:
        tip = self._there(target)
        if new_commit not in self._history(tip):
            if tip != base:
                raise BranchMovedError(
                    f"{target} has moved from {base} to {tip}: verify run {run} on the new base"
                )
            self._point(target, new_commit)
        return Delivery("merge", target, new_commit, self._tree(new_commit))

    def recorded_refs(self, run: str = "") -> dict[str, RecordedRef]:
        tip = self._tip(f"steersman/{run}") if run else None
        if tip is None:
            return {}
        match = re.search(r"^Steersman-Entry: (\d+)$", self._read(tip)["message"], re.MULTILINE)
        ref = RecordedRef(tip, self._tree(tip), run, int(match[1]) if match else 0)
        return {f"refs/heads/steersman/{run}": ref}

    def list_interrupted_runs(self) -> tuple[str, ...]:
        return ()

    def settle_interrupted_deliveries(self) -> tuple[str, ...]:
        return ()

    def remove(self, run: str) -> None:
        shutil.rmtree(self._root / "trees" / _check_fake_name("run", run), ignore_errors=True)

    # ── objects and names ───────────────────────────────────────────────────────────────────────────────────────────

    def _commit(self, files: CommitFiles, parents: tuple[str, ...], message: str, at: int = 0) -> str:
        time = {"at": at // 1000} if at else {}  # whole seconds, as in git
        body = {"files": files, "parents": list(parents), "message": message, **time}
        commit = digest_of(body)[:40]
        if not self._has(commit):
            write_file_atomically(self._object(commit), json.dumps(body))
        return commit

    def _object(self, commit: str) -> Path:
        return self._root / "objects" / f"{commit}.json"

    def _has(self, commit: str) -> bool:
        return re.fullmatch("[0-9a-f]{40}", commit) is not None and self._object(commit).exists()

    def _read(self, commit: str) -> dict[str, Any]:
        if not self._has(commit):
            raise WorkspaceError(f"the commit {commit!r} is not here; start from another")
        body: dict[str, Any] = json.loads(self._object(commit).read_text())
        return body

    def _files(self, commit: str) -> CommitFiles:
        files: CommitFiles = self._read(commit)["files"]
        return files

    def _tree(self, commit: str) -> str:
        return digest_of(self._files(commit))[:40]

    def _history(self, commit: str) -> Iterator[str]:
        waiting = [commit]
        while waiting:
            yield waiting[0]
            waiting += self._read(waiting.pop(0))["parents"]

    def _there(self, branch: str) -> str:
        """Where a branch is that has to be there."""
        tip = self._tip(branch)
        if tip is None:
            raise WorkspaceError(f"there is no branch {branch!r} here; create it or name another one")
        return tip

    def _tip(self, branch: str) -> str | None:
        if not re.fullmatch(r"[\w-]+(/[\w.-]+)*", branch):
            return None
        ref = self._root / "refs" / branch.replace("/", "+")
        return ref.read_text() if ref.exists() else None

    def _point(self, branch: str, commit: str) -> None:
        write_file_atomically(self._root / "refs" / branch.replace("/", "+"), commit)


def _merge_three_way(
    was: CommitFiles, theirs: CommitFiles, ours: CommitFiles
) -> tuple[CommitFiles, list[str]]:
    """What we changed on top of what they have, file by file; and the files that both changed."""
    changed = {n for n in was.keys() | ours.keys() if was.get(n) != ours.get(n)}
    clash = sorted(n for n in changed if was.get(n) != theirs.get(n) != ours.get(n))
    unchanged = {n: text for n, text in theirs.items() if n not in changed}
    return {**unchanged, **{n: ours[n] for n in changed if n in ours}}, clash


def _is_revert_of(commit: dict[str, Any], delivered: str) -> bool:
    return f"reverts {delivered}" in commit["message"].splitlines()


def _blob_digest(files: CommitFiles, name: str) -> str:
    return digest_of(files[name])[:40] if name in files else ""


def _check_fake_name(kind: str, name: str) -> str:
    fine = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) and ".." not in name
    if not fine or name.endswith((".", ".lock")):
        raise WorkspaceError(f"{name!r} cannot be a {kind}: use letters, digits, '_', '-' and single dots")
    return name


def _unified_patch(old: CommitFiles, new: CommitFiles) -> str:
    patch_lines: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        before, after = (files.get(name, "").splitlines(keepends=True) for files in (old, new))
        patch_lines += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    return "".join(patch_lines)
