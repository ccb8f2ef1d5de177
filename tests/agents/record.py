"""Records what claude says, case by case, into fixtures/claude-<version>/: by hand, when its version changes.

The program is the installed one, or $STEERSMAN_CLAUDE.

It is called directly, without a box and without anybody who stops it, so that the fixtures hold all it would say.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from install import program
from tests.support.agent_matrix import CALL_NONCE, CALL_PROMPT, mentioning
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    HttpFailure,
    ModelServer,
    RunShell,
    SayText,
    unused_address,
)
from tests.support.model_server.cases import CASE_SCRIPTS, CASE_TEXT, answer_with_edit, answer_with_text

from steersman.adapters.agents.claude import ClaudeOptions, build_claude_args
from steersman.contracts.agent import AgentRequest
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS

PROGRAM = os.environ.get("STEERSMAN_CLAUDE") or str(program("claude"))
VERSION = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
FOLDER = Path(__file__).parent / "fixtures" / f"claude-{VERSION}"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TOKEN = {
    "accessToken": MODEL_SERVER_KEY, "refreshToken": "none", "expiresAt": 4_000_000_000_000,
    "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
}  # fmt: skip
LIMITED = {
    "anthropic-ratelimit-unified-status": "rejected",
    "anthropic-ratelimit-unified-reset": "4000000000",
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
}
SWITCHES = {
    "CLAUDE_CODE_MAX_RETRIES": "1", "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_SAFE_MODE": "1", "IS_SANDBOX": "1",
    "API_TIMEOUT_MS": "3000",
}  # fmt: skip


def denied(turn):
    """A command that the mode does not allow."""
    return SayText(CASE_TEXT) if turn.results else RunShell("curl http://127.0.0.1:1/")


def loops(turn):
    """The same again, however often it is denied."""
    return SayText(CASE_TEXT) if turn.results > 8 else RunShell("curl http://127.0.0.1:1/")


# name: script, permissions, and what is different about the call
RECORDED = {
    **{
        name.replace(" ", "-"): (CASE_SCRIPTS[name], "read", {})
        for name in ("text", "401", "403", "500", "529", "dropped")
    },
    "429": (lambda turn: HttpFailure(429, {"retry-after": "4"}), "read", {}),  # noqa: ARG005  what a script is called with
    "edit": (answer_with_edit, "shell", {}),
    "schema": (CASE_SCRIPTS["schema"], "read", {"contract": "reviewer"}),
    "schema-not-met": (CASE_SCRIPTS["schema not met"], "read", {"contract": "reviewer"}),
    "schema-ignored": (answer_with_text, "read", {"contract": "reviewer"}),
    "no-key": (answer_with_text, "read", {"key": None}),
    "refused": (answer_with_text, "read", {"refused": True}),
    "never-answers": (CASE_SCRIPTS["never answers"], "read", {}),
    "hangs-midway": (CASE_SCRIPTS["hangs midway"], "read", {"seconds": 6}),
    "bad-model": (CASE_SCRIPTS["bad model"], "read", {}),
    "400": (lambda turn: HttpFailure(400), "read", {}),  # noqa: ARG005  what a script is called with
    "not-offered": (answer_with_edit, "read", {}),
    "denied": (denied, "edit", {"more": ("--tools", "Bash,Write")}),
    "denied-loop": (loops, "edit", {"more": ("--tools", "Bash,Write")}),
    "bad-flag": (answer_with_text, "read", {"more": ("--no-such-flag",)}),
    "as-root": (answer_with_text, "shell", {"env": {"IS_SANDBOX": ""}}),
    "unknown-session": (answer_with_text, "read", {"session": "00000000-0000-4000-8000-00000000dead"}),
    "over-budget": (answer_with_edit, "shell", {"micro_usd": 1}),
    "limit-of-a-login": (lambda turn: HttpFailure(429, LIMITED), "read", {"login": True}),  # noqa: ARG005  what a script is called with
    "text-of-a-login": (answer_with_text, "read", {"login": True}),
    "terminated": (CASE_SCRIPTS["cancel"], "shell", {"seconds": 5}),
}


def record(name: str) -> None:
    """One case into one file."""
    script, permissions, different = RECORDED[name]
    with tempfile.TemporaryDirectory() as root, ModelServer(script) as server:
        home, work = Path(root, "home"), Path(root, "work")
        home.mkdir()
        work.mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home), **SWITCHES}
        env["ANTHROPIC_BASE_URL"] = unused_address() if different.get("refused") else server.url
        if different.get("login"):
            (home / ".credentials.json").write_text(json.dumps({"claudeAiOauth": TOKEN}))
        elif (key := different.get("key", MODEL_SERVER_KEY)) is not None:
            env["ANTHROPIC_API_KEY"] = key
        env.update(different.get("env", {}))
        asked = AgentRequest(
            role="coder", mode="implementation", prompt=CALL_PROMPT, workdir=str(work),
            writes=permissions != "read", effect="record:1:1", nonce=CALL_NONCE,
            schema=SHARED_REPLY_CONTRACTS["reviewer"].schema if different.get("contract") else None, session=different.get("session"),
            micro_usd=different.get("micro_usd"),
        )  # fmt: skip
        argv = [PROGRAM, *build_claude_args(asked, ClaudeOptions(), permissions), *different.get("more", ())]
        code, out, errors = _run(argv, env, work, different.get("seconds", 30))
        for pid in mentioning(root):  # a tool survives the CLI that started it
            os.kill(pid, 9)
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = {"exit": code, "stdout": _clean(out, root).splitlines(), "stderr": _clean(errors, root)}
    (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(name, code, len(kept["stdout"]), errors[:100])


def _run(argv: list[str], env: dict[str, str], work: Path, seconds: int) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as prompt:
        prompt.write(CALL_PROMPT.encode())
        prompt.seek(0)
        child = subprocess.Popen(
            argv, cwd=work, env=env, stdin=prompt, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, errors = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.terminate()
            out, errors = child.communicate()
    return child.returncode, out, errors


def _clean(text: str, root: str) -> str:
    """Without what differs from run to run and says nothing."""
    names: dict[str, str] = {}
    text = text.replace(root, "/case").replace(root.replace("/", "-"), "-case")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text)
    return UUID.sub(lambda m: names.setdefault(m[0], f"00000000-0000-4000-8000-{len(names) + 1:012}"), text)


if __name__ == "__main__":
    import sys

    for chosen in sys.argv[1:] or RECORDED:
        record(chosen)
