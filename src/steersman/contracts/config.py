"""`steersman.toml` as values: what a project decides for all its runs.

**Invariant:** no floats: money is micro-USD and time is seconds, rounded up when the file is read.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from steersman.contracts.agent import Permissions
from steersman.contracts.commands import Command
from steersman.contracts.grammars import Commands
from steersman.errors import UserError

# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# JSON Schemas of files that people write, where a field is left out rather than null.
#
# **Invariant:** only the form changes: what a schema accepts from a file without nulls stays the same.


NULL_SCHEMA = {"type": "null"}


def drop_null_types(schema: Any) -> Any:
    """The schema with every `X or null` written as `X`, and without defaults: it then complains about X."""
    match schema:
        case {"anyOf": [only, second], **rest} if second == NULL_SCHEMA:
            return {**drop_null_types(rest), **drop_null_types(only)}
        case dict():
            return {key: drop_null_types(item) for key, item in schema.items() if key != "default"}
        case list():
            return [drop_null_types(item) for item in schema]
        case _:
            return schema


# ── config ────────────────────────────────────────────────────────────────────────────────


MAX_USD = 1_000_000
MAX_HOURS = 8_760

ConfigName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
ConfigText = Annotated[str, Meta(min_length=1, max_length=4000)]
ArgvWord = Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")]
ArgvWords = Annotated[tuple[ArgvWord, ...], Meta(min_length=1, max_length=64)]
# A name in any script, without what ends a word.
MentionName = Annotated[str, Meta(pattern=r"^[^\s@`'\"<>()\[\]{},;:!?/\\|#*~^$%&=+]{1,32}$")]
TimeoutSeconds = Annotated[int, Meta(ge=1, le=86_400)]
# Inside the tree; see `config_paths`.
TreeDirectory = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00\\]*$")]
SummaryPattern = Annotated[str, Meta(max_length=500)]
EnvName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
EnvValue = Annotated[str, Meta(max_length=8000, pattern=r"^[^\x00]*$")]
ENV_REFERENCE = "env:"  # before the name of a variable of steersman's own environment
BudgetAmount = Annotated[int, Meta(ge=1, le=2**53 - 1)]
ReadPath = Annotated[str, Meta(pattern=r"^(/|~/)[^\x00]+$", max_length=4000)]


class Check(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A command that judges a tree; in the file an argv list alone is its `run`."""

    run: ArgvWords
    cwd: TreeDirectory = ""  # relative to the top of the tree; "" is the top
    summary: SummaryPattern = ""  # counts tests in the output where the runner is unknown
    exit_code_is_enough: bool = False  # a person's choice: exit code 0 is evidence without a counted test


class SetupStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A command that makes a fresh tree ready; in the file an argv list alone is its `run`."""

    run: ArgvWords
    cwd: TreeDirectory = ""


class Worktree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fresh working tree needs before anyone works in it."""

    include: tuple[ConfigText, ...] = ()  # files git does not know, copied from the user's checkout
    setup: tuple[SetupStep, ...] = ()
    writable: tuple[TreeDirectory, ...] = ()  # more places in the tree that checks may write


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who plays a role; `options` are the provider's own settings, passed on untouched."""

    agent: ConfigName
    model: ConfigText | None = None
    script: ConfigText | None = None  # relative to steersman.toml
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    seconds: TimeoutSeconds = 600  # for one call, in total
    start_seconds: TimeoutSeconds = 120  # until its first output
    idle_seconds: TimeoutSeconds = 600  # between two outputs: a tool that runs is silent
    permissions: Permissions | None = None  # None: what the role's work needs; never more than that
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run and all its children may use; None is no limit."""

    micro_usd: BudgetAmount | None = None
    tokens: BudgetAmount | None = None
    turns: BudgetAmount | None = None
    seconds: BudgetAmount | None = None


class Unattended(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens while no person is present."""

    on_limit: Literal["wait", "stop"] = "stop"


class Notify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where notices about waiting and ended runs go; `env:NAME` keeps the address out of the repository."""

    webhook: Annotated[str, Meta(pattern=r"^(env:[A-Za-z_][A-Za-z0-9_]*|https?://\S+)$")] | None = None


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The few choices the roundtable leaves to a project."""

    repeated_failure: Literal["same_command", "same_failure"] = "same_command"
    max_iterations: Annotated[int, Meta(ge=1, le=50)] = 3
    same_finding: Annotated[int, Meta(ge=2, le=50)] = 3  # reviews that may leave the same finding open
    changed_tests: Literal["gate", "show"] = "gate"  # tests that were there before and are changed
    # Checks that fail before any change: stop, or the run has to fix them.
    red_base: Literal["stop", "fix"] = "stop"
    check_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 600


class TaskRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who plans, builds and reviews a task, and how often it may go back by itself."""

    # The first drafts, the others comment; (): [roles.planner], else the coder.
    planners: tuple[ConfigName, ...] = ()
    plan_reviewers: Annotated[tuple[ConfigName, ...], Meta(min_length=1)] = ("reviewer",)
    code_reviewers: Annotated[tuple[ConfigName, ...], Meta(min_length=1)] = ("reviewer",)
    codegen: Literal["coder", "roundtable"] = "coder"
    max_rounds: Annotated[int, Meta(ge=1, le=20)] = 3  # of planners who do not agree
    max_regressions: Annotated[int, Meta(ge=1, le=20)] = 3


class Audit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who else holds what the tapes were."""

    anchor: ArgvWords | None = None  # a command: each anchor is one line of JSON on its standard input


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sandbox that agents and checks run in."""

    # `auto`: where this machine can; `required`: or no run starts.
    mode: Literal["auto", "required", "off"] = "auto"
    reads: tuple[ReadPath, ...] = ()
    network: bool = False  # for checks; setup has the network, agents have the way to their model
    # That one process may fill, and never all the machine has.
    memory_gb: Annotated[int, Meta(ge=1, le=4096)] = 8
    disk_gb: Annotated[int, Meta(ge=1, le=65536)] = 20  # that one command may write


class Redact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is hidden beside what shows itself as a secret."""

    env: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()  # variables, by name


class ChatAgent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent of conversations, called by name. It reads and never writes."""

    agent: ConfigName
    model: ConfigText | None = None
    script: ConfigText | None = None  # relative to steersman.toml
    prompt: ConfigText | None = None  # who it is and how it speaks
    aliases: tuple[MentionName, ...] = ()
    seconds: TimeoutSeconds = 600
    start_seconds: TimeoutSeconds = 120
    idle_seconds: TimeoutSeconds = 600
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class ChatBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one thread may use; None is no limit."""

    micro_usd: BudgetAmount | None = None
    tokens: BudgetAmount | None = None
    turns: BudgetAmount | None = None


class Chat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free conversation beside the machines."""

    agents: dict[MentionName, ChatAgent] = msgspec.field(default_factory=dict)
    host: MentionName | None = None  # who answers a message without a name; None: the only agent
    history: Annotated[int, Meta(ge=0, le=1000)] = 20  # earlier messages that an agent is given
    history_bytes: Annotated[int, Meta(ge=0, le=1_048_576)] = 65_536
    budget: ChatBudget = ChatBudget()


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it; the defaults are those of a project without the file."""

    version: Literal[1] = 1
    # An intent for another one is refused.
    project: Annotated[str, Meta(pattern=r"\S", max_length=120)] | None = None
    base: ConfigText | None = None  # the branch to start from; None is the one checked out
    deliver: Literal["branch", "merge", "draft-pr"] = "branch"
    # Tests or checks that fail before any change, acknowledged by name.
    known_failures: tuple[ConfigText, ...] = ()
    # Checks that run none, such as linters: their exit code alone counts.
    no_tests: tuple[ConfigName, ...] = ()
    worktree: Worktree = Worktree()
    checks: dict[ConfigName, Check] = msgspec.field(default_factory=dict)
    env: dict[EnvName, EnvValue] = msgspec.field(default_factory=dict)  # for setup and checks
    roles: dict[ConfigName, Role] = msgspec.field(default_factory=dict)
    budget: Budget = Budget()
    unattended: Unattended = Unattended()
    notify: Notify = Notify()
    rules: Rules = Rules()
    task: TaskRules = TaskRules()
    audit: Audit = Audit()
    redact: Redact = Redact()
    chat: Chat = Chat()
    sandbox: SandboxSettings = SandboxSettings()
    commands: Commands = Commands()


class ProjectFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the project that a role's table names."""

    path: str  # from the top of the repository
    kept: str = ""  # the folder of our copy; "": it is not in the base commit and is started where it lies


