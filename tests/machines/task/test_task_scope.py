"""A change is held to the scope of its plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case
from tests.support.task_replies import sample_scope

from steersman.contracts.workspace import TouchedPath
from steersman.machines.task.documents.scope import (
    find_paths_outside_scope,
    find_planned_otherwise,
    find_untouched_plan_files,
)

CREATED, UPDATED, DELETED = ("", "1"), ("1", "2"), ("1", "")
ALLOWED = {
    "create": {CREATED}, "update": {UPDATED}, "delete": {DELETED}, "create_or_update": {CREATED, UPDATED},
}  # fmt: skip


@for_each_case("change", [CREATED, UPDATED, DELETED])
@for_each_case("intent", ALLOWED)
@for_each_case("name", ["src/a.py", "./src/a.py", "src/", "src/**"])
def test_intents(name, intent, change):
    """A file may be changed in the way that its plan says, also as one of a folder, and in no other."""
    inside = change in ALLOWED[intent]
    assert find_paths_outside_scope(sample_scope((name, intent)), [TouchedPath("src/a.py", *change)]) == (
        () if inside else ("src/a.py",)
    )


@for_each_case("path", ["src/b.py", "src", "src/a.py/x", "lib/src/a.py", "src/a.pyc", "SRC/a.py", "", "."])
def test_what_is_not_named(path):
    """Any other name is outside: nothing is folded, shortened or guessed."""
    files = sample_scope(
        ("src/a.py", "create_or_update"), ("docs/", "create_or_update"), ("lib", "create_or_update")
    )
    assert find_paths_outside_scope(files, [TouchedPath(path, *CREATED)]) == (path,)


def test_the_longer_name_holds():
    """A file that is named itself is not what its folder may be; nor is a folder in a folder."""
    files = sample_scope(("src/", "update"), ("src/old/", "delete"), ("src/old/keep.py", "update"))
    changes = [
        TouchedPath("src/x.py", *UPDATED),
        TouchedPath("src/old/x.py", *DELETED),
        TouchedPath("src/old/keep.py", *DELETED),
        TouchedPath("src/old/y.py", *UPDATED),
    ]
    assert find_paths_outside_scope(files, changes) == ("src/old/keep.py", "src/old/y.py")


def test_a_rename_is_two_changes():
    """What goes has to be one that may be deleted, what comes one that may be created."""
    change = [TouchedPath("a.py", *DELETED), TouchedPath("b.py", *CREATED)]
    assert find_paths_outside_scope(sample_scope(("a.py", "delete"), ("b.py", "create")), change) == ()
    assert find_paths_outside_scope(sample_scope(("a.py", "update"), ("b.py", "update")), change) == (
        "a.py",
        "b.py",
    )


def test_sorted_and_once():
    """The answer does not depend on the order of what was seen."""
    change = [TouchedPath("z", *CREATED), TouchedPath("b", *CREATED), TouchedPath("z", *UPDATED)]
    assert find_paths_outside_scope(sample_scope(("a",)), change) == ("b", "z")


@given(st.lists(st.builds(TouchedPath, st.text(), st.sampled_from(["", "1"]), st.sampled_from(["", "2"]))))
def test_total(touched):
    """Nothing that is told of a tree raises, and nothing that changed is inside a scope that does not name it."""
    assert set(find_paths_outside_scope(sample_scope(("\0", "update")), touched)) >= {
        t.path for t in touched if t.path != "\0"
    }


def test_what_was_planned_and_is_not_there():
    """Files and folders of which nothing is in the change, as the plan names them: whoever planned them should know."""
    planned = sample_scope(
        ("./a.py", "update"), ("build/", "create"), ("src/", "create"), ("b.log", "create")
    )
    assert find_untouched_plan_files(planned, ["a.py", "src/x/y.py", "b.log.old", "buildx"]) == [
        "build/",
        "b.log",
    ]
    assert find_untouched_plan_files(planned, []) == ["./a.py", "build/", "src/", "b.log"]


def test_what_was_planned_otherwise():
    """A file that the plan names for another kind of change is told by both; one that it does not name, or names right, not."""
    files = sample_scope(("a", "update"), ("b", "create"), ("src/", "create_or_update"), ("d", "update"))
    done = [("a", CREATED), ("b", UPDATED), ("src/c", DELETED), ("d", UPDATED), ("e", CREATED)]
    assert find_planned_otherwise(files, [TouchedPath(path, *how) for path, how in done]) == {
        "a": "planned as update, but created",
        "b": "planned as create, but updated",
        "src/c": "planned as create_or_update, but deleted",
    }


@pytest.mark.parametrize("change", [UPDATED, DELETED], ids=["updated", "deleted"])
def test_what_a_task_has_delivered_is_its_own(change):
    """A file that was to be created is there when its task is built again; only then, and no other intent is widened."""
    touched = [TouchedPath("src/a.py", *change)]
    assert find_paths_outside_scope(sample_scope(("src/a.py", "create")), touched) == ("src/a.py",)
    assert find_paths_outside_scope(sample_scope(("src/a.py", "create")), touched, has_delivered=True) == ()
    other = "delete" if change is UPDATED else "update"
    assert find_paths_outside_scope(sample_scope(("src/a.py", other)), touched, has_delivered=True) == (
        "src/a.py",
    )
    assert find_paths_outside_scope(sample_scope(("src/b.py", "create")), touched, has_delivered=True) == (
        "src/a.py",
    )
