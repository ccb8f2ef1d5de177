"""Finds code of the project that a test run loaded from outside the run's tree.

An editable install of another checkout, or a package linked from elsewhere, makes tests judge code that is not the
change's.
**Invariant:** only names and links are looked at; nothing is opened or executed.
"""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from steersman.contracts.commands import Report

_ROOTS = ("", "src", "lib", "python")  # folders that imports begin from, as a rule
_DEEPEST = 4  # folders below the tree that are searched for a package of a larger repository
_LEFT_OUT = frozenset({"node_modules", "site-packages", "dist-packages", "build", "dist"})


def with_origins(report: Report, workdir: str) -> Report:
    """The report with the project's modules that came from outside the tree; other places are left out of it."""
    outside = {n: p for n, p in report.modules.items() if os.path.isabs(p) and _is_of_project(n, p, workdir)}
    inside = {n: "" if os.path.isabs(p) or _is_installed(p) else p for n, p in report.modules.items()}
    told = tuple(f"{name} was loaded from {path}" for name, path in sorted(outside.items()))
    return replace(report, modules=inside, outside=told)


def linked_packages(workdir: str) -> tuple[str, ...]:
    """Packages in the tree's `node_modules` that are links to a place outside the tree."""
    installed = os.path.join(workdir, "node_modules")
    here = (os.path.realpath(workdir), os.path.realpath(installed))
    return tuple(
        f"{os.path.relpath(link, installed)} was loaded from {real}"
        for link in sorted(_links(installed))
        if not (real := os.path.realpath(link)).startswith(tuple(f"{place}{os.sep}" for place in here))
    )


def _links(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.name.startswith("@"):
                    yield from _links(entry.path)
    except OSError:
        return


def _is_installed(path: str) -> bool:
    return not _LEFT_OUT.isdisjoint(path.split("/"))


def _is_of_project(name: str, path: str, workdir: str) -> bool:
    """Whether the tree has a module of this name; a plain dependency is looked for where imports begin alone."""
    module = name.replace(".", "/")
    if any(_is_module(os.path.join(workdir, root, module)) for root in _ROOTS):
        return True
    return not _is_installed(path) and any(_is_module(f"{folder}/{module}") for folder in _folders(workdir))


def _is_module(place: str) -> bool:
    return os.path.isfile(f"{place}.py") or os.path.isfile(f"{place}/__init__.py")


def _folders(workdir: str) -> Iterator[str]:
    """The folders of the tree down to a bound, without what is installed or hidden."""
    for folder, below, _ in os.walk(workdir):
        yield folder
        deep = os.path.relpath(folder, workdir).count(os.sep) + 1 >= _DEEPEST
        below[:] = () if deep else [n for n in below if not n.startswith(".") and n not in _LEFT_OUT]
