"""`steersman chat …`: talk with agents beside the machines. **Invariant:** only what a person types is ever carried out."""

import asyncio
from typing import TYPE_CHECKING

import click
import msgspec

from steersman.errors import UserError
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, EXIT_REFUSED, CommandContext, define_command
from steersman.faces.cli.main import LazyGroup

if TYPE_CHECKING:
    from steersman.app.conversations import ChatService
    from steersman.contracts.chat import ChatMessage

CHAT_MODULE = "chat"
CHAT_COMMANDS = {
    "send": (f"{CHAT_MODULE}:chat_send_command", "Send a message and wait for the answers."),
    "new": (f"{CHAT_MODULE}:chat_new_command", "Start a thread."),
    "threads": (f"{CHAT_MODULE}:chat_threads_command", "List threads."),
    "show": (f"{CHAT_MODULE}:chat_show_command", "Show the messages of a thread and their cost."),
    "again": (f"{CHAT_MODULE}:chat_again_command", "Ask an agent again that has not answered."),
    "drop": (f"{CHAT_MODULE}:chat_drop_command", "Delete a thread and all its messages."),
    "talk": (f"{CHAT_MODULE}:chat_talk_command", "Talk line by line, as `steersman chat` does."),
}
CHAT_ANSWER_EXIT_CODES = (
    "0 every agent that was asked has answered · 1 one has not · 2 wrong usage · 4 refused · 5 store trouble"
)
CHAT_READ_EXIT_CODES = "0 done · 2 wrong usage · 5 store trouble"
CHAT_CHANGE_EXIT_CODES = "0 done · 2 wrong usage · 4 refused · 5 store trouble"
_thread_argument = click.argument("thread")


@click.group(
    "chat",
    cls=LazyGroup,
    known=CHAT_COMMANDS,
    invoke_without_command=True,
    no_args_is_help=False,
    epilog=f"Exit codes: {CHAT_ANSWER_EXIT_CODES}",
)
@click.pass_context
def chat_group(ctx: click.Context) -> int | None:
    """Talk with agents beside the runs. steersman executes nothing that an answer says.

    The agents are the tables [chat.agents.NAME] in steersman.toml, for example with agent = "claude". Without a subcommand, the conversation goes line by line."""
    if ctx.invoked_subcommand is not None:
        return None
    result: int | None = ctx.invoke(chat_talk_command, project=None, as_json=False, thread=None)
    return result


@define_command(
    "send",
    'steersman chat send "@bob what does prices.py do?"',
    'steersman chat send "@猫猫 @bob 你们怎么看？" --thread 261116-abc',
    exits=CHAT_ANSWER_EXIT_CODES,
)
@click.argument("text")
@click.option(
    "--thread", default=None, help="The thread, or a unique beginning of its id (default: a new thread)."
)
def chat_send_command(context: CommandContext, *, text: str, thread: str | None) -> int:
    """Send TEXT and wait for the answers. @name addresses an agent of [chat.agents]. Without @name, the agent that answered last is asked."""
    if text.lstrip().startswith("/"):
        raise UserError(
            "commands such as /run are typed in `steersman chat`; to send such a line, put a word before it"
        )
    if refuse_agent_chat(context):
        return EXIT_REFUSED
    from steersman.app.conversations import require_question_route

    chat_service = open_chat_service(context, create=True)
    require_question_route(chat_service, thread, text)
    thread_id = chat_service.find(thread).id if thread else chat_service.new().id
    context.print(f"thread {thread_id}")
    return send_chat_question(context, chat_service, thread_id, text)


def send_chat_question(context: CommandContext, chat_service: "ChatService", thread: str, text: str) -> int:
    """A question and its answers, each shown as soon as it is there; Ctrl-C leaves the question open."""
    question, route = chat_service.say(thread, context.person, text)
    for name in route.unknown:
        context.warn(
            f"there is no agent {name}. Asked: {', '.join(f'@{agent_name}' for agent_name in route.agents)}",
            fg="yellow",
        )
    return ask_chat_agents(context, chat_service, [(question, list(question.asked))])


