"""Chooses a step of a script, makes its edits and answers; works the same in this process and in a child.

As a program it reads one job as JSON on standard input and writes the reply to standard output.
**Invariant:** the choice depends on the request alone. Edits never leave the working directory: every part of a path is
opened by itself, and no link is followed.
"""

import contextlib
import errno
import json
import os
import stat
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec

from steersman.adapters.storage.durable_files import open_directory_below
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass, ProviderUsage
from steersman.contracts.script import AgentScript, ScriptEdit, ScriptJob, ScriptStep
from steersman.judges.commands.tester_commands import find_commands_outside
from steersman.judges.text import escape_surrogates

SCRIPTED_PROVIDER = "scripted"
_OPEN_EDIT_FILE = (
    os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # without O_NONBLOCK opening a pipe would block


def choose_script_step(script: AgentScript, request: AgentRequest) -> ScriptStep | None:
    """The most specific step that fits: an attempt weighs more than a round, a round more than a mode."""
    fitting = [step for step in script.roles.get(request.role, ()) if _is_step_for_request(step, request)]
    return max(fitting, key=_step_specificity, default=None)


def perform_script_job(job: ScriptJob) -> AgentReply:
    """Edits, then answers or fails as the step says; an edit that is not allowed is a denial."""
    try:
        denied = _apply_job_edits(job)
    except EditRefused as refused:
        return _build_scripted_reply(job, AgentReply(error=refused.error_class, detail=str(refused)))
    except OSError as error:
        detail = f"working directory: {error.strerror}"
        return _build_scripted_reply(job, AgentReply(error="provider_crashed", detail=detail))
    if denied is not None:
        return _build_scripted_reply(job, denied)
    step = job.step
    reset_at = None if step.reset_in is None else time.time_ns() // 10**6 + step.reset_in * 1000
    reply = AgentReply(
        text=render_step_answer(step, job.nonce), error=step.error, detail=step.detail, reset_at=reset_at
    )
    return _build_scripted_reply(job, reply)


def render_step_answer(step: ScriptStep, nonce: str) -> str:
    """The text of the answer; a reply gets the nonce of the request, or a wrong one where the step says so."""
    content = step.reply if step.json is None else json.loads(step.json)
    if content is None:
        return escape_surrogates(step.raw or step.say or "")
    returned_nonce = f"not-{nonce}" if step.nonce == "wrong" else nonce
    return json.dumps({"nonce": returned_nonce, **content}, ensure_ascii=False, indent=2)


def _is_step_for_request(step: ScriptStep, request: AgentRequest) -> bool:
    return (
        step.mode in (None, request.mode)
        and step.round in (None, request.round)
        and step.attempt in (None, request.attempt)
    )


def _step_specificity(step: ScriptStep) -> tuple[bool, bool, bool]:
    return (step.attempt is not None, step.round is not None, step.mode is not None)


def _apply_job_edits(job: ScriptJob) -> AgentReply | None:
    edits = job.step.edit
    if edits and not job.writes:
        denied = tuple(" ".join(edit_target(edit)) for edit in edits)
        return AgentReply(
            error="provider_permission_denied", detail=f"may not write: {', '.join(denied)}", denied=denied
        )
    if edits:
        apply_script_edits(job.workdir, edits)
    return None


def _build_scripted_reply(job: ScriptJob, outcome: AgentReply) -> AgentReply:
    return AgentReply(
        text=outcome.text,
        error=outcome.error,
        detail=escape_surrogates(outcome.detail),
        reset_at=outcome.reset_at,
        usage=ProviderUsage(job.step.tokens, job.step.micro_usd),
        session=job.session,
        provider=SCRIPTED_PROVIDER,
        model=job.model,
        denied=outcome.denied,
        outside=find_commands_outside(job.step.wants, job.allows),
    )


class EditRefused(Exception):  # noqa: N818  an answer to the caller, not a fault of steersman
    """An edit that cannot be made, with the provider class that says so."""

    def __init__(self, error_class: ProviderClass, message: str) -> None:
        super().__init__(message)
        self.error_class: ProviderClass = error_class


def edit_target(edit: ScriptEdit) -> tuple[str, str]:
    """What an edit does and to which path."""
    for verb in ("write", "append", "delete", "replace"):
        path = getattr(edit, verb)
        if path is not None:
            return verb, path
    raise EditRefused("provider_invalid_request", "an edit without write, append, delete or replace")


def edit_path_problem(path: str) -> str | None:
    """Why a path may not be edited, or None."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is not a plain relative path below the working directory"
    if any(part.casefold() == ".git" for part in parts):
        return "is part of git's own files"
    if any(ord(c) < 32 or ord(c) == 127 for c in path) or any(len(p.encode()) > 255 for p in parts):
        return "is not a usable file name"
    return None


def apply_script_edits(root: str, edits: Sequence[ScriptEdit]) -> None:
    """Makes the edits in order; the first that cannot be made raises EditRefused, the ones before it stay."""
    with _closing_descriptor(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as top:
        for edit in edits:
            verb, path = edit_target(edit)
            if (reason := edit_path_problem(path)) is not None:
                raise EditRefused("provider_permission_denied", f"{path!r} {reason}")
            try:
                _apply_script_edit(top, verb, path, edit)
            except OSError as error:
                raise _edit_refusal(path, error) from None


def _apply_script_edit(top: int, verb: str, path: str, edit: ScriptEdit) -> None:
    *directories, name = path.split("/")
    with open_directory_below(top, directories, make=verb in ("write", "append")) as directory:
        match verb:
            case "delete":
                os.unlink(name, dir_fd=directory)
            case "write":
                _overwrite_edited_file(directory, name, os.O_WRONLY | os.O_CREAT, edit.text or "")
            case "append":
                _append_edit_text(directory, name, edit.text or "")
            case _:
                _replace_edit_text(directory, name, path, edit)


def _overwrite_edited_file(directory: int, name: str, flags: int, text: str) -> None:
    with _open_edited_file(directory, name, flags) as file:
        os.ftruncate(file, 0)  # only now that it is known to be a file
        _write_edit_text(file, text)


def _append_edit_text(directory: int, name: str, text: str) -> None:
    with _open_edited_file(directory, name, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
        _write_edit_text(file, text)


def _replace_edit_text(directory: int, name: str, path: str, edit: ScriptEdit) -> None:
    with _open_edited_file(directory, name, os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as reader:
        old = reader.read().decode("utf-8", "surrogateescape")
    find = edit.find or ""
    if old.count(find) != 1 or not find:
        raise EditRefused(
            "provider_invalid_request", f"{path!r}: the text to replace is there {old.count(find)} times"
        )
    _overwrite_edited_file(directory, name, os.O_WRONLY, old.replace(find, edit.with_ or ""))


def _write_edit_text(file: int, text: str) -> None:
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _open_edited_file(directory: int, name: str, flags: int) -> Iterator[int]:
    with _closing_descriptor(os.open(name, flags | _OPEN_EDIT_FILE, 0o644, dir_fd=directory)) as file:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.ENXIO, "not a regular file")
        yield file


@contextlib.contextmanager
def _closing_descriptor(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _edit_refusal(path: str, error: OSError) -> EditRefused:
    """A missing file is a mistake of the script; links, devices and rights are a denial."""
    is_missing = error.errno in (errno.ENOENT, errno.EISDIR)
    error_class: ProviderClass = "provider_invalid_request" if is_missing else "provider_permission_denied"
    return EditRefused(error_class, f"{path!r}: {error.strerror}; links are not followed")


def main() -> None:
    """Reads the job, waits as long as it says, carries it out and answers."""
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=ScriptJob)
    time.sleep(float(job.step.sleep))
    sys.stdout.buffer.write(msgspec.json.encode(perform_script_job(job)))


if __name__ == "__main__":
    main()
