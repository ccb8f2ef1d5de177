"""Every command of the command line with its own help, read from the click tree that is executed."""

from collections.abc import Iterator

import click

WIDTH = 100


def commands() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each command's path and what `--help` prints, in the order in which a person meets them."""
    from steersman.faces.cli.main import steersman_group

    yield from _below(("steersman",), steersman_group, None)


def _below(
    path: tuple[str, ...], command: click.Command, parent: click.Context | None
) -> Iterator[tuple[tuple[str, ...], str]]:
    settings = {**command.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    context = click.Context(command, parent=parent, info_name=path[-1], **settings)
    yield path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from _below((*path, name), found, context)
