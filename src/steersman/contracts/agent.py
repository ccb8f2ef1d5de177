"""What is asked of an agent and what comes back."""

from typing import Any, Literal

import msgspec

ProviderClass = Literal[
    "provider_not_found",
    "provider_auth_error",
    "provider_network_error",
    "provider_timeout",
    "provider_rate_limited",
    "provider_permission_denied",
    "provider_invalid_request",
    "provider_protocol_error",
    "provider_crashed",
]
PROVIDER_CLASSES: tuple[ProviderClass, ...] = ProviderClass.__args__  # type: ignore[attr-defined]  # of every Literal
# Those that can pass by themselves; the others end in their outcome at once.
TRANSIENT_PROVIDER_ERRORS: frozenset[str] = frozenset(
    {"provider_network_error", "provider_timeout", "provider_rate_limited", "provider_crashed"}
)

Permissions = Literal["read", "edit", "shell"]  # each holds the one before; a shell only inside a sandbox


class AgentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call: who works, on what, where, within which limits."""

    role: str
    mode: str
    prompt: str
    workdir: str
    writes: bool
    effect: str  # run:seq:n, in the environment of every process the call starts
    nonce: str
    round: int = 1
    attempt: int = 1
    schema: dict[str, Any] | None = None  # the JSON Schema of the reply, None for free text
    session: str | None = None
    seconds: int = 600  # in total
    start_seconds: int = 120  # until the first sign of life
    idle_seconds: int = 600  # between two signs of life
    permissions: Permissions = "read"
    micro_usd: int | None = None  # what the call may cost at most; None: no limit is known
    allows: tuple[tuple[str, ...], ...] | None = None  # the only commands that a writer may run; None: any
    options: dict[str, Any] = msgspec.field(default_factory=dict)  # the role's table in steersman.toml


class ProviderUsage(msgspec.Struct, frozen=True):
    """What the provider said it used; None is unknown, which is never zero."""

    tokens: int | None = None
    micro_usd: int | None = None


MAX_FAILURE_DETAIL = 2000  # characters of a provider's explanation that are kept, once secrets are out of it


class AgentReply(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, in neutral words."""

    text: str = ""
    error: ProviderClass | None = None
    detail: str = ""  # outside text, for people; redacted before it is stored
    reset_at: int | None = None  # ms since the epoch, for a rate limit
    usage: ProviderUsage = ProviderUsage()
    session: str | None = None
    provider: str = ""
    model: str = ""
    denied: tuple[str, ...] = ()  # tools it asked for and did not get, as it named them
    refused: tuple[str, ...] = ()  # places it wanted to reach and was not let through to
    outside: tuple[str, ...] = ()  # commands beside those that it may run: kept from it, or found afterwards
    transcript: str = ""  # digest of everything the agent's program said
