"""opencode over the Agent Client Protocol: its model pinned, every tool asked for, its login lent.

The protocol does not carry what the model's server answered: it is read from opencode's own record, in the
call's own home. Usage stays unknown: opencode tells that of its last step alone.
"""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from steersman.adapters.agents.acp import AcpOptions
from steersman.adapters.agents.acp_conversation import AcpAgentProfile, AcpObject, StderrComplaint
from steersman.adapters.agents.call_home import CallHome, user_home
from steersman.adapters.agents.headless import ProviderFailure
from steersman.errors import UserError
from steersman.judges.config.limits import find_model_host

OPENCODE_NAME = "opencode"
_OPENCODE_DISABLED = (
    *("PROJECT_CONFIG", "DEFAULT_PLUGINS", "CLAUDE_CODE", "EXTERNAL_SKILLS", "MODELS_FETCH", "LSP_DOWNLOAD"),
    *("SHARE", "AUTOUPDATE", "TERMINAL_TITLE", "EMBEDDED_WEB_UI"),
)
_OPENCODE_ASKED_TOOLS = ("edit", "bash", "webfetch", "websearch", "task", "external_directory", "doom_loop")
# Where the models of the providers that opencode knows by name are served; only their keys are passed on unasked.
_OPENCODE_PROVIDER_HOSTS = {
    "anthropic": "api.anthropic.com:443",
    "openai": "api.openai.com:443",
    "google": "generativelanguage.googleapis.com:443",
    "openrouter": "openrouter.ai:443",
    "groq": "api.groq.com:443",
    "mistral": "api.mistral.ai:443",
    "deepseek": "api.deepseek.com:443",
    "xai": "api.x.ai:443",
    "opencode": "opencode.ai:443",
}
# Failed attempts after which it is stopped: left alone it tries for ever and says nothing.
_OPENCODE_ATTEMPTS = 2
_OPENCODE_STREAM_ERROR = re.compile(
    r'message="stream error".* small=false .*error\.error="((?:[^"\\]|\\.)*)"'
)
_OPENCODE_UNREACHED = re.compile(r"connect|ECONN|socket|fetch failed|network", re.IGNORECASE)
_OPENCODE_RECORDED_STATUS = re.compile(rb'"error":\{"name":"\w+","data":\{[^}]*?"statusCode":(\d{3})')
_MAX_OPENCODE_RECORD_BYTES = 16 * 1024 * 1024


def make_opencode_profile(options: AcpOptions, home: CallHome) -> AcpAgentProfile:
    """How opencode is called, once."""
    data_dir = home.home / ".local" / "share" / "opencode"
    data_dir.mkdir(parents=True, mode=0o700)
    login_files = _link_opencode_login(data_dir)
    return AcpAgentProfile(
        OPENCODE_NAME,
        (options.program or "opencode", "acp", "--print-logs", "--log-level", "ERROR"),
        env={
            **home.environment(),
            **{f"OPENCODE_DISABLE_{name}": "1" for name in _OPENCODE_DISABLED},
            "OPENCODE_PURE": "1",
            "OPENCODE_CONFIG_CONTENT": json.dumps(_opencode_settings(options)),
        },
        keeps=_opencode_key_variables(options),
        writes=tuple(map(str, login_files)),
        network=(*_opencode_hosts(options), *options.hosts),
        opened=lambda result: find_model_mismatch(result, options.model),
        status=lambda: read_opencode_status(data_dir),
        complaint=OpencodeStderrReader().hear,
    )


def check_opencode_options(options: AcpOptions, table: str) -> AcpOptions:
    """The options, where they pin a model of a provider that can be reached; a UserError where not."""
    if not options.model or "/" not in options.model:
        raise UserError(
            f'{table} model is missing: opencode would choose a hosted one itself; write model = "provider/model"'
        )
    if not (_opencode_hosts(options) or options.hosts):
        raise UserError(
            f"{table} hosts is missing: it is not known where {options.model.split('/')[0]} serves its models; "
            'write hosts = ["host:443"]'
        )
    key = _opencode_key_name(options)
    if os.environ.get(key) and key not in (*_opencode_key_variables(options), *options.environment):
        raise UserError(
            f"{table} does not pass {key} on: steersman knows no model provider {_opencode_provider(options)!r}; "
            f'write environment = ["{key}"] there, and env.pass = ["{key}"] at the top of your own settings'
        )
    return options


def _opencode_settings(options: AcpOptions) -> dict[str, Any]:
    return {
        **options.settings,
        "model": options.model,
        "small_model": options.model,
        "enabled_providers": [_opencode_provider(options)],
        "permission": dict.fromkeys(_OPENCODE_ASKED_TOOLS, "ask"),
        "autoupdate": False,
        "share": "disabled",
    }


def find_model_mismatch(result: AcpObject, pinned: str | None) -> ProviderFailure | None:
    """A model that it does not know it replaces by another, in silence: that one gets no prompt."""
    model = next(
        (
            o.get("currentValue")
            for o in _list_json_objects(result.get("configOptions"))
            if o.get("id") == "model"
        ),
        None,
    )
    if model == pinned:
        return None
    reason = f"it does not know the model {pinned}: it would use {model or 'one that it does not name'}"
    return ProviderFailure("provider_invalid_request", reason)


def _list_json_objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _opencode_provider(options: AcpOptions) -> str:
    return (options.model or "").split("/")[0]


def _opencode_key_variables(options: AcpOptions) -> tuple[str, ...]:
    """The variable with the key of the pinned provider, where it is a known one: a repository chooses the name."""
    return (_opencode_key_name(options),) if _opencode_provider(options) in _OPENCODE_PROVIDER_HOSTS else ()


def _opencode_key_name(options: AcpOptions) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]', '_', _opencode_provider(options)).upper()}_API_KEY"


def _opencode_hosts(options: AcpOptions) -> tuple[str, ...]:
    match options.settings:
        case {"provider": {**providers}}:
            provider_settings = providers.get(_opencode_provider(options))
            match provider_settings:
                case {"options": {"baseURL": str(address)}}:
                    return tuple(filter(None, (find_model_host(address),)))
    host = _OPENCODE_PROVIDER_HOSTS.get(_opencode_provider(options))
    return (host,) if host else ()


def _link_opencode_login(data_dir: Path) -> list[Path]:
    """Links the user's login; the settings lie elsewhere and are not looked for."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    user_dir = Path(data_home) if os.path.isabs(data_home) else user_home() / ".local" / "share"
    credential = user_dir / "opencode" / "auth.json"
    if not credential.is_file():
        return []
    (data_dir / "auth.json").symlink_to(credential)
    return [credential]


class OpencodeStderrReader:
    """Counts the attempts that failed, which opencode tells on standard error alone."""

    def __init__(self) -> None:
        self._failed = 0

    def hear(self, line: str) -> StderrComplaint | None:
        """What it tries again can pass; the second time it is ours to try."""
        match = _OPENCODE_STREAM_ERROR.search(line)
        if match is None:
            return None
        self._failed += 1
        return StderrComplaint(
            ProviderFailure("provider_network_error", match[1]), now=self._failed >= _OPENCODE_ATTEMPTS
        )


def read_opencode_status(data_dir: Path) -> int | None:
    """The status of the last error in opencode's record; the record is looked at as bytes, never opened as a store."""
    last_status = None
    for name in ("opencode.db", "opencode.db-wal"):
        with contextlib.suppress(OSError):
            fd = os.open(data_dir / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                for match in _OPENCODE_RECORDED_STATUS.finditer(file.read(_MAX_OPENCODE_RECORD_BYTES)):
                    last_status = int(match[1])
    return last_status
