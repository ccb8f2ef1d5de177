"""The contract of a frozen plan with whoever carries it out: what it does not name is outside."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    FACT_PACK,
    TRUSTED_KEY,
    default_answers,
    frozen_files,
    make_command,
    make_context_bundle,
    make_intent,
    make_plan_inputs,
    make_plan_outputs,
    make_registry,
    sign_files,
)

from steersman.contracts.planning.intent import LockScope, ScopeTargets
from steersman.judges.planning.attest import ENVELOPE_FILE
from steersman.judges.planning.freeze import MANIFEST_FILE
from steersman.judges.planning.paths import (
    covers_path,
    describe_region,
    intersect_paths,
    is_in_module,
    is_outside_project,
    normalize_plan_path,
    outside_plan_reason,
    path_spelling_problem,
    reserved_path_reason,
)
from steersman.judges.planning.plan_bounds import PlanBounds, find_outside_bounds, read_plan_bounds


def bounded(made):
    return read_plan_bounds(sign_files(made), TRUSTED_KEY)


def bound(**targets):
    i = make_plan_inputs(make_intent(scope=replace(make_intent().scope, targets=ScopeTargets(**targets))))
    return bounded(frozen_files(make_plan_outputs(i, default_answers(i, ambiguous_scope="whole_project"))))


def test_bounds_are_those_of_the_plan():
    """Files, commands, phases, budgets and digests come from the verified documents."""
    of = bounded(frozen_files())
    assert isinstance(of, PlanBounds)
    assert of.files == ("src/pump.py",)
    assert of.phases == ("analysis", "implementation", "validation")
    assert find_outside_bounds(of, files=["src/pump.py"], argvs=[("pytest", "-q")], commits=5) == ()


def test_a_plan_that_was_changed_bounds_nothing():
    """Bounds are read from files that were verified, or not at all."""
    made = sign_files(frozen_files())
    found = read_plan_bounds(
        {**made, MANIFEST_FILE: made[MANIFEST_FILE].replace(b"plan_", b"plan_0", 1)}, TRUSTED_KEY
    )
    assert not isinstance(found, PlanBounds)
    assert found


@for_each_case(
    ("key", "left_out", "told"),
    [
        (TRUSTED_KEY, (ENVELOPE_FILE,), "missing"),
        (TRUSTED_KEY._replace(public="another"), (), "not the known key"),
        (TRUSTED_KEY._replace(public=""), (), "not the known key"),
        (TRUSTED_KEY._replace(verifies=lambda *_: False), (), "signature"),
    ],
)
def test_a_plan_that_nobody_known_has_signed_bounds_nothing(key, left_out, told):
    """Whoever rewrites all files has to leave the statement out, or sign it with another key."""
    (found,) = read_plan_bounds(
        {n: data for n, data in sign_files(frozen_files()).items() if n not in left_out}, key
    )
    assert found.field == ENVELOPE_FILE
    assert told in found.message


@for_each_case(
    ("asked", "field"),
    [
        ({"files": ["src/other.py"]}, "scope.targets.files"),
        ({"files": ["src/pump.py/../other.py"]}, "scope.targets.files"),
        ({"files": ["/src/pump.py"]}, "scope.targets.files"),
        ({"argvs": [("pytest",)]}, "planned_commands"),
        ({"argvs": [()]}, "planned_commands"),
        ({"argvs": [("pytest", "-q", "--pdb")]}, "planned_commands"),
        ({"commits": 6}, "budgets.max_commits"),
    ],
)
def test_what_the_plan_does_not_name_is_outside(asked, field):
    """Another file, another argv, one commit too many: each is told by its field."""
    assert [p.field for p in find_outside_bounds(bounded(frozen_files()), **asked)] == [field]


@for_each_case(
    ("argv", "inside"),
    [
        (("git", "log", "VERSION", "--", "src/pump.py"), True),
        (("git", "log", "v1.2.0", "--", "src/pump.py"), True),
        (("git", "log", "v1.2.0", "--", "src/other.py"), False),
        (("git", "log", "--output=x", "--", "src/pump.py"), False),
        (("git", "log", " ", "--", "src/pump.py"), False),
        (("git", "log", "v1", "--", "../pump.py"), False),
        (("git", "log", "v1", "src/pump.py"), False),
        (("GIT", "log", "v1", "--", "src/pump.py"), False),
        (("rm", "log", "v1", "--", "src/pump.py"), False),
    ],
)
def test_a_blank_of_the_registry_takes_one_word(argv, inside):
    """A word in capitals stands for one word that is no option; FILE only for a file of the plan."""
    spec = make_command("read_code", "analysis", argv=("git", "log", "VERSION", "--", "FILE"))
    of = bounded(frozen_files(make_plan_outputs(make_plan_inputs(known=make_registry(spec)))))
    assert (find_outside_bounds(of, argvs=[argv]) == ()) == inside


@pytest.mark.parametrize("argv", [("make", "FILE"), ("make", "src/pump.py")])
def test_a_word_in_capitals_of_a_fact_is_only_itself(argv):
    """What a project's files name is taken word for word: no repository opens a blank, and no program is one."""
    facts = replace(FACT_PACK, facts=(replace(FACT_PACK.facts[1], argv=("make", "FILE")),))
    of = bounded(frozen_files(make_plan_outputs(make_plan_inputs(context=make_context_bundle(facts=facts)))))
    assert (find_outside_bounds(of, argvs=[argv]) == ()) == (argv == ("make", "FILE"))
    first = make_command("read_code", "analysis", argv=("MAKE", "it"))
    odd = bounded(frozen_files(make_plan_outputs(make_plan_inputs(known=make_registry(first)))))
    assert find_outside_bounds(odd, argvs=[("sh", "it")])


