"""`steersman memory …`: what was learnt before, kept for the next plan."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from steersman.errors import NoMemory, UserError
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from steersman.contracts.planning.context import MemoryRecord

MEMORY_MODULE = "memory"
MEMORY_COMMANDS = {
    "add": (f"{MEMORY_MODULE}:memory_add_command", "Keep a sentence for later plans."),
    "search": (f"{MEMORY_MODULE}:memory_search_command", "Search the kept sentences, the best match first."),
    "list": (f"{MEMORY_MODULE}:memory_list_command", "List the kept sentences, the newest first."),
    "forget": (f"{MEMORY_MODULE}:memory_forget_command", "Delete one for good."),
}
MEMORY_EXIT_CODES = "0 done · 2 wrong usage · 4 refused · 5 the memory file cannot be used"
MEMORY_SCOPE_CHOICES = ("project", "repo", "task", "agent")
_memory_scopes_option = click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(MEMORY_SCOPE_CHOICES),
    help="Only this scope. You can repeat the option.",
)
_memory_subject_option = click.option(
    "--subject", default="", metavar="NAME", help="Only sentences about this task or agent."
)
_memory_limit_option = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Show at most this many."
)


@click.group(
    "memory",
    cls=LazyGroup,
    known=MEMORY_COMMANDS,
    no_args_is_help=False,
    epilog=f"Exit codes: {MEMORY_EXIT_CODES}",
)
def memory_group() -> None:
    """Keep sentences for later plans. A plan needs at least one."""


@define_command(
    "add",
    'steersman memory add "Invoices are rounded half to even, by contract."',
    'steersman memory add "Deploy only on weekdays" --tag release',
    'steersman memory add "Reads the tests first" --scope agent --subject coder',
    "steersman memory add - < lesson.txt",
    exits=MEMORY_EXIT_CODES,
)
@click.argument("text")
@click.option(
    "--scope",
    type=click.Choice(MEMORY_SCOPE_CHOICES),
    default="project",
    show_default=True,
    help="What the sentence is about.",
)
@click.option("--subject", default="", metavar="NAME", help="The name of the task or agent.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="WORD",
    help="A further word for the search. You can repeat the option.",
)
def memory_add_command(
    context: CommandContext, *, text: str, scope: str, subject: str, tags: tuple[str, ...]
) -> int:
    """Keep TEXT for later plans; `-` reads standard input.

    Secrets are removed first. The same text with the same scope and subject is kept once."""
    _refuse_agent_memory(context)
    memory_text = sys.stdin.read(64_000) if text == "-" else text
    store = context.services.open_memories(context.project)
    memory_record, is_new = store.add(
        memory_text,
        scope=scope,
        subject=subject,
        tags=tags,
        source=context.person,
        created_at=memory_timestamp(),
    )
    context.set_result({"memory": memory_record, "new": is_new})
    context.print(f"{memory_record.id}: {'kept' if is_new else 'was kept already'}")
    if memory_record.text != memory_text.strip():
        context.print("a secret was taken out of it", fg="yellow")
    return EXIT_DONE


@define_command(
    "search",
    'steersman memory search "rounding of invoices"',
    "steersman memory search 部署 --scope project --json",
    exits=MEMORY_EXIT_CODES,
)
@click.argument("query")
@_memory_scopes_option
@_memory_subject_option
@_memory_limit_option
def memory_search_command(
    context: CommandContext, *, query: str, scopes: tuple[Any, ...], subject: str, limit: int
) -> int:
    """Search the kept sentences for the words of QUERY, the best match first. There are no operators.

    Longer words also match the beginning of a word. Text without spaces is found by any two of its characters."""
    return _print_memories(
        context,
        lambda memory_store: memory_store.search(
            query, scopes=scopes or MEMORY_SCOPE_CHOICES, subject=subject, limit=limit
        ),
    )


@define_command(
    "list",
    "steersman memory list",
    "steersman memory list --scope agent --subject coder --json",
    exits=MEMORY_EXIT_CODES,
)
@_memory_scopes_option
@_memory_subject_option
@_memory_limit_option
def memory_list_command(context: CommandContext, *, scopes: tuple[Any, ...], subject: str, limit: int) -> int:
    """List the kept sentences, the newest first."""
    return _print_memories(
        context,
        lambda memory_store: memory_store.entries(
            scopes=scopes or MEMORY_SCOPE_CHOICES, subject=subject, limit=limit
        ),
    )


@define_command("forget", "steersman memory forget mem_0f3a5c7e9b1d", exits=MEMORY_EXIT_CODES)
@click.argument("name")
def memory_forget_command(context: CommandContext, *, name: str) -> int:
    """Delete the sentence NAME for good: from the file, its index and its log."""
    _refuse_agent_memory(context)
    if not context.services.open_memories(context.project).forget(name):
        raise UserError(f"there is no memory {name!r}: see `{context.command_prefix} memory list`")
    context.set_result({"forgotten": name})
    context.print(f"{name}: forgotten")
    return EXIT_DONE


def memory_timestamp() -> str:
    """This second, in the form of every document."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _print_memories(context: CommandContext, query_memories: "Callable[[Any], list[MemoryRecord]]") -> int:
    context.quiet = True
    try:
        memory_records = query_memories(context.services.open_memories(context.project))
    except NoMemory as no_memory_error:
        context.set_result([])
        context.print(str(no_memory_error))
        return EXIT_DONE
    context.set_result(memory_records)
    for memory_record in memory_records:
        scope_text = f"{memory_record.scope} {memory_record.subject}".strip()
        context.print(f"{memory_record.id}  {memory_record.created_at}  {scope_text}", bold=True)
        context.print("\n".join(f"  {line}" for line in memory_record.text.split("\n")))
        if memory_record.tags:
            context.print(f"  tags: {', '.join(memory_record.tags)}")
    if not memory_records:
        context.print("nothing was found")
    return EXIT_DONE


class _AgentMemoryError(UserError):
    """A plan goes by memories: no agent plants one."""

    exit_code = 4


def _refuse_agent_memory(context: CommandContext) -> None:
    effect = context.services.find_calling_effect(context.project_root)
    if effect:
        raise _AgentMemoryError(
            f"this works for {effect}: an agent's words are no memory; a person may keep them"
        )
