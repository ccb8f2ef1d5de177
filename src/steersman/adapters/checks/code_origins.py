"""Finds code of the project that a test run loaded from outside the run's tree.

An editable install of another checkout, or a package linked from elsewhere, makes tests judge code that is not the
change's.
**Invariant:** only names and links are looked at; nothing is opened or executed.
"""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from steersman.contracts.commands import RunnerReport

_IMPORT_ROOTS = ("", "src", "lib", "python")  # folders that imports begin from, as a rule
_MAX_SEARCH_DEPTH = 4  # folders below the tree that are searched for a package of a larger repository
_INSTALL_DIRECTORIES = frozenset({"node_modules", "site-packages", "dist-packages", "build", "dist"})


def add_module_origins(report: RunnerReport, workdir: str) -> RunnerReport:
    """The report with the project's modules that came from outside the tree; other places are left out of it."""
    outside = {
        module: origin
        for module, origin in report.modules.items()
        if os.path.isabs(origin) and _is_project_module(module, origin, workdir)
    }
    inside = {
        module: "" if os.path.isabs(origin) or _is_installed_path(origin) else origin
        for module, origin in report.modules.items()
    }
    messages = tuple(f"{name} was loaded from {path}" for name, path in sorted(outside.items()))
    return replace(report, modules=inside, outside=messages)


def find_linked_packages(workdir: str) -> tuple[str, ...]:
    """Packages in the tree's `node_modules` that are links to a place outside the tree."""
    installed = os.path.join(workdir, "node_modules")
    own_paths = (os.path.realpath(workdir), os.path.realpath(installed))
    return tuple(
        f"{os.path.relpath(link, installed)} was loaded from {real}"
        for link in sorted(_find_package_links(installed))
        if not (real := os.path.realpath(link)).startswith(
            tuple(f"{own_path}{os.sep}" for own_path in own_paths)
        )
    )


def _find_package_links(directory: str) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.name.startswith("@"):
                    yield from _find_package_links(entry.path)
    except OSError:
        return


def _is_installed_path(path: str) -> bool:
    return not _INSTALL_DIRECTORIES.isdisjoint(path.split("/"))


def _is_project_module(name: str, path: str, workdir: str) -> bool:
    """Whether the tree has a module of this name; a plain dependency is looked for where imports begin alone."""
    module = name.replace(".", "/")
    if any(_is_python_module(os.path.join(workdir, root, module)) for root in _IMPORT_ROOTS):
        return True
    return not _is_installed_path(path) and any(
        _is_python_module(f"{directory}/{module}") for directory in _walk_search_directories(workdir)
    )


def _is_python_module(path: str) -> bool:
    return os.path.isfile(f"{path}.py") or os.path.isfile(f"{path}/__init__.py")


def _walk_search_directories(workdir: str) -> Iterator[str]:
    """The folders of the tree down to a bound, without what is installed or hidden."""
    for directory, subdirectories, _ in os.walk(workdir):
        yield directory
        is_deepest = os.path.relpath(directory, workdir).count(os.sep) + 1 >= _MAX_SEARCH_DEPTH
        subdirectories[:] = (
            ()
            if is_deepest
            else [n for n in subdirectories if not n.startswith(".") and n not in _INSTALL_DIRECTORIES]
        )
