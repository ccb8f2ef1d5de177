"""Asks a person once before a repository's settings start programs, read, write, widen the sandbox or weaken evidence.

**Invariant:** there is no way around the question but the digest of exactly these lines; nothing inside a run can trust.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import UserError
from steersman.judges.config.powerful_parts import (
    SettingLine,
    compare_setting_lines,
    digest_setting_lines,
    group_setting_lines,
    is_file_setting_line,
)

if TYPE_CHECKING:
    from steersman.faces.cli.context import CommandContext

TRUST_PAGE_WIDTH = 80
MAX_SINGLE_LINES = 12  # lines that are shown one by one; more are shown in groups
MAX_NAMED_FILES = 5  # files that a command names one by one
TRUST_MEANING_LINES = (
    "These lines can start programs, read or write outside the repository, widen",
    "the sandbox, or weaken evidence, review and redaction:",
)
_LONG_SPACES = re.compile("[\\s\u2800]{9,}")


class NotTrustedError(UserError):
    """A person has to trust the repository's settings first; nothing was started."""

    exit_code = 4

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.details = details  # for programs: the digest, and the command that trusts it


def require_trust(context: "CommandContext", loaded: Any, *, ask: bool = True) -> None:
    """Returns when a person trusts the settings as they are; asks where a person is at a terminal, else refuses."""
    if is_config_trusted(context, loaded):
        return
    refuse_agent_trust(context)
    if not ask or context.as_json or not _can_ask_for_trust():
        raise NotTrustedError(_explain_missing_trust(context, loaded), **trust_details(context, loaded))
    if not ask_for_trust(context, loaded):
        show_command, ask_command = trust_command_text(context, "--show"), trust_command_text(context)
        raise NotTrustedError(
            f"not trusted: nothing was started.\nnext: `{show_command}` lists the lines, `{ask_command}` asks again"
        )


def is_config_trusted(context: "CommandContext", loaded: Any) -> bool:
    """Whether a person trusts these settings, or nothing in them needs trust."""
    return not loaded.powerful or trusted_lines(context, loaded) == loaded.powerful


def refuse_agent_trust(context: "CommandContext") -> None:
    """Raises where this process works for a run: only a person can trust."""
    if effect := context.services.find_calling_effect(context.project_root):
        raise NotTrustedError(
            f"refused: this comes from inside, from effect {effect}: an agent never speaks for a person"
        )


def ask_for_trust(context: "CommandContext", loaded: Any) -> bool:
    """Shows what a person has not trusted yet and asks; a yes is recorded."""
    from steersman.faces.cli.typeahead import discard_typeahead

    details = trust_details(context, loaded)
    is_agreed = _print_trust_pages(context, list(describe_untrusted_lines(context, loaded)))
    if is_agreed:
        discard_typeahead()
        count = count_lines_text(len(_untrusted_changes(context, loaded)))
        is_agreed = context.confirm(
            f"trust {'this' if count == '1 line' else 'these'} {count}?",
            f"To trust them: {details['command']}",
        )
    if is_agreed:
        record_trust(context, loaded, loaded.powerful)
    return is_agreed


def _print_trust_pages(context: "CommandContext", rows: Sequence[str]) -> bool:
    """Prints everything, a screen at a time; whether a person has read on to the end."""
    from steersman.faces.cli.typeahead import discard_typeahead

    page = max(10, shutil.get_terminal_size().lines - 3)
    for number, row in enumerate(rows):
        if number and number % page == 0:
            discard_typeahead()
            click.echo(f"{number} of {len(rows)} rows; Enter shows more, n ends: ", nl=False, err=True)
            if sys.stdin.readline().strip().lower() not in ("", "y", "yes"):
                return False
        context.warn(row)
    return True


