"""Takes repositories that steersman has never seen from `init` to a delivered change, as a new user would.

    python proofs/projects.py DIR [--only NAME …] [--minutes 15] [--write] [--keep-logs DIR]

DIR holds checked-out repositories. For each one: a copy, a fresh home and state, the real claude and codex on scripted
models, `steersman init --yes`, `steersman run`, and `approve` or `accept-evidence` for every gate. The coder adds a
function and a test in the form of the project's own runner, the reviewer approves, the tester proposes one of the
project's commands. A repository holds when its checks are proven and the change is delivered with at most five commands and no file edited by hand.

DIR/truth.json may say what is true outside steersman: {"name": {"kind": "…", "tests": 12, "also": [11]}}; `also` has the
numbers of a runner that counts skipped tests or halves of a script in another way.
`--write` keeps the figures in proofs/projects.json and proofs/projects.md.

**Invariant:** one thing is not as for a user: where the scripted model is. codex reads it from the role's table, so the
script adds base_url, key_env and model to the reviewer and the tester that `init` wrote. Nothing else is touched.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import stamp
from project_changes import Change, Check, NoChangeError, make_change
from trial_project import TrialProject, Typed, end_cleanly_on_sigterm, list_repositories

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.model_server import (
    MODEL_SERVER_KEY,
    ModelServer,
    SayText,
    StructuredReply,
    UseTool,
    WriteFile,
)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "agents" / "clis"))
import install  # noqa: E402  the pinned agent CLIs; found by the line above

MOST_COMMANDS = 5
MOST_GATES = 6
KEY_NAME = "SCRIPTED_MODEL_KEY"
TASK = "Add a function that limits a number to a range, with a test"
APPROVED = {"decision": "approve", "summary": "The function and its test are right.", "must_fix": []}
LISTS: dict[str, list[str]] = {"nice_to_have": [], "tests": [], "security": [], "fixed": []}


class StopTrialError(Exception):
    """The repository got no further: the step, and why."""

    def __init__(self, step: str, why: str) -> None:
        super().__init__(why)
        self.step, self.why = step, why


def script_models(plan: dict[str, Any]) -> Callable[[Any], Any]:
    """What the models answer; the plan gets its change and its tester's command after `init`."""

    def answer(turn: Any) -> Any:
        if turn.wire == "anthropic":
            return _coder_answer(turn, plan)
        fields = (turn.schema or {}).get("properties", {})
        if "decision" in fields:
            return StructuredReply({"nonce": turn.nonce, **APPROVED, **LISTS})
        if "commands" in fields:
            told = {"test_plan": "run the project's own check", "commands": [plan["command"]]}
            return StructuredReply({"nonce": turn.nonce, **told, "expected_results": ["it passes"]})
        return SayText("The plan is sound.")

    return answer


def _coder_answer(turn: Any, plan: dict[str, Any]) -> Any:
    """Reads each file that is there already, then writes every file; one step for each result so far."""
    if "Write" not in turn.tools:
        return SayText("I would add a small function and a test beside the other tests.")
    steps: list[Any] = []
    for path, text in plan["change"].files.items():
        if path in plan["old"]:
            steps.append(UseTool("Read", {"file_path": path}))
        steps.append(WriteFile(path, text))
    return (
        steps[turn.results] if turn.results < len(steps) else SayText("The function and its test are there.")
    )


