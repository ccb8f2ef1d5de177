"""The house rules that a machine can check: rooms, openings, sizes, words."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "steersman"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST_FUNCTION = 60
LONGEST_MODULE = 500
NAMES = {"utils", "helpers", "common", "manager", "base", "util", "helper", "managers"}


def _id(path):
    return str(path.relative_to(SOURCE))


@pytest.fixture(scope="module")
def trees():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def test_the_import_contracts_hold():
    """The rooms use only what is below them, the inner ones cannot reach the world, faces import neither adapters nor the engine."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_package_imports_nothing_of_the_repository_around_it(trees):
    """A wheel holds `steersman` alone, so no module of it imports our tests, proofs, benchmarks or documentation."""
    own = {"tests", "proofs", "bench", "docs"}
    imported = {
        f"{_id(path)}: {name}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        for name in _imported_packages(node)
        if name in own
    }
    assert imported == set()


def _imported_packages(node):
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").split(".")[0]}
    return set()


def test_every_module_says_what_it_is(trees):
    """A module opens with a docstring: what this is, and what it never does."""
    silent = [_id(path) for path, tree in trees.items() if not (ast.get_docstring(tree) or "").strip()]
    assert silent == []


def test_an_opening_is_short(trees):
    """The first paragraph of an opening is at most six lines; what is longer belongs into the documentation."""
    long = [
        _id(path)
        for path, tree in trees.items()
        if len((ast.get_docstring(tree) or "").split("\n\n")[0].splitlines()) > 6
    ]
    assert long == []


def test_no_function_is_too_long(trees):
    """What measurably separates good code from grown code is the tail: no function is longer than sixty lines."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{_id(path)}: {node.name} has {_lines(node)} lines"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, functions) and _lines(node) > LONGEST_FUNCTION
    ]
    assert long == []


def _lines(node):
    return node.end_lineno - node.lineno + 1


def test_no_module_is_too_long():
    """A module that one cannot read in one sitting is two modules."""
    lengths = {_id(p): len(p.read_text(encoding="utf-8").splitlines()) for p in MODULES}
    assert {name: n for name, n in lengths.items() if n > LONGEST_MODULE} == {}


def test_modules_are_nouns():
    """No module is called by what it is good for in general."""
    assert [_id(p) for p in MODULES if p.stem in NAMES or p.parent.name in NAMES] == []


def test_every_public_function_of_the_kernel_promises_something(trees):
    """In the kernel every public function and class has a sentence that is a promise."""
    silent = [
        f"{_id(path)}: {node.name}"
        for path, tree in trees.items()
        if path.parent.name == "kernel"
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert silent == []


def test_every_ignore_has_a_reason():
    """Whoever silences a check says why, on the same line."""
    bare = re.compile(r"#\s*(noqa|type:\s*ignore)(?::\s*[A-Z0-9, ]+|\[[a-z, -]+\])?\s*$")
    found = [
        f"{_id(path)}:{n}"
        for path in MODULES
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if bare.search(line) and not _reasoned(path, n)
    ]
    assert found == []


def _reasoned(path, n):
    """A reason may also stand on the line above."""
    above = path.read_text(encoding="utf-8").splitlines()[n - 2].strip() if n > 1 else ""
    return above.startswith("#")


UNCLEAR_WORDS = re.compile(r"\b(?:whoever|anew|mend(?:s|ed|ing)?|is told|is said|of ours)\b", re.IGNORECASE)
NEEDED_WORDS = {
    "machines/task/documents/schemas.py": "is told",  # a sentence in every document of a task: files on disk have it
    "machines/coordinator/review.py": "is said",  # a sentence in every review pack: frozen bytes have it
    "judges/planning/goals.py": "mend",  # a word that people may use in a goal
}


def test_texts_name_their_subject():
    """No docstring, comment, message or prompt hides who acts, or uses a word that a reader has to look up."""
    found = {
        f"{_id(path)}:{n}: {hit[0]}"
        for path in (*MODULES, *SOURCE.rglob("*.md"))
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for hit in UNCLEAR_WORDS.finditer(line)
        if hit[0] != NEEDED_WORDS.get(_id(path))
    }
    assert found == set(), "write who does what: see Language in CONTRIBUTING.md"


WORDS = re.compile(r"\b(?:TODO|FIXME|XXX|HACK|todo:)\b")


def _texts():
    """Every text of the project that is under version control and is not a picture or a store."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.decode()
    for name in listed.split("\0"):
        path = ROOT / name
        if name and path.is_file() and path != Path(__file__).resolve():
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_nothing_is_left_to_do():
    """There are no to-dos in the tree: what is missing is an issue, what is there is finished."""
    assert [
        name
        for name, text in _texts()
        if WORDS.search(text) and not name.startswith(("bench/results", "uv.lock"))
    ] == []


def test_no_text_names_somebodys_machine():
    """No path of a home directory, no package index, no number of an issue: a text is true on every machine."""
    local = re.compile(r"/(?:root|home/\w+|Users/\w+)/|index-url|\bissue #?\d", re.IGNORECASE)
    found = [f"{name}: {hit.group()}" for name, text in _texts() for hit in [local.search(text)] if hit]
    assert found == []
