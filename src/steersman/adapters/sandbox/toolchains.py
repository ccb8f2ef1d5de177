"""Which places a sandbox shows so that programs of PATH can run: each folder of PATH, and what the tables below add.

Beside a `bin` there may be logins (`~/.docker/config.json`, `~/.cargo/credentials.toml`), so nothing is shown for
lying next to one. **Invariant:** what holds the home, a login or steersman's own state is never shown.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from glob import iglob
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import steersman
from steersman.adapters.config.visible_secrets import list_login_files
from steersman.adapters.sandbox.machine_view import (
    SandboxMount,
    cache_per_sandbox,
    find_home_directory,
    is_path_below,
    is_system_path,
    is_too_wide_mount,
    read_only_mount,
    real_state_root,
    resolve_real_path,
)


class Toolchain(NamedTuple):
    """A toolchain that is kept below one root."""

    variable: str  # names the root
    root: str  # where it is otherwise, below the home
    shows: str  # names below the root


class ToolInstallation(NamedTuple):
    """A prefix anywhere, known by one of the files in it."""

    marks: str  # names below the prefix; `*` stands for any name
    shows: str  # names below the prefix


_PREFIX = "bin lib lib64 libexec include share"
_SHIMS = "bin shims versions plugins libexec lib version"
TOOLCHAIN_TABLE: Mapping[str, Toolchain] = {
    "asdf": Toolchain("ASDF_DATA_DIR", ".asdf", "bin shims installs plugins lib asdf.sh"),
    "bun": Toolchain("BUN_INSTALL", ".bun", "bin install/global"),
    "cargo": Toolchain("CARGO_HOME", ".cargo", "bin registry git"),
    "dart": Toolchain("PUB_CACHE", ".pub-cache", "bin hosted global_packages"),
    "dotnet": Toolchain("DOTNET_ROOT", ".dotnet", "dotnet host sdk sdk-manifests shared packs tools"),
    "elan": Toolchain("ELAN_HOME", ".elan", "bin toolchains settings.toml"),
    "fnm": Toolchain("FNM_DIR", ".local/share/fnm", "node-versions aliases"),
    "ghcup": Toolchain("", ".ghcup", "bin ghc hls share"),
    "go": Toolchain("GOPATH", "go", "bin pkg/mod"),
    "goenv": Toolchain("GOENV_ROOT", ".goenv", _SHIMS),
    "homebrew": Toolchain("HOMEBREW_PREFIX", "../linuxbrew/.linuxbrew", f"{_PREFIX} Cellar opt"),
    "jenv": Toolchain("JENV_ROOT", ".jenv", _SHIMS),
    "krew": Toolchain("KREW_ROOT", ".krew", "bin store"),
    "local": Toolchain("", ".local", "bin lib pipx share/pipx share/uv/python share/uv/tools"),
    "mise": Toolchain("MISE_DATA_DIR", ".local/share/mise", "shims installs plugins"),
    "nodenv": Toolchain("NODENV_ROOT", ".nodenv", _SHIMS),
    "nvm": Toolchain("NVM_DIR", ".nvm", "versions alias nvm.sh nvm-exec"),
    "pyenv": Toolchain("PYENV_ROOT", ".pyenv", f"{_SHIMS} pyenv.d completions"),
    "rbenv": Toolchain("RBENV_ROOT", ".rbenv", f"{_SHIMS} rbenv.d"),
    "rustup": Toolchain("RUSTUP_HOME", ".rustup", "toolchains settings.toml update-hashes"),
    "sdkman": Toolchain("SDKMAN_DIR", ".sdkman", "bin candidates libexec src"),
    "uv": Toolchain("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", "cpython-* pypy-* graalpy-*"),
    "volta": Toolchain("VOLTA_HOME", ".volta", "bin tools layout.v3 layout.v4"),
}  # fmt: skip
COMPANION_TOOLCHAINS = {"cargo": "rustup"}  # the programs of the first are those of the second
INSTALLATION_TABLE: Mapping[str, ToolInstallation] = {
    "composer": ToolInstallation("autoload.php", "*"),
    "gcloud": ToolInstallation("platform/bundledpythonunix platform/gsutil", "bin lib platform"),
    "gems": ToolInstallation("specifications", "bin gems specifications extensions build_info"),
    "go": ToolInstallation("src/runtime", "bin src pkg lib misc api test VERSION go.env"),
    "gradle": ToolInstallation("lib/gradle-*.jar", "bin lib init.d"),
    "java": ToolInstallation("release", f"{_PREFIX} conf jmods jre legal release"),
    "maven": ToolInstallation("boot/plexus-*.jar", "bin boot lib conf/logging"),
    "node": ToolInstallation("lib/node_modules", _PREFIX),
    "python": ToolInstallation("pyvenv.cfg lib/python*/os.py", f"{_PREFIX} pyvenv.cfg condabin conda-meta ssl etc/fonts"),
    "ruby": ToolInstallation("lib/ruby", _PREFIX),
    "rust": ToolInstallation("lib/rustlib", _PREFIX),
}  # fmt: skip
# Folders that are there to keep secrets, beside the login files that `adapters.secrets` knows.
_SECRET_LOCATIONS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/op", ".password-store",
    ".m2/settings.xml", ".gradle/gradle.properties", ".local/share/keyrings", ".local/share/uv/credentials",
)  # fmt: skip
_MAX_LINKED_DIRECTORIES = 400  # that links of PATH lead to


def toolchain_mounts(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[SandboxMount]:
    """What to show for the folders of PATH, the program, the toolchain variables and steersman's own interpreter."""
    search = env.get("PATH", os.defpath)
    places = chain(
        _own_needs(),
        _variable_needs(env),
        directory_needs(search.split(os.pathsep)),
        program_needs(argv[0], search) if argv else (),
    )
    secrets = _list_secret_places()
    parents = frozenset(str(parent) for place in secrets for parent in (Path(place), *Path(place).parents))
    shown = [
        path
        for path in dict.fromkeys(places)
        if os.path.exists(path) and not _is_secret_path(path, secrets, parents)
    ]
    real = {path for path in shown if path == resolve_real_path(path)}
    # A link inside a place that is shown is there already, and leads to another one.
    for path in shown:
        if not is_system_path(path) and (path in real or not is_path_below(path, real)):
            yield read_only_mount(path)


