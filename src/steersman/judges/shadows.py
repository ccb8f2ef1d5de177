"""New modules that would be imported in place of others: of a library, or of the product itself.

Python takes the first module of a name that it finds. pytest puts the folder of each test in front, a script its own
folder, `-m` the folder it is started in. A new file there, called like a module that is found elsewhere, hides it.
**Invariant:** pure; names alone. A file that was there before hides nothing that it did not hide before.
"""

from collections.abc import Iterable, Sequence

from steersman.contracts.workspace import Touched
from steersman.judges.infrastructure import hides, is_test_file

_ROOTS = ("", "src", "lib", "python")


def stand_ins(touched: Sequence[Touched], base: Iterable[str], scripts: Iterable[str]) -> dict[str, str]:
    """The new modules that hide others, each with why; `scripts` are the files that checks run."""
    fresh = [(t.path, *_module(t.path)) for t in touched if not t.old and t.path.endswith(".py")]
    if not fresh:
        return {}
    gone = {t.path for t in touched if not t.new}
    paths = [path for path in base if path not in gone]
    run_from = {path.rpartition("/")[0] for path in scripts}
    tops = _tops(paths)
    hidden = {
        path: (folder, other)
        for path, folder, name in fresh
        for other in tops.get(name, ())
        if _module(other)[0] != folder
    }
    first = {*_ROOTS, *run_from, *_import_roots({folder for folder, _ in hidden.values()}, paths)}
    found = {
        path: "it stands in for a module that a check's script imports"
        for path, folder, name in fresh
        if folder in run_from and hides(name)
    }
    return found | {
        path: f"it stands in for {other}" for path, (folder, other) in hidden.items() if folder in first
    }


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


def _tops(paths: Iterable[str]) -> dict[str, list[str]]:
    """The modules and packages at the places that imports begin from."""
    tops: dict[str, list[str]] = {}
    for path in paths:
        if path.endswith(".py") and path.count("/") <= 2:
            folder, name = _module(path)
            if folder in _ROOTS and not is_test_file(path):
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
