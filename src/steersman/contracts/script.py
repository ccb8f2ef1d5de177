"""The script of a scripted agent: what it says and edits, chosen by role, mode, round and attempt.

**Invariant:** a step is chosen by what is asked, never by how often; the script holds no counter.
"""

from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.agent import ProviderClass
from steersman.contracts.config import drop_null_types

ROLE_NAME_PATTERN = r"^(?!version$)[a-z][a-z0-9_-]{0,63}$"
SECONDS_PATTERN = r"^(0|[1-9][0-9]{0,4})(\.[0-9]{1,6})?$"

ScriptCount = Annotated[int, Meta(ge=1, le=9999)]
ScriptAmount = Annotated[int, Meta(ge=0, le=10**15)]
# A number to an editor that knows the schema, a string to us: no binary fractions.
ScriptSeconds = Annotated[
    str, Meta(pattern=SECONDS_PATTERN, extra_json_schema={"type": ["string", "number"]})
]


class ScriptEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change to one file; exactly one of write, append, delete and replace."""

    write: str | None = None
    append: str | None = None
    delete: str | None = None
    replace: str | None = None
    text: str | None = None
    find: str | None = None
    with_: str | None = msgspec.field(name="with", default=None)


class ScriptStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens when a request fits `mode`, `round` and `attempt`, where they are given."""

    mode: str | None = None
    round: ScriptCount | None = None
    attempt: ScriptCount | None = None
    say: str | None = None  # the answer, as text
    reply: dict[str, Any] | None = None  # the answer, as an object of strings and lists; the nonce is added
    json: str | None = None  # the answer, as JSON text of one object with numbers in it; the nonce is added
    raw: str | None = None  # the answer, word for word, garbage allowed
    nonce: Literal["right", "wrong"] = "right"
    edit: tuple[ScriptEdit, ...] = ()
    # Commands for a shell of its own: none is run, each is held to what it may run.
    wants: tuple[str, ...] = ()
    error: ProviderClass | None = None
    detail: str = ""
    reset_in: ScriptAmount | None = None  # seconds
    sleep: ScriptSeconds = "0"
    tokens: ScriptAmount | None = None
    micro_usd: ScriptAmount | None = None
    process: bool = False  # carried out by a child process


class AgentScript(msgspec.Struct, frozen=True):
    """Every role's steps."""

    roles: dict[str, tuple[ScriptStep, ...]]
    version: int = 1


class ScriptJob(msgspec.Struct, frozen=True, kw_only=True):
    """One step to be carried out, as it is handed to a child process."""

    step: ScriptStep
    workdir: str
    writes: bool
    allows: tuple[tuple[str, ...], ...] | None = None
    nonce: str
    model: str = ""
    session: str | None = None


@cache
def script_schema() -> dict[str, Any]:
    """The JSON Schema of a script file: `version: 1`, then a list of steps for each role."""
    (step,), components = msgspec.json.schema_components((ScriptStep,), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "steersman script",
        "type": "object",
        "properties": {"version": {"const": 1}},
        "required": ["version"],
        "patternProperties": {ROLE_NAME_PATTERN: {"type": "array", "items": step}},
        "additionalProperties": False,
        "$defs": drop_null_types(components),
    }
