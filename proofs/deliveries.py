"""Deliveries while a person works in the same repository, while everything is killed, and onto a disk that is full.

    python proofs/deliveries.py [--quick]

Two to eight processes deliver into one branch at once, from several state directories; each rebases its change when the
branch has moved and notes the tree that it would test. Beside them a person commits in a loop, switches branches,
rebases, cherry-picks, runs `git gc --prune=now` and holds index.lock. Then driver and git are killed together during a
merge of 400 files, and the disk has a little more room each time. Afterwards, or after what `resume` does, HEAD, index
and files agree, no commit of the person has a file of ours in it, and every delivered tree was noted before.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from figures import main, stamp
from interrupted_run import proof_folder, run_in_child

from steersman.adapters.git.workspace import GitWorkspace
from steersman.errors import BranchMovedError, WorkspaceError

SEED = 11
TRIALS, KILLS, FILES = 200, 100, 400
WHO = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "advice.detachedHead=false")
PATIENCE = 40.0  # seconds that a delivery goes on trying
STEP = 50_000  # bytes


def git(place: Path, *args: str) -> tuple[int, str]:
    """git as a person uses it."""
    env = {**os.environ, "GIT_EDITOR": "true", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["git", *WHO, *args], cwd=place, capture_output=True, text=True, env=env, check=False
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def made(place: Path, files: dict[str, str]) -> Path:
    """A repository with these files on main, and a branch beside it."""
    place.mkdir(parents=True)
    git(place, "init", "-q", "-b", "main")
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    git(place, "branch", "side")
    return place


# ── what a person does ──────────────────────────────────────────────────────────────────────────────────────────────


def commits(repo: Path, rng: random.Random) -> None:
    name = f"user-{rng.randrange(5)}"
    (repo / name).write_text(f"{rng.random()}\n")
    git(repo, "add", name)
    git(repo, "commit", "-qm", "work of the person")


def switches(repo: Path, rng: random.Random) -> None:
    git(repo, "switch", "-q", "side")
    if rng.random() < 0.5:
        commits(repo, rng)
    git(repo, "switch", "-q", "main")


def rebases(repo: Path, rng: random.Random) -> None:
    git(repo, "switch", "-q", "side")
    commits(repo, rng)
    if git(repo, "rebase", "-q", "main")[0]:
        git(repo, "rebase", "--abort")
    git(repo, "switch", "-q", "main")
    commits(repo, rng)


def cherry_picks(repo: Path, rng: random.Random) -> None:
    git(repo, "switch", "-q", "side")
    (repo / f"user-pick-{rng.randrange(10**9)}").write_text("picked\n")
    git(repo, "add", "-A", "user-*")
    git(repo, "commit", "-qm", "to be picked")
    git(repo, "switch", "-q", "main")
    if git(repo, "cherry-pick", "side")[0]:
        git(repo, "cherry-pick", "--abort")


def collects(repo: Path, rng: random.Random) -> None:
    git(repo, "gc", "-q", "--prune=now")
    commits(repo, rng)


def holds_the_index(repo: Path, rng: random.Random) -> None:
    lock = repo / ".git" / "index.lock"
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    time.sleep(rng.random() * 0.3)
    lock.unlink()


HABITS: tuple[Callable[[Path, random.Random], None], ...] = (
    commits, switches, rebases, cherry_picks, collects, holds_the_index,
)  # fmt: skip


def anything(repo: Path, rng: random.Random) -> None:
    rng.choice(HABITS)(repo, rng)


def works(repo: Path, habit: Callable[[Path, random.Random], None], seed: int, until: Path) -> None:
    """A person with one habit, until the deliveries are over. One thing at a time: a `gc --prune=now` beside a commit
    of the same person breaks a repository without us."""
    rng, end = random.Random(seed), time.monotonic() + PATIENCE  # noqa: S311  a person's habits
    while not until.exists() and time.monotonic() < end:
        habit(repo, rng)
        time.sleep(rng.random())


# ── deliveries ──────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(workspace: GitWorkspace, run: str, base: str, files: dict[str, str]) -> str:
    """A change of `base`."""
    tree = Path(workspace.checkout(run, base, f"{run}:1:1").path)
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return workspace.capture(run, str(tree), base, "work").commit


def delivers(repo: Path, state: Path, run: str, base: str, commit: str, note: Path) -> None:
    """Delivers until it is there; notes each tree before, and what came of it."""
    workspace = GitWorkspace(repo, state)
    told: dict[str, Any] = {"run": run, "tested": [], "moves": 0, "refusals": [], "delivered": ""}
    end = time.monotonic() + PATIENCE
    while not told["delivered"] and time.monotonic() < end:
        try:
            seen = workspace.rebase_change(run, commit, base, "main", f"rebased-{told['moves']}")
            if seen.change is not None:
                base, commit = seen.base, seen.change.commit
                told["moves"] += 1
            told["tested"].append(workspace.base(commit).tree)
            message = f"Change of {run}\n\nSteersman-Run: {run}\n"
            done = workspace.deliver(run, commit, base, "merge", "main", message, at=1_790_000_000_000)
            told["delivered"], told["tree"] = done.commit, done.tree
        except BranchMovedError:
            continue
        except WorkspaceError as error:
            told["refusals"].append(str(error)[:300])
            time.sleep(0.05)
    note.write_text(json.dumps(told))


def trial(folder: Path, number: int) -> dict[str, Any]:
    """One trial: how many were delivered, and what was wrong."""
    repo = made(folder / "repo", {"README": "hello\n", **{f"src/{n}": f"{n}\n" * 50 for n in range(20)}})
    runs = [f"260101-{number:03}{n}" for n in range(2 + number % 7)]
    base = git(repo, "rev-parse", "main")[1]
    jobs = []
    for n, run in enumerate(runs):
        state = folder / f"state-{n % 3}"
        edit = f"src/{n}"
        files = {f"ours-{run}": f"{run}\n", edit: f"{n}\n" * 50 + f"ours {run}\n"}
        jobs.append(
            (state, run, recorded(GitWorkspace(repo, state), run, base, files), folder / f"{run}.json")
        )
    habit = HABITS[number % len(HABITS)] if number % 7 else anything
    over = folder / "over"
    person = spawned(lambda: works(repo, habit, number, over))
    drivers = [spawned(lambda j=job: delivers(repo, j[0], j[1], base, j[2], j[3])) for job in jobs]
    codes = [os.waitpid(pid, 0)[1] for pid in drivers]
    over.touch()
    codes.append(os.waitpid(person, 0)[1])
    notes = [json.loads(job[3].read_text()) for job in jobs if job[3].exists()]
    settled = GitWorkspace(repo, folder / "state-9").settle_interrupted_deliveries()
    wrong = [f"a process ended with {code}" for code in codes if code]
    wrong += [f"left to settle: {what}" for what in settled]
    return {
        "habit": habit.__name__,
        "deliveries": len(runs),
        "delivered": sum(bool(note["delivered"]) for note in notes),
        "moves": sum(note["moves"] for note in notes),
        "refusals": Counter(kind(text) for note in notes for text in note["refusals"]),
        "faults": [f"trial {number}: {fault}" for fault in wrong + faults(repo, notes)],
    }


def kind(refusal: str) -> str:
    """What a refusal was about, in two words."""
    known = (
        "uncommitted changes",
        "is there, so a git is at work",
        "is being rebased",
        "was checked out",
        "git gc",
    )
    return next((words for words in known if words in refusal), refusal)


def spawned(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(run_in_child(work) & 0xFF)
    return pid


def faults(repo: Path, notes: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a repository that is at rest."""
    wrong = []
    status = git(repo, "status", "--porcelain")[1].splitlines()
    wrong += [f"not consistent: {line}" for line in status if "user-" not in line]
    code, said = git(repo, "fsck", "--connectivity-only", "--no-dangling")
    wrong += [f"fsck: {said[:300]}"] if code or "missing" in said or "broken" in said else []
    locks = [p for p in (repo / ".git").rglob("*.lock") if p.name != "steersman-delivery.lock"]
    wrong += [f"a lock is left: {p.relative_to(repo)}" for p in locks]
    wrong += ["a marker is left"] if (repo / ".git" / "steersman-delivery" / "marker.json").exists() else []
    listed = git(repo, "log", "--branches", "--no-merges", "-m", "--name-only", "--format=%x00%H%x01%B%x01")[
        1
    ]
    for part in listed.split("\0")[1:]:
        commit, message, names = part.split("\1")
        ours = [name for name in names.split() if name.startswith("ours-")]
        if ours and "Steersman-Run:" not in message:
            wrong.append(f"a commit of the person has {ours}: {commit[:12]}")
    there = git(repo, "ls-tree", "--name-only", "main")[1].split()
    for note in notes:
        if note["delivered"] and f"ours-{note['run']}" not in there:
            wrong.append(f"{note['run']} was delivered and is not in main")
        if note["delivered"] and note["tree"] not in note["tested"]:
            wrong.append(f"{note['run']} delivered a tree that nobody had tested")
    return wrong


