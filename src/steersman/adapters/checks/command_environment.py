"""The environment that setup steps and checks start with: nothing is inherited but what is listed here.

An activated virtual environment, `PYTHONPATH` or `NODE_PATH` of the person's shell would let a check pass with what
happens to be installed there. The lists are documented in docs/reference/environment.md.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from steersman.adapters.checks.tree_places import SANDBOX_HOME
from steersman.adapters.sandbox import toolchains
from steersman.judges.ecosystems import ECOSYSTEMS

COMMAND_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
# Certificates to trust: these name files.
COMMAND_CERTIFICATE_VARIABLES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE"),
)
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
TOOLCHAIN_VARIABLES = tuple(name for each in ECOSYSTEMS for name in each.toolchain_variables.split())
# Only for setup, which has the network: proxies and package indexes, which may hold credentials.
SETUP_NETWORK_VARIABLES = (
    *(name for proxy in _PROXY_VARIABLES for name in (proxy, proxy.lower())),
    *(name for each in ECOSYSTEMS for name in each.network_variables.split()),
)
# The project's caches, for a program whose own home is elsewhere.
CACHE_VARIABLES = {
    name: f"{SANDBOX_HOME}/{directory}"
    for each in ECOSYSTEMS
    for name, directory in each.cache_directories.items()
}


class TreeBin(NamedTuple):
    """The `bin` directory of an environment that setup has made in the tree, as a command sees it."""

    path: str
    is_venv: bool


def build_command_environment(
    settings: Mapping[str, str],
    *,
    setup: bool,
    home: str = "",
    online: bool = False,
    tree_bin: TreeBin | None = None,
) -> dict[str, str]:
    """What one setup step or check is started with; `settings` are those of `[env]`, `home` the one in the sandbox."""
    names = (
        *COMMAND_VARIABLES,
        *COMMAND_CERTIFICATE_VARIABLES,
        *TOOLCHAIN_VARIABLES,
        *(SETUP_NETWORK_VARIABLES if setup else ()),
    )
    env = {name: os.environ[name] for name in names if name in os.environ}
    env["PATH"] = clean_search_path(os.environ)
    if tree_bin is not None:
        env["PATH"] = os.pathsep.join((tree_bin.path, env["PATH"]))
        env |= {"VIRTUAL_ENV": os.path.dirname(tree_bin.path)} if tree_bin.is_venv else {}
    if home:
        env |= {"HOME": home, **find_toolchain_homes(), "MAVEN_OPTS": f"-Duser.home={home}"}
    if not setup and not online:
        env |= {name: value for each in ECOSYSTEMS for name, value in each.offline_variables.items()}
    # Byte code in the tree would be part of the next recorded change.
    return {**env, "PYTHONDONTWRITEBYTECODE": "1", **settings}


def clean_search_path(environ: Mapping[str, str]) -> str:
    """PATH without relative entries, which would let the tree stand in for a program, and without an activated venv."""
    venv = environ.get("VIRTUAL_ENV", "")
    dropped = {os.path.join(venv, "bin"), os.path.join(os.path.realpath(venv), "bin")} if venv else set()
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry) and entry not in dropped)


def find_toolchain_homes() -> dict[str, str]:
    """Where the toolchains of the person's home are, unless the environment says so itself: HOME is another one."""
    home = os.path.expanduser("~")
    homes = {
        toolchain.variable: os.path.join(home, toolchain.root)
        for toolchain in toolchains.TOOLCHAIN_TABLE.values()
        if toolchain.variable in TOOLCHAIN_VARIABLES and toolchain.variable not in os.environ
    }
    return {name: path for name, path in homes.items() if os.path.isdir(path)}
