"""Keeps which settings of a repository a person trusts, and loads the settings with the lines that need trust.

**Invariant:** no link is followed and nothing is executed; settings that cannot be read are not trusted.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.adapters.config.state_paths import user_settings_path
from steersman.adapters.config.toml_file import (
    convert_amounts,
    find_amount_problems,
    find_config,
    load_config,
    parse_exact_toml,
    read_settings_file,
)
from steersman.adapters.git.run_trees import INCLUDE_FILE_NAME, read_include_patterns
from steersman.adapters.storage.durable_files import replace_file
from steersman.contracts.config import AnyConfig, Config
from steersman.contracts.limits import LimitFile, LoadedConfig, SettingsLimits, TrustedSettings
from steersman.engine.project_files import prompt_paths
from steersman.errors import StoreFull, UserError, WorkspaceError
from steersman.judges.config.limits import (
    TRUST_DIGEST_LENGTH,
    complete_own_limits,
    find_limit_excesses,
    list_powerful_lines,
    tighten_config,
)
from steersman.judges.text import printable_line
from steersman.ports.workspace import Workspace

TRUST_FILE_NAME = "trust.json"
POWERFUL_DIRECTORIES = ("machines", "registry")  # below .steersman/; each file in them is powerful
MAX_POWERFUL_FILES = 1000


class TrustFile:
    """What is trusted in one project, by the path of each settings file in it."""

    def __init__(self, state: Path) -> None:
        self._path = state / TRUST_FILE_NAME

    def read(self, name: str) -> TrustedSettings | None:
        """What was trusted for a settings file; None where nothing was, or the record cannot be read."""
        return self._read_records().get(name)

    def record(self, name: str, trusted: TrustedSettings) -> None:
        """Trusts these lines from now on, durable when this returns."""
        self._write_records({**self._read_records(), name: trusted})

    def revoke(self, name: str) -> bool:
        """Forgets what was trusted; whether anything was."""
        records = self._read_records()
        known = records.pop(name, None)
        if known is not None:
            self._write_records(records)
        return known is not None

    def _read_records(self) -> dict[str, TrustedSettings]:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, TrustedSettings])
        return {}

    def _write_records(self, records: dict[str, TrustedSettings]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._path, msgspec.json.encode(records))
        except OSError as error:
            raise StoreFull(f"cannot write {self._path}: {error.strerror}; make its disk writable") from None


def load_config_with_powerful_lines(
    start: Path, top: Path, roles: Collection[str], workspace: Callable[[Config], Workspace]
) -> LoadedConfig:
    """The settings for a directory as they are written, scripts from the top, and the lines that need trust.

    A prompt is the one of the base commit: a run uses that one, and not the checkout's.
    """
    loaded = load_config(start, roles if find_config(start) is not None else ())
    if loaded.path is not None and loaded.path.parent != top:
        loaded = loaded._replace(
            config=_rebase_script_paths(loaded.config, loaded.path.parent.relative_to(top))
        )
    commit, prompts = _digest_prompts(workspace(loaded.config), loaded.config)
    lines = list_powerful_lines(loaded.config, digest_powerful_files(top) | prompts)
    return loaded._replace(powerful=lines, base_commit=commit)


def _digest_prompts(workspace: Workspace, config: Config) -> tuple[str, dict[str, str]]:
    """The commit that a run would begin on with its prompts; none where there is no such commit."""
    try:
        commit = workspace.base_commit(config.base or None)
        contents = workspace.read_contents(commit, tuple(prompt_paths(config).values()))
    except WorkspaceError:
        return "", {}
    return commit, {path: _digest_content(data) for path, data in contents.items()}


def _rebase_script_paths(config: Config, inside: Path) -> Config:
    def rebase_scripts(agents: Any) -> Any:
        return {
            name: replace(agent, script=str(inside / agent.script)) if agent.script else agent
            for name, agent in agents.items()
        }

    chat = replace(config.chat, agents=rebase_scripts(config.chat.agents))
    return replace(config, roles=rebase_scripts(config.roles), chat=chat)


def digest_powerful_files(project: Path) -> dict[str, str]:
    """Each file below the powerful folders of `.steersman/` with the digest of its bytes, and what `.worktreeinclude` lists."""
    digests: dict[str, str] = {}
    for directory in POWERFUL_DIRECTORIES:
        for path in _walk_powerful_files(project / ".steersman", directory):
            if len(digests) == MAX_POWERFUL_FILES:
                raise UserError(
                    f"{project / '.steersman'} has more than {MAX_POWERFUL_FILES} files: take some out"
                )
            digests[_powerful_file_name(path.relative_to(project))] = _describe_powerful_file(path)
    if patterns := read_include_patterns(project):
        digests[INCLUDE_FILE_NAME] = msgspec.json.encode(patterns).decode()
    return digests


def _powerful_file_name(path: Path) -> str:
    """The name that stands for a file in its line; a UserError where it could pose as another name or line."""
    name = str(path)
    if printable_line(name) != name:  # also what is not UTF-8: the name holds it as lone surrogates
        raise UserError(
            f"{printable_line(name)}: a file name here has no control characters and is UTF-8: rename it"
        )
    return name


def _walk_powerful_files(own_directory: Path, directory: str) -> Iterator[Path]:
    if own_directory.is_symlink():  # steersman keeps nothing behind a link
        return
    top = own_directory / directory
    if top.is_symlink():
        yield top
        return
    for place, directories, names in os.walk(top, followlinks=False):
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]
        yield from (Path(place, name) for name in (*names, *links))


def _digest_content(data: bytes) -> str:
    return f"sha256 {hashlib.sha256(data).hexdigest()[:TRUST_DIGEST_LENGTH]}"


def _describe_powerful_file(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"a link to {repr(os.readlink(os.fsencode(path)))[1:]}"
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "no plain file"
            return _digest_content(file.read())
    except OSError as error:
        return f"cannot be read: {error.strerror}"


# ── limit files ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads the limits of this machine: the person's own settings file and the organisation's policy.
#
# **Invariant:** a limit that cannot be read is an error, never no limit.


POLICY_PATH = "/etc/steersman/policy.toml"
POLICY_VARIABLE = "STEERSMAN_POLICY"


def apply_config_limits(loaded: LoadedConfig, *, only_look: bool = False) -> LoadedConfig:
    """The settings within every limit that holds here; a UserError lists what they ask for beyond one.

    For who only looks they stay as they are written, with a list of what is asked for beyond a limit."""
    config, changes, excesses = limit_config(loaded.config)
    if only_look:
        return loaded._replace(excesses=tuple(excesses))
    if excesses:
        advice = "Read what the settings can do first: steersman trust --show"
        raise UserError("\n".join([*(f"{loaded.path}: {excess}" for excess in excesses), advice]))
    return loaded._replace(config=config, tightened=tuple(changes))


def limit_config(config: AnyConfig) -> tuple[AnyConfig, list[str], list[str]]:
    """A configuration within every limit that holds here, what that changed, and what it asks for beyond one."""
    files = read_limit_files()
    problems = [str(problem) for file in files for problem in find_limit_excesses(config, file)]
    return *tighten_config(config, files), problems


def read_limit_files() -> tuple[LimitFile, ...]:
    """The person's own file first, with its defaults where there is none, then every policy that holds."""
    own_path = user_settings_path()
    limits = read_limits_from(Path(own_path)) if os.path.lexists(own_path) else SettingsLimits()
    named_policy = os.environ.get(POLICY_VARIABLE, "")
    policies = [
        *([POLICY_PATH] if os.path.lexists(POLICY_PATH) else []),
        *([named_policy] if named_policy else []),
    ]
    own_file = complete_own_limits(LimitFile(own_path, limits, own=True))
    return (own_file, *(LimitFile(path, read_limits_from(Path(path))) for path in policies))


def read_limits_from(path: Path) -> SettingsLimits:
    """The limits in one file; a UserError names what is wrong with it."""
    value = parse_exact_toml(read_settings_file(path), str(path))
    if problems := find_amount_problems(value):
        raise UserError(f"{path}: {'; '.join(map(str, problems))}")
    if isinstance(budget := value.get("budget"), dict):
        value["budget"] = convert_amounts(budget)
    try:
        return msgspec.convert(value, SettingsLimits)
    except msgspec.ValidationError as error:
        known_fields = "agents, [sandbox] mode, reads, network and hosts, [env] pass, [budget]"
        raise UserError(f"{path}: {error}; it knows {known_fields}") from None
