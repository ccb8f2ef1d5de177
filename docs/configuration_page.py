"""The page on every key of `steersman.toml` and of the files that limit it: type, default, example, meaning.

Types and defaults come from the contracts. Examples and meanings are written here. A key without an entry, or an entry
without a key, is an error, and `tests/docs` loads every example.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.adapters.agents.acp import AcpOptions
from steersman.adapters.agents.claude import ClaudeOptions
from steersman.adapters.agents.codex import CodexOptions
from steersman.adapters.agents.command import CommandOptions
from steersman.contracts import config as settings
from steersman.contracts.grammars import CommandGrammar, Commands
from steersman.contracts.limits import EnvLimits, SandboxLimits, SettingsLimits

Struct = type[msgspec.Struct]
AMOUNTS = {"micro_usd": "usd", "seconds": "hours"}  # contract → file, in tables of amounts
AMOUNT_TABLES: tuple[Struct, ...] = (settings.Budget, settings.ChatBudget)


class FreeKeys(msgspec.Struct):
    """A table whose keys are free."""


class KeyEntry(NamedTuple):
    """One key: a value as the file has it, and one or two sentences."""

    example: str
    meaning: str


class TableEntry(NamedTuple):
    """One table of a file: the struct that it is read as, and its keys."""

    header: str  # "": the top of the file
    struct: Struct
    about: str
    keys: Mapping[str, KeyEntry]
    needs: str = ""  # TOML before the header that makes the example a valid file
    after: str = ""  # the same, after the keys
    inherits: tuple[str, ...] = ()  # keys of another table on this page


K = KeyEntry
CALL_TIMES = {
    "seconds": K("900", "Seconds that one call may take in total."),
    "start_seconds": K("60", "Seconds until the first output of a call."),
    "idle_seconds": K("300", "Seconds between two outputs of a call. An agent that runs a tool is silent."),
}
BUDGET = {
    "usd": K("8.50", "US dollars. The reported cost of every call counts."),
    "tokens": K("3_000_000", "Tokens that the agents report."),
    "turns": K("60", "Calls of agents."),
    "hours": K(
        "6",
        "Hours of work: the sum of the times that calls, setup steps and checks take. Waiting for a person does not count.",
    ),
}
CALL_LIMITS = {
    "call_tokens": K(
        "200_000",
        "The most tokens that one call is expected to use. steersman reserves them before the call.",
    ),
    "call_micro_usd": K(
        "2_000_000",
        "The most that one call may cost, in millionths of a dollar. steersman reserves it before the call.",
    ),
}
PASSED_ON = K('["MODEL_GATEWAY_TOKEN"]', "Names of environment variables that the agent gets, for its login. Your own settings file has to allow each in `[env] pass`.")  # fmt: skip
HOSTS = K('["models.example:443"]', "Hosts with port that the agent may reach from the sandbox beside its model. Your own settings file has to allow each.")  # fmt: skip
MODEL = K('"opus"', "The model, as the agent's own program calls it. Not set: the agent's default.")
SESSIONS = K(
    "true",
    "Continue the role's last session in the same run. By default every call starts a new session.",
)
OPTIONS = K(
    '{ effort = "high" }',
    "[Keys of the agent](#keys-of-agents) as a table of their own. Keys beside `agent` mean the same.",
)
SCRIPT = K('"crew.yaml"', "The script of a `scripted` agent, relative to `steersman.toml`.")
CODER = 'version = 1\n[roles.coder]\nagent = "{}"\n'

PROJECT_TABLES = (
    TableEntry(
        "",
        settings.Config,
        "Keys at the top of the file, before the first table.",
        {
            "version": K("1", "The version of this format. It is required."),
            "project": K(
                '"shop"', "The project's name. steersman refuses an intent that names another project."
            ),
            "base": K('"main"', "The branch that runs start from. Not set: the branch that is checked out."),
            "deliver": K(
                '"branch"',
                "What happens to an approved change: it becomes a branch, it is merged into the base, or it becomes a draft pull request.",
            ),
            "known_failures": K(
                '["tests/test_tax.py::test_rounding"]',
                "Tests or checks that fail before any change and that a person has accepted by name. `steersman acknowledge` writes this list.",
            ),
            "no_tests": K(
                '["lint"]',
                "Names of checks that run no tests, such as linters. Their exit code alone counts.",
            ),
        },
        after='[checks]\nlint = ["ruff", "check"]',
    ),
    TableEntry(
        "checks.unit",
        settings.Check,
        'One table for each check. A check is a command that judges a tree. The name is free. `unit = ["pytest", "-q"]` under `[checks]` is short for a table with `run` alone.',
        {
            "run": K(
                '["python3", "-m", "pytest", "-q"]', "The program and its arguments. No shell runs them."
            ),
            "cwd": K('"backend"', "The directory in the tree in which the check starts."),
            "summary": K(
                "'Passed: +(?P<passed>\\d+)'",
                "A regular expression that counts tests in the output, for a test runner that steersman does not know. See [checks that count](../how-to/checks-that-count.md).",
            ),
            "exit_code_is_enough": K(
                "false", "Accept exit code 0 as a passed check although no test was counted."
            ),
        },
    ),
    TableEntry(
        "worktree",
        settings.Worktree,
        "What a fresh working tree needs before an agent or a check uses it.",
        {
            "include": K(
                '[".env.test"]', "Files that git does not know. steersman copies them from your checkout."
            ),
            "setup": K(
                '[["uv", "sync", "--frozen"], { run = ["npm", "ci"], cwd = "web" }]',
                "Commands that prepare the tree, in order. A step is a list of words, or a table with `run` and `cwd`.",
            ),
            "writable": K('["var"]', "Further directories of the tree that checks may write."),
        },
    ),
    TableEntry(
        "env",
        FreeKeys,
        'Variables for setup steps and checks, such as `TZ = "UTC"`. Names and values are free. `NAME = "env:NAME"` takes the value from your own environment, if your own settings file allows it in `[env] pass`.',
        {},
    ),
    TableEntry(
        "roles.coder",
        settings.Role,
        "One table for each role: `coder`, `reviewer`, `tester`, `planner`, and others that `[task]` names. Keys of the agent itself follow [below](#keys-of-agents).",
        {
            "agent": K(
                '"claude"',
                "Who plays the role: `claude`, `codex`, `gemini`, `opencode`, `claude-acp`, `acp`, `command` or `scripted`.",
            ),
            "model": MODEL,
            "script": SCRIPT,
            "retries": K(
                "2",
                "Further attempts after a provider error that can pass, and after a reply that does not fit its contract.",
            ),
            **CALL_TIMES,
            "options": OPTIONS,
            "permissions": K(
                '"edit"',
                "What the role may do: read, edit files, or also use a shell in the sandbox. Not set: what the role's work needs. A role never gets more than its work needs.",
            ),
        },
    ),
    TableEntry(
        "budget",
        settings.Budget,
        "What a run and all its child runs may use together. When an amount is used up, the run waits for a person, who raises it or stops the run.",
        BUDGET,
    ),
    TableEntry(
        "unattended",
        settings.Unattended,
        "What a run does while no person is there.",
        {
            "on_limit": K(
                '"wait"',
                "What happens at a provider's limit that lasts longer than a minute: wait until it resets, or stop the run with `provider_rate_limited`.",
            ),
        },
    ),
    TableEntry(
        "notify",
        settings.Notify,
        "Notifications are not implemented. A run does not start while this table names a webhook.",
        {
            "webhook": K(
                '"env:STEERSMAN_WEBHOOK"', "Reserved. An address, or the environment variable that holds it."
            ),
        },
    ),
    TableEntry(
        "rules",
        settings.Rules,
        "Limits and choices for the review and test loop.",
        {
            "repeated_failure": K(
                '"same_failure"',
                "When a test failure counts as repeated: the same command fails again, or it fails again with the same failure.",
            ),
            "max_iterations": K("3", "Rounds of code, review and test before the run stops."),
            "same_finding": K("3", "Reviews that may leave the same finding open before the run stops."),
            "changed_tests": K(
                '"gate"',
                "What happens when a change touches existing tests: a person decides at a gate, or the report shows it.",
            ),
            "red_base": K(
                '"stop"',
                "What happens when a check fails before any change: the run stops, or it has to fix the check.",
            ),
            "check_seconds": K("600", "Seconds that one setup step or check may take."),
        },
    ),
    TableEntry(
        "task",
        settings.TaskRules,
        "Settings of the machine `task`.",
        {
            "planners": K(
                '["planner", "architect"]',
                "Roles that plan. The first drafts and the others comment. Empty: `planner` if that role exists, else `coder`.",
            ),
            "plan_reviewers": K('["reviewer"]', "Roles that review a plan."),
            "code_reviewers": K('["reviewer"]', "Roles that review a change."),
            "codegen": K(
                '"coder"', "How code is made: by the coder alone, or by a child run of `roundtable`."
            ),
            "max_rounds": K("3", "Rounds that planners have to agree on a plan."),
            "max_regressions": K(
                "3", "How often a task goes back to an earlier phase by itself before it waits for a person."
            ),
        },
        needs='version = 1\n[roles.planner]\nagent = "claude"\n[roles.architect]\nagent = "codex"\n[roles.reviewer]\nagent = "codex"\n',
    ),
    TableEntry(
        "audit",
        settings.Audit,
        "Where proof of the tapes is kept outside the store.",
        {
            "anchor": K(
                '["tee", "-a", "anchors.jsonl"]',
                "A command that gets each anchor as one line of JSON on its standard input. See [verify a tape](../how-to/verify-a-tape.md).",
            ),
        },
    ),
    TableEntry(
        "redact",
        settings.Redact,
        "What steersman removes from recorded texts, beside the secrets that it recognises by their form.",
        {
            "env": K(
                '["CUSTOMER_KEY"]', "Environment variables whose values steersman removes from every text."
            ),
        },
    ),
    TableEntry(
        "chat",
        settings.Chat,
        "Conversations with agents. See [talk with agents](../how-to/chat.md).",
        {
            "host": K(
                '"bob"',
                "The agent that answers a message that names no agent. Not set: the only agent, if there is exactly one.",
            ),
            "history": K("20", "Earlier messages that an agent gets with each message."),
            "history_bytes": K("65_536", "Bytes of earlier messages that an agent gets at most."),
        },
        needs='version = 1\n[chat.agents.bob]\nagent = "claude"\n',
    ),
    TableEntry(
        "chat.agents.bob",
        settings.ChatAgent,
        "One table for each agent that you can talk to. The name is what you write after `@`. Keys of the agent itself follow [below](#keys-of-agents).",
        {
            "agent": K('"claude"', "Which agent answers. The values are those of `[roles.…]`."),
            "model": MODEL,
            "script": SCRIPT,
            "prompt": K('"You know the database. Answer briefly."', "What the agent is told about itself."),
            "aliases": K('["robert"]', "Further names that the agent answers to."),
            **CALL_TIMES,
            "options": OPTIONS,
        },
    ),
    TableEntry(
        "chat.budget",
        settings.ChatBudget,
        "What one conversation may use.",
        {name: BUDGET[name] for name in ("usd", "tokens", "turns")},
    ),
    TableEntry(
        "sandbox",
        settings.SandboxSettings,
        "The sandbox in which agents and checks run.",
        {
            "mode": K(
                '"required"',
                "Use a sandbox where the machine can make one, start no run without one, or use none. Your own settings file has to allow `off`.",
            ),
            "reads": K(
                '["~/.cargo/registry"]',
                "Places outside the repository that programs may read. Your own settings file has to allow each.",
            ),
            "network": K(
                "false",
                "Whether checks may use the network. Setup steps always may, and agents reach their model. Your own settings file has to allow `true`.",
            ),
            "memory_gb": K("8", "Gigabytes of memory that one process may use."),
            "disk_gb": K("20", "Gigabytes that one command may write."),
        },
    ),
    TableEntry(
        "commands",
        Commands,
        "Commands that a tester may propose beside the project's checks. See [allow commands](../how-to/allow-commands.md).",
        {
            "sets": K(
                '["tests", "uv"]',
                "Sets of grammars that are switched on. [Commands that a tester may propose](commands.md) lists them.",
            ),
            "scripts": K(
                '["test:unit"]',
                "Scripts beside `test` that may follow `npm run`, `pnpm run`, `yarn run`, `bun run` and `hatch run`.",
            ),
            "targets": K('["check"]', "Targets beside `test` that may follow `make`, `gradle` and `mvn`."),
        },
    ),
    TableEntry(
        "commands.grammars.bats",
        CommandGrammar,
        "A grammar for a program of your own. The name is free.",
        {
            "start": K('["bats"]', "The first words of the command."),
            "also": K('[["npx", "bats"]]', "Other first words of the same command."),
            "like": K('"pytest"', "A grammar whose flags and values hold here too."),
            "flags": K(
                '["-t/--tap", "--count"]', "Options without a value. `/` separates names of one option."
            ),
            "values": K(
                '{ "-j/--jobs" = "jobs", "--formatter=" = ["tap", "pretty"] }',
                "Options with a value: the kind of value, or the words it may be. `=` at the end of a name: the value follows in the same word.",
            ),
            "joined": K("true", "Accept `-xv` for `-x -v`."),
            "needs": K('["--count"]', "Options of which a command needs at least one."),
            "first": K('["path"]', "Kinds of operands that come first."),
            "operands": K('"path"', "The kind of the operands after them. Not set: there are none."),
            "least": K("1", "The fewest operands."),
            "most": K("20", "The most operands."),
            "tail_flags": K('["--verbose"]', "Options after `--`. Not set: the command has no `--`."),
            "tail_values": K('{ "--seed" = "number" }', "Options with a value after `--`."),
            "runs": K(
                '["pytest"]', "For a program that starts another: the grammars of which one has to follow."
            ),
            "searches": K("false", "Whether the program reads every file below its operands."),
            "proves": K(
                '"tests"', "What exit code 0 proves: that tests passed, that a check passed, or nothing."
            ),
        },
    ),
)

AGENT_TABLES = (
    TableEntry("claude", ClaudeOptions, "", {
        "program": K('"claude"', "The program, if it is not the one that PATH leads to."),
        "effort": K('"high"', "What `claude --effort` takes."),
        "hosts": HOSTS, "environment": PASSED_ON, "sessions": SESSIONS, **CALL_LIMITS,
    }, needs=CODER.format("claude"), inherits=("model",)),
    TableEntry("codex", CodexOptions, "", {
        "program": K('"codex"', "The program, if it is not the one that PATH leads to."),
        "effort": K('"high"', "The reasoning effort of the model."),
        "base_url": K('"https://models.example/v1"', "The address of another API than the default one. Your own settings file has to allow its host."),
        "key_env": K('"MODEL_GATEWAY_KEY"', "The environment variable that holds the key of that API."),
        "hosts": HOSTS, "environment": PASSED_ON, "sessions": SESSIONS, **CALL_LIMITS,
    }, needs=CODER.format("codex"), inherits=("model",)),
    TableEntry("gemini`, `opencode`, `claude-acp`, `acp", AcpOptions, "", {
        "command": K('["my-agent", "--acp"]', "For `acp`: the program and its arguments."),
        "program": K('"gemini"', "For the agents with a name: the program, if it is not the one that PATH leads to."),
        "mode": K('"code"', "A mode of the agent, by its id."),
        "hosts": HOSTS, "environment": PASSED_ON,
        "settings": K('{ theme = "plain" }', "Settings for the agent's own configuration. For `gemini` and `opencode`."),
        **CALL_LIMITS,
    }, needs=CODER.format("acp"), inherits=("model",)),
    TableEntry("command", CommandOptions, "", {
        "command": K('["./tools/agent.sh"]', "The program and its arguments. It reads the prompt from standard input."),
        "hosts": HOSTS, "environment": PASSED_ON, **CALL_LIMITS,
    }, needs=CODER.format("command"), inherits=("model",)),
)  # fmt: skip

LIMIT_TABLES = (
    TableEntry("", SettingsLimits, "Keys at the top of the file.", {
        "agents": K('["claude", "codex"]', "The only agents that may play a role or be talked to. Not set: any agent."),
    }),
    TableEntry("sandbox", SandboxLimits, "The widest sandbox that a repository may ask for.", {
        "mode": K('"required"', "The loosest mode. Not set: `auto` in your own file, no limit in a policy."),
        "reads": K('["~/.cargo/registry"]', "Places outside the repository, with all below them, that a repository may read. Not set: none in your own file, no limit in a policy."),
        "network": K("true", "Whether a repository may give its checks the network. Not set: `false` in your own file, no limit in a policy."),
        "hosts": K('["models.example:443"]', "Hosts with port that agents may reach beside their model. Not set: none in your own file, no limit in a policy."),
    }),
    TableEntry("env", EnvLimits, "Your environment.", {
        "pass": K('["PRIVATE_INDEX_TOKEN"]', "Variables that a repository may pass on with `env:`, `environment` and `key_env`. Not set: none in your own file, no limit in a policy."),
    }),
    TableEntry("budget", settings.Budget, "The most that a run may use. A larger budget of a repository is lowered.", BUDGET),
)  # fmt: skip

INTRODUCTION = """# Configuration

