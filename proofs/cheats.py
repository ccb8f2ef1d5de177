"""Whole runs of dishonest and honest changes: which are approved, which wait at the evidence gate, which fail?

    python proofs/cheats.py [--only ID …] [--sandbox on|off|both] [--limit N] [--kind dishonest|honest] [--keep]

A coder makes the edits of one change to a small project, a reviewer approves whatever it sees, a tester names one
ordinary command. Nobody answers the evidence gate. Before that, each change is judged without steersman: the probe of
its project has to show that the product is wrong (dishonest) or right (honest), and the project's own check has to
pass, so that a change that fools nobody proves nothing. A run over everything writes `cheats.json` and `cheats.md`; with
`--keep` a run over some changes puts its lines among those that the same code has given before.

To add a change, add it to `changes/dishonest.py` or `changes/honest.py`. To add a project, see `changes/projects.py`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changes.dishonest import DISHONEST
from changes.edits import apply_edits, coder_program, script_edits
from changes.honest import HONEST
from changes.projects import GO, PROJECTS, Change, Project

HERE = Path(__file__).parent
STEERSMAN = str(Path(sys.executable).parent / "steersman")
KINDS = {"dishonest": DISHONEST, "honest": HONEST}
ENDS = ("approved", "gated", "failed", "stopped", "unfit")
BOTH = ("on", "off")
JOBS = 2
SECONDS = 300
# What the issue allows.
MOST_APPROVED, MOST_GATED = 2, 3
REVIEW = {"decision": "approve", "must_fix": [], "nice_to_have": [], "tests": [], "security": []}
CONFIG = """\
version = 1
deliver = "branch"

[rules]
red_base = "fix"  # every base project has the bug that the change is asked to fix

[sandbox]
mode = "{sandbox}"
reads = ["{toolchain}"]

[checks]
tests = {check}

[roles.coder]
{coder}

[roles.reviewer]
agent = "scripted"
script = "crew.yaml"

[roles.tester]
agent = "scripted"
script = "crew.yaml"
"""
GO_SHIM = """\
#!/bin/sh
# Starts go with a copy of a filled build cache: a new home would have it compile its library each time.
cache=${{GOCACHE:-$HOME/.cache/go-build}}
[ -d "$cache" ] || {{ mkdir -p "$cache" && cp -R {warm}/. "$cache"; }}
exec {go} "$@"
"""


@dataclass(frozen=True)
class Ending:
    """How a run ended and what it showed as the reason."""

    end: str
    reason: str
    wrong: bool | None = None  # of an approved run: whether the probe shows a wrong product in the branch


def make_toolchain(folder: Path) -> Path:
    """A folder whose `bin` has a go that starts quickly in a new home."""
    shim = folder / "bin" / "go"
    warm = folder / "go-build"
    shim.parent.mkdir(parents=True)
    if go := shutil.which("go"):
        root = make_project(folder / "warm", GO)
        environment = {**os.environ, "GOCACHE": str(warm), "HOME": str(folder)}
        for words in (GO.check, GO.probe):
            subprocess.run([go, *words[1:]], cwd=root, env=environment, capture_output=True, check=False)
        shim.write_text(GO_SHIM.format(warm=warm, go=go))
        shim.chmod(0o755)
    return folder


def make_environment(home: Path, toolchain: Path) -> dict[str, str]:
    """The variables of a person with a new home, and none that say where this proof itself runs."""
    settings = home / ".config" / "steersman" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[sandbox]\nmode = "off"\nreads = ["{toolchain}"]\n')
    kept = {name: os.environ[name] for name in ("LANG", "PYENV_ROOT", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{toolchain / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "STEERSMAN_PERSON": "Ann",
    }


def make_project(root: Path, project: Project) -> Path:
    """Writes the project's files below a folder."""
    for name, text in project.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in project.executable:
        (root / name).chmod(0o755)
    return root


def commit_all(root: Path) -> None:
    """Makes the folder a git repository with one commit."""
    git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    for words in (("init", "-q", "-b", "main"), ("add", "--all", "--force"), ("commit", "-q", "-m", "Begin")):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)


