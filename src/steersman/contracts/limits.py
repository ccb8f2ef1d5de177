"""The person's own settings file and an organisation's policy: how far any repository's settings may go here."""

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from steersman.contracts.config import Budget, Config, ConfigName, ConfigText, EnvName, ReadPath

if TYPE_CHECKING:
    from pathlib import Path


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The widest box that a repository may ask for; None says nothing."""

    mode: Literal["required", "auto", "off"] | None = None
    reads: tuple[ReadPath, ...] | None = None  # places outside the repository, and all below them
    network: bool | None = None  # of checks
    hosts: tuple[ConfigText, ...] | None = None  # "host:port" that agents may reach beside their model's own


class EnvLimits(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"names": "pass"}
):
    """Which variables of the person's environment a repository may pass on."""

    names: tuple[EnvName, ...] | None = None


class SettingsLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One such file."""

    agents: tuple[ConfigName, ...] | None = None  # who may play a role or be talked to; None: anyone
    sandbox: SandboxLimits = SandboxLimits()
    env: EnvLimits = EnvLimits()
    budget: Budget = Budget()  # the most that a run may use


class LimitFile(msgspec.Struct, frozen=True):
    """A file of limits and who wrote it: the person's own can be widened by the person."""

    path: str
    limits: SettingsLimits
    own: bool = False


# What holds for what the person's own file does not say, and where there is none.
OWN_SANDBOX_DEFAULTS = SandboxLimits(mode="auto", reads=(), network=False, hosts=())


# ── trust ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a person has trusted of a repository's settings.


class LoadedConfig(NamedTuple):
    """A configuration, where it came from (None: there is no file) and its digest."""

    config: Config
    path: "Path | None"
    digest: str
    powerful: tuple[tuple[str, str], ...] = ()  # the lines that need a person's trust
    base_commit: str = ""  # the prompts among these lines are its files
    tightened: tuple[str, ...] = ()  # what the limits of this machine changed, in words
    excesses: tuple[str, ...] = ()  # what they do not allow, in words; only in settings to look at


class TrustedSettings(msgspec.Struct, frozen=True):
    """The lines of one settings file that need trust, as they were when a person read them."""

    lines: tuple[tuple[str, str], ...]
    person: str
    at: int  # milliseconds since 1970
