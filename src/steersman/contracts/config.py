"""`steersman.toml` as values: what a project decides for all its runs.

**Invariant:** no floats: money is micro-USD and time is seconds, rounded up when the file is read.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.schemas import without_null

MAX_USD = 1_000_000
MAX_HOURS = 8_760

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Text = Annotated[str, Meta(min_length=1, max_length=4000)]
Word = Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")]
Words = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=64)]
Amount = Annotated[int, Meta(ge=1, le=2**53 - 1)]


class Worktree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fresh working tree needs before anyone works in it."""

    include: tuple[Text, ...] = ()  # files git does not know, copied from the user's checkout
    setup: tuple[Words, ...] = ()


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who plays a role; `options` are the provider's own settings, passed on untouched."""

    agent: Name
    model: Text | None = None
    script: Text | None = None  # relative to steersman.toml
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    seconds: Annotated[int, Meta(ge=1, le=86_400)] = 600
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run and all its children may use; None is no limit."""

    micro_usd: Amount | None = None
    tokens: Amount | None = None
    turns: Amount | None = None
    seconds: Amount | None = None


class Unattended(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens while nobody is there."""

    on_limit: Literal["wait", "stop"] = "stop"


class Notify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where waiting and ended runs are told; `env:NAME` keeps the address out of the repository."""

    webhook: Annotated[str, Meta(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]*|https?://\S+)$")] | None = None


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The few choices the roundtable leaves to a project."""

    repeated_failure: Literal["same_command", "same_failure"] = "same_command"
    max_iterations: Annotated[int, Meta(ge=1, le=50)] = 3
    check_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 600


class Audit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who else holds what the tapes were."""

    anchor: Words | None = None  # a command: each anchor is one line of JSON on its standard input


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; the defaults are those of a project without the file."""

    version: Literal[1] = 1
    base: Text | None = None  # the branch to start from; None is the one checked out
    deliver: Literal["branch", "merge", "draft-pr"] = "branch"
    known_failures: tuple[Text, ...] = ()  # tests or checks that fail before any change, acknowledged by name
    worktree: Worktree = Worktree()
    checks: dict[Name, Words] = msgspec.field(default_factory=dict)
    roles: dict[Name, Role] = msgspec.field(default_factory=dict)
    budget: Budget = Budget()
    unattended: Unattended = Unattended()
    notify: Notify = Notify()
    rules: Rules = Rules()
    audit: Audit = Audit()


@cache
def config_schema() -> dict[str, Any]:
    """The JSON Schema of the file as people write it: dollars and hours, and free options in a role's table."""
    schema: dict[str, Any] = without_null(msgspec.json.schema(Config))
    parts = schema["$defs"]
    parts["Config"]["required"] = ["version"]
    parts["Role"]["additionalProperties"] = True
    written = parts["Budget"]["properties"]
    del written["micro_usd"], written["seconds"]
    written["usd"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_USD}
    written["hours"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_HOURS}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "steersman.toml", **schema}
