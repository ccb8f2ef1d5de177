"""Which places a sandbox shows so that programs of PATH can run: each folder of PATH, and what the tables below add.

Beside a `bin` there may be logins (`~/.docker/config.json`, `~/.cargo/credentials.toml`), so nothing is shown for
lying next to one. **Invariant:** what holds the home, a login or steersman's own state is not shown, whoever asks.
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
from steersman.adapters.sandbox_view import (
    Mount,
    below,
    cache_for_box,
    home,
    readable,
    real_path,
    shown_already,
    states,
    too_wide,
)
from steersman.adapters.secrets import login_files


class Toolchain(NamedTuple):
    """A toolchain that is kept below one root."""

    variable: str  # names the root
    root: str  # where it is otherwise, below the home
    shows: tuple[str, ...]  # below the root


class Installation(NamedTuple):
    """A prefix anywhere, known by one of the files in it."""

    marks: tuple[str, ...]  # below the prefix; `*` stands for any name
    shows: tuple[str, ...]  # below the prefix


_PREFIX = ("bin", "lib", "lib64", "libexec", "include", "share")
_SHIMS = ("bin", "shims", "versions", "plugins", "libexec", "lib", "version")
TOOLCHAIN_TABLE: Mapping[str, Toolchain] = {
    "asdf": Toolchain("ASDF_DATA_DIR", ".asdf", ("bin", "shims", "installs", "plugins", "lib", "asdf.sh")),
    "bun": Toolchain("BUN_INSTALL", ".bun", ("bin", "install/global")),
    "cargo": Toolchain("CARGO_HOME", ".cargo", ("bin", "registry", "git")),
    "dart": Toolchain("PUB_CACHE", ".pub-cache", ("bin", "hosted", "global_packages")),
    "dotnet": Toolchain(
        "DOTNET_ROOT", ".dotnet", ("dotnet", "host", "sdk", "sdk-manifests", "shared", "packs", "tools")
    ),
    "elan": Toolchain("ELAN_HOME", ".elan", ("bin", "toolchains", "settings.toml")),
    "fnm": Toolchain("FNM_DIR", ".local/share/fnm", ("node-versions", "aliases")),
    "ghcup": Toolchain("", ".ghcup", ("bin", "ghc", "hls", "share")),
    "go": Toolchain("GOPATH", "go", ("bin", "pkg/mod")),
    "goenv": Toolchain("GOENV_ROOT", ".goenv", _SHIMS),
    "homebrew": Toolchain("HOMEBREW_PREFIX", "../linuxbrew/.linuxbrew", (*_PREFIX, "Cellar", "opt")),
    "jenv": Toolchain("JENV_ROOT", ".jenv", _SHIMS),
    "krew": Toolchain("KREW_ROOT", ".krew", ("bin", "store")),
    "local": Toolchain(
        "", ".local", ("bin", "lib", "pipx", "share/pipx", "share/uv/python", "share/uv/tools")
    ),
    "mise": Toolchain("MISE_DATA_DIR", ".local/share/mise", ("shims", "installs", "plugins")),
    "nodenv": Toolchain("NODENV_ROOT", ".nodenv", _SHIMS),
    "nvm": Toolchain("NVM_DIR", ".nvm", ("versions", "alias", "nvm.sh", "nvm-exec")),
    "pyenv": Toolchain("PYENV_ROOT", ".pyenv", (*_SHIMS, "pyenv.d", "completions")),
    "rbenv": Toolchain("RBENV_ROOT", ".rbenv", (*_SHIMS, "rbenv.d")),
    "rustup": Toolchain("RUSTUP_HOME", ".rustup", ("toolchains", "settings.toml", "update-hashes")),
    "sdkman": Toolchain("SDKMAN_DIR", ".sdkman", ("bin", "candidates", "libexec", "src")),
    "uv": Toolchain("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", ("cpython-*", "pypy-*", "graalpy-*")),
    "volta": Toolchain("VOLTA_HOME", ".volta", ("bin", "tools", "layout.v3", "layout.v4")),
}
TOGETHER = {"cargo": "rustup"}  # the programs of the first are those of the second
INSTALLATIONS: Mapping[str, Installation] = {
    "composer": Installation(("autoload.php",), ("*",)),
    "gcloud": Installation(("platform/bundledpythonunix", "platform/gsutil"), ("bin", "lib", "platform")),
    "gems": Installation(("specifications",), ("bin", "gems", "specifications", "extensions", "build_info")),
    "go": Installation(
        ("src/runtime",), ("bin", "src", "pkg", "lib", "misc", "api", "test", "VERSION", "go.env")
    ),
    "gradle": Installation(("lib/gradle-*.jar",), ("bin", "lib", "init.d")),
    "java": Installation(("release",), (*_PREFIX, "conf", "jmods", "jre", "legal", "release")),
    "maven": Installation(("boot/plexus-*.jar",), ("bin", "boot", "lib", "conf/logging")),
    "node": Installation(("lib/node_modules",), _PREFIX),
    "python": Installation(
        ("pyvenv.cfg", "lib/python*/os.py"),
        (*_PREFIX, "pyvenv.cfg", "condabin", "conda-meta", "ssl", "etc/fonts"),
    ),
    "ruby": Installation(("lib/ruby",), _PREFIX),
    "rust": Installation(("lib/rustlib",), _PREFIX),
}
# Folders that are there to keep secrets, beside the login files that `adapters.secrets` knows.
_KEEPS_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/op", ".password-store"),
    *(
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".local/share/keyrings",
        ".local/share/uv/credentials",
    ),
)
_MOST_FOLDERS = 400  # that links of PATH lead to


def toolchain_mounts(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[Mount]:
    """What to show for the folders of PATH, the program, the toolchain variables and steersman's own interpreter."""
    search = env.get("PATH", os.defpath)
    places = chain(
        _own_needs(),
        _variable_needs(env),
        folder_needs(search.split(os.pathsep)),
        program_needs(argv[0], search) if argv else (),
    )
    secrets = _secret_places()
    around = frozenset(str(parent) for place in secrets for parent in (Path(place), *Path(place).parents))
    shown = [
        path
        for path in dict.fromkeys(places)
        if os.path.exists(path) and not _is_secret(path, secrets, around)
    ]
    real = {path for path in shown if path == real_path(path)}
    # A link inside a place that is shown is there already, and leads to another one.
    for path in shown:
        if not shown_already(path) and (path in real or not below(path, real)):
            yield readable(path)