def directory_needs(directories: Iterable[str]) -> Iterator[str]:
    """Each folder by its name and by its real path, its toolchain, and the programs that links in it lead to."""
    pending, visited = [path for path in directories if os.path.isabs(path)], set[str]()
    while pending and len(visited) < _MAX_LINKED_DIRECTORIES:
        directory = pending.pop(0)
        if directory in visited or not os.path.isdir(directory):
            continue
        visited.add(directory)
        yield from (directory, *_prefix_needs(directory))
        real = resolve_real_path(directory)
        if real != directory:
            pending.append(real)
        elif not is_system_path(real) or is_path_below(real, ("/usr/local",)):
            for program in _find_linked_programs(real):
                yield from _target_needs(program)
                pending += [os.path.dirname(program)] if _prefix_needs(os.path.dirname(program)) else []


def program_needs(program: str, search: str) -> Iterator[str]:
    """What one program needs beside its folder: itself, and the installation behind its links."""
    import shutil

    path = program if os.path.isabs(program) else shutil.which(program, path=search) or ""
    if not path or not os.path.exists(path):
        return
    real = resolve_real_path(path)
    yield from (path, *_target_needs(real))
    yield from directory_needs([os.path.dirname(real)] if _prefix_needs(os.path.dirname(real)) else [])


def _find_linked_programs(directory: str) -> Iterator[str]:
    """The real paths of the programs outside of a folder to which links in it lead."""
    with os.scandir(directory) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    for real in dict.fromkeys(map(resolve_real_path, links)):
        if os.path.dirname(real) != directory and os.path.isfile(real) and os.access(real, os.X_OK):
            yield real


def _target_needs(real: str) -> tuple[str, ...]:
    """What a program at its real path needs: its toolchain, all packages beside a node package, or itself alone."""
    parts = Path(real).parts
    if "node_modules" in parts:
        return (str(Path(*parts[: parts.index("node_modules") + 1])),)
    return _prefix_needs(os.path.dirname(real)) or (real,)


@cache_per_sandbox
def _prefix_needs(directory: str) -> tuple[str, ...]:
    """What the tables show for a folder of programs; nothing where they do not know it."""
    if directory.startswith("/nix/store/"):
        return ("/nix/store",)
    parts = Path(directory).parts
    if parts[:2] == ("/", "opt") and len(parts) > 3:
        return (str(Path(*parts[:3])),)
    return _toolchain_needs(directory) or _installation_needs(os.path.dirname(directory))


