"""A model server that follows a script: what a real agent CLI talks to when no model is there.

**Invariant:** loopback only, standard library only; it never calls out, and it answers nothing that no script says.
"""

from tests.support.model_server.script import (
    DropConnection,
    HangForever,
    HangMidway,
    HttpFailure,
    ModelAnswer,
    ModelScript,
    ModelTokens,
    ModelTurn,
    RunShell,
    SayText,
    StructuredReply,
    UseTool,
    WriteFile,
)
from tests.support.model_server.server import MODEL_SERVER_KEY, ModelServer, ReceivedRequest, unused_address

__all__ = [
    "MODEL_SERVER_KEY", "DropConnection", "HangForever", "HangMidway", "HttpFailure", "ModelAnswer",
    "ModelScript", "ModelServer", "ModelTokens", "ModelTurn", "ReceivedRequest", "RunShell", "SayText",
    "StructuredReply", "UseTool", "WriteFile", "unused_address",
]  # fmt: skip