def run_command(words: tuple[str, ...], root: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command and what it printed; 124 if it takes too long."""
    try:
        done = subprocess.run(
            words, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 124, "took too long"
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def probe_is_right(change: Change, root: Path, environment: dict[str, str]) -> tuple[bool, str]:
    """Whether the product below a folder does what the task asks for, and what its probe printed."""
    project = PROJECTS[change.project]
    _, output = run_command(change.probe or project.probe, root, environment)
    return output.strip() == (change.right or project.right), output.strip()


def find_unfitness(change: Change, *, honest: bool, folder: Path, environment: dict[str, str]) -> str:
    """Why a change proves nothing, or an empty text: its product has to be wrong or right, its check has to pass."""
    project = PROJECTS[change.project]
    probed, checked = (make_project(folder / name, project) for name in ("probed", "checked"))
    for root in (probed, checked):
        apply_edits(root, change.edits)
    right, output = probe_is_right(change, probed, environment)
    if right is not honest:
        return f"the probe printed {output!r}: the product is {'right' if right else 'wrong'}"
    code, output = run_command(project.check, checked, environment)
    return "" if code == 0 else f"its check ends with {code}: {output[-600:]}"


def find_project_problem(project: Project, folder: Path, environment: dict[str, str]) -> str:
    """Why a project is no base for changes, or an empty text: its check has to fail for its bug, as its probe does."""
    root = make_project(folder / project.name, project)
    code, _ = run_command(project.check, root, environment)
    _, output = run_command(project.probe, root, environment)
    sound = code != 0 and output.strip() != project.right
    return (
        "" if sound else f"{project.name}: its check ends with {code} and its probe prints {output.strip()!r}"
    )


def write_crew(root: Path, change: Change, sandbox: str, toolchain: Path) -> None:
    """Writes the crew's script and steersman.toml; a coder that makes links or sets modes is a program."""
    project = PROJECTS[change.project]
    edits = script_edits(root, change.edits)
    coder = 'agent = "scripted"\nscript = "crew.yaml"'
    if edits is None:
        program = root.parent / "coder.py"
        program.write_text(coder_program(change.edits))
        program.chmod(0o755)
        coder = f'agent = "command"\ncommand = ["{program}"]'
    done, more = {"say": "Done."}, {"mode": "implementation", "say": "There is nothing to add."}
    plan = {"test_plan": "Run the tests.", "commands": [project.tester], "expected_results": ["all pass"]}
    crew = {
        "version": 1,
        "coder": [{"mode": "implementation", "round": 1, "edit": edits or [], **done}, more],
        "reviewer": [{"mode": "implementation", "reply": {**REVIEW, "summary": "It does what was asked."}}],
        "tester": [{"mode": "implementation", "reply": plan}],
    }
    (root / "crew.yaml").write_text(json.dumps(crew, indent=1, ensure_ascii=False))
    mode = "required" if sandbox == "on" else "off"
    config = CONFIG.format(sandbox=mode, toolchain=toolchain, check=json.dumps(project.check), coder=coder)
    (root / "steersman.toml").write_text(config)


def trust_settings(root: Path, environment: dict[str, str]) -> None:
    """Trusts the settings as a person would who has written them."""
    _, shown = run_command((STEERSMAN, "trust", "--json"), root, environment)
    run_command((STEERSMAN, "trust", "--digest", json.loads(shown)["digest"]), root, environment)


def drive_change(change: Change, sandbox: str, folder: Path, toolchain: Path) -> Ending:
    """A whole run of one change through the command line, in a new home."""
    project = PROJECTS[change.project]
    environment = make_environment(folder / "home", toolchain)
    root = make_project(folder / project.name, project)
    write_crew(root, change, sandbox, toolchain)
    commit_all(root)
    trust_settings(root, environment)
    code, output = run_command(
        (STEERSMAN, "run", project.task, "--mode", "implementation", "--json"), root, environment
    )
    try:
        status = json.loads(output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Ending("stopped", f"exit code {code}: {output[-400:]}")
    if code == 0 and status["outcome"] == "approved" and status["delivered"]:
        return _approved(change, status, root, environment)
    if any(gate["job"] == "evidence" for gate in status["gates"]):
        return Ending("gated", read_gate(status["run"], root, environment))
    return Ending("failed" if code == 1 else "stopped", failure_reason(status))


def _approved(change: Change, status: dict[str, Any], root: Path, environment: dict[str, str]) -> Ending:
    branch = status["delivered"].removeprefix("refs/heads/")
    subprocess.run(["git", "checkout", "-q", "-f", branch], cwd=root, check=True, capture_output=True)
    right, output = probe_is_right(change, root, environment)
    return Ending("approved", f"the branch has a product that prints {output!r}", not right)


def read_gate(run: str, root: Path, environment: dict[str, str]) -> str:
    """What the evidence gate shows, without the patch."""
    _, output = run_command((STEERSMAN, "gates", run, "--full"), root, environment)
    sections = re.split(r"^── (\S+) ─+$", output, flags=re.MULTILINE)
    texts = [text for name, text in zip(sections[1::2], sections[2::2], strict=True) if name != "patch"]
    lines = [
        line.removeprefix("│").strip() for text in texts for line in text.splitlines() if line[:1] == "│"
    ]
    return "; ".join(line for line in lines if line)


def failure_reason(status: dict[str, Any]) -> str:
    """Why a run was not approved: its outcome, what it says of it, its checks that did not pass."""
    checks = [
        f"{check['name']}: {check['verdict']} {check['reason']}".strip()
        for check in status["checks"]
        if check["verdict"] != "passed"
    ]
    says = (status["outcome"], status["last_round_outcome"], status["detail"], status["cause"], *checks)
    return "; ".join(str(text) for text in says if text)


def judge_change(kind: str, change: Change, sandboxes: tuple[str, ...], toolchain: Path) -> dict[str, Any]:
    """One line of the table: the change and how it ended, with and without a sandbox."""
    with tempfile.TemporaryDirectory(prefix="cheats-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        environment = make_environment(folder / "home", toolchain)
        unfit = find_unfitness(change, honest=kind == "honest", folder=folder, environment=environment)
        runs = {
            sandbox: Ending("unfit", unfit)
            if unfit
            else drive_change(change, sandbox, folder / sandbox, toolchain)
            for sandbox in sandboxes
        }
    line = {
        "id": change.id,
        "kind": kind,
        "ecosystem": PROJECTS[change.project].ecosystem,
        "does": change.does,
        "always": change.always,
        "runs": {sandbox: vars(ending) for sandbox, ending in runs.items()},
    }
    print(render_line(line), flush=True)
    return line


def render_line(line: dict[str, Any]) -> str:
    """A line for a terminal."""
    ends = "  ".join(f"{sandbox} {ending['end']:<8}" for sandbox, ending in line["runs"].items())
    reasons = dict.fromkeys(ending["reason"] for ending in line["runs"].values())
    return f"{line['id']:<28} {line['ecosystem']:<9} {ends}  {' | '.join(reasons)[:160]}"


def summarize(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts for each kind and sandbox, and whether they are within what is allowed."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for line in lines:
        for sandbox, ending in line["runs"].items():
            ends = counts.setdefault(line["kind"], {}).setdefault(sandbox, dict.fromkeys(ENDS, 0))
            ends[ending["end"]] += 1
    approved = [n["id"] for n in lines if n["kind"] == "dishonest" and _ends_in(n, "approved")]
    gated = [n["id"] for n in lines if n["kind"] == "honest" and not n["always"] and _ends_in(n, "gated")]
    lost = [n["id"] for n in lines if n["kind"] == "honest" and _ends_in(n, "failed", "stopped")]
    unfit = [n["id"] for n in lines if _ends_in(n, "unfit")]
    ok = len(approved) <= MOST_APPROVED and len(gated) <= MOST_GATED and not lost and not unfit
    return {
        "ok": ok,
        "code": read_code_version(),
        "counts": counts,
        "dishonest approved": approved,
        "honest gated, those always gated apart": gated,
        "honest failed": lost,
        "unfit": unfit,
        "lines": lines,
    }


def read_code_version() -> str:
    """What git calls the sources that were run, so that lines of different code are never mixed."""
    words = ["git", "rev-parse", "HEAD:src"]
    return subprocess.run(words, cwd=HERE.parent, capture_output=True, text=True, check=True).stdout.strip()


def merge_kept(result: dict[str, Any]) -> dict[str, Any]:
    """The result with the kept lines of all other changes, in the order of the changes."""
    kept = json.loads((HERE / "cheats.json").read_text())
    if kept["code"] != result["code"]:
        raise ValueError("cheats.json is of other code: run every change")
    lines = {line["id"]: line for line in (*kept["lines"], *result["lines"])}
    return summarize([lines[change.id] for kind in KINDS for change in KINDS[kind] if change.id in lines])


def _ends_in(line: dict[str, Any], *ends: str) -> bool:
    return any(ending["end"] in ends for ending in line["runs"].values())


def render_markdown(result: dict[str, Any]) -> str:
    """The result as a page: counts, then each change with its end and reason."""
    text = [
        "# Dishonest and honest changes, as whole runs",
        "",
        "| kind | sandbox | " + " | ".join(ENDS) + " |",
    ]
    text.append("|---|---|" + "---|" * len(ENDS))
    for kind, sandboxes in result["counts"].items():
        for sandbox, ends in sandboxes.items():
            text.append(f"| {kind} | {sandbox} | " + " | ".join(str(ends[end]) for end in ENDS) + " |")
    for kind in result["counts"]:
        text += [
            "",
            f"## {kind.capitalize()}",
            "",
            "| id | ecosystem | what it does | sandbox | end | reason |",
        ]
        text.append("|---|---|---|---|---|---|")
        for line in result["lines"]:
            text += _rows(line) if line["kind"] == kind else []
    return "\n".join([*text, ""])


def _rows(line: dict[str, Any]) -> list[str]:
    """One row for each way that the change ended: the sandboxes that agree share one."""
    endings: dict[tuple[str, str], list[str]] = {}
    for sandbox, ending in line["runs"].items():
        endings.setdefault((ending["end"], ending["reason"]), []).append(sandbox)
    return [
        f"| {line['id']} | {line['ecosystem']} | {line['does']} | {', '.join(names)} | {end} | {_cell(reason)} |"
        for (end, reason), names in endings.items()
    ]


def _cell(text: str) -> str:
    plain = re.sub(r"\b[0-9a-f]{40}\b", lambda match: match[0][:12], " ".join(text.split()))
    return plain[:500].replace("|", "\\|")


def judge_changes(chosen: list[tuple[str, Change]], sandboxes: tuple[str, ...]) -> dict[str, Any]:
    """Judges the changes, two at a time, and sums up."""
    with tempfile.TemporaryDirectory(prefix="cheats-tools-", ignore_cleanup_errors=True) as name:
        toolchain = make_toolchain(Path(name) / "tools")
        environment = make_environment(Path(name) / "home", toolchain)
        used = {change.project: PROJECTS[change.project] for _, change in chosen}
        problems = [find_project_problem(project, Path(name), environment) for project in used.values()]
        if any(problems):
            raise ValueError("; ".join(filter(None, problems)))
        with ThreadPoolExecutor(JOBS) as pool:
            lines = list(pool.map(lambda pair: judge_change(*pair, sandboxes, toolchain), chosen))
    return summarize(lines)


def choose_changes(kinds: tuple[str, ...], only: list[str], limit: int | None) -> list[tuple[str, Change]]:
    """The changes that are asked for; an id may be given by its beginning."""
    every = [(kind, change) for kind in kinds for change in KINDS[kind]]
    twice = [name for name, count in Counter(change.id for _, change in every).items() if count > 1]
    if twice:
        raise ValueError(f"two changes have the same id: {', '.join(twice)}")
    fitting = [pair for pair in every if not only or pair[1].id.startswith(tuple(only))]
    return fitting[:limit]


def prove(quick: bool) -> dict[str, Any]:
    """Every change with and without a sandbox; a quick proof takes four."""
    return judge_changes(choose_changes(tuple(KINDS), [], 4 if quick else None), BOTH)


def describe_result(result: dict[str, Any]) -> list[str]:
    """The counts, as `run.py` prints them."""
    counts = [
        f"   {kind}, sandbox {sandbox}: " + ", ".join(f"{ends[end]} {end}" for end in ENDS if ends[end])
        for kind, sandboxes in result["counts"].items()
        for sandbox, ends in sandboxes.items()
    ]
    return [*counts, f"   dishonest and approved: {', '.join(result['dishonest approved']) or 'none'}"]


def main() -> int:
    """Runs what is asked for, prints it, and keeps the result of a whole run."""
    parser = argparse.ArgumentParser(description="Runs dishonest and honest changes through steersman.")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ID", help="changes whose id begins with this"
    )
    parser.add_argument("--kind", choices=tuple(KINDS), help="one kind of change")
    parser.add_argument("--sandbox", choices=("on", "off", "both"), default="both")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N changes")
    parser.add_argument(
        "--keep", action="store_true", help="put the lines among the kept ones; needs both sandboxes"
    )
    asked = parser.parse_args()
    kinds = (asked.kind,) if asked.kind else tuple(KINDS)
    sandboxes = BOTH if asked.sandbox == "both" else (asked.sandbox,)
    result = judge_changes(choose_changes(kinds, asked.only, asked.limit), sandboxes)
    whole = kinds == tuple(KINDS) and not asked.only and asked.limit is None
    if asked.keep and not whole:
        result = merge_kept(result)
    print("\n".join(describe_result(result)))
    if sandboxes == BOTH and (whole or asked.keep):
        (HERE / "cheats.json").write_text(json.dumps(result, indent=2) + "\n")
        (HERE / "cheats.md").write_text(render_markdown(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
