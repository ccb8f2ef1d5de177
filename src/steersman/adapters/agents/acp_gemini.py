"""gemini over the Agent Client Protocol: its settings, its login, its complaints.

The working tree is not trusted, so gemini takes no settings, hooks, servers or context from it.
"""

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from steersman.adapters.agents.acp import AcpOptions, Complaint, Kind
from steersman.adapters.agents.acp_conversation import Plain
from steersman.adapters.agents.codex_events import by_status
from steersman.adapters.agents.headless import Failure
from steersman.adapters.agents.home import Home, user_home
from steersman.contracts.agent import Usage

NAME = "gemini"
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_KEEPS = (
    *_KEYS,
    *(
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_VERTEX_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
    ),
    *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "CODE_ASSIST_ENDPOINT"),
)
_API, _ASSIST = "https://generativelanguage.googleapis.com", "https://cloudcode-pa.googleapis.com"
_LOGIN = ("oauth2.googleapis.com:443", "www.googleapis.com:443")
# What a login is made of; settings, hooks, servers, memory and extensions lie in the same folder and stay there.
_LENT = ("oauth_creds.json", "google_accounts.json")
_KEY_LINE = re.compile(
    r"^\s*(?:export\s+)?(GEMINI_API_KEY|GOOGLE_API_KEY)\s*=\s*(['\"]?)([^'\"\s#]+)\2", re.MULTILINE
)
_RETRIES = 2  # attempts it may make itself; the rest of the policy is ours
_ATTEMPT = re.compile(r"Attempt (\d+) failed(?: with status (\d{3}))?")
_UNREACHED = re.compile(r"fetch failed|ECONN|ENOTFOUND|EAI_AGAIN|socket hang up", re.IGNORECASE)
_NO_KEY = re.compile(
    r"must specify the GEMINI_API_KEY|Please set an Auth method|Invalid auth method", re.IGNORECASE
)


def gemini(options: AcpOptions, home: Home) -> Kind:
    """How gemini is called, once."""
    folder = home.home / ".gemini"
    folder.mkdir(mode=0o700)
    lent, key = _lend(folder), _written_key()
    _settle(folder / "settings.json", options, logged_in=bool(lent) and not key)
    chosen = ("-m", options.model) if options.model else ()
    return Kind(
        NAME,
        (options.program or "gemini", "--acp", *chosen),
        env={**home.environment(), "GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1", **key},
        keeps=_KEEPS,
        writes=tuple(map(str, lent)),
        network=(*_hosts(lent), *options.hosts),
        usage=usage,
        doubt=doubt,
        complaint=complaint,
    )


def logged_in() -> bool:
    """Whether there is anything at all to log in with."""
    files = (user_home() / ".gemini" / _LENT[0]).is_file()
    named = (*_KEYS, "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA")
    return files or any(map(os.environ.get, named)) or bool(_written_key())


def _lend(folder: Path) -> list[Path]:
    """Links the files of the user's login; what a CLI renews it renews in their place."""
    user = user_home() / ".gemini"
    found = [user / name for name in _LENT if (user / name).is_file()]
    for credential in found:
        (folder / credential.name).symlink_to(credential)
    return found


def _written_key() -> dict[str, str]:
    """The key that the user keeps in a file of gemini's; in a tree that is not trusted gemini does not look there."""
    if any(map(os.environ.get, _KEYS)):
        return {}
    for path in (user_home() / ".gemini" / ".env", user_home() / ".env"):
        with contextlib.suppress(OSError):
            found = _KEY_LINE.search(path.read_text(encoding="utf-8", errors="replace"))
            if found:
                return {found[1]: found[3]}
    return {}


def _settle(path: Path, options: AcpOptions, *, logged_in: bool) -> None:
    settings: dict[str, Any] = {
        **options.settings,
        "security": {"auth": {"selectedType": _auth(logged_in=logged_in)}, "folderTrust": {"enabled": True}},
        "general": {"maxAttempts": _RETRIES, "enableAutoUpdate": False, "checkpointing": {"enabled": False}},
        "hooksConfig": {"enabled": False},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    path.write_text(json.dumps(settings), encoding="utf-8")


def _auth(*, logged_in: bool) -> str:
    if os.environ.get("GOOGLE_GENAI_USE_VERTEXAI"):
        return "vertex-ai"
    return "oauth-personal" if logged_in and not any(map(os.environ.get, _KEYS)) else "gemini-api-key"


def _hosts(lent: list[Path]) -> tuple[str, ...]:
    """Where the models are: another place with a login than with a key, and that login is looked at elsewhere."""
    api = _place(os.environ.get("GOOGLE_GEMINI_BASE_URL") or _API)
    return (api, _place(os.environ.get("CODE_ASSIST_ENDPOINT") or _ASSIST), *_LOGIN) if lent else (api,)


def _place(address: str) -> str:
    url = urlsplit(address)
    return f"{url.hostname}:{url.port or (80 if url.scheme == 'http' else 443)}"


def doubt(result: Plain) -> Failure | None:
    """A turn in which no model has answered to the end: gemini takes a stream that broke for an answer."""
    match result:
        case {"_meta": {"quota": {"model_usage": []}}}:
            return Failure("provider_network_error", "it ended its turn without a whole answer of any model")
        case _:
            return None


def usage(result: Plain) -> Usage:
    """All tokens of the turn, which gemini tells outside the protocol's own words."""
    match result:
        case {"_meta": {"quota": {"token_count": {"input_tokens": int(said), "output_tokens": int(heard)}}}}:
            return Usage(tokens=said + heard or None)
        case _:
            return Usage()


def complaint(line: str) -> Complaint | None:
    """A failed attempt, which it tells on standard error alone; the last one it may make is enough."""
    if found := _ATTEMPT.search(line):
        over = int(found[1]) >= _RETRIES
        if found[2]:
            return Complaint(Failure(by_status(int(found[2])), line.strip()), now=over)
        if _UNREACHED.search(line):
            return Complaint(Failure("provider_network_error", line.strip()), now=over)
    if _NO_KEY.search(line):
        return Complaint(Failure("provider_auth_error", line.strip()))
    return None
