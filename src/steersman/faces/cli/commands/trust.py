"""`steersman trust`: shows what a repository's settings can do, and trusts them ahead of the first run."""

import click

from steersman.app.principal import require_person
from steersman.app.trust import NotTrustedError, SettingsTrust, count_lines_text
from steersman.errors import UserError
from steersman.faces.cli import trust_prompt as asking
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext, define_command


@define_command(
    "trust",
    "steersman trust                    # read the lines, answer once",
    "steersman trust --show             # only read them",
    "steersman trust --digest 3f2a…     # in a script: only if they are exactly these",
    "steersman trust --revoke           # ask again before the next run",
    exits="0 trusted, shown or forgotten · 1 with --show: not trusted · 2 wrong usage · 4 refused",
)
@click.option("--show", is_flag=True, help="Print the lines and their digest, and trust nothing.")
@click.option(
    "--digest", metavar="HEX", default="", help="Trust without a question if the lines have this digest."
)
@click.option("--revoke", is_flag=True, help="Withdraw the trust.")
def trust_command(context: CommandContext, *, show: bool, digest: str, revoke: bool) -> int:
    """Trust the settings of this repository: the lines of steersman.toml and the files of .steersman/ that can start
    programs, read or write outside the repository, widen the sandbox, or weaken evidence, review and redaction. Until a
    person has trusted them they are only data: nothing that they name is started. Budgets, rounds and timeouts need no
    trust. A line that changes later is shown and asked about again, alone. What you trust is kept outside the
    repository, for this copy of it."""
    if show + revoke + bool(digest) > 1:
        raise UserError("--show, --digest and --revoke do different things: give one of them")
    loaded = context.read_config(only_look=True)
    trust = asking.open_settings_trust(context, loaded)
    if revoke:
        return _revoke_repository_trust(context, trust)
    if show or (context.as_json and not digest):
        return _show_trust_lines(context, trust)
    if digest:
        return _trust_by_digest(context, trust, digest)
    asking.require_trust(context, loaded)
    return _print_trusted(context, trust)


def _show_trust_lines(context: CommandContext, trust: SettingsTrust) -> int:
    lines, is_known = trust.loaded.powerful, trust.is_trusted
    trusted_before = trust.trusted_lines or ()
    context.set_result(
        {
            "trusted": is_known,
            **asking.trust_details(context, trust),
            "lines": [
                {
                    "place": line_place,
                    "value": line_value,
                    "trusted": (line_place, line_value) in trusted_before,
                }
                for line_place, line_value in lines
            ],
            "not_allowed": trust.loaded.excesses,
        }
    )
    for row in () if is_known else asking.describe_untrusted_lines(context, trust, show_all=True):
        context.print(row)
    if unchanged_lines := [line for line in lines if line in trusted_before]:
        context.print("trusted:")
    for row in asking.render_trust_lines(unchanged_lines):
        context.print(row)
    if not lines:
        context.print("nothing here needs trust")
    elif not is_known:
        context.print(f"not trusted; to trust:\n{asking.trust_details(context, trust)['command']}")
    return EXIT_DONE if is_known else EXIT_ENDED


def _trust_by_digest(context: CommandContext, trust: SettingsTrust, digest: str) -> int:
    require_person(context.principal)
    details = asking.trust_details(context, trust)
    if digest.lower() != details["digest"]:
        show_command = asking.trust_command_text(context, "--show")
        raise NotTrustedError(
            f"not trusted: the lines here have the digest {details['digest']}. Read them with `{show_command}`",
            **details,
        )
    trust.record(context.principal)
    return _print_trusted(context, trust)


def _print_trusted(context: CommandContext, trust: SettingsTrust) -> int:
    lines, digest = trust.loaded.powerful, trust.digest
    context.set_result({"trusted": True, "digest": digest})
    count = count_lines_text(len(lines))
    context.print(f"trusted: {count}, digest {digest}" if lines else "nothing here needs trust")
    return EXIT_DONE


def _revoke_repository_trust(context: CommandContext, trust: SettingsTrust) -> int:
    was_trusted = trust.revoke(context.principal)
    context.set_result({"revoked": was_trusted})
    context.print("no longer trusted" if was_trusted else "nothing was trusted here")
    return EXIT_DONE
