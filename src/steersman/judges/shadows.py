"""New modules that would be imported in place of others: of a library, or of the product itself.

Python takes the first module of a name that it finds. pytest puts the folder of each test in front, a script its own
folder, `-m` the folder it is started in. A new file there, called like a module that is found elsewhere, hides it. On
the JVM the classes of tests come before those of the product.
**Invariant:** pure; names alone. A file that was there before hides nothing that it did not hide before.
"""

from collections.abc import Iterable, Sequence

from steersman.contracts.workspace import Touched
from steersman.judges.infrastructure import hides, is_named_as_test, is_test_file

_ROOTS = ("", "src", "lib", "python")


def stand_ins(
    touched: Sequence[Touched], base: Iterable[str], scripts: Iterable[str], roots: Sequence[str] = ()
) -> dict[str, str]:
    """The new modules that hide others, each with why; `scripts` are the files that checks run, `roots` the folders
    that the project lets imports begin from."""
    twins = _twins([t.path for t in touched if not t.old], base)
    fresh = [(t.path, *_module(t.path)) for t in touched if not t.old and t.path.endswith(".py")]
    if not fresh:
        return twins
    gone = {t.path for t in touched if not t.new}
    paths = [path for path in base if path not in gone]
    run_from = {path.rpartition("/")[0] for path in scripts}
    tops = _tops(paths, {name for _, _, name in fresh})
    hidden = {
        path: (folder, other)
        for path, folder, name in fresh
        for other in tops.get(name, ())
        if (root := _module(other)[0]) != folder and (root in (*_ROOTS, *roots) or _is_above(root, folder))
    }
    first = {*_ROOTS, *roots, *run_from, *_import_roots({folder for folder, _ in hidden.values()}, paths)}
    found = {
        path: "it stands in for a module that a check's script imports"
        for path, folder, name in fresh
        if folder in run_from and hides(name)
    }
    beside = {folder for path, folder, name in fresh if hides(name) and path not in found}
    there = {*paths, *(t.path for t in touched if t.new)}
    found |= {
        path: "it stands in for a module that the test run imports"
        for path, folder, name in fresh
        if hides(name) and folder in _holding(beside, there)
    }
    return (
        twins
        | found
        | {path: f"it stands in for {other}" for path, (folder, other) in hidden.items() if folder in first}
    )


def _twins(fresh: Sequence[str], base: Iterable[str]) -> dict[str, str]:
    """`src/test/java/a/B.java` beside `src/main/java/a/B.java`, in whichever languages."""
    tests = {path: _class(path, "src/test/") for path in fresh if "src/test/" in path}
    classes = {_class(path, "src/main/"): path for path in base if "src/main/" in path} if tests else {}
    return {path: f"it stands in for {classes[c]}" for path, c in tests.items() if c in classes}


def _class(path: str, within: str) -> tuple[str, str]:
    """The module of a build, and the full name of a class in it."""
    build, _, rest = path.partition(within)
    return build, rest.partition("/")[2].rpartition(".")[0]


def _is_above(root: str, folder: str) -> bool:
    """Whether the one holds the other, itself or as its `src` or `lib`."""
    above, _, last = root.rpartition("/")
    return bool(root) and (
        folder.startswith(f"{root}/") or (last in _ROOTS and folder.startswith(f"{above}/"))
    )


def _holding(folders: set[str], paths: Iterable[str]) -> set[str]:
    """Those of these folders that hold tests and are no packages: from there their tests import first."""
    if not folders:
        return set()
    near = [(f, path) for path in paths if (f := path.rpartition("/")[0]) in folders]
    packages = {f for f, path in near if path.endswith("/__init__.py")}
    return {f for f, path in near if f not in packages and is_named_as_test(path)}


def _import_roots(folders: set[str], paths: Sequence[str]) -> set[str]:
    """Those of these folders that hold tests, or that nothing was in before."""
    if not folders:
        return set()
    near = [(f, path) for path in paths if (f := path.rpartition("/")[0]) in folders]
    there = _folders({path.rpartition("/")[0] for path in paths})
    return {f for f, path in near if is_test_file(path)} | {f for f in folders if f not in there}


def _module(path: str) -> tuple[str, str]:
    """The folder from which a file is imported, and its name there."""
    folder, _, name = path.rpartition("/")
    if name == "__init__.py":
        above, _, package = folder.rpartition("/")
        return above, package
    return folder, name.removesuffix(".py")


def _tops(paths: Iterable[str], names: set[str]) -> dict[str, list[str]]:
    """The product's modules and packages of these names."""
    tops: dict[str, list[str]] = {}
    for path in paths:
        if path.endswith(".py"):
            _, name = _module(path)
            if name in names and not is_test_file(path):
                tops.setdefault(name, []).append(path)
    return tops


def _folders(of: set[str]) -> set[str]:
    """These folders and those that they lie in."""
    found: set[str] = set()
    for folder in of:
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]  # noqa: PLW2901  it climbs
    return found
