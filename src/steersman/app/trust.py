"""Trust in a repository's settings: which powerful lines a person has not trusted yet, and a yes to exactly those.

**Invariant:** a person trusts lines, never a file; nothing that works for a run can trust or revoke.
"""

import os
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from steersman.app.principal import Principal, require_person
from steersman.contracts.limits import LoadedConfig, TrustedSettings
from steersman.engine.project_files import PROMPTS_DIRECTORY
from steersman.errors import UserError
from steersman.judges.config.limits import (
    SettingLine,
    compare_setting_lines,
    digest_setting_lines,
    is_file_setting_line,
)

if TYPE_CHECKING:
    from steersman.ports.trust import TrustRecords

SettingChange = tuple[str, str | None, str | None]  # the place, what was trusted, what is there now


class NotTrustedError(UserError):
    """A person has to trust the repository's settings first; nothing was started."""

    exit_code = 4

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.details = details  # for programs: the digest, and the command that trusts it


class SettingsTrust:
    """One settings file of a repository, and what a person has trusted of it."""

    def __init__(self, records: "TrustRecords", root: str, loaded: LoadedConfig) -> None:
        self._records, self._root, self.loaded = records, root, loaded
        # One repository can hold several settings files; each is trusted by its path.
        self.name = os.path.relpath(loaded.path, root) if loaded.path is not None else ""

    @cached_property
    def trusted_lines(self) -> tuple[SettingLine, ...] | None:
        """What a person has trusted here; None where nothing was."""
        record = self._records.read(self.name)
        return None if record is None else record.lines

    @property
    def is_trusted(self) -> bool:
        """Whether a person trusts these settings, or nothing in them needs trust."""
        return not self.loaded.powerful or self.trusted_lines == self.loaded.powerful

    @property
    def changes(self) -> list[SettingChange]:
        """Every line that was not trusted as it is now; all of them where nothing was trusted."""
        return compare_setting_lines(self.trusted_lines or (), self.loaded.powerful)

    @property
    def digest(self) -> str:
        """The digest of exactly the lines that need trust now."""
        return digest_setting_lines(self.loaded.powerful)

    def describe_state(self) -> str:
        """Says which files are not trusted yet, and how many of their lines."""
        names = list(dict.fromkeys(self._line_source(place) for place, _, _ in self.changes))
        subject, is_plural = " and ".join(names), len(names) > 1
        if self.trusted_lines is None:
            return f"{subject} {'are' if is_plural else 'is'} new here, with {count_lines_text(len(self.changes))} to read"
        kinds = [
            "new" if before is None else "removed" if after is None else "changed"
            for _, before, after in self.changes
        ]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"{subject} {'have' if is_plural else 'has'} changed since you trusted the settings ({counts})"

    def _line_source(self, place: str) -> str:
        """The file or folder that a line comes from."""
        if not is_file_setting_line((place, "")):
            return self.name
        return ".steersman/" if place.startswith(".steersman/") else place

    def split_changed_files(self) -> tuple[list[str], list[str]]:
        """The files behind the changes: prompts, which a run takes from the base commit, and those that lie here."""
        lines = [(place, after or "") for place, _, after in self.changes]
        files = [line[0] for line in lines if is_file_setting_line(line) and line[1].startswith("sha256 ")]
        prompts = [path for path in files if path.startswith(f"{PROMPTS_DIRECTORY}/")]
        return prompts, [path for path in files if path not in prompts]

    def record(self, principal: Principal, lines: Sequence[SettingLine] | None = None) -> None:
        """Trusts these lines in the person's name; without any given, all that need trust."""
        require_person(principal)
        trusted = tuple(self.loaded.powerful if lines is None else lines)
        at = time.time_ns() // 1_000_000
        self._records.record(self.name, TrustedSettings(trusted, principal.person, at))
        self.__dict__.pop("trusted_lines", None)  # read again when somebody asks

    def revoke(self, principal: Principal) -> bool:
        """Forgets what was trusted; returns whether anything was."""
        require_person(principal)
        return self._records.revoke(self.name)

    def reload(self, loaded: LoadedConfig) -> "SettingsTrust":
        """The same file after it was written."""
        return SettingsTrust(self._records, self._root, loaded)


def count_lines_text(count: int) -> str:
    """Returns a number of lines in words."""
    return "1 line" if count == 1 else f"{count} lines"
