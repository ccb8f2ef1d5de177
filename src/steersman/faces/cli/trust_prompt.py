"""Asks a person once before a repository's settings start programs, read, write, widen the sandbox or weaken evidence.

**Invariant:** there is no way around the question but the digest of exactly these lines; nothing inside a run can trust.
"""

import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from steersman.app.principal import require_person
from steersman.app.trust import NotTrustedError, SettingsTrust, count_lines_text
from steersman.judges.config.limits import SettingLine, group_setting_lines

if TYPE_CHECKING:
    from steersman.contracts.limits import LoadedConfig
    from steersman.faces.cli.context import CommandContext

TRUST_PAGE_WIDTH = 80
MAX_SINGLE_LINES = 12  # lines that are shown one by one; more are shown in groups
MAX_NAMED_FILES = 5  # files that a command names one by one
TRUST_MEANING_LINES = (
    "These lines can start programs, read or write outside the repository, widen",
    "the sandbox, or weaken evidence, review and redaction:",
)
_LONG_SPACES = re.compile("[\\s\u2800]{9,}")


def open_settings_trust(context: "CommandContext", loaded: "LoadedConfig") -> SettingsTrust:
    """What a person trusts of these settings."""
    return SettingsTrust(context.services.open_trust_file(context.project), context.project_root, loaded)


def require_trust(context: "CommandContext", loaded: "LoadedConfig", *, ask: bool = True) -> None:
    """Returns when a person trusts the settings as they are; asks where a person is at a terminal, else refuses."""
    trust = open_settings_trust(context, loaded)
    if trust.is_trusted:
        return
    require_person(context.principal)
    if not ask or context.as_json or not _can_ask_for_trust():
        raise NotTrustedError(_explain_missing_trust(context, trust), **trust_details(context, trust))
    if not ask_for_trust(context, trust):
        show_command, ask_command = trust_command_text(context, "--show"), trust_command_text(context)
        raise NotTrustedError(
            f"not trusted: nothing was started.\nnext: `{show_command}` lists the lines, `{ask_command}` asks again"
        )


def ask_for_trust(context: "CommandContext", trust: SettingsTrust) -> bool:
    """Shows what a person has not trusted yet and asks; a yes is recorded."""
    from steersman.faces.cli.typeahead import discard_typeahead

    is_agreed = _print_trust_pages(context, list(describe_untrusted_lines(context, trust)))
    if is_agreed:
        discard_typeahead()
        count = count_lines_text(len(trust.changes))
        is_agreed = context.confirm(
            f"trust {'this' if count == '1 line' else 'these'} {count}?",
            f"To trust them: {trust_details(context, trust)['command']}",
        )
    if is_agreed:
        trust.record(context.principal)
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


def describe_untrusted_lines(
    context: "CommandContext", trust: SettingsTrust, *, show_all: bool = False
) -> Iterator[str]:
    """The lines to read before trusting: all of them, or after a change only those that differ; many in groups."""
    changes, was_trusted_before = trust.changes, trust.trusted_lines is not None
    new_lines = [(place, after) for place, before, after in changes if before is None and after is not None]
    changed_lines = [change for change in changes if None not in change]
    removed_lines = [
        (place, before) for place, before, after in changes if after is None and before is not None
    ]
    yield from (f"{trust.describe_state()}.", *TRUST_MEANING_LINES)
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
    if commands := _trust_read_commands(context, trust):
        yield from ("To read the files as a run uses them:", *(f"  {command}" for command in commands))
    if trust.loaded.excesses:
        yield "Not allowed on this machine, trusted or not:"
        yield from (row for excess in trust.loaded.excesses for row in _wrap_trust_line(f"  {excess}"))
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


def _trust_read_commands(context: "CommandContext", trust: SettingsTrust) -> list[str]:
    """Commands that show the text behind the digests: prompts as the base commit has them, the rest as it lies here."""
    prompts, other_files = trust.split_changed_files()
    git = "git" if context.project_option is None else f"git -C {shlex.quote(context.project_root)}"
    commit = trust.loaded.base_commit[:12]
    show_commands = [f"{git} show {shlex.quote(f'{commit}:{path}')}" for path in prompts]
    if not other_files:
        return show_commands
    is_many = len(other_files) > MAX_NAMED_FILES
    parts = dict.fromkeys("/".join(path.split("/")[:2]) if is_many else path for path in other_files)
    places = shlex.join(os.path.relpath(os.path.join(context.project_root, part)) for part in parts)
    return [
        *show_commands,
        f"find {places} -type f -exec tail -n +1 {{}} +" if is_many else f"tail -n +1 {places}",
    ]


def trust_details(context: "CommandContext", trust: SettingsTrust) -> dict[str, str]:
    """The digest of the lines and the command that trusts exactly these without a question."""
    return {"digest": trust.digest, "command": trust_command_text(context, f"--digest {trust.digest}")}


def trust_command_text(context: "CommandContext", option: str = "") -> str:
    """Returns the `steersman trust` command for the current directory."""
    project_text = (
        "" if context.project_option is None else f" --project {shlex.quote(context.start_directory)}"
    )
    return f"steersman{project_text} trust {option}".rstrip()


def _explain_missing_trust(context: "CommandContext", trust: SettingsTrust) -> str:
    count = count_lines_text(len(trust.changes))
    return (
        f"the settings are not trusted: {trust.describe_state()}. Nothing was started.\n"
        f"Read {count} with `{trust_command_text(context, '--show')}`, then trust with\n{trust_details(context, trust)['command']}"
    )


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