def trials(folder: Path, numbers: range) -> dict[str, Any]:
    """Many trials, one after the other."""
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    for number in numbers:
        place = folder / f"trial-{number}"
        told = trial(place, number)
        wrong += told["faults"]
        counts.update({name: told[name] for name in ("deliveries", "delivered", "moves")})
        counts[f"person_{told['habit']}"] += 1
        refusals.update(told["refusals"])
        shutil.rmtree(place, ignore_errors=True)
    return {"trials": len(numbers), **counts, "refusals": dict(refusals), "faults": wrong}


# ── kills ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def large(folder: Path, files: int) -> tuple[Path, tuple[str, ...], dict[str, str]]:
    """A repository, and a change of many of its files: half changed, a quarter new, a quarter removed."""
    repo = made(folder / "repo", {f"d{n % 20}/f{n}": f"{n}\n" * 300 for n in range(files)})
    workspace = GitWorkspace(repo, folder / "state")
    base = workspace.base("main").commit
    tree = Path(workspace.checkout("run-k", base, "run-k:1:1").path)
    for n in range(files // 2):
        (tree / f"d{n % 20}" / f"f{n}").write_text(f"new {n}\n" * 300)
    for n in range(files // 2, files * 3 // 4):
        (tree / f"d{n % 20}" / f"f{n}").unlink()
        (tree / f"new{n % 7}").mkdir(exist_ok=True)
        (tree / f"new{n % 7}" / f"g{n}").write_text(f"{n}\n" * 300)
    change = workspace.capture("run-k", str(tree), base, "work")
    workspace.remove("run-k")
    return repo, ("run-k", change.commit, base, "merge", "main", "Change"), {"tree": change.tree}


def kill_all(pid: int) -> None:
    """The driver and every git below it, at once."""
    family = [psutil.Process(pid)]
    while True:  # stopped first, so that nobody starts another
        for process in family:
            process.send_signal(signal.SIGSTOP) if process.is_running() else None
        more = [c for c in family[0].children(recursive=True) if c not in family]
        if not more:
            break
        family += more
    for process in family:
        if process.is_running():
            process.kill()


def kills(folder: Path, count: int, files: int) -> dict[str, Any]:
    """Kills at moments spread over the whole delivery; each is settled by a process of another state directory."""
    repo, args, change = large(folder, files)
    rng, old = random.Random(SEED), args[2]  # noqa: S311  moments, no secrets
    began = time.monotonic()
    GitWorkspace(repo, folder / "state").deliver(*args)
    length = time.monotonic() - began
    git(repo, "reset", "-q", "--hard", old)
    wrong: list[str] = []
    ended: Counter[str] = Counter()
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            GitWorkspace(repo, folder / "state").deliver(*args)
            os._exit(0)
        time.sleep(length * 1.05 * (number + rng.random()) / count)
        try:
            kill_all(pid)
        except psutil.NoSuchProcess:
            ended["over before the kill"] += 1
        os.waitpid(pid, 0)
        other = GitWorkspace(repo, folder / "other")
        settled = other.settle_interrupted_deliveries()
        now = git(repo, "rev-parse", "main")[1]
        ended[settled[0].split(" the ")[0] if settled else "nothing to settle"] += 1
        ended["main is new" if now != old else "main is old"] += 1
        wrong += [f"kill {number}: {fault}" for fault in faults(repo, [])]
        done = other.deliver(*args)
        wrong += [f"kill {number}: then: {fault}" for fault in faults(repo, [])]
        wrong += [f"kill {number}: another tree"] if done.tree != change["tree"] else []
        git(repo, "reset", "-q", "--hard", old)
    return {"kills": count, "files": files, "seconds_of_one": round(length, 2), **ended, "faults": wrong}


# ── a full disk ─────────────────────────────────────────────────────────────────────────────────────────────────────


def full_disks(folder: Path, files: int, step: int) -> dict[str, Any]:
    """A disk of its own that has `step` more bytes free each time, until the delivery fits."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        return {"not_shown": "no disk can be mounted here", "faults": []}
    try:
        repo, args, _ = large(disk, files)
        wrong: list[str] = []
        ended: Counter[str] = Counter()
        points, fits, free = 0, 0, 0
        while fits < 3:
            fits += full_disk(repo, disk, args, free, ended, wrong)
            points, free = points + 1, free + step
        return {"points": points, "step": step, "fits_with": free - 3 * step, **ended, "faults": wrong}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def full_disk(
    repo: Path, disk: Path, args: tuple[str, ...], free: int, ended: Counter[str], wrong: list[str]
) -> bool:
    """One delivery onto a disk with so many bytes free, and another when there is room again."""
    ballast = disk / "ballast"
    there = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, there.f_bavail * there.f_frsize - free))
    fits = True
    try:
        GitWorkspace(repo, disk / "state").deliver(*args)
        ended["delivered"] += 1
    except WorkspaceError as error:
        fits = False
        known = ("KB free that this needs", "cut short", "could not be restored yet", "No space left")
        ended[next((words for words in known if words in str(error)), str(error)[:80])] += 1
    except OSError as error:
        fits = False
        ended["told by no words of ours"] += 1
        wrong.append(f"{free} bytes free: {error}")
    half = git(repo, "-c", "core.checkStat=minimal", "diff-index", "--name-only", "HEAD", "--")[1]
    marker = (repo / ".git" / "steersman-delivery" / "marker.json").exists()
    wrong += [f"{free} bytes free: half written, and no marker: {half[:100]}"] if half and not marker else []
    ballast.unlink()
    other = GitWorkspace(repo, disk / "other")
    other.settle_interrupted_deliveries()
    wrong += [f"{free} bytes free: {fault}" for fault in faults(repo, [])]
    other.deliver(*args)
    wrong += [f"{free} bytes free: then: {fault}" for fault in faults(repo, [])]
    git(repo, "reset", "-q", "--hard", args[2])
    git(repo, "update-index", "-q", "--refresh")
    return fits


def prove(quick: bool) -> dict[str, Any]:
    """The figures; `ok` when nothing was wrong anywhere."""
    with proof_folder("deliveries", disk=True) as folder:
        parts = {
            "concurrent": trials(folder / "trials", range(6 if quick else TRIALS)),
            "kills": kills(folder / "kills", 4 if quick else KILLS, 40 if quick else FILES),
            "full_disk": full_disks(folder, 40 if quick else FILES, STEP * 10 if quick else STEP),
        }
    return {
        "ok": not any(part["faults"] for part in parts.values()) and "not_shown" not in parts["full_disk"],
        **stamp(quick, SEED),
        "parts": parts,
        "not_tried": ["power loss", "file systems without hard links", "reftable"],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = []
    for name, part in result["parts"].items():
        said = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in part.items() if key != "faults")
        lines += [f"   {name.replace('_', ' ')}: {said}; {len(part['faults'])} faults"]
        lines += [f"   FAULT {fault}" for fault in part["faults"][:10]]
    return lines


if __name__ == "__main__":
    sys.exit(main(__name__))
