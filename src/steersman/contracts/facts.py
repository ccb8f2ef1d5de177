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
    # The parsed reply, its texts replaced by payload names; None: not parsed.
    reply: dict[str, Any] | None = None
    problems_ref: str = ""
    provider: str = ""
    model: str = ""
    session: str = ""
    transcript: str = ""  # digest of everything its program said
    denied: int = 0  # tools it asked for and did not get
    tree: str = ""
    commit: str = ""
    files: int = 0
    added: int = 0
    removed: int = 0
    patch_ref: str = ""
    infrastructure: int = 0  # changed files that decide what checks prove or what agents are told
    infrastructure_ref: str = ""  # them in words, with digests; also tests that a project only wants shown
    instructions_ref: str = ""  # names of those that agents would obey
    refused_ref: str = ""  # places that its box did not let it through to
    tokens: int | None = None
    micro_usd: int | None = None


class CheckFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A set of commands run on one tree, beside the same on the base tree."""

    tree: str = ""
    passed: int = 0
    failed: int = 0
    blocked: int = 0
    timeout: int = 0
    no_tests: int = 0
    known: int = 0  # failures that the base tree has too and a person has acknowledged by name
    flaky: int = 0  # failed and passed on the same tree
    tests: int = 0  # that speak for a pass; a check whose exit code is enough by choice counts as one
    missing: int = 0  # tests that ran on the base tree and did not run here
    doubts: int = 0  # checks about which a person has to be asked for another reason
    failed_commands: tuple[str, ...] = ()  # digests of argv
    failure_keys: tuple[str, ...] = ()  # digests of argv, exit code and output
    results_ref: str = ""
    first_ref: str = ""  # the first thing that failed, for people and the next round
    questions_ref: str = ""  # what a person should look at, in words
    error: str = ""  # why nothing could be run at all


class BaselineFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The project's checks on the tree before any change."""

    tree: str = ""
    checks: int = 0
    failed: int = 0  # checks that did not pass
    unstarted: int = 0  # of these: checks that could not be started
    red: int = 0  # of the others: checks with failures that are not acknowledged, or without an end
    tests: int = 0
    stale: int = 0  # acknowledged names that did not fail
    known: int = 0  # acknowledged failures
    results_ref: str = ""
    first_ref: str = ""  # what failed, or why nothing could be run
    error: str = ""


class SetupFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A working tree made ready, or why not."""

    ready: bool = False
    tree: str = ""
    commit: str = ""
    steps: int = 0
    detail_ref: str = ""


class DeliveryFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A change that was delivered or reverted, or why not."""

    done: bool = False
    moved: bool = False  # the branch is not where the change was checked
    form: str = ""
    ref: str = ""
    commit: str = ""
    tree: str = ""
    url_ref: str = ""  # where a pull request is
    detail_ref: str = ""


class BaseFacts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where the branch is that the change goes to."""

    error: str = ""  # why it could not be looked at; told_ref has the words
    lost: bool = False  # what was delivered before is not there any more
    absorbed: bool = False  # the branch has all of the change already, from somewhere else
    moved: bool = False
    # Commits that the change was made on and the branch no longer has; told_ref lists them.
    rewritten: int = 0
    conflicts: int = 0
    base: str = ""  # commit
    base_tree: str = ""
    commit: str = ""  # the change on top of it
    tree: str = ""
    patch_ref: str = ""
    written: dict[str, str] = {}
    refs: dict[str, str] = {}
    told_ref: str = ""
