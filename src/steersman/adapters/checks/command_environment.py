"""The environment that setup steps and checks start with: nothing is inherited but what is listed here.

An activated virtual environment, `PYTHONPATH` or `NODE_PATH` of the person's shell would let a check pass with what
happens to be installed there. The lists are documented in docs/reference/environment.md.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from steersman.adapters.checks.tree_places import SANDBOX_HOME
from steersman.adapters.sandbox import toolchains

COMMAND_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
# Whom to trust: these name files.
COMMAND_CERTIFICATE_VARIABLES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE"),
)
# Toolchains and where they are; they install nothing by themselves.
TOOLCHAIN_VARIABLES = (
    *("JAVA_HOME", "GOROOT", "GOTOOLCHAIN", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "PYENV_VERSION"),
    *("VOLTA_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "NVM_DIR", "SDKMAN_DIR", "UV_PYTHON"),
    *("UV_PYTHON_INSTALL_DIR", "MAVEN_HOME", "GRADLE_HOME", "DOTNET_ROOT", "CC", "CXX", "PKG_CONFIG_PATH"),
)
# Only for setup, which has the network: proxies and package indexes, which may hold credentials.
SETUP_NETWORK_VARIABLES = (
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
    *(
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_EXTRA_INDEX_URL",
        "UV_INDEX",
        "UV_HTTP_TIMEOUT",
        "UV_NATIVE_TLS",
    ),
    *(
        "npm_config_registry",
        "NPM_CONFIG_REGISTRY",
        "NPM_TOKEN",
        "NODE_AUTH_TOKEN",
        "YARN_NPM_REGISTRY_SERVER",
    ),
    *(
        "GOPROXY",
        "GOPRIVATE",
        "GONOPROXY",
        "GONOSUMDB",
        "GOSUMDB",
        "GOINSECURE",
        "CARGO_NET_GIT_FETCH_WITH_CLI",
    ),
    *("POETRY_HTTP_BASIC_USERNAME", "POETRY_HTTP_BASIC_PASSWORD", "CARGO_REGISTRY_TOKEN"),
)
# The project's caches, for a program whose own home is elsewhere.
CACHE_VARIABLES = {
    "GOCACHE": f"{SANDBOX_HOME}/.cache/go-build",
    "GOMODCACHE": f"{SANDBOX_HOME}/go/pkg/mod",
    "CARGO_HOME": f"{SANDBOX_HOME}/.cargo",
    "npm_config_cache": f"{SANDBOX_HOME}/.npm",
    "PIP_CACHE_DIR": f"{SANDBOX_HOME}/.cache/pip",
    "UV_CACHE_DIR": f"{SANDBOX_HOME}/.cache/uv",
    "GRADLE_USER_HOME": f"{SANDBOX_HOME}/.gradle",
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
        env |= {"CARGO_NET_OFFLINE": "true", "UV_OFFLINE": "1", "npm_config_offline": "true"}
    # Byte code in the tree would be part of the next recorded change.
    return {**env, "PYTHONDONTWRITEBYTECODE": "1", **settings}


def clean_search_path(environ: Mapping[str, str]) -> str:
    """PATH without relative entries, which would let the tree stand in for a program, and without an activated venv."""
    active_venv = environ.get("VIRTUAL_ENV", "")
    dropped = (
        {os.path.join(active_venv, "bin"), os.path.join(os.path.realpath(active_venv), "bin")}
        if active_venv
        else set()
    )
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
