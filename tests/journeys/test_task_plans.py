"""Tasks that a frozen plan bounds: whatever leaves it is refused and shown, and never delivered."""

import json
import shutil
from pathlib import Path

import pytest
from test_tasks import now, typed
from tests.support.sample_project import APPROVAL, RIGHT_CODE, TESTER_REPLY, UNIT_CHECK, WRONG_CODE, Project
from tests.support.task_project import (
    CODE_APPROVED,
    CODER_REPLY,
    PLAN_ACCEPTED,
    TASK_PLAN,
    coder_step,
    configure_tasks,
    delivered_code,
    read_document,
    task_crew,
    write_crew,
)

pytestmark = pytest.mark.usefixtures("project_snapshots")

OTHER = "a note\n"


class Harbour:
    """A plan that was frozen in one project, with the key of whoever froze it, for clones of that project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        (project.repo / "notes.md").write_text(OTHER)
        configure_tasks(project, task_crew())
        assert project.call("memory", "add", "Sums are sums.").code == 0
        self.plan = self.freeze("plan", "--file", "calc.py")
        self.key = project.state / "anchor.pub"
        self.id = json.loads((self.plan / "manifest.json").read_text())["plan_id"]

    def freeze(self, name: str, *scope: str, change=lambda intent: intent) -> Path:
        place, intent = self.project.place / name, self.project.place / f"{name}.json"
        drafted = self.project.call(
            "intent", "new", "Fix add", "--mode", "full_auto", *scope, "--json"
        ).json()
        intent.write_text(json.dumps(change(drafted["intent"])))
        assert self.project.call("intent", "seal", str(intent)).code == 0
        result = self.project.call("plan", str(intent), "--out", str(place))
        assert result.code == 0, result
        return place

    @property
    def given(self) -> tuple[str, ...]:
        return ("--plan", str(self.plan), "--key", str(self.key))


@pytest.fixture(scope="module")
def harbour(projects) -> Harbour:
    return Harbour(projects())


def sail(
    project: Project, script, harbour: Harbour, *more: str, deliver: str = "branch", rules: str = ""
) -> str:
    """A task under the plan, begun."""
    (project.repo / "notes.md").write_text(OTHER)
    configure_tasks(project, script, deliver, rules)
    result = project.call("tasks", "new", "Fix add", *harbour.given, *more)
    assert result.code == 3, result
    return project.only_run()


def events(project: Project, run: str) -> list[str]:
    return [e["event"] for e in project.entries(run) if e["kind"] == "transition"]


def edits(round_: int, *changes: dict[str, str], **more) -> dict:
    return {"mode": "implementation", "round": str(round_), "edit": [*changes], "reply": CODER_REPLY, **more}


ASTRAY = [
    edits(1, {"append": "notes.md", "text": "more\n"}, {"write": "calc.py", "text": RIGHT_CODE}),
    edits(2, {"write": "new.py", "text": "x = 1\n"}, {"write": "calc.py", "text": RIGHT_CODE}),
    edits(3, {"delete": "notes.md"}, {"write": "calc.py", "text": RIGHT_CODE}),
    edits(4, {"delete": "calc.py"}, {"write": "sums.py", "text": RIGHT_CODE}),
    edits(5, {"write": "calc.py", "text": RIGHT_CODE}, wants=["cat calc.py", "curl http://example.org"]),
    edits(6, {"write": "calc.py", "text": RIGHT_CODE}, wants=[" ".join(UNIT_CHECK)]),
    coder_step(),
]


def test_every_way_out_of_the_plan(project: Project, harbour: Harbour):
    """A file edited, created, deleted, renamed away, a command: each is named with the plan and not taken, and the next turn
    begins where that one began. A branch on which others have moved the file leads nowhere else."""
    rules = "[task]\nmax_regressions = 9\n"
    run = sail(project, task_crew(coder=ASTRAY), harbour, "--step", deliver="merge", rules=rules)
    result = typed(project, *["/next"] * 7, "/quit", words=("repl", run))
    for told in (
        *(f"{name} is outside {harbour.id}." for name in ("notes.md", "new.py", "sums.py")),
        f"curl http://example.org is not a command of {harbour.id}.",
    ):
        assert told in result.out, (told, result)
    assert f"cat calc.py is not a command of {harbour.id}." not in result.out
    assert events(project, run).count("bounds_left") == 5
    assert now(project) == ("codegen", "ready")
    assert read_document(project, run, "code/files.json")["outside"] == []
    typed(project, "/next", "/next", "/quit", words=("repl", run))
    assert now(project) == ("test", "ready")
    (project.repo / "lib").mkdir()
    project.git("mv", "calc.py", "lib/calc.py")
    project.git("commit", "-qm", "moved")
    moved = project.call("tasks", "next", run)
    assert "base_conflicts" in events(project, run), moved
    assert now(project) == ("codegen", "ready")
    assert project.git("show", "main:lib/calc.py") == WRONG_CODE


def test_bounds_hold_at_the_cap_through_override_redo_and_without_the_folder(
    project: Project, harbour: Harbour
):
    """Sent back too often it waits; nobody overrides past the plan; what began with it keeps it, whatever becomes of the folder."""
    copy = project.place / "copy"
    shutil.copytree(harbour.plan, copy)
    (project.repo / "notes.md").write_text(OTHER)
    configure_tasks(
        project, task_crew(coder=[coder_step(path="notes.md")]), more="[task]\nmax_regressions = 1\n"
    )
    assert project.call("tasks", "new", "Fix add", "--plan", str(copy), "--key", str(harbour.key)).code == 3
    run = project.only_run()
    shutil.rmtree(copy)
    assert now(project) == ("codegen", "stuck")
    assert f"notes.md is outside {harbour.id}." in project.call("show", run).out
    refused = project.call("tasks", "next", run, "--override", "I want it")
    assert refused.code == 4, refused
    assert "inside the frozen plan" in refused.out + refused.err
    assert project.call("tasks", "redo", run, "codegen").code == 3
    assert now(project) == ("codegen", "stuck")
    assert events(project, run).count("bounds_left") == 4
    write_crew(project, task_crew())
    assert project.call("tasks", "retry", run).code == 3
    assert now(project) == ("accept", "decide")
    assert project.call("tasks", "accept", run).code == 0
    assert project.git("diff", "--name-only", "main", f"steersman/{run}").split() == ["calc.py"]


def test_planners_cannot_widen_the_plan(harbour: Harbour):
    """A file outside is an error of the plan that no reviewer can accept; waived by a person, it still holds the change.
    Where the plan was frozen no key has to be named; what is accepted says what it was held to."""
    project = harbour.project
    wide = {
        **TASK_PLAN,
        "files": [*TASK_PLAN["files"], {"path": "notes.md", "intent": "update", "summary": "say so"}],
    }
    both = edits(1, {"append": "notes.md", "text": "more\n"}, {"write": "calc.py", "text": RIGHT_CODE})
    script = task_crew(planner=[{"mode": "proposal", "reply": wide}], coder=[both, coder_step()])
    configure_tasks(project, script, more="[task]\nmax_regressions = 1\n")
    run = project.call("run", "Fix add", "--as", "task", "--plan", str(harbour.plan), "--json").json()["run"]
    assert now(project) == ("plan_review", "stuck")
    (flaw,) = read_document(project, run, "review/plan-review.json")["flaws"]
    assert (flaw["id"], flaw["message"]) == ("OUTSIDE_PLAN", f"notes.md is outside {harbour.id}.")
    assert project.call("tasks", "next", run, "--override", "build it anyway").code == 3
    assert now(project) == ("codegen", "stuck")
    assert "bounds_left" in events(project, run)
    assert f"held to {harbour.id}" in project.call("tasks", "retry", run).out
    assert project.call("tasks", "accept", run).code == 0
    assert project.git("diff", "--name-only", "main", f"steersman/{run}").split() == ["calc.py"]


# ── before anything starts ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_no_plan_for_this_project_is_refused_before_anything_starts(
    project: Project, harbour: Harbour
):
    """A missing folder, an empty one, a changed byte, a strange signature, another project, checks that it lacks: what, where, and what to do."""
    (project.repo / "notes.md").write_text(OTHER)
    configure_tasks(project, task_crew())
    empty, changed = project.place / "empty", project.place / "changed"
    empty.mkdir()
    shutil.copytree(harbour.plan, changed)
    with (changed / "plan.md").open("a") as file:
        file.write(" ")
    key = str(harbour.key)
    plain = (project.repo / "steersman.toml").read_text()
    for config, words, told in (
        (plain, ("--plan", str(project.place / "none"), "--key", key), ("there is no plan in", "none")),
        (plain, ("--plan", str(empty), "--key", key), ("bounds nothing", "manifest.json")),
        (plain, ("--plan", str(changed), "--key", key), ("bounds nothing", "plan.md")),
        (plain, ("--plan", str(harbour.plan)), ("bounds nothing", "--key")),
        (plain, ("--plan", str(harbour.plan), "--key", str(empty)), (str(empty),)),
        (plain, ("--key", key), ("--plan DIR",)),
        (plain.replace("version = 1", 'version = 1\nproject = "other"'), harbour.given, ("scope.project_id", "is repo", "called other")),
        (plain.replace('"-q"]', '"-v"]'), harbour.given, ("checks.unit", "python3 -m unittest -v", harbour.id, "plan again")),
    ):  # fmt: skip
        (project.repo / "steersman.toml").write_text(config)
        for begin in (("run", "Fix add", "--as", "task"), ("tasks", "new", "Fix add")):
            result = project.call(*begin, *words)
            assert result.code in (2, 5), (words, result)
            for word in told:
                assert word in result.err, (words, word, result)
    assert project.call("run", "Fix add", *harbour.given).code == 2
    assert not (project.place / "state").exists() or project.call("runs", "--json").json() == []


# ── by a crew ───────────────────────────────────────────────────────────────────────────────────────────────────────


CREW = '[task]\ncodegen = "roundtable"\ncode_reviewers = ["judge"]\n[roles.judge]\nagent = "scripted"\nscript = "../crew.yaml"\n'


def gang(**instead):
    """A planner, a roundtable that builds, and somebody else who judges what it has built."""
    return {
        "version": "1",
        "planner": [{"mode": "proposal", "reply": TASK_PLAN}],
        "coder": [
            {"mode": "implementation", "say": "done", "edit": [{"write": "calc.py", "text": RIGHT_CODE}]}
        ],
        "reviewer": [
            {"mode": "proposal", "reply": PLAN_ACCEPTED},
            {"mode": "implementation", "reply": APPROVAL},
        ],
        "tester": [{"mode": "implementation", "reply": TESTER_REPLY}],
        "judge": [{"mode": "implementation", "reply": CODE_APPROVED}],
        **instead,
    }


def test_a_crew_builds_a_task(project: Project, harbour: Harbour):
    """A roundtable goes round inside the plan; its change is reviewed and tested here, and no person is asked what the tests are worth."""
    run = sail(project, gang(), harbour, rules=CREW)
    assert now(project) == ("accept", "decide")
    assert "evidence_questioned" not in events(project, run)
    child = next(e for e in project.entries(run) if e.get("event") == "crew_done")["data"]["run"]
    assert project.call("show", child, "--json").json()["outcome"] == "approved"
    assert project.call("tasks", "accept", run).code == 0
    assert delivered_code(project, run) == RIGHT_CODE
    assert project.git("branch", "--list", f"steersman/{child}") == ""
