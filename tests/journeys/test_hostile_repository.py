"""Repositories and coders that mean harm, through the command line; `proofs/hostile.py` lays every setting git knows."""

import json
import sys
from pathlib import Path

from tests.support.sample_project import RIGHT_CODE, Project, roundtable_crew, roundtable_story

sys.path.insert(0, str(Path(__file__).parents[2] / "proofs"))
import hostile
from tests.support.hostile_git_config import GIT_HOOKS, PROGRAM_SETTING_FORMS, PROGRAM_SETTINGS


def test_nothing_that_a_repository_names_is_run() -> None:
    """Setup, checks, capture, each form of delivery, revert, fork, abort: none of more than a thousand mines goes off,
    with no box around it (the proof has it with one, too)."""
    commands, _ = hostile.run_in_hostile_repository("off", PROGRAM_SETTINGS)
    assert commands.marks == []
    assert hostile.expected(commands.told) == []
    assert (
        len(commands.laid) > 10 * (len(PROGRAM_SETTINGS) + len(PROGRAM_SETTING_FORMS) + len(GIT_HOOKS)) // 2
    )


def test_what_was_laid_is_alive(tmp_path: Path) -> None:
    """The same settings and hooks run when a person uses git there."""
    repository = hostile.HostileRepository(tmp_path, "off", PROGRAM_SETTINGS)
    hostile.hostile_git_config.run_git_with_config(repository.repo, "status", env={"HOME": str(tmp_path)})
    assert repository.field.marks != []


def test_what_a_coder_leaves_where_nobody_looks_helps_no_check(project: Project) -> None:
    """A file in an ignored place is in no record: the checks do not meet it, and the round fails."""
    cheat = {"mode": "implementation", "say": "done", "edit": [
        {"write": "ignored/calc.py", "text": RIGHT_CODE},
        {"write": "notes.txt", "text": "n\n"},
    ]}  # fmt: skip
    (project.repo / ".gitignore").write_text("ignored/\n")
    (project.repo / "calc.py").write_text(
        "import os\nif os.path.exists('ignored/calc.py'):\n    exec(open('ignored/calc.py').read())\n"
    )
    check = {"unit": ["python3", "-m", "unittest", "-q"]}
    story = roundtable_story(crew=roundtable_crew(coder=[cheat]), checks=check, max_iterations=1)
    result = project.run(story)
    assert result.code == 1, result
    rows = [event for _, event, _ in project.rows(project.only_run())]
    assert "tests_passed" not in rows
    assert "tests_failed" in rows


def test_uncommitted_work_is_named_and_left_alone(project: Project) -> None:
    """It is said that the run starts from the commit, and the work is there afterwards."""
    project.prepare(roundtable_story())
    (project.repo / "calc.py").write_text("mine\n")
    result = project.call("run", "Fix add", "--mode", "implementation")
    commit = project.git("rev-parse", "main")[:12]
    assert result.code == 0, result
    assert (
        f"your checkout has uncommitted changes; the run starts from commit {commit} without them"
        in result.err
    )
    assert (project.repo / "calc.py").read_text() == "mine\n"


def test_a_tree_that_cannot_be_recorded_ends_in_words(project: Project) -> None:
    """A coder that leaves a name that git never keeps: the run ends, and says which file and what to do."""
    nest = {
        "mode": "implementation",
        "say": "done",
        "edit": [{"write": "git~1", "text": "x"}, {"write": "calc.py", "text": RIGHT_CODE}],
    }
    result = project.run(roundtable_story(crew=roundtable_crew(coder=[nest]), max_iterations=1))
    assert result.code == 1
    assert json.loads(result.out.splitlines()[-1])["outcome"] not in {"approved", ""}