`steersman.toml` is at the top of the repository. `steersman init` writes it, and you can edit it. A run keeps the settings with which it started. A file with a mistake is refused as a whole, and the message lists every mistake with its line.

A repository's settings can start programs. steersman uses them only after a person has [trusted](../how-to/trust-a-repository.md) them."""

AGENT_INTRODUCTION = """## Keys of agents

Each agent accepts these keys in its `[roles.…]` or `[chat.agents.…]` table, beside the keys above. `scripted` has no keys of its own."""

LIMIT_INTRODUCTION = """## Your own settings file, and a policy

Three files limit what any repository may ask for: your own `~/.config/steersman/config.toml` (or below `$XDG_CONFIG_HOME`), the organisation's `/etc/steersman/policy.toml`, and the file that `$STEERSMAN_POLICY` names. They have the same keys. A repository that asks for more than all of them allow is refused."""


def render_configuration_page(notice: str) -> str:
    """The whole page."""
    parts = [
        notice,
        INTRODUCTION,
        *(_render_table(table, "##") for table in PROJECT_TABLES),
        AGENT_INTRODUCTION,
    ]
    parts += [_render_table(table, "###") for table in AGENT_TABLES]
    parts += [LIMIT_INTRODUCTION, *(_render_table(table, "###") for table in LIMIT_TABLES)]
    return "\n\n".join(parts) + "\n"