def test_a_directory_covers_what_is_in_it_and_nothing_beside_it():
    """A target with a slash, or two stars, is everything below."""
    of = bound(files=("src/", "docs/**", "README.md"))
    assert find_outside_bounds(of, files=["src/a.py", "src/b/c.py", "docs/x.md", "README.md"]) == ()
    assert len(find_outside_bounds(of, files=["srcs/a.py", "README.md.bak", "lib/src/a.py"])) == 3


def test_a_module_covers_its_files_by_name():
    """A dotted or slashed module is found on the way to a file."""
    of = bound(modules=("boat.pump", "hull"))
    assert find_outside_bounds(of, files=["src/boat/pump.py", "boat/pump/valve.py", "hull.rs"]) == ()
    assert len(find_outside_bounds(of, files=["src/boat/pumps.py", "boat/x/pump.py"])) == 2


def test_without_named_files_only_their_number_is_bounded():
    """A plan about the whole project still has its budget, and nothing outside the project is inside."""
    of = bound()
    assert of.anywhere
    assert find_outside_bounds(of, files=[f"f{n}" for n in range(10)]) == ()
    assert [p.field for p in find_outside_bounds(of, files=[f"f{n}" for n in range(11)])] == [
        "budgets.max_files"
    ]
    assert [p.field for p in find_outside_bounds(of, files=["../x"])] == ["scope.targets.files"]


KEPT = {
    "git's": [
        ".git", ".git/hooks/pre-commit", "./.GIT/config", "sub/.Git/x", ".git./x", ".git /x", " .git/x", "sub\\.git\\x",
        "a/.git::$INDEX_ALLOCATION/x", "GIT~1/config", ".g\u200cit/config", ".ｇit/config",
    ],
    "steersman's": [
        ".steersman", ".steersman/registry/rules/x.yaml", "sub/.Steersman/x", "steersman.toml", "./Steersman.TOML",
        "steersman.db",
    ],
}  # fmt: skip


@for_each_case(("whose", "name"), [(whose, name) for whose, names in KEPT.items() for name in names])
def test_what_is_gits_or_steersmans_is_in_no_plan(whose, name):
    """A plan about the whole project does not reach what watches over it, however it is spelt and whatever names it."""
    assert whose in reserved_path_reason(name)
    assert outside_plan_reason(name) == reserved_path_reason(name)
    for of in (bound(), bound(files=(".", name)), bound(modules=("git", "steersman"))):
        (told,) = find_outside_bounds(of, files=[name])
        assert told.field == "scope.targets.files"
        assert whose in told.message


@for_each_case(
    "name", [".github/x", ".gitignore", "docs/steersman.toml", "git/x", "steersman/a.py", "a.git/b"]
)
def test_names_that_only_look_like_it(name):
    """What belongs to nobody else is the repository's."""
    assert outside_plan_reason(name) == ""