def try_repository(source: Path, truth: dict[str, Any], asked: argparse.Namespace) -> dict[str, Any]:
    """One repository from `init` to delivery: a row of the table."""
    began = time.monotonic()
    row: dict[str, Any] = {"repository": source.name, "kind": truth.get("kind", ""), "asked": []}
    plan: dict[str, Any] = {}
    temporary = tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True)
    with temporary as place, ModelServer(script_models(plan)) as server:
        extra = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": MODEL_SERVER_KEY,
            KEY_NAME: MODEL_SERVER_KEY,
        }
        project = TrialProject(Path(place) / "trial", source, began + asked.minutes * 60, asked.python, extra)
        for name in ("claude", "codex"):
            (project.programs / name).symlink_to(str(install.program(name)))
        row["commit"] = project.base[:12]
        try:
            _go_all_the_way(project, plan, server.url, truth, row)
        except StopTrialError as stop:
            row |= {"stopped_at": stop.step, "why": stop.why}
        finally:
            row["commands"] = [f"steersman {' '.join(typed.words)}" for typed in project.typed]
            row["seconds"] = {f"{n} {t.words[0]}": t.seconds for n, t in enumerate(project.typed, 1)}
            if asked.keep_logs:
                _keep_logs(asked.keep_logs / source.name, project)
            row["left_alive"] = len(project.close())
    row["minutes"] = round((time.monotonic() - began) / 60, 2)
    row["ok"] = bool(row.get("delivered")) and len(row["commands"]) <= MOST_COMMANDS
    return row


def _go_all_the_way(
    project: TrialProject, plan: dict[str, Any], url: str, truth: dict[str, Any], row: dict[str, Any]
) -> None:
    checks = _init(project, truth, row)
    try:
        plan["change"] = make_change(project.repo, checks)
    except NoChangeError as missing:
        raise StopTrialError("change", f"this script has no change for it: {missing}") from None
    plan["old"] = [path for path in plan["change"].files if (project.repo / path).exists()]
    plan["command"] = list(next((c.argv for c in checks if not c.cwd), checks[0].argv))
    row["form"] = plan["change"].form
    _point_codex_at_the_script(project.repo / "steersman.toml", url)
    host = url.removeprefix("http://")
    project.trust_settings(f'[sandbox]\nhosts = ["{host}"]\n[env]\npass = ["{KEY_NAME}"]\n')
    said = project.type_command("run", TASK, "--json")
    run = said.answer.get("run")
    if not run:
        raise StopTrialError("run", said.reason)
    row["run"] = run
    while said.code == 3 and len(row["asked"]) < MOST_GATES:
        row["asked"] += _gate_words(project, said.answer)
        said = project.type_command(*_yes(run, said.answer), "--json")
    _judge_end(project, plan["change"], said, row)


def _yes(run: str, answer: dict[str, Any]) -> tuple[str, ...]:
    """The command that answers the open gate with yes."""
    gate = next((g for g in answer.get("gates", ()) if g["job"] == "evidence"), None)
    return ("accept-evidence", run, gate["digest"][:8]) if gate else ("approve", run)


def _init(project: TrialProject, truth: dict[str, Any], row: dict[str, Any]) -> list[Check]:
    """`init --yes`; where tests fail on the base it is typed again with the option that acknowledges them."""
    said = project.type_command("init", "--yes", "--json")
    if said.code == 2 and "No such option" in said.reason:
        raise StopTrialError("init", "this steersman has no `init --yes`")
    if any(check.get("verdict") == "failed" for check in said.answer.get("checks", {}).values()):
        row["asked"].append("init: tests fail on the base")
        said = project.type_command("init", "--check", "--acknowledge-failures", "--yes", "--json")
    facts = said.answer
    found = facts.get("checks", {})
    row["setup"] = [step["run"] if isinstance(step, dict) else step for step in facts.get("setup", [])]
    row["checks"] = {
        name: {
            key: check.get(key)
            for key in ("argv", "cwd", "verdict", "tests", "reason")
            if check.get(key) is not None
        }
        | {"failed": len(check.get("failed") or [])}
        for name, check in found.items()
    }
    row["acknowledged"] = len(facts.get("known_failures") or [])
    if not found:
        raise StopTrialError(
            "init", f"no check was found: {said.reason}" if said.code else "no check was found"
        )
    unproven = [name for name, check in found.items() if check.get("verdict") not in ("passed", "failed")]
    counted = sum(check.get("tests") or 0 for check in found.values())
    row["tests"], row["proven"] = counted, not unproven and counted > 0
    if "tests" in truth:
        row["as_outside"] = counted in (truth["tests"], *truth.get("also", ()))
    if said.code or not row["proven"]:
        reasons = "; ".join(
            f"{name}: {found[name].get('verdict')}, {found[name].get('reason')}" for name in unproven
        )
        failed = facts.get("failed_setup")
        told = (
            f"setup failed: {failed.get('reason')}"
            if failed
            else reasons or facts.get("unproven") or said.reason
        )
        raise StopTrialError("init", str(told)[:600])
    return [Check(name, tuple(c["argv"]), c.get("cwd") or "") for name, c in found.items()]