def example_file(table: TableEntry, *, agent: bool = False) -> str:
    """A whole settings file that sets every key of `table` to its example.

    `script` is left out: it is for the scripted agent alone."""
    lines = [f"{name} = {entry.example}" for name, entry in table.keys.items()]
    lines = [line for line in lines if not line.startswith("script = ")]
    head = table.needs.splitlines() or ([] if "version" in table.keys else ["version = 1"])
    header = [] if agent or not table.header else [f"[{table.header}]"]
    return "\n".join([*head, *header, *lines, table.after]) + "\n"


def file_keys(table: TableEntry) -> Iterator[tuple[str, str]]:
    """Every field of the table's struct that is a key and not a table, with the key's name in the file."""
    fields = dict(zip(table.struct.__struct_fields__, table.struct.__struct_encode_fields__, strict=True))
    for field, name in fields.items():
        if name in (*_TABLE_FIELDS.get(table.struct, ()), *table.inherits):
            continue
        yield field, AMOUNTS.get(name, name) if table.struct in AMOUNT_TABLES else name


# Fields that are tables of their own on this page, or free options.
_TABLE_FIELDS: Mapping[Struct, tuple[str, ...]] = {
    settings.Config: tuple(table.header.split(".")[0] for table in PROJECT_TABLES),
    settings.Chat: ("agents", "budget"),
    Commands: ("grammars",),
    SettingsLimits: tuple(table.header for table in LIMIT_TABLES),
}


