"""Any program as an agent: the prompt on its standard input or in a file, its answer on standard output.

**Invariant:** only exit code 0 is an answer; what it used is unknown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from steersman.adapters.agents.headless import Failure, Heard, Invocation, headless
from steersman.adapters.agents.home import Home, call_home
from steersman.adapters.tree_places import shown_path
from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.judges.text import decode
from steersman.ports.sandbox import Sandbox

PROVIDER = "command"
MOST = 4 * 1024 * 1024  # bytes of an answer
_FILLED = re.compile(r"\{(prompt_file|workdir|model)\}")


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a role's table may say to this provider."""

    command: tuple[Annotated[str, Meta(max_length=4000, pattern=r"^[^\x00]*$")], ...] = ()
    model: str | None = None
    hosts: tuple[str, ...] = ()  # "host:port" that it may reach
    environment: tuple[str, ...] = ()  # names passed on
    call_tokens: int | None = None
    call_micro_usd: int | None = None


class Answer:
    """A `Reader` of plain text."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0
        self._failure: Failure | None = None

    def feed(self, line: bytes) -> bool:
        """Takes one line; True when there are too many."""
        self._size += len(line) + 1
        if self._size > MOST:
            self._failure = Failure("provider_protocol_error", f"its answer is longer than {MOST} bytes")
            return True
        self._lines.append(line)
        return False

    def heard(self) -> Heard:
        """Everything it said; whether that is an answer, its exit code says."""
        return Heard(ended=True, failure=self._failure, text=decode(b"\n".join(self._lines)))

    def exited(self, code: int, errors: str) -> Failure | None:
        """Any code but 0 is a crash, in the program's own words."""
        return Failure("provider_crashed", f"exit code {code}: {errors or 'it said nothing'}")


class CommandAgent:
    """Implements `ports.agent.Agent`; `place` is where the homes of its calls are made."""

    tells_cost = False

    def __init__(self, place: Path, sandbox: Sandbox, options: CommandOptions) -> None:
        self._place, self._sandbox, self._options = place, sandbox, options

    async def call(self, request: AgentRequest) -> AgentReply:
        """One run of the program; a session cannot be continued."""
        if request.session:
            told = "a command has no sessions: leave session out"
            return AgentReply(error="provider_invalid_request", detail=told, provider=PROVIDER)
        with call_home(self._place) as home:
            return await headless(request, self._invocation(request, home), self._sandbox)

    def _invocation(self, request: AgentRequest, home: Home) -> Invocation:
        prompt = request.prompt.encode("utf-8", "backslashreplace")
        in_a_file = any("{prompt_file}" in word for word in self._options.command)
        if in_a_file:
            (home.config / "prompt.md").write_bytes(prompt)
        return Invocation(
            provider=PROVIDER,
            argv=tuple(self._words(request, home)),
            reader=Answer(),
            env=home.environment(),
            keeps=self._options.environment,
            writes=(str(home.root),),
            network=self._options.hosts,
            stdin=None if in_a_file else prompt,
            start=str(home.start),
        )

    def _words(self, request: AgentRequest, home: Home) -> Iterator[str]:
        values = {
            "prompt_file": str(home.config / "prompt.md"),
            "workdir": shown_path(request.workdir, isolated=self._sandbox.isolated),
            "model": self._options.model or "",
        }
        yield from (_FILLED.sub(lambda m: values[m[1]], word) for word in self._options.command)
