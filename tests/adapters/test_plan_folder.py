"""Frozen plans in folders: whole or not there, and nothing of anybody else's is touched."""

import os

import pytest

from steersman.adapters.storage.plan_folder import (
    MAX_PLAN_DIRECTORY_FILES,
    MAX_PLAN_FILE_BYTES,
    DirectoryPlans,
)
from steersman.errors import WorkspaceError

PLAN = {"plan.md": b"# a plan\n", "manifest.json": b"{}"}


@pytest.fixture
def plans(tmp_path):
    return DirectoryPlans(tmp_path / "runs")


def test_a_plan_is_written_and_read_back(plans, tmp_path):
    """The folder holds exactly the files, also below folders that were not there; nothing else is left beside it."""
    place = plans.default_directory("260101-aaaaaa")
    assert plans.find_directory_problem(place) is None
    plans.write(place, PLAN)
    assert plans.read(place) == PLAN
    assert os.listdir(tmp_path / "runs" / "260101-aaaaaa") == ["plan"]


def test_the_same_plan_may_be_written_again_and_another_may_not(plans, tmp_path):
    """After a crash the effect runs again: the same bytes are welcome, others are refused and nothing is changed."""
    place = str(tmp_path / "out")
    plans.write(place, PLAN)
    plans.write(place, PLAN)
    with pytest.raises(WorkspaceError, match="--out"):
        plans.write(place, {**PLAN, "plan.md": b"# another\n"})
    assert plans.read(place) == PLAN
    assert plans.find_directory_problem(place) is not None


def test_an_empty_folder_is_filled_and_a_full_one_left_alone(plans, tmp_path):
    """What somebody else put there stays."""
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.mkdir()
    plans.write(str(empty), PLAN)
    assert plans.read(str(empty)) == PLAN
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    with pytest.raises(WorkspaceError, match="not empty"):
        plans.write(str(full), PLAN)
    assert os.listdir(full) == ["notes.txt"]


@pytest.mark.parametrize("kind", ["file", "link", "below a file", "nowhere"])
def test_a_place_that_is_none_is_told_before_anything_is_planned(plans, tmp_path, kind):
    """A file, a link, a path through a file or an unreadable path: named, with the way out."""
    place = tmp_path / "here"
    match kind:
        case "file":
            place.write_text("x")
        case "link":
            place.symlink_to(tmp_path)
        case "below a file":
            (tmp_path / "f").write_text("x")
            place = tmp_path / "f" / "here"
        case _:
            place = tmp_path / ("n" * 300)
    assert "--out" in plans.find_directory_problem(str(place))
    with pytest.raises(WorkspaceError):
        plans.write(str(place), PLAN)
    assert not list(tmp_path.rglob("*.part"))


def test_no_plan_lies_where_git_keeps_a_repository(plans, tmp_path):
    """A hook is no place for a plan, nor is anything else in `.git`, also through a link."""
    (tmp_path / "work" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "work" / ".git")
    for place in ("work/.git", "work/.git/hooks/plan", "link/plan"):
        assert "git's" in plans.find_directory_problem(str(tmp_path / place))
    assert plans.find_directory_problem(str(tmp_path / "work" / "plan")) is None


def test_what_is_no_plain_file_reads_as_empty(plans, tmp_path):
    """Links and pipes in a plan's folder are not followed and not waited for; their digest will not fit."""
    place = tmp_path / "plan"
    plans.write(str(place), PLAN)
    (tmp_path / "secret").write_text("secret")
    (place / "link.json").symlink_to(tmp_path / "secret")
    os.mkfifo(place / "pipe.json")
    (place / "folder").mkdir()
    assert plans.read(str(place)) == {**PLAN, "link.json": b"", "pipe.json": b"", "folder": b""}
    with open(place / "long.json", "wb") as file:
        file.truncate(MAX_PLAN_FILE_BYTES + 1)
    assert plans.read(str(place))["long.json"] == b""


def test_a_link_to_a_plan_is_not_followed(plans, tmp_path):
    """Whoever names a link is told that it is one, and what to name instead."""
    plans.write(str(tmp_path / "plan"), PLAN)
    (tmp_path / "link").symlink_to(tmp_path / "plan")
    with pytest.raises(WorkspaceError, match="is a link, which is not followed: name the folder"):
        plans.read(str(tmp_path / "link"))


def test_a_folder_with_too_much_in_it_is_no_plan(plans, tmp_path):
    """Reading is bounded; no folder is an error with its name."""
    for n in range(MAX_PLAN_DIRECTORY_FILES + 1):
        (tmp_path / f"{n}.json").write_text("")
    with pytest.raises(WorkspaceError, match="no frozen plan"):
        plans.read(str(tmp_path))
    with pytest.raises(WorkspaceError, match="there is no plan"):
        plans.read(str(tmp_path / "gone"))