@pytest.mark.parametrize("targets", [{}, {"modules": ("pump",)}])
def test_nothing_of_a_plan_leaves_its_root(targets):
    """`scope.repo_root` bounds a plan about the whole project, and one about modules, which are names without a place."""
    scope = replace(make_intent().scope, repo_root="boat/", targets=ScopeTargets(**targets))
    i = make_plan_inputs(make_intent(scope=scope))
    of = bounded(frozen_files(make_plan_outputs(i, default_answers(i, ambiguous_scope="whole_project"))))
    assert find_outside_bounds(of, files=["boat/pump.py"]) == ()
    (told,) = find_outside_bounds(of, files=["pump.py"])
    assert told.message.endswith("it lies outside of boat/.")


@pytest.mark.parametrize(
    ("targets", "inside"),
    [
        ({}, ["src/pump.py", "docs/pump.md"]),
        ({"modules": ("pump",)}, ["src/pump.py", "docs/pump.md"]),
        ({"files": ("src/",)}, ["src/pump.py"]),
    ],
)
def test_a_lock_on_files_bounds_the_plan(targets, inside):
    """What a plan may change is what it names and what it locks; a lock of another mode bounds nothing."""
    scope, rules = replace(make_intent().scope, targets=ScopeTargets(**targets)), make_intent().constraints
    for lock, out in (
        (LockScope(mode="files", paths=("src/", "docs")), ["pump.py"]),
        (LockScope(mode="task"), []),
    ):
        i = make_plan_inputs(make_intent(scope=scope, constraints=replace(rules, lock_scope=lock)))
        made = frozen_files(make_plan_outputs(i, default_answers(i, ambiguous_scope="whole_project")))
        of = bounded(made)
        assert find_outside_bounds(of, files=inside) == ()
        found = find_outside_bounds(of, files=["pump.py"])
        assert bool(found) == (bool(out) or "files" in targets)
        assert msgspec.json.decode(made["review_pack.json"])["change_impact"]["lock"]["mode"] == lock.mode


def test_what_places_have_in_common():
    """The narrower of each two that meet; nothing is not everything."""
    assert intersect_paths("src", ["src/a.py", ".", "docs"]) == ("src", "src/a.py")
    assert intersect_paths(".", ["docs/", "src"]) == ("docs/", "src")
    assert intersect_paths("src", ["docs"]) == ()
    assert (describe_region(("./",)), describe_region(("src", "docs/")), describe_region(())) == (
        "the project", "src, docs/", "nothing",
    )  # fmt: skip
    assert outside_plan_reason("a.py", ()) == "lies outside of nothing"


@for_each_case(
    "name", ["/a", "~/a", "\\a", "C:\\a", "a/../b", "..", "", " ", "a\0b", "a\\..\\b", " ../a", " /a"]
)
def test_names_that_lead_out_of_the_project(name):
    """Absolute, home, drive, parent and empty names are never inside."""
    assert is_outside_project(name)


@for_each_case("name", ["a", "a/b", ".github/x", "a..b/c", "a b"])
def test_names_that_stay_inside(name):
    """Plain relative names are."""
    assert not is_outside_project(name)


def test_the_top_of_a_project_covers_all_and_no_module_covers_nothing():
    """`.` and `./` are the whole project; an empty module is no module."""
    assert covers_path(".", "a/b")
    assert covers_path("./", "a")
    assert covers_path("./src", "src/a")
    assert not is_in_module(" . ", "a.py")


@for_each_case(
    ("name", "written"),
    [
        ("././src", "src"), ("src//chandler", "src/chandler"), ("src/./chandler", "src/chandler"), ("src/.", "src/"),
        ("src//", "src/"), (" src", "src"), ("src\\a.py", "src/a.py"), ("./", "."), ("./a.py", "a.py"),
    ],
)  # fmt: skip
def test_a_name_is_written_in_one_way(name, written):
    """Another way to write a name would pass by every rule about it; the one way is told, and stands."""
    assert normalize_plan_path(name) == written
    assert path_spelling_problem(name) == f"is another way to write {written}: write it so"
    assert path_spelling_problem(written) == ""
