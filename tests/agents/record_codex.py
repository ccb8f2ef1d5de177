"""Records what the installed codex says, case by case, into fixtures/codex-<version>/: by hand, when its version changes.

It is called directly, without a box and without anybody who stops it, so that the fixtures hold all it would say.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import msgspec
from install import program
from test_codex import VERSION
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    HttpFailure,
    ModelServer,
    ModelTokens,
    SayText,
    unused_address,
)
from tests.support.model_server.cases import CASE_SCRIPTS, answer_with_edit, answer_with_text

FOLDER = Path(__file__).parent / "fixtures" / f"codex-{VERSION}"
PROMPT = b"Do it, nonce abc-1"


def silent(turn):
    """An answer whose usage nobody tells."""
    return SayText("x", ModelTokens(0, 0)) if turn.model else None


def unwanted(turn):
    """A request that the server does not understand."""
    return HttpFailure(400) if turn.model else None


# name: script, and what is different about the call
RECORDED = {
    **{
        name: (CASE_SCRIPTS[name], {})
        for name in ("text", "edit", "schema", "401", "403", "429", "500", "529")
    },
    **{
        name.replace(" ", "-"): (CASE_SCRIPTS[name], {})
        for name in ("schema not met", "bad model", "hangs midway")
    },
    **{name.replace(" ", "-"): (CASE_SCRIPTS[name], {}) for name in ("never answers", "dropped")},
    "no-usage": (silent, {}),
    "400": (unwanted, {}),
    "no-key": (answer_with_text, {"key": None}),
    "refused": (answer_with_text, {"refused": True}),
    "refused-for-ever": (answer_with_text, {"refused": True, "unbounded": True, "seconds": 14}),
    "denied-tool": (answer_with_edit, {"mode": "read-only"}),
    "retried-401": (CASE_SCRIPTS["401"], {"retries": 2}),
    "retried-500": (CASE_SCRIPTS["500"], {"retries": 2, "seconds": 20}),
    "bad-flag": (answer_with_text, {"words": ("--no-such-flag",)}),
    "unknown-session": (answer_with_text, {"words": ("resume", "01a1e29b-3d67-7431-a93b-533909f6b850")}),
    "no-prompt": (answer_with_text, {"prompt": b""}),
}


def record(
    name,
    script,
    *,
    key=MODEL_SERVER_KEY,
    refused=False,
    mode="danger-full-access",
    retries=0,
    words=(),
    **more,
):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root, ModelServer(script) as server:
        home, work = Path(root, "home"), Path(root, "tree")
        home.mkdir()
        work.mkdir()
        gateway = (
            f'{{name="g",base_url="{unused_address() if refused else server.url}/v1",env_key="SCRIPTED_KEY",'
            f'wire_api="responses",request_max_retries={retries},stream_max_retries={retries},'
            "stream_idle_timeout_ms=2000}"
        )
        bound = "true" if more.get("unbounded") else "false"
        argv = [str(program("codex")), "exec", "--json", "--skip-git-repo-check", "-C", str(work), "-s", mode]
        argv += ["-c", 'model_provider="g"', "-c", f"model_providers.g={gateway}", "-m", "scripted-model"]
        argv += ["-c", f"features.unbounded_connection_retries={bound}", *words, "-"]
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home)}
        said = _said(argv, {**env, "SCRIPTED_KEY": key} if key else env, more)
    told = {**said, "stdout": said["stdout"].splitlines()}
    plain = msgspec.json.format(msgspec.json.encode(told), indent=1).replace(root.encode(), b"/call")
    (FOLDER / f"{name}.json").write_bytes(plain + b"\n")
    print(name, said["exit"])


def _said(argv, env, more):
    asked = more.get("prompt", PROMPT)
    try:
        done = subprocess.run(
            argv, input=asked, capture_output=True, timeout=more.get("seconds", 8), env=env, check=False
        )
    except subprocess.TimeoutExpired as error:
        return {
            "exit": None, "stdout": (error.stdout or b"").decode(), "stderr": (error.stderr or b"").decode(),
        }  # fmt: skip
    return {"exit": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for chosen, (follows, different) in RECORDED.items():
        record(chosen, follows, **different)