def _render_table(table: TableEntry, level: str) -> str:
    keys = dict(file_keys(table))
    if set(keys.values()) != set(table.keys):
        raise ValueError(f"[{table.header}]: {sorted(set(keys.values()) ^ set(table.keys))}")
    defaults = {field.name: field for field in msgspec.structs.fields(table.struct)}
    names = {name: field for field, name in keys.items()}
    rows = [
        f"| `{name}` | {_describe_type(table, names[name])} | {_describe_default(defaults[names[name]], name)} | `{_escape(entry.example)}` | {entry.meaning} |"
        for name, entry in table.keys.items()
    ]
    heading = "Top of the file" if not table.header else f"`[{table.header}]`"
    if table in AGENT_TABLES:
        heading = f"`{table.header}`"
    grid = (
        ["| key | type | default | example | meaning |\n|---|---|---|---|---|\n" + "\n".join(rows)]
        if rows
        else []
    )
    return "\n\n".join(part for part in (f"{level} {heading}", table.about, *grid) if part)


def _describe_type(table: TableEntry, field: str) -> str:
    schema = msgspec.json.schema(table.struct)["$defs"][table.struct.__name__]["properties"]
    name = dict(zip(table.struct.__struct_fields__, table.struct.__struct_encode_fields__, strict=True))[
        field
    ]
    if table.struct in AMOUNT_TABLES and name in AMOUNTS:
        largest = settings.MAX_USD if name == "micro_usd" else settings.MAX_HOURS
        return f"number above 0, at most {largest:,}"
    return _describe_schema(schema[name])