def _point_codex_at_the_script(path: Path, url: str) -> None:
    """Adds where the scripted model is to the tables of codex (see the module's invariant)."""
    lines = []
    for line in path.read_text().splitlines():
        lines.append(line)
        if line.strip() == 'agent = "codex"':
            lines += [f'base_url = "{url}/v1"', f'key_env = "{KEY_NAME}"', 'model = "scripted-model"']
    if len(lines) == len(path.read_text().splitlines()):
        raise StopTrialError("init", "init gave no role to codex")
    path.write_text("\n".join(lines) + "\n")


def _gate_words(project: TrialProject, answer: dict[str, Any]) -> list[str]:
    """Each open gate by name; one that is no confirmation of a proposal, with its reason."""
    words = []
    for gate in answer.get("gates", []):
        name = gate.get("job", "gate")
        reasons = []
        if name != "confirm":
            why = project.type_command("why", answer["run"], "--json", counted=False).answer
            reasons = [
                str(reason.get("what", "")) for reason in why.get("reasons", []) if reason.get("urgent")
            ]
        words.append(": ".join([name, *reasons[:1]])[:400])
    return words or ["a gate without a name"]


def _judge_end(project: TrialProject, change: Change, said: Typed, row: dict[str, Any]) -> None:
    """Delivered means: the branch has exactly the change's files, and the checkout is as the user left it."""
    answer = said.answer
    row["outcome"], row["rounds"] = answer.get("outcome") or answer.get("state"), answer.get("round")
    row["in_the_run"] = [
        {
            key: check.get(key)
            for key in ("name", "verdict", "tests", "reason")
            if check.get(key) not in (None, "")
        }
        for check in answer.get("checks", [])
    ]
    if said.code != 0 or answer.get("outcome") != "approved":
        failed = [f"{c['name']}: {c['verdict']}" for c in row["in_the_run"] if c["verdict"] != "passed"]
        words = [answer.get(key) for key in ("outcome", "last_round_outcome", "cause", "detail")]
        why = " · ".join(str(word) for word in (*words, *failed) if word)
        raise StopTrialError(
            f"run ({answer.get('state')})", f"{why or said.reason}{_failed_output(project, row['run'])}"
        )
    if not answer.get("delivered"):
        raise StopTrialError("delivery", "approved, but nothing was delivered")
    names = project.git("diff", "--name-only", project.base, answer["delivered"]).splitlines()
    if sorted(names) != sorted(change.files):
        raise StopTrialError(
            "delivery", f"delivered {len(names)} files, {len(change.files)} were written: {names[:12]}"
        )
    strange = [
        line
        for line in project.git("status", "--porcelain").splitlines()
        if line[3:] not in ("steersman.toml", ".steersman/")
    ]
    if strange or project.git("rev-parse", "HEAD") != project.base:
        raise StopTrialError("delivery", f"the checkout is not as it was: {strange[:6]}")
    row["delivered"] = True


def _failed_output(project: TrialProject, run: str) -> str:
    """The end of what the last failed check on the tape printed."""
    failed = _failed_records(project, run)
    if not failed:
        return ""
    output = " ".join(str(failed[-1].get("output") or failed[-1].get("reason") or "").split())
    return f" · {failed[-1]['name']} printed: …{output[-300:]}"


