"""`steersman.toml` as values: what a project decides for all its runs.

**Invariant:** no floats: money is micro-USD and time is seconds, rounded up when the file is read.
"""

import re
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.agent import Permissions
from steersman.contracts.grammars import Commands
from steersman.contracts.schemas import without_null

MAX_USD = 1_000_000
MAX_HOURS = 8_760

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Text = Annotated[str, Meta(min_length=1, max_length=4000)]
Word = Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")]
Words = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=64)]
# A name in any script, without what ends a word.
Mention = Annotated[str, Meta(pattern=r"^[^\s@`'\"<>()\[\]{},;:!?/\\|#*~^$%&=+]{1,32}$")]
Seconds = Annotated[int, Meta(ge=1, le=86_400)]
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
    seconds: Seconds = 600  # for one call, in total
    start_seconds: Seconds = 120  # until its first output
    idle_seconds: Seconds = 600  # between two outputs: a tool that runs is silent
    permissions: Permissions | None = None  # None: what the role's work needs; never more than that
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
    same_finding: Annotated[int, Meta(ge=2, le=50)] = 3  # reviews that may leave the same finding open
    changed_tests: Literal["gate", "show"] = "gate"  # tests that were there before and are changed
    red_base: Literal["stop", "fix"] = (
        "stop"  # checks that fail before any change: stop, or the run has to fix them
    )
    check_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 600


class TaskRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who plans, builds and reviews a task, and how often it may go back by itself."""

    planners: tuple[
        Name, ...
    ] = ()  # the first drafts, the others comment; (): [roles.planner], else the coder
    plan_reviewers: Annotated[tuple[Name, ...], Meta(min_length=1)] = ("reviewer",)
    code_reviewers: Annotated[tuple[Name, ...], Meta(min_length=1)] = ("reviewer",)
    codegen: Literal["coder", "roundtable"] = "coder"
    max_rounds: Annotated[int, Meta(ge=1, le=20)] = 3  # of planners who do not agree
    max_regressions: Annotated[int, Meta(ge=1, le=20)] = 3


class Audit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who else holds what the tapes were."""

    anchor: Words | None = None  # a command: each anchor is one line of JSON on its standard input


class Sandbox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The box that agents and checks run in."""

    mode: Literal["auto", "required", "off"] = (
        "auto"  # auto: where this machine can; required: or no run starts
    )
    reads: tuple[Annotated[str, Meta(pattern=r"^(/|~/)[^\x00]+$", max_length=4000)], ...] = ()
    network: bool = False  # for checks; setup has the network, agents have the way to their model
    memory_gb: Annotated[int, Meta(ge=1, le=4096)] = (
        8  # that one process may fill, and never all the machine has
    )


class Redact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is hidden beside what shows itself as a secret."""

    env: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()  # variables, by name


class ChatAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody to talk to, called by name; it reads and never writes."""

    agent: Name
    model: Text | None = None
    script: Text | None = None  # relative to steersman.toml
    prompt: Text | None = None  # who it is and how it speaks
    aliases: tuple[Mention, ...] = ()
    seconds: Seconds = 600
    start_seconds: Seconds = 120
    idle_seconds: Seconds = 600
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class ChatBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one thread may use; None is no limit."""

    micro_usd: Amount | None = None
    tokens: Amount | None = None
    turns: Amount | None = None


class Chat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free conversation beside the machines."""

    agents: dict[Mention, ChatAgent] = msgspec.field(default_factory=dict)
    host: Mention | None = None  # who answers when nobody is named; None: the only one there is
    history: Annotated[int, Meta(ge=0, le=1000)] = 20  # earlier messages that an agent is given
    history_bytes: Annotated[int, Meta(ge=0, le=1_048_576)] = 65_536
    budget: ChatBudget = ChatBudget()


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; the defaults are those of a project without the file."""

    version: Literal[1] = 1
    project: Annotated[str, Meta(pattern=r"\S", max_length=120)] | None = (
        None  # an intent for another one is refused
    )
    base: Text | None = None  # the branch to start from; None is the one checked out
    deliver: Literal["branch", "merge", "draft-pr"] = "branch"
    known_failures: tuple[Text, ...] = ()  # tests or checks that fail before any change, acknowledged by name
    no_tests: tuple[Name, ...] = ()  # checks that run none, such as linters: their exit code alone counts
    worktree: Worktree = Worktree()
    checks: dict[Name, Words] = msgspec.field(default_factory=dict)
    roles: dict[Name, Role] = msgspec.field(default_factory=dict)
    budget: Budget = Budget()
    unattended: Unattended = Unattended()
    notify: Notify = Notify()
    rules: Rules = Rules()
    task: TaskRules = TaskRules()
    audit: Audit = Audit()
    redact: Redact = Redact()
    chat: Chat = Chat()
    sandbox: Sandbox = Sandbox()
    commands: Commands = Commands()


TALKER = "chat.agents."  # before the name of somebody to talk to, where one who plays a role is meant


def table_of(role: str) -> str:
    """The table that says who plays a role, or who is talked to by this name, as the file has it."""
    name = role.removeprefix(TALKER)
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    return f"[{TALKER if role.startswith(TALKER) else 'roles.'}{key}]"


@cache
def config_schema() -> dict[str, Any]:
    """The JSON Schema of the file as people write it: dollars and hours, and free options in the table of an agent."""
    schema: dict[str, Any] = without_null(msgspec.json.schema(Config))
    parts = schema["$defs"]
    parts["Config"]["required"] = ["version"]
    parts["Role"]["additionalProperties"] = parts["ChatAgent"]["additionalProperties"] = True
    written = parts["Budget"]["properties"]
    del written["micro_usd"], written["seconds"]
    written["usd"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_USD}
    written["hours"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_HOURS}
    talked = parts["ChatBudget"]["properties"]
    del talked["micro_usd"]
    talked["usd"] = written["usd"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "steersman.toml", **schema}