def _describe_schema(schema: dict[str, Any]) -> str:
    options = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    if "anyOf" in schema and len(options) == 1:
        return _describe_schema(options[0])
    if options:
        return " or ".join(dict.fromkeys(map(_describe_schema, options)))
    if "enum" in schema:
        return (
            " or ".join(f"`{value}`" for value in schema["enum"] if value is not None)
            if len(schema["enum"]) < 8
            else "a kind of value"
        )
    match schema.get("type"):
        case "boolean":
            return "`true` or `false`"
        case "integer":
            low, high = schema.get("minimum"), schema.get("maximum")
            if low is None:
                return "whole number"
            return f"whole number from {low}" + ("" if high is None or high > 2**50 else f" to {high:,}")
        case "array":
            inner = schema.get("items", {})
            return (
                "list of lists of strings"
                if inner.get("type") == "array"
                else f"list of {_describe_items(inner)}"
            )
        case "object":
            return "table"
    return "string"


def _describe_items(inner: dict[str, Any]) -> str:
    if "$ref" in inner:
        return "commands"
    return "names" if "enum" in inner else "strings"


def _describe_default(field: msgspec.structs.FieldInfo, name: str) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "empty"
    if field.required or name == "version":
        return "required"
    match field.default:
        case None:
            return "not set"
        case "" | ():
            return "empty"
        case value:
            return f"`{msgspec.json.encode(value).decode()}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
