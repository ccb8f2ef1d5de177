"""An agent made with the protocol's own library, to be talked with: `python acp_peer.py BEHAVIOUR`."""

import asyncio
import os
import sys
import uuid

import acp
from acp import schema


def mark(name):
    """Leaves a sign in the working tree."""
    open(name, "w").close()


class Peer(acp.Agent):
    """Does what its first argument says."""

    def __init__(self, behaviour):
        self.behaviour = behaviour
        self.cancelled = asyncio.Event()

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        assert protocol_version == 1
        return acp.InitializeResponse(protocol_version=7 if self.behaviour == "other version" else 1)

    async def new_session(self, cwd, mcp_servers=None, **_):
        assert os.path.isabs(cwd)
        self.cwd = cwd
        assert mcp_servers == []
        if self.behaviour == "no login":
            raise acp.RequestError.auth_required()
        return acp.NewSessionResponse(session_id=uuid.uuid4().hex)

    async def set_session_mode(self, mode_id, session_id, **_):
        await self.say(session_id, f"mode {mode_id}; ")
        return acp.SetSessionModeResponse()

    async def prompt(self, prompt, session_id, **_):
        text = prompt[0].text
        match self.behaviour:
            case "text":
                await self.say(session_id, f"You said: {text}")
            case "ask":
                await self.ask(session_id)
            case "wait":
                mark("waiting.txt")
                await self.cancelled.wait()
                return acp.PromptResponse(stop_reason="cancelled")
            case "refuse":
                return acp.PromptResponse(stop_reason="refusal")
            case "leave":
                os._exit(0)
            case "files":
                await self.try_files(session_id)
        usage = schema.Usage(total_tokens=12, input_tokens=10, output_tokens=2)
        return acp.PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, **_):
        mark("cancelled.txt")
        self.cancelled.set()

    async def say(self, session_id, text):
        await self.client.session_update(session_id, acp.update_agent_message_text(text))

    async def ask(self, session_id):
        """Asks for two places: one in the tree, one outside it."""
        options = [
            schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
            schema.PermissionOption(option_id="once", name="Once", kind="allow_once"),
            schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
        ]
        told = []
        for path in (f"{self.cwd}/in.txt", "/etc/out.txt"):
            call = schema.ToolCallUpdate(
                tool_call_id=path, kind="edit", title=path, locations=[schema.ToolCallLocation(path=path)]
            )
            answer = await self.client.request_permission(
                session_id=session_id, tool_call=call, options=options
            )
            told.append(getattr(answer.outcome, "option_id", answer.outcome.outcome))
        await self.say(session_id, " ".join(told))

    async def try_files(self, session_id):
        """Asks the client for a file, which it must not lend."""
        try:
            await self.client.read_text_file(path="/etc/passwd", session_id=session_id)
        except acp.RequestError as error:
            await self.say(session_id, f"refused: {error.code}")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Peer(sys.argv[1])))