def ask_chat_agents(
    context: CommandContext, chat_service: "ChatService", questions: "list[tuple[ChatMessage, list[str]]]"
) -> int:
    """Asks each question's agents; says and tells what came back."""
    from steersman.views.chat import chat_message_lines

    warning = chat_service.require_ready_agents([name for _, names in questions for name in names])
    if warning:
        context.warn(warning, fg="yellow")
    answers: list[ChatMessage] = []

    def show_answer(answer: "ChatMessage") -> None:
        answers.append(answer)
        for line in chat_message_lines(answer):
            context.print(line)

    async def ask_all() -> None:
        for question, names in questions:
            await chat_service.ask(question, names, show_answer)

    first_question = questions[0][0]
    try:
        asyncio.run(ask_all())
    except KeyboardInterrupt:
        context.warn(
            f"stopped; the question is kept: {context.command_prefix} chat again {first_question.thread}",
            fg="yellow",
        )
        raise
    return _print_chat_summary(context, chat_service, first_question, questions, answers)


def _print_chat_summary(
    context: CommandContext,
    chat_service: "ChatService",
    first_question: "ChatMessage",
    questions: "list[tuple[ChatMessage, list[str]]]",
    answers: "list[ChatMessage]",
) -> int:
    from steersman.views.chat import thread_cost_words

    spent = chat_service.chats.spent(first_question.thread)
    expected_count = sum(len(names) for _, names in questions)
    is_complete = len(answers) == expected_count and not any(answer.error for answer in answers)
    code = EXIT_DONE if is_complete else EXIT_ENDED
    context.print(thread_cost_words(spent, chat_service.limits()), dim=True)
    if not is_complete:
        context.print(f"ask again with: {context.command_prefix} chat again {first_question.thread}")
    question_fields = [msgspec.to_builtins(question) for question, _ in questions]
    context.set_result(
        {
            "thread": first_question.thread,
            "questions": question_fields,
            "answers": [
                msgspec.to_builtins(answer)
                for answer in sorted(answers, key=lambda chat_answer: chat_answer.seq)
            ],
            "spent": spent,
            "exit_code": code,
        }
    )
    return code


@define_command("new", "steersman chat new", 'steersman chat new "the parser"', exits=CHAT_CHANGE_EXIT_CODES)
@click.argument("title", required=False, default="")
def chat_new_command(context: CommandContext, *, title: str) -> int:
    """Start a thread. Its title is TITLE, or its first line."""
    if refuse_agent_chat(context):
        return EXIT_REFUSED
    thread = open_chat_service(context, create=True, only_look=True).new(title)
    context.print(thread.id)
    context.set_result(thread)
    return EXIT_DONE


@define_command(
    "threads", "steersman chat threads", "steersman chat threads --json", exits=CHAT_READ_EXIT_CODES
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Show at most this many."
)
def chat_threads_command(context: CommandContext, *, limit: int) -> None:
    """List threads, the one with the newest message first."""
    from steersman.views.chat import thread_table_lines as thread_lines

    if not context.has_store():
        context.set_result([])
        context.print(
            f'nothing has been said here yet: start with `{context.command_prefix} chat send "@name …"`'
        )
        return
    chat_service = open_chat_service(context, only_look=True)
    thread_counts = [
        (thread, chat_service.chats.count(thread.id)) for thread in chat_service.chats.threads(limit)
    ]
    context.set_result(
        [{**msgspec.to_builtins(thread), "messages": count} for thread, count in thread_counts]
    )
    for line_number, line in enumerate(thread_lines(thread_counts, context.runs.ports.clock.now())):
        context.print(line, bold=line_number == 0)


