"""Reads the entries of a session from a terminal or a pipe, one after the other, and returns its exit code.

A session in a terminal ends with 0, because the person sees every error. A session from a pipe ends with the exit code of
the first entry that was refused or failed. **Invariant:** Ctrl-C ends a pipe, never a session in a terminal.
"""

import io
import os
import signal
import sys
from typing import Protocol

from steersman.errors import SteersmanError
from steersman.faces.cli.context import EXIT_DONE, EXIT_REFUSED, EXIT_WAITING, CommandContext
from steersman.faces.repl.session import ReplSession

ACCEPTED_EXIT_CODES = (EXIT_DONE, EXIT_WAITING)  # it was done; or it was, and waits for the next word


class EntryReader(Protocol):
    """Where a person's entries come from."""

    def __call__(self, message: str) -> str | None:
        """The next entry; None at the end."""
        ...


def run_repl(context: CommandContext, run: str, *, strict: bool = False) -> int:
    """Reads entries until there are no more. An error is printed and the next entry is read, unless `strict` is set."""
    effect = context.services.find_calling_effect(context.project_root)
    if effect:
        message = f"refused: effect {effect} of a run sent this, and an agent never speaks for a person"
        context.warn(message, fg="red")
        return EXIT_REFUSED
    session = ReplSession(context, context.runs.find(run) if run else "")
    if sys.stdin is None:
        return EXIT_DONE
    if context.as_json or not sys.stdin.isatty() or not sys.stdout.isatty():
        return _run_piped_repl(session, strict=strict)
    return _run_terminal_repl(session)


def _run_terminal_repl(session: ReplSession) -> int:
    """From a terminal, with editing, completion and a history."""
    from steersman.faces.repl.line_editor import build_prompt_reader

    context = session.context
    context.print("free text goes to the planner; /help says what can be typed, Ctrl-D ends it", dim=True)
    read_entry = build_prompt_reader(context, session.completions)
    while context.signal in (0, signal.SIGINT):
        try:
            text = read_entry(session.banner())
        except KeyboardInterrupt:
            context.print("(Ctrl-D ends the session)")
            continue
        try:
            if text is None or _handle_repl_entry(session, text) is None:
                return EXIT_DONE
        except KeyboardInterrupt:
            context.print("\nnothing more was done")
            session.settle()
    return 128 + context.signal


def _run_piped_repl(session: ReplSession, *, strict: bool) -> int:
    """From anything else: plain lines."""
    context, result = session.context, EXIT_DONE
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="backslashreplace")
    read_entry = _build_pipe_reader(context)
    while (text := read_entry(session.banner())) is not None:
        code = _handle_repl_entry(session, text)
        if code is None:
            break
        if result in ACCEPTED_EXIT_CODES:
            result = code
        if context.signal:
            return 128 + context.signal
        if strict and result not in ACCEPTED_EXIT_CODES:
            break
    return EXIT_DONE if result in ACCEPTED_EXIT_CODES else result


def _handle_repl_entry(session: ReplSession, text: str) -> int | None:
    """Performs one entry and prints its error; None ends the session."""
    context = session.context
    try:
        code = session.entry(text.strip()) if text.strip() else EXIT_DONE
    except SteersmanError as error:
        return _print_entry_failure(context, error)
    if code is not None:
        context.flush_result(code)
    return code


def _print_entry_failure(context: CommandContext, error: SteersmanError) -> int:
    from steersman.judges.redaction.redact import redact_text

    message = redact_text(
        str(error), context.services.list_known_secrets(context.project_root), os.urandom(16)
    )
    context.warn(message, fg="red")
    context.print_json_line({"error": message, "exit_code": error.exit_code})
    return error.exit_code


def _build_pipe_reader(context: CommandContext) -> EntryReader:
    def read_line(message: str) -> str | None:
        context.print(f"[{message}]", dim=True)
        text = sys.stdin.readline()
        while text.endswith("\\\n"):
            text = f"{text[:-2]}\n{sys.stdin.readline()}"
        return text or None

    return read_line
