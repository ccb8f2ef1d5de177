"""What effects bring back: neutral facts, never verdicts.

Outside text is not here: `*_ref` fields name payloads. **Invariant:** no field says whether something is good.
"""

from typing import Any

import msgspec


class AgentFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One agent call, with its re-asks."""

    error: str = ""  # a provider class, or nothing
    detail_ref: str = ""
    reset_at: int | None = None
    text_ref: str = ""  # what the agent said; empty when it said nothing
    prompt_ref: str = ""
    reply: dict[str, Any] | None = (
        None  # the parsed reply, its texts replaced by payload names; None: not parsed
    )
    problems_ref: str = ""
    provider: str = ""
    model: str = ""
    session: str = ""
    tree: str = ""
    commit: str = ""
    files: int = 0
    added: int = 0
    removed: int = 0
    patch_ref: str = ""
    tokens: int | None = None
    micro_usd: int | None = None


class CheckFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A set of commands run on one tree."""

    tree: str = ""
    passed: int = 0
    failed: int = 0
    blocked: int = 0
    timeout: int = 0
    no_tests: int = 0
    tests: int = 0
    failed_commands: tuple[str, ...] = ()  # digests of argv
    failure_keys: tuple[str, ...] = ()  # digests of argv, exit code and output
    results_ref: str = ""
    first_ref: str = ""  # the first thing that failed, for people and the next round
    error: str = ""  # why nothing could be run at all


class SetupFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A working tree made ready, or why not."""

    ready: bool = False
    tree: str = ""
    commit: str = ""
    steps: int = 0
    detail_ref: str = ""


class DeliveryFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A change handed over, or why not."""

    done: bool = False
    form: str = ""
    ref: str = ""
    commit: str = ""
    tree: str = ""
    detail_ref: str = ""