class FrozenConfig(Config, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of one run, with what the run took from the repository and from others when it began.

    No file of a project can set these fields: `steersman.toml` is read as a `Config`.
    """

    base_commit: str = ""  # that prompts and programs come from; "" in runs that older versions began
    prompts: dict[str, str] = msgspec.field(default_factory=dict)  # by role: the project's words for it
    programs: dict[str, ProjectFile] = msgspec.field(default_factory=dict)  # by the word in a role's table
    issue_ref: str = ""  # the payload of text that is not the person's own


AnyConfig = TypeVar("AnyConfig", bound=Config)


def freeze_config(config: Config, **run_fields: Any) -> FrozenConfig:
    """The configuration for one run; `more` are the fields that only a run has."""
    project_fields = {name: getattr(config, name) for name in config.__struct_fields__}
    return FrozenConfig(**{**project_fields, **run_fields})


def decode_frozen_config(data: bytes | str) -> FrozenConfig:
    """Decodes the configuration of a run, also one frozen when checks and setup steps were argv lists only."""
    return msgspec.convert(expand_argv_commands(msgspec.json.decode(data)), FrozenConfig)


def find_program_words(role: Role) -> tuple[str, ...]:
    """The words of a role's table that may name a program's file; a program without a slash is one of PATH."""
    command = role.options.get("command")
    program, *arguments = command if isinstance(command, list | tuple) and command else [""]
    paths = [word for word in (role.options.get("program"), program) if isinstance(word, str) and "/" in word]
    return (*paths, *(word for word in arguments if isinstance(word, str)))


def expand_argv_commands(value: Any) -> Any:
    """Writes every argv list under `checks` and `worktree.setup` as the table that it stands for."""
    if not isinstance(value, dict):
        return value
    checks, worktree = value.get("checks"), value.get("worktree")
    if isinstance(checks, dict):
        value = {**value, "checks": {name: _expand_argv_list(check) for name, check in checks.items()}}
    if isinstance(worktree, dict) and isinstance(worktree.get("setup"), list):
        value = {
            **value,
            "worktree": {**worktree, "setup": [_expand_argv_list(s) for s in worktree["setup"]]},
        }
    return value


def _expand_argv_list(value: Any) -> Any:
    return {"run": value} if isinstance(value, list) else value


def list_check_commands(config: Config) -> list[Command]:
    """The project's checks as commands, in the order of the file."""
    return [
        Command(
            name,
            check.run,
            tests=name not in config.no_tests,
            cwd=check.cwd,
            summary=check.summary,
            exit_code_is_enough=check.exit_code_is_enough,
        )
        for name, check in config.checks.items()
    ]


def list_setup_commands(config: Config) -> list[Command]:
    """The project's setup steps as commands, in order; `setup 1` is the first."""
    return [
        Command(f"setup {n}", step.run, tests=False, cwd=step.cwd)
        for n, step in enumerate(config.worktree.setup, 1)
    ]


CHAT_AGENT_PREFIX = "chat.agents."  # prefix of the names of conversation agents, where a role is expected


def role_table_name(role: str) -> str:
    """The table that says who plays a role, or who is talked to by this name, as the file has it."""
    name = role.removeprefix(CHAT_AGENT_PREFIX)
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
    return f"[{CHAT_AGENT_PREFIX if role.startswith(CHAT_AGENT_PREFIX) else 'roles.'}{key}]"


@cache
def config_schema() -> dict[str, Any]:
    """The JSON Schema of the file as people write it: dollars and hours, and free options in the table of an agent."""
    schema: dict[str, Any] = drop_null_types(msgspec.json.schema(Config))
    parts = schema["$defs"]
    parts["Config"]["required"] = ["version"]
    parts["Role"]["additionalProperties"] = parts["ChatAgent"]["additionalProperties"] = True
    budget_fields = parts["Budget"]["properties"]
    del budget_fields["micro_usd"], budget_fields["seconds"]
    budget_fields["usd"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_USD}
    budget_fields["hours"] = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_HOURS}
    chat_budget_fields = parts["ChatBudget"]["properties"]
    del chat_budget_fields["micro_usd"]
    chat_budget_fields["usd"] = budget_fields["usd"]
    _allow_plain_argv(parts)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "steersman.toml", **schema}


def _allow_plain_argv(parts: dict[str, Any]) -> None:
    """Lets the file write a check or a setup step as its argv alone."""
    argv = parts["Check"]["properties"]["run"]
    for owner, field, inner in (
        (parts["Config"], "checks", "additionalProperties"),
        (parts["Worktree"], "setup", "items"),
    ):
        table = owner["properties"][field][inner]
        owner["properties"][field][inner] = {"if": {"type": "object"}, "then": table, "else": argv}


# ── roles ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Finds the settings of a role in a run's frozen configuration.


def find_role_settings(config: Config, name: str) -> Role:
    """Returns the role's settings; raises UserError where no agent has it."""
    role = config.roles.get(name)
    if role is None:
        raise UserError(missing_roles_message([name]))
    return role


def require_roles(config: Config, names: Iterable[str]) -> None:
    """Raises one UserError that names every role that no agent has."""
    if missing := [name for name in names if name not in config.roles]:
        raise UserError(missing_roles_message(missing))


def missing_roles_message(names: Sequence[str]) -> str:
    """Says which roles no agent has, and what to write."""
    roles = f"role{'s' * (len(names) > 1)} {', '.join(names)}"
    tables = f"[roles.{names[0]}]" if len(names) == 1 else f"a table such as [roles.{names[0]}] for each"
    return (
        f'steersman.toml: no agent has the {roles}. Add {tables}, with agent = "claude" or another agent, '
        "or try `steersman demo`"
    )
