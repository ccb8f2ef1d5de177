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
    tops = _tops(paths)
    run_from = {path.rpartition("/")[0] for path in scripts}
    tested = {path.rpartition("/")[0] for path in paths if is_test_file(path)}
    there = {folder for path in paths for folder in _folders(path)}
    found: dict[str, str] = {}
    for path, folder, name in fresh:
        hidden = next((p for p in tops.get(name, ()) if _module(p)[0] != folder), None)
        first = folder in _ROOTS or folder in run_from or folder in tested or folder not in there
        if first and hidden is not None:
            found[path] = f"it stands in for {hidden}"
        elif folder in run_from and hides(name):
            found[path] = "it stands in for a module that a check's script imports"
    return found


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
        folder, name = _module(path)
        if path.endswith(".py") and folder in _ROOTS and not is_test_file(path):
            tops.setdefault(name, []).append(path)
    return tops


def _folders(path: str) -> Iterable[str]:
    while path:
        path = path.rpartition("/")[0]
        yield path