def folder_needs(folders: Iterable[str]) -> Iterator[str]:
    """Each folder by its name and by its real path, its toolchain, and the programs that links in it lead to."""
    ahead, known = [path for path in folders if os.path.isabs(path)], set[str]()
    while ahead and len(known) < _MOST_FOLDERS:
        folder = ahead.pop(0)
        if folder in known or not os.path.isdir(folder):
            continue
        known.add(folder)
        yield from (folder, *_prefix_needs(folder))
        real = real_path(folder)
        if real != folder:
            ahead.append(real)
        elif not shown_already(real) or below(real, ("/usr/local",)):
            for program in _linked_programs(real):
                yield from _target_needs(program)
                ahead += [os.path.dirname(program)] if _prefix_needs(os.path.dirname(program)) else []


def program_needs(program: str, search: str) -> Iterator[str]:
    """What one program needs beside its folder: itself, and the installation behind its links."""
    import shutil

    path = program if os.path.isabs(program) else shutil.which(program, path=search) or ""
    if not path or not os.path.exists(path):
        return
    real = real_path(path)
    yield from (path, *_target_needs(real))
    yield from folder_needs([os.path.dirname(real)] if _prefix_needs(os.path.dirname(real)) else [])


def _linked_programs(folder: str) -> Iterator[str]:
    """The real paths of the programs outside of a folder to which links in it lead."""
    with os.scandir(folder) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    for real in dict.fromkeys(map(real_path, links)):
        if os.path.dirname(real) != folder and os.path.isfile(real) and os.access(real, os.X_OK):
            yield real


def _target_needs(real: str) -> tuple[str, ...]:
    """What a program at its real path needs: its toolchain, all packages beside a node package, or itself alone."""
    parts = Path(real).parts
    if "node_modules" in parts:
        return (str(Path(*parts[: parts.index("node_modules") + 1])),)
    return _prefix_needs(os.path.dirname(real)) or (real,)


