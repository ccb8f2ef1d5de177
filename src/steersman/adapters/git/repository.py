"""git over one repository, through an isolated git directory: objects, names, history.

**Invariant:** nothing here depends on what the repository's own settings say.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from steersman.adapters.git.git_command import (
    COMMITTER_EMAIL,
    COMMITTER_NAME,
    GitResult,
    GitSetting,
    decode_git_path,
    run_git,
)
from steersman.adapters.git.isolated_dir import (
    IsolatedGitDir,
    RepositoryLocation,
    locate_repository,
    make_isolated_dir,
    read_small_file,
    render_isolated_config,
)
from steersman.adapters.storage.durable_files import delete_path
from steersman.contracts.workspace import RecordedRef
from steersman.errors import WorkspaceError

_MAX_CACHED_ANSWERS = 1_000
_MAX_CACHED_ANSWER_BYTES = 64 << 10  # of an answer that is remembered
_resolved_names: dict[tuple[Path, str], str] = {}  # what a whole hash means never changes
# Nor does what git says of an object with one.
_object_answers: dict[tuple[Path, tuple[str, ...]], bytes] = {}
_FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class TreeEntry(NamedTuple):
    """One line of `git ls-tree`."""

    mode: str
    kind: str
    object_id: str
    size: int  # 0 where it was not asked for
    path: bytes


class TreeDifference(NamedTuple):
    """One path that differs, as git's raw format says it."""

    path: bytes
    old_mode: str
    new_mode: str
    old_blob: str
    blob: str
    status: str