def record_trust(context: "CommandContext", loaded: Any, lines: Sequence[SettingLine]) -> None:
    """Trusts these lines in the person's name."""
    from steersman.contracts.limits import TrustedSettings

    refuse_agent_trust(context)
    trust_record = TrustedSettings(tuple(lines), context.person, time.time_ns() // 1_000_000)
    context.services.open_trust_file(context.project).record(_trust_key(context, loaded), trust_record)


def describe_untrusted_lines(
    context: "CommandContext", loaded: Any, *, show_all: bool = False
) -> Iterator[str]:
    """The lines to read before trusting: all of them, or after a change only those that differ; many in groups."""
    changes, was_trusted_before = (
        _untrusted_changes(context, loaded),
        trusted_lines(context, loaded) is not None,
    )
    new_lines = [(place, after) for place, before, after in changes if before is None and after is not None]
    changed_lines = [change for change in changes if None not in change]
    removed_lines = [
        (place, before) for place, before, after in changes if after is None and before is not None
    ]
    yield from (f"{describe_trust_state(context, loaded)}.", *TRUST_MEANING_LINES)
    yield from ["new:"] if new_lines and was_trusted_before else []
    yield from render_trust_lines(new_lines, show_all=show_all)
    yield from ["changed:"] if changed_lines else []
    for place, before, after in changed_lines:
        yield from (
            *_wrap_trust_line(f"  {place}"),
            *_wrap_trust_line(f"    was {before}"),
            *_wrap_trust_line(f"    now {after}"),
        )
    yield from ["removed:"] if removed_lines else []
    yield from render_trust_lines(removed_lines, show_all=show_all)
    if commands := _trust_read_commands(
        context, loaded, [(place, after or "") for place, _, after in changes]
    ):
        yield from ("To read the files as a run uses them:", *(f"  {command}" for command in commands))
    if loaded.excesses:
        yield "Not allowed on this machine, trusted or not:"
        yield from (row for excess in loaded.excesses for row in _wrap_trust_line(f"  {excess}"))
    if not show_all and len(new_lines) > MAX_SINGLE_LINES:
        yield f"One by one: {trust_command_text(context, '--show')}"


def render_trust_lines(lines: Sequence[SettingLine], *, show_all: bool = True) -> Iterator[str]:
    """Every line; where they are many and not to be whole, alike ones in one row."""
    texts = (
        [f"{line_place} = {line_value}" for line_place, line_value in lines]
        if show_all or len(lines) <= MAX_SINGLE_LINES
        else group_setting_lines(lines)
    )
    for text in texts:
        yield from _wrap_trust_line(f"  {text}")


def _trust_read_commands(context: "CommandContext", loaded: Any, lines: Sequence[SettingLine]) -> list[str]:
    """Commands that show the text behind the digests: prompts as the base commit has them, the rest as it lies here."""
    from steersman.engine.project_files import PROMPTS_DIRECTORY

    files = [line[0] for line in lines if is_file_setting_line(line) and line[1].startswith("sha256 ")]
    prompts = [path for path in files if path.startswith(f"{PROMPTS_DIRECTORY}/")]
    git = "git" if context.project_option is None else f"git -C {shlex.quote(context.project_root)}"
    show_commands = [f"{git} show {shlex.quote(f'{loaded.base_commit[:12]}:{path}')}" for path in prompts]
    other_files = [path for path in files if path not in prompts]
    if not other_files:
        return show_commands
    is_many = len(other_files) > MAX_NAMED_FILES
    parts = dict.fromkeys("/".join(path.split("/")[:2]) if is_many else path for path in other_files)
    places = shlex.join(os.path.relpath(os.path.join(context.project_root, part)) for part in parts)
    return [
        *show_commands,
        f"find {places} -type f -exec tail -n +1 {{}} +" if is_many else f"tail -n +1 {places}",
    ]


def describe_trust_state(context: "CommandContext", loaded: Any) -> str:
    """Says which files are not trusted yet, and how many of their lines."""
    changes, trusted_before = _untrusted_changes(context, loaded), trusted_lines(context, loaded)
    names = list(dict.fromkeys(_trust_line_source(context, loaded, place) for place, _, _ in changes))
    subject, is_plural = " and ".join(names), len(names) > 1
    if trusted_before is None:
        return f"{subject} {'are' if is_plural else 'is'} new here, with {count_lines_text(len(changes))} to read"
    kinds = [
        "new" if before is None else "removed" if after is None else "changed" for _, before, after in changes
    ]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return f"{subject} {'have' if is_plural else 'has'} changed since you trusted the settings ({counts})"


def count_lines_text(count: int) -> str:
    """Returns a number of lines in words."""
    return "1 line" if count == 1 else f"{count} lines"


def trust_details(context: "CommandContext", loaded: Any) -> dict[str, str]:
    """The digest of the lines and the command that trusts exactly these without a question."""
    digest = digest_setting_lines(loaded.powerful)
    return {"digest": digest, "command": trust_command_text(context, f"--digest {digest}")}


def trust_command_text(context: "CommandContext", option: str = "") -> str:
    """Returns the `steersman trust` command for the current directory."""
    project_text = (
        "" if context.project_option is None else f" --project {shlex.quote(context.start_directory)}"
    )
    return f"steersman{project_text} trust {option}".rstrip()


def revoke_trust(context: "CommandContext", loaded: Any) -> bool:
    """Forgets what was trusted; returns whether anything was."""
    was_trusted: bool = context.services.open_trust_file(context.project).revoke(_trust_key(context, loaded))
    return was_trusted


def _explain_missing_trust(context: "CommandContext", loaded: Any) -> str:
    count = count_lines_text(len(_untrusted_changes(context, loaded)))
    return (
        f"the settings are not trusted: {describe_trust_state(context, loaded)}. Nothing was started.\n"
        f"Read {count} with `{trust_command_text(context, '--show')}`, then trust with\n{trust_details(context, loaded)['command']}"
    )


def _untrusted_changes(context: "CommandContext", loaded: Any) -> list[tuple[str, str | None, str | None]]:
    return compare_setting_lines(trusted_lines(context, loaded) or (), loaded.powerful)


def trusted_lines(context: "CommandContext", loaded: Any) -> tuple[SettingLine, ...] | None:
    """What a person has trusted here; None where nothing was."""
    trust_record = context.services.open_trust_file(context.project).read(_trust_key(context, loaded))
    return None if trust_record is None else trust_record.lines


def _trust_key(context: "CommandContext", loaded: Any) -> str:
    """One repository can hold several settings files; each is trusted by its path."""
    return os.path.relpath(loaded.path, context.project_root) if loaded.path is not None else ""


def _trust_line_source(context: "CommandContext", loaded: Any, place: str) -> str:
    """The file or folder that a line comes from."""
    if not is_file_setting_line((place, "")):
        return _trust_key(context, loaded)
    return ".steersman/" if place.startswith(".steersman/") else place


def _wrap_trust_line(text: str) -> list[str]:
    """Whole, however long: a person trusts nothing that was not shown; no run of spaces pushes text out of sight."""
    text = _LONG_SPACES.sub(lambda spaces: f"[{len(spaces[0])} spaces]", text)
    rows = textwrap.wrap(
        text,
        TRUST_PAGE_WIDTH - 2,
        subsequent_indent=" " * 8,
        break_on_hyphens=False,
        drop_whitespace=False,
        replace_whitespace=False,
        expand_tabs=False,
    )
    return [row for row in rows if row.strip()]


def _can_ask_for_trust() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