def _failed_records(project: TrialProject, run: str) -> list[dict[str, Any]]:
    """The whole records of executions that did not pass."""
    lines = project.type_command("audit", "export", run, "--payloads", counted=False).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    texts = {row["payload"]: row["text"] for row in rows if "payload" in row}
    parts = [row["entry"]["data"] for row in rows if row.get("entry", {}).get("kind") == "part_finished"]
    return [
        json.loads(texts[p["ref"]]) for p in parts if p.get("verdict") != "passed" and p.get("ref") in texts
    ]


def _keep_logs(place: Path, project: TrialProject) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for number, typed in enumerate(project.typed, 1):
        text = f"$ steersman {' '.join(typed.words)}\nexit {typed.code}, {typed.seconds} s\n\n{typed.stdout}\n{typed.stderr}"
        (place / f"{number}-{typed.words[0]}.log").write_text(text)
    config = project.repo / "steersman.toml"
    if config.is_file():
        (place / "steersman.toml").write_text(config.read_text())
    for run in sorted({t.answer["run"] for t in project.typed if t.answer.get("run")}):
        lines = (json.dumps(entry) for entry in project.entries(run))
        (place / "tape.jsonl").write_text("\n".join(lines) + "\n")
        failed = _failed_records(project, run)
        (place / "failed-checks.json").write_text(json.dumps(failed, indent=1) + "\n")


def render_table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    head = "| repository | kind | setup | checks | tests | commands | minutes | asked | result |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        checks = [
            f"`{' '.join(c['argv'])}`" + (f" in {c['cwd']}" if c.get("cwd") else "")
            for c in row.get("checks", {}).values()
        ]
        setup = [f"`{' '.join(step)}`" for step in row.get("setup", [])]
        result = (
            "delivered"
            if row["ok"]
            else f"stopped at {row.get('stopped_at', 'count')}: {row.get('why', 'too many commands')}"
        )
        cells = [
            f"{row['repository']} {row['commit']}",
            row["kind"] or row.get("form", ""),
            "; ".join(setup) or "none",
            "; ".join(checks) or "none",
            f"{row.get('tests', 0)}" + ("" if row.get("as_outside", True) else " (outside: another number)"),
            f"{len(row['commands'])}",
            f"{row['minutes']}",
            "; ".join(row["asked"]) or "nothing",
            result,
        ]
        lines.append(
            "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--minutes", type=float, default=15, help="for each repository")
    parser.add_argument("--write", action="store_true", help="keep the figures in proofs/")
    parser.add_argument(
        "--keep-logs", type=Path, default=None, metavar="DIR", help="outputs, configuration and tapes"
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose steersman is tried")
    asked = parser.parse_args()
    end_cleanly_on_sigterm()
    install.install()
    truth_file = asked.folder / "truth.json"
    truth = json.loads(truth_file.read_text()) if truth_file.is_file() else {}
    rows = []
    for source in list_repositories(asked.folder, asked.only):
        row = try_repository(source, truth.get(source.name, {}), asked)
        rows.append(row)
        print(render_table([row]).splitlines()[-1], flush=True)
    ok = [row for row in rows if row["ok"]]
    proven = [row for row in rows if row.get("proven") and row.get("as_outside", True)]
    figures = {
        **stamp(bool(asked.only), "none"),
        "load": [round(number, 1) for number in os.getloadavg()],
        "repositories": len(rows),
        "proven": len(proven),
        "delivered": len(ok),
        "kinds": sorted({row["kind"] for row in ok if row["kind"]}),
        "most_commands": max(len(row["commands"]) for row in rows),
        "ok": len(rows) >= 8 and len(proven) >= 7 and len(ok) >= len(proven),
        "rows": rows,
    }
    summary = f"{len(rows)} repositories: {len(proven)} proven by init as outside, {len(ok)} delivered"
    table = f"# Repositories that the tests have never seen\n\n{summary}.\n\n{render_table(rows)}"
    print(f"\n{table}")
    if asked.write:
        (HERE / "projects.json").write_text(json.dumps(figures, indent=2) + "\n")
        (HERE / "projects.md").write_text(table)
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