class GitRepository:
    """git for the repository around a place; `folder` takes the isolated git directories."""

    def __init__(self, directory: Path, isolated_root: Path) -> None:
        if not isolated_root.is_absolute():  # it would be made wherever the caller happens to stand
            raise ValueError(
                f"the folder for git directories has to be an absolute path, not {isolated_root}"
            )
        self.place = directory
        self.folder = isolated_root
        self._isolated_dir: IsolatedGitDir | None = None

    @cached_property
    def require_repository(self) -> RepositoryLocation:
        """Where the repository is; WorkspaceError where there is none that can be worked in."""
        return locate_repository(self.place)

    @property
    def isolated_directory(self) -> IsolatedGitDir:
        """The directory through which git is called; made again where it was removed."""
        isolated = self._isolated_dir  # another thread may call `refresh`
        if isolated is None or not isolated.path.is_dir():
            isolated = self._isolated_dir = make_isolated_dir(self.require_repository, self.folder)
        return isolated

    def refresh(self) -> None:
        """Forgets what was read of the repository's files: the next call of git reads HEAD and settings again."""
        self._isolated_dir = None
        self.__dict__.pop("require_repository", None)

    def call(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, feed: bytes = b""
    ) -> GitResult:
        """Runs one git command; a command that says no is an answer, a git that cannot run is an error."""
        path = self.isolated_directory.path
        return run_git(args, cwd or path, {"GIT_DIR": str(path), **(env or {})}, feed)

    def read(
        self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, feed: bytes = b""
    ) -> bytes:
        """What git printed; a command that says no is an error."""
        answer = self.call(*args, cwd=cwd, env=env, feed=feed)
        if answer.code != 0:
            raise WorkspaceError(self._describe_refusal(args[0], answer))
        return answer.out

    def read_object(self, object_: str, *args: str) -> bytes:
        """What git prints for a command about one object, which is its last word; asked once for a whole hash."""
        key = (self.require_repository.common, (*args, object_))
        cached = _object_answers.get(key)  # threads share it, and each may clear it
        if cached is not None:
            return cached
        answer = self.read(*args, object_)
        if _FULL_HASH.fullmatch(object_) and len(answer) <= _MAX_CACHED_ANSWER_BYTES:
            if len(_object_answers) >= _MAX_CACHED_ANSWERS:
                _object_answers.clear()
            _object_answers[key] = answer
        return answer

    def line(self, *args: str, env: Mapping[str, str] | None = None, feed: bytes = b"") -> str:
        """The one line git printed."""
        return os.fsdecode(self.read(*args, env=env, feed=feed)).removesuffix("\n")

    def resolve(self, name: str) -> str | None:
        """The object a name means, or None."""
        key = (self.require_repository.common, name)
        if (cached := _resolved_names.get(key)) is not None:
            return cached
        answer = self.call("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        if answer.code != 0:
            return None
        resolved = answer.out.decode().strip()
        if re.fullmatch(rf"({_FULL_HASH.pattern})\^\{{(commit|tree)\}}", name):
            if len(_resolved_names) >= _MAX_CACHED_ANSWERS:
                _resolved_names.clear()
            _resolved_names[key] = resolved
        return resolved

    def commit_of(self, name: str) -> str:
        """The commit a name means; it has to be there."""
        commit = self.resolve(f"{name}^{{commit}}")
        if commit is None:
            raise WorkspaceError(
                f"the commit {name!r} is not in {self.place}; fetch it or start from another"
            )
        return commit

    def tree_of(self, commit: str) -> str:
        """The tree of a commit that has to be there."""
        tree = self.resolve(f"{commit}^{{tree}}")
        if tree is None:
            raise WorkspaceError(
                f"the commit {commit} is not in {self.place}; fetch it or start from another one"
            )
        return tree

    def contains(self, tip: str, commit: str) -> bool:
        """Is `commit` in the history of `tip`?"""
        return self.call("merge-base", "--is-ancestor", commit, tip).code == 0

    def committer(self, commit: str) -> tuple[str, str]:
        """Who committed (name and address, as stored) and when (seconds)."""
        header = self.read_object(commit, "cat-file", "commit").partition(b"\n\n")[0]
        line = next(line for line in header.split(b"\n") if line.startswith(b"committer "))
        who, seconds, _ = line.removeprefix(b"committer ").rsplit(b" ", 2)
        return who.decode("utf-8", "replace"), seconds.decode()

    def message(self, commit: str) -> str:
        """What a commit says."""
        return self.read_object(commit, "cat-file", "commit").partition(b"\n\n")[2].decode("utf-8", "replace")

    def commit(
        self,
        tree: str,
        parents: tuple[str, ...],
        message: str,
        *,
        at: int = 0,
        committer: GitSetting | None = None,
    ) -> str:
        """Stores a commit whose hash depends on nothing but these; without a time (milliseconds) its date is the first
        parent's."""
        seconds = str(at // 1000) if at else self.committer(parents[0])[1] if parents else "0"
        date = f"@{seconds} +0000"
        parent_args = [word for parent in parents for word in ("-p", parent)]
        text = message.rstrip("\n").encode("utf-8", "replace") + b"\n"
        env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        if committer is not None:
            env |= {"GIT_COMMITTER_NAME": committer[0], "GIT_COMMITTER_EMAIL": committer[1]}
        return self.line("commit-tree", tree, *parent_args, "-F", "-", env=env, feed=text)

    def _describe_refusal(self, command: str, answer: GitResult) -> str:
        """The error of a git command; for an object that a partial clone lacks, with the way to get it."""
        message = answer.err.strip()[:500] or f"exit code {answer.code}"
        if self.require_repository.partial:
            return (
                f"git {command} refused: {message}; this is a partial clone, and what it lacks is not fetched while a run "
                "works: get it with `git fetch --refetch --no-filter` and try again"
            )
        return f"git {command} refused: {message}; put that right and try again"

    def list_tree(
        self, commit: str, names: Sequence[str] = (), *, recursive: bool = False, sizes: bool = False
    ) -> list[TreeEntry]:
        """The entries of a commit, or of a tree, with these names; with none given all of them.

        Sizes only where they are asked for: git has to open every object for them.
        """
        flags = ("-z", "--full-tree", *(("-r",) if recursive else ()), *(("-l",) if sizes else ()))
        if names:
            output = self.read("ls-tree", *flags, commit, "--", *names)
        else:
            output = self.read_object(commit, "ls-tree", *flags)
        return [_parse_tree_entry(line) for line in output.split(b"\0")[:-1]]

    def read_blobs(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """What is in these objects, in one call of git; WorkspaceError where one is missing."""
        wanted = list(dict.fromkeys(blobs))
        feed = "".join(f"{blob}\n" for blob in wanted).encode()
        output = memoryview(self.read("cat-file", "--batch", feed=feed) if wanted else b"")
        contents: dict[str, bytes] = {}
        for blob in wanted:  # in this order: a line with the size, the content, a line break
            line = bytes(output[:200]).partition(b"\n")[0]
            size = line.rpartition(b" ")[2]
            if not size.isdigit():
                raise WorkspaceError(f"git has no object {blob} here; fetch it and try again")
            start = len(line) + 1
            contents[blob] = bytes(output[start : start + int(size)])
            output = output[start + int(size) + 1 :]
        return contents

    def compose_tree(self, commit: str, other: str, paths: Sequence[str]) -> str:
        """The tree of `commit` with these paths as they are in `other`, absent ones removed; built in a private index."""
        wanted_paths = frozenset(paths)
        raw = self.read("diff-tree", "-r", "--no-renames", "--raw", "-z", commit, other)
        entries = [
            f"{entry.new_mode} {entry.blob}\t".encode() + entry.path + b"\0"
            for entry in parse_raw_differences(raw)
            if decode_git_path(entry.path) in wanted_paths
        ]
        with tempfile.TemporaryDirectory() as directory:
            env = {"GIT_INDEX_FILE": str(Path(directory, "index"))}
            self.read("read-tree", commit, env=env)
            self.read("update-index", "-z", "--index-info", env=env, feed=b"".join(entries))
            return self.line("write-tree", env=env)


def _parse_tree_entry(line: bytes) -> TreeEntry:
    header, _, path = line.partition(b"\t")
    mode, kind, object_id, *size = header.decode().split()
    return TreeEntry(mode, kind, object_id, int(size[0]) if size and size[0].isdigit() else 0, path)


def parse_raw_differences(output: bytes) -> Iterator[TreeDifference]:
    """The lines of git's `--raw -z` format, without renames."""
    parts = output.split(b"\0")
    for fields, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, new_mode, old_blob, blob, status = fields.removeprefix(b":").decode().split(" ")
        yield TreeDifference(path, old_mode, new_mode, old_blob, blob, status)


# ── refs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

# The refs of runs: commits stored under a ref, and the list of pinned trees and delivered branches with their entries.
#
# A `git gc --prune=now` at the same moment removes every loose object that no ref led to when it began. So a stored commit
# is checked again once no gc runs, and stored again where an object is missing.


_PINNED_PREFIX, _RUN_BRANCH_PREFIX = "refs/steersman/", "refs/heads/steersman/"
_ANCHOR_REF_PREFIX = f"{_PINNED_PREFIX}anchors/"
_ENTRY_TRAILER_FORMAT = "trailers:key=Steersman-Entry,valueonly"
# Git 2.39 merges two such fields.
_RUN_TRAILERS_FORMAT = "%(contents:trailers:key=Steersman-Run,key=Steersman-Entry)"
_GC_WAIT_SECONDS = 120.0
_STORE_ATTEMPTS = 5


def list_recorded_refs(git: GitRepository, run: str = "") -> dict[str, RecordedRef]:
    """The refs of a run, or of all runs, with what each names and the entry that it came from."""
    patterns = (f"{_PINNED_PREFIX}{run}".rstrip("/"), f"{_RUN_BRANCH_PREFIX}{run}".rstrip("/"))
    output = git.read(
        "for-each-ref",
        f"--format=%(refname)%00%(objectname)%00%(tree)%00{_RUN_TRAILERS_FORMAT}%00",
        *patterns,
    )
    parts = [part.strip() for part in output.decode("utf-8", "backslashreplace").split("\0")]
    refs = {
        name: _parse_recorded_ref(
            name,
            commit,
            tree,
            dict(line.split(": ", 1) for line in trailer_text.splitlines() if ": " in line),
        )
        for name, commit, tree, trailer_text in zip(*(parts[n::4] for n in range(4)), strict=False)
        if not name.startswith(_ANCHOR_REF_PREFIX)
    }
    pinned = {ref.commit for name, ref in refs.items() if name.startswith(_PINNED_PREFIX)}
    return {
        name: _add_delivered_entry(git, name, ref)
        if name.startswith(_RUN_BRANCH_PREFIX) and ref.commit not in pinned
        else ref
        for name, ref in refs.items()
    }


def _parse_recorded_ref(name: str, commit: str, tree: str, trailers: dict[str, str]) -> RecordedRef:
    entry = trailers.get("Steersman-Entry", _entry_number_suffix(name))
    return RecordedRef(commit, tree, trailers.get("Steersman-Run", ""), _parse_entry_number(entry))


def _add_delivered_entry(git: GitRepository, name: str, ref: RecordedRef) -> RecordedRef:
    """A branch that is not where its run left it, with the entry of the newest commit that the run has delivered."""
    trailer = f"^Steersman-Run: {name.removeprefix(_RUN_BRANCH_PREFIX)}$"
    entry = git.line("log", "-1", f"--format=%({_ENTRY_TRAILER_FORMAT})", f"--grep={trailer}", name, "--")
    return replace(ref, entry=_parse_entry_number(entry.strip()))


def _entry_number_suffix(name: str) -> str:
    """The number at the end of a pinned tree's name; what other names end with is none."""
    label = name.rpartition("/")[2] if name.startswith(_PINNED_PREFIX) else ""
    return "" if label.startswith(("start-", "delivery-")) else label.rpartition("-")[2]


def _parse_entry_number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def store_commit_despite_gc(git: GitRepository, ref: str, parent: str, build: Callable[[], str]) -> str:
    """Points `ref` to the commit that `build` stores, and returns it whole."""
    for attempt in range(_STORE_ATTEMPTS):
        _wait_for_gc(git)
        try:
            commit = build()
        except WorkspaceError:
            if attempt == _STORE_ATTEMPTS - 1 or not _is_gc_running(git):
                raise
            continue
        git.read("update-ref", ref, commit)
        if not _is_gc_running(git) and is_commit_complete(git, commit, parent):
            return commit
    raise WorkspaceError(f"git does not keep {ref}; is a `git gc` at work? Try again when it has ended")


def is_commit_complete(git: GitRepository, commit: str, parent: str) -> bool:
    """Whether every object is there that a commit brings beyond its parent."""
    return git.call("rev-list", "--objects", "--quiet", commit, "--not", parent).code == 0


def _is_gc_running(git: GitRepository) -> bool:
    """Whether a `git gc` of this machine is at work."""
    match = re.match(rb"(\d+) ", read_small_file(git.require_repository.common / "gc.pid"))
    if match is None:
        return False
    with suppress(PermissionError):  # another user's process is alive too
        try:
            os.kill(int(match[1]), 0)
        except ProcessLookupError:
            return False
    return True


def _wait_for_gc(git: GitRepository) -> None:
    deadline = time.monotonic() + _GC_WAIT_SECONDS
    while _is_gc_running(git) and time.monotonic() < deadline:
        time.sleep(0.05)


# ── worktree repo ───────────────────────────────────────────────────────────────────────────────────────────────────────

# The private git repository of a working tree: an agent may do in it what it likes.
#
# It borrows the objects of the real one and has a copy of its tags. Commits, branches, settings and hooks
# made inside stay inside: neither the person's git nor ours ever reads them, and nothing is left of them when the tree
# is handed to the next.
# **Invariant:** it knows no remote, no branch, no hook and no setting of the person's repository.


MAX_COPIED_TAGS = 1_000
_WORKTREE_REPO_DIRECTORIES = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_WORKTREE_REPO_SETTINGS: tuple[GitSetting, ...] = (
    ("user.name", COMMITTER_NAME),
    ("user.email", COMMITTER_EMAIL),
    ("advice.detachedHead", "false"),
)


def worktree_repo_path(tree: Path) -> Path:
    """Where the repository of a tree is: beside it, so that its files are the tree's alone."""
    return tree.with_name(f"{tree.name}.git")


def make_worktree_repo(git: GitRepository, tree: Path, commit: str, index: Path) -> None:
    """Gives a tree a new repository: at `commit`, with nothing staged."""
    repo_dir, common = worktree_repo_path(tree), git.require_repository.common
    remove_worktree_repo(tree)
    for name in _WORKTREE_REPO_DIRECTORIES:
        (repo_dir / name).mkdir(parents=True)
    (repo_dir / "objects" / "info" / "alternates").write_bytes(bytes(common / "objects") + b"\n")
    (repo_dir / "packed-refs").write_bytes(_render_packed_tags(git))
    (repo_dir / "info" / "exclude").write_bytes(read_small_file(common / "info" / "exclude"))
    if shallow := read_small_file(common / "shallow"):
        (repo_dir / "shallow").write_bytes(shallow)
    (repo_dir / "config").write_bytes(
        render_isolated_config(git.require_repository, more=_WORKTREE_REPO_SETTINGS)
    )
    shutil.copy2(index, repo_dir / "index")
    (repo_dir / "HEAD").write_text(f"{commit}\n")
    (tree / ".git").write_text(f"gitdir: {repo_dir}\n")


def remove_worktree_repo(tree: Path) -> None:
    """Removes it, whatever has become of it."""
    delete_path(tree / ".git")
    delete_path(worktree_repo_path(tree))


def _render_packed_tags(git: GitRepository) -> bytes:
    """The tags as they are now: many projects read their version from them."""
    loose = git.require_repository.common / "refs" / "tags"
    packed = git.require_repository.common / "packed-refs"
    if loose.is_dir() and not any(loose.iterdir()) and not packed.exists():
        return b""  # git would be asked seven times in a short run
    format_flag = "--format=%(objectname) %(refname)"
    limit_flags = ("--sort=-creatordate", f"--count={MAX_COPIED_TAGS}")
    lines = sorted(
        git.read("for-each-ref", *limit_flags, format_flag, "refs/tags").splitlines(),
        key=lambda line: line.partition(b" ")[2],
    )
    return b"# pack-refs with: sorted \n" + b"".join(line + b"\n" for line in lines)
