"""Any program as an agent: the prompt on its standard input or in a file, its answer on standard output.

**Invariant:** only exit code 0 is an answer; what it used is unknown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from steersman.adapters.agents.call_home import CallHome, open_call_home
from steersman.adapters.agents.headless import (
    AgentInvocation,
    CallSummary,
    ProviderFailure,
    ProviderOptions,
    run_agent_cli,
)
from steersman.adapters.checks.setup_layers import visible_tree_path
from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.judges.text import decode_outside_bytes
from steersman.ports.sandbox import Sandbox

COMMAND_PROVIDER = "command"
MAX_COMMAND_ANSWER_BYTES = 4 * 1024 * 1024  # bytes of an answer
_PLACEHOLDER_PATTERN = re.compile(r"\{(prompt_file|workdir|model)\}")


class CommandOptions(ProviderOptions, frozen=True, kw_only=True):
    """What a role's table may say to this provider."""

    command: tuple[Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")], ...] = ()


class PlainTextReader:
    """A `Reader` of plain text."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._failure: ProviderFailure | None = None

    def feed(self, line: bytes) -> bool:
        """Takes one line; True when there are too many."""
        self._size += len(line) + 1
        if self._size > MAX_COMMAND_ANSWER_BYTES:
            self._failure = ProviderFailure(
                "provider_protocol_error", f"its answer is longer than {MAX_COMMAND_ANSWER_BYTES} bytes"
            )
            return True
        self._lines.append(line)
        return False

    def read_result(self) -> CallSummary:
        """Its whole output; the exit code decides whether that is an answer."""
        return CallSummary(
            ended=True, failure=self._failure, text=decode_outside_bytes(b"\n".join(self._lines))
        )

    def explain_exit(self, code: int, errors: str) -> ProviderFailure | None:
        """Any code but 0 is a crash, in the program's own words."""
        return ProviderFailure("provider_crashed", f"exit code {code}: {errors or 'it said nothing'}")


class CommandAgent:
    """Implements `ports.agent.Agent`; `homes_dir` is where the homes of its calls are made."""

    tells_cost = False

    def __init__(self, homes_dir: Path, sandbox: Sandbox, options: CommandOptions) -> None:
        self._homes_dir, self._sandbox, self._options = homes_dir, sandbox, options

    async def call(self, request: AgentRequest) -> AgentReply:
        """One run of the program; a session cannot be continued."""
        if request.session:
            reason = "a command has no sessions: leave session out"
            return AgentReply(error="provider_invalid_request", detail=reason, provider=COMMAND_PROVIDER)
        with open_call_home(self._homes_dir) as home:
            return await run_agent_cli(request, self._build_invocation(request, home), self._sandbox)

    def _build_invocation(self, request: AgentRequest, home: CallHome) -> AgentInvocation:
        prompt = request.prompt.encode("utf-8", "backslashreplace")
        in_a_file = any("{prompt_file}" in word for word in self._options.command)
        if in_a_file:
            (home.config / "prompt.md").write_bytes(prompt)
        return AgentInvocation(
            provider=COMMAND_PROVIDER,
            argv=tuple(self._build_argv(request, home)),
            reader=PlainTextReader(),
            env=home.environment(),
            keeps=self._options.environment,
            writes=(str(home.root),),
            network=self._options.hosts,
            stdin=None if in_a_file else prompt,
            start=str(home.start),
        )

    def _build_argv(self, request: AgentRequest, home: CallHome) -> Iterator[str]:
        values = {
            "prompt_file": str(home.config / "prompt.md"),
            "workdir": visible_tree_path(request.workdir, isolated=self._sandbox.isolated),
            "model": self._options.model or "",
        }
        yield from (_PLACEHOLDER_PATTERN.sub(lambda m: values[m[1]], word) for word in self._options.command)