@cache_for_box
def _prefix_needs(folder: str) -> tuple[str, ...]:
    """What the tables show for a folder of programs; nothing where they do not know it."""
    if folder.startswith("/nix/store/"):
        return ("/nix/store",)
    parts = Path(folder).parts
    if parts[:2] == ("/", "opt") and len(parts) > 3:
        return (str(Path(*parts[:3])),)
    return _toolchain_needs(folder) or _installation_needs(os.path.dirname(folder))


def _toolchain_needs(folder: str) -> tuple[str, ...]:
    """Of the toolchains around a folder the innermost: `~/.local/share/mise` is in `~/.local`."""
    roots = _roots(home(), tuple(os.environ.get(each.variable, "") for each in TOOLCHAIN_TABLE.values()))
    around = [(root, name) for name, root in roots.items() if below(folder, (root,))]
    if not around:
        return ()
    _, name = max(around, key=lambda each: len(each[0]))
    names = [each for each in (name, TOGETHER.get(name)) if each in roots]
    return tuple(path for each in names for path in _below_root(roots[each], TOOLCHAIN_TABLE[each].shows))


@lru_cache(maxsize=4)
def _roots(top: str, named: tuple[str, ...]) -> dict[str, str]:
    """Where each toolchain is, by what its variable names or below the home; a root that holds the home is none."""
    roots = {}
    for (name, toolchain), value in zip(TOOLCHAIN_TABLE.items(), named, strict=True):
        root = os.path.realpath(value if os.path.isabs(value) else os.path.join(top or "/", toolchain.root))
        if (top or os.path.isabs(value)) and not _holds_home(root):
            roots[name] = root
    return roots


def _installation_needs(prefix: str) -> tuple[str, ...]:
    """What the installation at a prefix consists of; nothing where it is none, or the home itself."""
    if _holds_home(real_path(prefix)):
        return ()
    kinds = [kind for kind in INSTALLATIONS.values() if _is_marked(prefix, kind.marks)]
    return tuple(path for kind in kinds for path in _below_root(prefix, kind.shows))


def _is_marked(prefix: str, marks: tuple[str, ...]) -> bool:
    return any(
        any(iglob(mark, root_dir=prefix)) if "*" in mark else os.path.lexists(os.path.join(prefix, mark))
        for mark in marks
    )


def _below_root(root: str, shows: Iterable[str]) -> Iterator[str]:
    """The places of a root that are there; `*` stands for any name."""
    return (
        os.path.normpath(os.path.join(root, name)) for show in shows for name in iglob(show, root_dir=root)
    )


def _own_needs() -> Iterator[str]:
    """The interpreter that runs steersman, and steersman: a box starts with them."""
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix)):
        yield from _installation_needs(prefix)
    yield from folder_needs([os.path.dirname(os.path.abspath(sys.executable))])
    yield from (os.path.dirname(os.__file__), os.path.dirname(steersman.__file__))


def _variable_needs(env: Mapping[str, str]) -> Iterator[str]:
    """What the variables of a command show: the toolchain's part of the root they name, or an installation."""
    shows = {
        toolchain.variable: toolchain.shows for toolchain in TOOLCHAIN_TABLE.values() if toolchain.variable
    }
    for name, value in env.items():
        for root in dict.fromkeys((value, real_path(value))) if os.path.isabs(value) else ():
            if name in shows and not _holds_home(root):
                yield from _below_root(root, shows[name])
            elif name.endswith(("_HOME", "ROOT")):
                yield from (*_prefix_needs(os.path.join(root, "bin")), *_installation_needs(root))
            elif name == "PKG_CONFIG_PATH":
                yield from filter(_is_pkgconfig, root.split(os.pathsep))


def _holds_home(path: str) -> bool:
    return path == "/" or (bool(home()) and below(home(), (path,)))


def _is_pkgconfig(path: str) -> bool:
    return os.path.basename(path) == "pkgconfig"


def _secret_places() -> tuple[str, ...]:
    kept = (os.path.join(home(), name) for name in _KEEPS_SECRETS) if home() else ()
    return tuple(map(real_path, (*kept, *login_files(os.environ))))


def _is_secret(path: str, secrets: tuple[str, ...], around: frozenset[str]) -> bool:
    """Whether a place holds a login, lies where logins are kept, or is too wide for a box."""
    real = real_path(path)
    return too_wide(real) or real in around or below(real, (states(), *secrets))
