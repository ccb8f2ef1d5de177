"""Several tasks in one repository: each has a folder with a crew of its own, and all of them one store and one branch."""

import fcntl
import json
import subprocess
from typing import Any, NamedTuple

from steersman.adapters.git import deliver_tree
from tests.support.sample_project import RIGHT_CODE, UNIT_CHECK, Project
from tests.support.task_project import TASK_PLAN, coder_step, read_document, task_crew

FILLER_LINES = "".join(f"# {n}\n" for n in range(12))
INITIAL_CODE = RIGHT_CODE + FILLER_LINES + "# the end\n"  # what is there before anybody begins


class ParallelTask(NamedTuple):
    """One task: what its coder leaves in which file, round by round."""

    name: str
    path: str
    texts: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"Errand {self.name}"

    def crew(self) -> dict[str, Any]:
        """Whoever works on it; the last text holds for every further round."""
        files = [{"path": self.path, "intent": "create_or_update", "summary": self.name}]
        plan = {**TASK_PLAN, "title": self.title, "files": files}
        rounds = [coder_step(text, self.path, round=str(n)) for n, text in enumerate(self.texts, 1)]
        coder = [*rounds, coder_step(self.texts[-1], self.path)]
        return task_crew(planner=[{"mode": "proposal", "reply": plan}], coder=coder)


# The first two touch the same file, far apart.
SWAP_TASK = ParallelTask("turn", "calc.py", (INITIAL_CODE.replace("a + b", "b + a"),))
COMMENT_TASK = ParallelTask("say", "calc.py", (INITIAL_CODE.replace("the end", "the very end"),))
FIVE_TASKS = (
    SWAP_TASK,
    COMMENT_TASK,
    *(ParallelTask(name, f"{name}.txt", (f"{name}\n",)) for name in ("three", "four", "five")),
)
# It changes the line that SAY changes; in its second round it knows what that has left.
BOTH_CHANGES = INITIAL_CODE.replace("a + b", "b + a").replace("the end", "both")
CONFLICTING_TASK = ParallelTask("lend", "calc.py", (INITIAL_CODE.replace("the end", "lend"), BOTH_CHANGES))


def create_task_folders(project: Project, errands: tuple[ParallelTask, ...]) -> None:
    """A folder for each, a file that all know, one commit."""
    (project.repo / "calc.py").write_text(INITIAL_CODE)
    for errand in errands:
        place = project.repo / errand.name
        place.mkdir()
        roles = "".join(
            f'[roles.{role}]\nagent = "scripted"\nscript = "crew.yaml"\n'
            for role in ("planner", "coder", "reviewer")
        )
        told = f'version = 1\ndeliver = "merge"\n[checks]\nunit = {json.dumps(UNIT_CHECK)}\n[rules]\nred_base = "fix"\n{roles}'
        (place / "steersman.toml").write_text(told)
        (place / "crew.yaml").write_text(json.dumps(errand.crew()))
    project.git("add", "-A")
    project.git("commit", "-qm", "fleet")


def new_task_words(errand: ParallelTask) -> tuple[str, ...]:
    """What begins it."""
    return ("--project", errand.name, "tasks", "new", errand.title)


def wait_for_exit(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, (out + err).decode()


def tasks_by_title(project: Project) -> dict[str, dict[str, Any]]:
    """Every task by its title."""
    return {task["title"]: task for task in project.call("tasks", "list", "--json").json()}


def find_delivery_commit(project: Project, run: str) -> str:
    """The one commit on main that this task has made."""
    words = project.git("log", "--format=%H", f"--grep=^Steersman-Run: {run}$", "main").split()
    assert len(words) == 1, (run, words)
    return words[0]


def find_delivery_errors(project: Project, run: str) -> list[str]:
    """What is wrong with a task's delivery: it is its patch on its parent, reviewed and tested as that very tree."""
    made = find_delivery_commit(project, run)
    shown = project.git("diff", "--full-index", "--binary", f"{made}^", made)
    patch = (project.repo / ".steersman" / "runs" / run / "code" / "diff.patch").read_text()
    tree = project.git("rev-parse", f"{made}^{{tree}}").strip()
    judged = {name: read_document(project, run, name)["tree"] for name in ("review/code-review.json", "test/report.json", "accept/decision.json")}  # fmt: skip
    wrong = [
        f"{run}: {name} is about {of}, delivered was {tree}" for name, of in judged.items() if of != tree
    ]
    return wrong if _lines(shown) == _lines(patch) else [*wrong, f"{run}: {made} is not its patch"]


def _lines(patch: str) -> list[str]:
    """A patch without the names of its blobs, which are as long as git likes."""
    return [line for line in patch.splitlines() if not line.startswith("index ")]


def count_reverifications(project: Project, run: str) -> int:
    """How often the branch has moved under a task, each time with a review and tests after it."""
    events = [e.get("event") for e in project.entries(run) if e["kind"] == "transition"]
    last = len(events) - 1 - events[::-1].index("base_moved") if "base_moved" in events else 0
    after = [e for e in events[last:] if e in ("review_passes", "tests_complete", "base_unmoved")]
    assert after[:3] == ["review_passes", "tests_complete", "base_unmoved"], events
    return events.count("base_moved") + events.count("base_conflicts")


def find_leftovers(project: Project) -> list[str]:
    """What nobody should have left behind in the person's repository."""
    git = project.repo / ".git"
    left = [str(p) for p in git.rglob("*.lock") if p.name != deliver_tree.DELIVERY_LOCK_NAME]
    left += [str(p) for p in git.rglob("marker.json")]  # a delivery that was cut short
    with (
        git / deliver_tree.DELIVERY_LOCK_NAME
    ).open() as stays:  # for good; what counts is that nobody holds it
        try:
            fcntl.flock(stays, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left.append(f"{stays.name} is held")
    left += project.git("status", "--porcelain", "--untracked-files=no").splitlines()
    left += project.git("worktree", "list").splitlines()[1:]
    return left