def _toolchain_needs(directory: str) -> tuple[str, ...]:
    """Of the toolchains around a folder the innermost: `~/.local/share/mise` is in `~/.local`."""
    roots = _find_toolchain_roots(
        find_home_directory(),
        tuple(os.environ.get(candidate.variable, "") for candidate in TOOLCHAIN_TABLE.values()),
    )
    enclosing = [(root, name) for name, root in roots.items() if is_path_below(directory, (root,))]
    if not enclosing:
        return ()
    _, name = max(enclosing, key=lambda candidate: len(candidate[0]))
    names = [candidate for candidate in (name, COMPANION_TOOLCHAINS.get(name)) if candidate in roots]
    return tuple(
        path
        for candidate in names
        for path in _expand_below_root(roots[candidate], TOOLCHAIN_TABLE[candidate].shows)
    )


@lru_cache(maxsize=4)
def _find_toolchain_roots(home_path: str, variable_values: tuple[str, ...]) -> dict[str, str]:
    """Where each toolchain is, by what its variable names or below the home; a root that holds the home is none."""
    roots = {}
    for (name, toolchain), value in zip(TOOLCHAIN_TABLE.items(), variable_values, strict=True):
        root = os.path.realpath(
            value if os.path.isabs(value) else os.path.join(home_path or "/", toolchain.root)
        )
        if (home_path or os.path.isabs(value)) and not _is_above_home(root):
            roots[name] = root
    return roots


def _installation_needs(prefix: str) -> tuple[str, ...]:
    """What the installation at a prefix consists of; nothing where it is none, or the home itself."""
    if _is_above_home(resolve_real_path(prefix)):
        return ()
    kinds = [kind for kind in INSTALLATION_TABLE.values() if _has_installation_mark(prefix, kind.marks)]
    return tuple(path for kind in kinds for path in _expand_below_root(prefix, kind.shows))


def _has_installation_mark(prefix: str, marks: str) -> bool:
    return any(
        any(iglob(mark, root_dir=prefix)) if "*" in mark else os.path.lexists(os.path.join(prefix, mark))
        for mark in marks.split()
    )


def _expand_below_root(root: str, shows: str) -> Iterator[str]:
    """The places of a root that are there; `*` stands for any name."""
    return (
        os.path.normpath(os.path.join(root, name))
        for show in shows.split()
        for name in iglob(show, root_dir=root)
    )


def _own_needs() -> Iterator[str]:
    """The interpreter that runs steersman, and steersman: a sandbox starts with them."""
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix)):
        yield from _installation_needs(prefix)
    yield from directory_needs([os.path.dirname(os.path.abspath(sys.executable))])
    yield from (os.path.dirname(os.__file__), os.path.dirname(steersman.__file__))


def _variable_needs(env: Mapping[str, str]) -> Iterator[str]:
    """What the variables of a command show: the toolchain's part of the root they name, or an installation."""
    shows = {t.variable: t.shows for t in TOOLCHAIN_TABLE.values() if t.variable}
    for name, value in env.items():
        for root in dict.fromkeys((value, resolve_real_path(value))) if os.path.isabs(value) else ():
            if name in shows and not _is_above_home(root):
                yield from _expand_below_root(root, shows[name])
            elif name.endswith(("_HOME", "ROOT")):
                yield from (*_prefix_needs(os.path.join(root, "bin")), *_installation_needs(root))
            elif name == "PKG_CONFIG_PATH":
                yield from filter(_is_pkgconfig_directory, root.split(os.pathsep))


def _is_above_home(path: str) -> bool:
    return path == "/" or (bool(find_home_directory()) and is_path_below(find_home_directory(), (path,)))


def _is_pkgconfig_directory(path: str) -> bool:
    return os.path.basename(path) == "pkgconfig"


def _list_secret_places() -> tuple[str, ...]:
    locations = (
        (os.path.join(find_home_directory(), name) for name in _SECRET_LOCATIONS)
        if find_home_directory()
        else ()
    )
    return tuple(map(resolve_real_path, (*locations, *list_login_files(os.environ))))


def _is_secret_path(path: str, secrets: tuple[str, ...], parents: frozenset[str]) -> bool:
    """Whether a place holds a login, lies where logins are kept, or is too wide for a sandbox."""
    real = resolve_real_path(path)
    return is_too_wide_mount(real) or real in parents or is_path_below(real, (real_state_root(), *secrets))