@define_command(
    "show",
    "steersman chat show 261116-abc",
    "steersman chat show 261116-abc --last 5 --json",
    exits=CHAT_READ_EXIT_CODES,
)
@_thread_argument
@click.option(
    "--last", type=click.IntRange(1), default=None, help="Show only this many messages from the end."
)
def chat_show_command(context: CommandContext, *, thread: str, last: int | None) -> None:
    """Show the messages of THREAD, the cost of each answer, the total, and which agents have not answered."""
    from steersman.app.conversations import read_conversation
    from steersman.views.chat import chat_message_lines, missing_answer_line, thread_cost_words

    conversation = read_conversation(open_chat_service(context, only_look=True), thread, last)
    context.set_result(conversation)
    for message in conversation.messages:
        for line in chat_message_lines(message):
            context.print(line)
        context.print()
    context.print(thread_cost_words(conversation.spent, conversation.limits))
    for pending in conversation.open:
        context.print(
            missing_answer_line(pending.question, pending.agent, pending.by, pending.error), fg="yellow"
        )
    if any(pending.by is None for pending in conversation.open):
        context.print(f"ask again with: {context.command_prefix} chat again {conversation.id}")


@define_command(
    "again",
    "steersman chat again 261116-abc",
    "steersman chat again 261116-abc --question 7",
    exits=CHAT_ANSWER_EXIT_CODES,
)
@_thread_argument
@click.option(
    "--question",
    type=click.IntRange(1),
    default=None,
    help="The number of the question (default: the last one without an answer).",
)
def chat_again_command(context: CommandContext, *, thread: str, question: int | None) -> int:
    """Ask the agents of THREAD again that have not answered or have failed."""
    if refuse_agent_chat(context):
        return EXIT_REFUSED
    from steersman.app.conversations import find_unanswered_question

    chat_service = open_chat_service(context)
    thread_record = chat_service.find(thread)
    unanswered = find_unanswered_question(chat_service, thread_record.id, question)
    if unanswered is None:
        show_command = f"{context.command_prefix} chat show {thread_record.id}"
        raise UserError(f"no question is pending in this thread. See `{show_command}`")
    return ask_chat_agents(context, chat_service, [unanswered])


@define_command("drop", "steersman chat drop 261116-abc --yes", exits=CHAT_CHANGE_EXIT_CODES)
@_thread_argument
@click.option("--yes", is_flag=True, help="Delete without a question. The messages cannot be restored.")
def chat_drop_command(context: CommandContext, *, thread: str, yes: bool) -> int:
    """Delete THREAD and all its messages."""
    if refuse_agent_chat(context):
        return EXIT_REFUSED
    chat_service = open_chat_service(context, only_look=True)
    thread_record = chat_service.find(thread)
    question = f"Delete thread {thread_record.id} and all its messages? They cannot be restored"
    if not yes and not context.confirm(
        question, f"To delete it: {context.command_prefix} chat drop {thread_record.id} --yes"
    ):
        raise UserError("nothing was deleted")
    chat_service.drop(thread_record.id)
    context.print(f"thread {thread_record.id} is deleted")
    context.set_result({"thread": thread_record.id, "exit_code": EXIT_DONE})
    return EXIT_DONE


@define_command(
    "talk", "steersman chat", "steersman chat talk --thread 261116-abc", exits=CHAT_ANSWER_EXIT_CODES
)
@click.option(
    "--thread", default=None, help="Continue this thread (default: the first message starts a new one)."
)
def chat_talk_command(context: CommandContext, *, thread: str | None) -> int:
    """Talk line by line. /help lists the words that you can type. Ctrl-D ends the conversation."""
    from steersman.faces.chat.session import run_chat_session

    if refuse_agent_chat(context):
        return EXIT_REFUSED
    return run_chat_session(context, open_chat_service(context, create=True), thread)


def open_chat_service(
    context: CommandContext, *, create: bool = False, only_look: bool = False
) -> "ChatService":
    """The project's conversations; a command that only reads them starts no agent and needs no trust."""
    from steersman.app.conversations import open_conversations

    config = (context.read_config() if only_look else context.load_config()).config
    runs = context.create_runs() if create else context.runs
    return open_conversations(runs, context.services.open_chats(runs.ports.journal), config)


def refuse_agent_chat(context: CommandContext) -> bool:
    """Refuses a process that works for a run or for a chat, and says so."""
    from steersman.app.principal import AgentCallerError, require_person

    try:
        require_person(context.principal)
    except AgentCallerError as refusal:
        context.warn(str(refusal), fg="red")
        context.set_result({"result": "refused", "inside": refusal.effect, "exit_code": EXIT_REFUSED})
        return True
    return False
