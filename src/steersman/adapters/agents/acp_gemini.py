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

from steersman.adapters.agents.acp import AcpOptions
from steersman.adapters.agents.acp_conversation import AcpAgentProfile, AcpObject, StderrComplaint
from steersman.adapters.agents.call_home import CallHome, user_home
from steersman.adapters.agents.codex_events import classify_http_status
from steersman.adapters.agents.headless import ProviderFailure
from steersman.contracts.agent import ProviderUsage

GEMINI_NAME = "gemini"
_GEMINI_KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_GEMINI_PASSED_VARIABLES = (
    *_GEMINI_KEY_VARIABLES,
    *(
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_VERTEX_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_GCA",
    ),
    *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "CODE_ASSIST_ENDPOINT"),
)
_GEMINI_API_URL = "https://generativelanguage.googleapis.com"
_CODE_ASSIST_URL = "https://cloudcode-pa.googleapis.com"
_GOOGLE_LOGIN_HOSTS = ("oauth2.googleapis.com:443", "www.googleapis.com:443")
# What a login is made of; settings, hooks, servers, memory and extensions lie in the same folder and stay there.
_GEMINI_LOGIN_FILES = ("oauth_creds.json", "google_accounts.json")
_GEMINI_KEY_LINE = re.compile(
    r"^\s*(?:export\s+)?(GEMINI_API_KEY|GOOGLE_API_KEY)\s*=\s*(['\"]?)([^'\"\s#]+)\2", re.MULTILINE
)
_GEMINI_ATTEMPTS = 2  # attempts it may make itself; the rest of the policy is ours
_GEMINI_FAILED_ATTEMPT = re.compile(r"Attempt (\d+) failed(?: with status (\d{3}))?")
_GEMINI_UNREACHED = re.compile(r"fetch failed|ECONN|ENOTFOUND|EAI_AGAIN|socket hang up", re.IGNORECASE)
_GEMINI_NO_KEY = re.compile(
    r"must specify the GEMINI_API_KEY|Please set an Auth method|Invalid auth method", re.IGNORECASE
)


def make_gemini_profile(options: AcpOptions, home: CallHome) -> AcpAgentProfile:
    """How gemini is called, once."""
    config_dir = home.home / ".gemini"
    config_dir.mkdir(mode=0o700)
    files, key_variables = _link_gemini_login(config_dir), _read_gemini_key_file()
    _write_gemini_settings(config_dir / "settings.json", options, logged_in=bool(files) and not key_variables)
    model_args = ("-m", options.model) if options.model else ()
    return AcpAgentProfile(
        GEMINI_NAME,
        (options.program or "gemini", "--acp", *model_args),
        env={**home.environment(), "GEMINI_CLI_NO_RELAUNCH": "true", "NO_COLOR": "1", **key_variables},
        keeps=_GEMINI_PASSED_VARIABLES,
        writes=tuple(map(str, files)),
        network=(*_gemini_hosts(files), *options.hosts),
        usage=read_gemini_usage,
        doubt=check_gemini_result,
        complaint=parse_gemini_stderr,
    )


def has_gemini_login() -> bool:
    """Whether there is anything at all to log in with."""
    has_login_file = (user_home() / ".gemini" / _GEMINI_LOGIN_FILES[0]).is_file()
    variables = (*_GEMINI_KEY_VARIABLES, "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA")
    return has_login_file or any(map(os.environ.get, variables)) or bool(_read_gemini_key_file())


def _link_gemini_login(config_dir: Path) -> list[Path]:
    """Links the files of the user's login; what a CLI renews it renews in their place."""
    user_dir = user_home() / ".gemini"
    credentials = [user_dir / name for name in _GEMINI_LOGIN_FILES if (user_dir / name).is_file()]
    for credential in credentials:
        (config_dir / credential.name).symlink_to(credential)
    return credentials


def _read_gemini_key_file() -> dict[str, str]:
    """The key that the user keeps in a file of gemini's; in a tree that is not trusted gemini does not look there."""
    if any(map(os.environ.get, _GEMINI_KEY_VARIABLES)):
        return {}
    for path in (user_home() / ".gemini" / ".env", user_home() / ".env"):
        with contextlib.suppress(OSError):
            match = _GEMINI_KEY_LINE.search(path.read_text(encoding="utf-8", errors="replace"))
            if match:
                return {match[1]: match[3]}
    return {}


def _write_gemini_settings(path: Path, options: AcpOptions, *, logged_in: bool) -> None:
    settings: dict[str, Any] = {
        **options.settings,
        "security": {
            "auth": {"selectedType": _gemini_auth_type(logged_in=logged_in)},
            "folderTrust": {"enabled": True},
        },
        "general": {
            "maxAttempts": _GEMINI_ATTEMPTS,
            "enableAutoUpdate": False,
            "checkpointing": {"enabled": False},
        },
        "hooksConfig": {"enabled": False},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    path.write_text(json.dumps(settings), encoding="utf-8")


def _gemini_auth_type(*, logged_in: bool) -> str:
    if os.environ.get("GOOGLE_GENAI_USE_VERTEXAI"):
        return "vertex-ai"
    return (
        "oauth-personal"
        if logged_in and not any(map(os.environ.get, _GEMINI_KEY_VARIABLES))
        else "gemini-api-key"
    )


def _gemini_hosts(login_files: list[Path]) -> tuple[str, ...]:
    """Where the models are: another place with a login than with a key, and that login is looked at elsewhere."""
    api = _gemini_host_port(os.environ.get("GOOGLE_GEMINI_BASE_URL") or _GEMINI_API_URL)
    return (
        (
            api,
            _gemini_host_port(os.environ.get("CODE_ASSIST_ENDPOINT") or _CODE_ASSIST_URL),
            *_GOOGLE_LOGIN_HOSTS,
        )
        if login_files
        else (api,)
    )


def _gemini_host_port(address: str) -> str:
    url = urlsplit(address)
    return f"{url.hostname}:{url.port or (80 if url.scheme == 'http' else 443)}"


def check_gemini_result(result: AcpObject) -> ProviderFailure | None:
    """A turn in which no model has answered to the end: gemini takes a stream that broke for an answer."""
    match result:
        case {"_meta": {"quota": {"model_usage": []}}}:
            return ProviderFailure(
                "provider_network_error", "it ended its turn without a whole answer of any model"
            )
        case _:
            return None


def read_gemini_usage(result: AcpObject) -> ProviderUsage:
    """All tokens of the turn, which gemini tells outside the protocol's own words."""
    match result:
        case {
            "_meta": {
                "quota": {
                    "token_count": {"input_tokens": int(input_tokens), "output_tokens": int(output_tokens)}
                }
            }
        }:
            return ProviderUsage(tokens=input_tokens + output_tokens or None)
        case _:
            return ProviderUsage()


def parse_gemini_stderr(line: str) -> StderrComplaint | None:
    """A failed attempt, which it tells on standard error alone; the last one it may make is enough."""
    if match := _GEMINI_FAILED_ATTEMPT.search(line):
        is_last = int(match[1]) >= _GEMINI_ATTEMPTS
        if match[2]:
            return StderrComplaint(
                ProviderFailure(classify_http_status(int(match[2])), line.strip()), now=is_last
            )
        if _GEMINI_UNREACHED.search(line):
            return StderrComplaint(ProviderFailure("provider_network_error", line.strip()), now=is_last)
    if _GEMINI_NO_KEY.search(line):
        return StderrComplaint(ProviderFailure("provider_auth_error", line.strip()))
    return None
