"""opencode over the Agent Client Protocol: its model pinned, every tool asked for, its login lent.

What the model's server answered is told to nobody over the protocol: it is read from opencode's own record, in the
call's own home. Usage stays unknown: opencode tells that of its last step alone.
"""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any

from steersman.adapters.agents.acp import AcpOptions, Complaint, Kind
from steersman.adapters.agents.acp_conversation import Plain
from steersman.adapters.agents.headless import Failure
from steersman.adapters.agents.home import Home, user_home
from steersman.errors import UserError
from steersman.judges.model_address import find_host

NAME = "opencode"
_OFF = (
    *("PROJECT_CONFIG", "DEFAULT_PLUGINS", "CLAUDE_CODE", "EXTERNAL_SKILLS", "MODELS_FETCH", "LSP_DOWNLOAD"),
    *("SHARE", "AUTOUPDATE", "TERMINAL_TITLE", "EMBEDDED_WEB_UI"),
)
_ASKED = ("edit", "bash", "webfetch", "websearch", "task", "external_directory", "doom_loop")
# Where the models of the providers that opencode knows by name are served; only their keys are passed on unasked.
_PLACES = {
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
_RETRIES = 2  # failed attempts after which it is stopped: left alone it tries for ever and says nothing
_FAILED = re.compile(r'message="stream error".* small=false .*error\.error="((?:[^"\\]|\\.)*)"')
_UNREACHED = re.compile(r"connect|ECONN|socket|fetch failed|network", re.IGNORECASE)
_STATUS = re.compile(rb'"error":\{"name":"\w+","data":\{[^}]*?"statusCode":(\d{3})')
_RECORD_BYTES = 16 * 1024 * 1024


def opencode(options: AcpOptions, home: Home) -> Kind:
    """How opencode is called, once."""
    data = home.home / ".local" / "share" / "opencode"
    data.mkdir(parents=True, mode=0o700)
    lent = _lend(data)
    return Kind(
        NAME,
        (options.program or "opencode", "acp", "--print-logs", "--log-level", "ERROR"),
        env={
            **home.environment(),
            **{f"OPENCODE_DISABLE_{name}": "1" for name in _OFF},
            "OPENCODE_PURE": "1",
            "OPENCODE_CONFIG_CONTENT": json.dumps(_settings(options)),
        },
        keeps=_keys(options),
        writes=tuple(map(str, lent)),
        network=(*_hosts(options), *options.hosts),
        opened=lambda result: other_model(result, options.model),
        status=lambda: status(data),
        complaint=Complaints().hear,
    )


def checked(options: AcpOptions, table: str) -> AcpOptions:
    """The options, where they pin a model of a provider that can be reached; a UserError where not."""
    if not options.model or "/" not in options.model:
        raise UserError(
            f'{table} model is missing: opencode would choose a hosted one itself; write model = "provider/model"'
        )
    if not (_hosts(options) or options.hosts):
        raise UserError(
            f"{table} hosts is missing: it is not known where {options.model.split('/')[0]} serves its models; "
            'write hosts = ["host:443"]'
        )
    key = _key_name(options)
    if os.environ.get(key) and key not in (*_keys(options), *options.environment):
        raise UserError(
            f"{table} does not pass {key} on: steersman knows no model provider {_provider(options)!r}; "
            f'write environment = ["{key}"] there, and env.pass = ["{key}"] at the top of your own settings'
        )
    return options


def _settings(options: AcpOptions) -> dict[str, Any]:
    return {
        **options.settings,
        "model": options.model,
        "small_model": options.model,
        "enabled_providers": [_provider(options)],
        "permission": dict.fromkeys(_ASKED, "ask"),
        "autoupdate": False,
        "share": "disabled",
    }


def other_model(result: Plain, pinned: str | None) -> Failure | None:
    """A model that it does not know it replaces by another, in silence: nothing is said to that one."""
    chosen = next(
        (o.get("currentValue") for o in _listed(result.get("configOptions")) if o.get("id") == "model"), None
    )
    if chosen == pinned:
        return None
    told = f"it does not know the model {pinned}: it would use {chosen or 'one that it does not name'}"
    return Failure("provider_invalid_request", told)


def _listed(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _provider(options: AcpOptions) -> str:
    return (options.model or "").split("/")[0]


def _keys(options: AcpOptions) -> tuple[str, ...]:
    """The variable with the key of the pinned provider, where it is a known one: a repository chooses the name."""
    return (_key_name(options),) if _provider(options) in _PLACES else ()


def _key_name(options: AcpOptions) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]', '_', _provider(options)).upper()}_API_KEY"


def _hosts(options: AcpOptions) -> tuple[str, ...]:
    match options.settings:
        case {"provider": {**providers}}:
            given = providers.get(_provider(options))
            match given:
                case {"options": {"baseURL": str(address)}}:
                    return tuple(filter(None, (find_host(address),)))
    known = _PLACES.get(_provider(options))
    return (known,) if known else ()


def _lend(data: Path) -> list[Path]:
    """Links the user's login; the settings lie elsewhere and are not looked for."""
    given = os.environ.get("XDG_DATA_HOME", "")
    user = Path(given) if os.path.isabs(given) else user_home() / ".local" / "share"
    credential = user / "opencode" / "auth.json"
    if not credential.is_file():
        return []
    (data / "auth.json").symlink_to(credential)
    return [credential]


class Complaints:
    """Counts the attempts that failed, which opencode tells on standard error alone."""

    def __init__(self) -> None:
        self._failed = 0

    def hear(self, line: str) -> Complaint | None:
        """What it tries again can pass; the second time it is ours to try."""
        found = _FAILED.search(line)
        if found is None:
            return None
        self._failed += 1
        return Complaint(Failure("provider_network_error", found[1]), now=self._failed >= _RETRIES)


def status(data: Path) -> int | None:
    """The status of the last error in opencode's record; the record is looked at as bytes, never opened as a store."""
    found = None
    for name in ("opencode.db", "opencode.db-wal"):
        with contextlib.suppress(OSError):
            opened = os.open(data / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(opened, "rb") as file:
                for hit in _STATUS.finditer(file.read(_RECORD_BYTES)):
                    found = int(hit[1])
    return found
