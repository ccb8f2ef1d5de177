"""Whole voyages in a repository whose every setting and hook leaves a mark: none is left.

    python proofs/hostile.py [--quick]

Laid with `tests.support.hostile_git_config`: git's own list of settings, each with a program as its value, in every place that
git reads settings from; hooks of every name; the caller's environment; attributes; a submodule; the remote. Then the
installed command runs in it: setup, checks, capture, delivery in each form, revert, fork, abort, with a coder that
lays mines in its own tree. Afterwards ordinary git shows that what was laid is alive.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from figures import main, stamp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support import hostile_git_config
from tests.support.fake_forge import FakeForge
from tests.support.hostile_git_config import HostileGitConfig
from tests.support.sample_project import (  # a story that journeys tell too
    RIGHT_CODE,
    UNIT_TESTS,
    WRONG_CODE,
    Project,
    roundtable_crew,
)

WHO = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
# A coder that does its work, and then lays mines where it works: in its repository, its index, its tree.
CODER = """
import os, sys
tree, mine, deliver = sys.argv[1:]
if not os.access('calc.py', os.W_OK):  # a proposal only reads
    sys.exit(print('I will add.'))
open('calc.py', 'w').write(sys.stdin.read() and {right!r})
here = open('.git').read().removeprefix('gitdir: ').strip() if os.path.isfile('.git') else '.git'
with open(here + '/config', 'a') as file:
    for key in ('core.fsmonitor', 'core.hooksPath', 'diff.external', 'core.pager', 'filter.x.clean', 'filter.x.process'):
        section, _, name = key.rpartition('.')
        first, _, rest = section.partition('.')
        head = '[' + first + (' "' + rest + '"' if rest else '') + ']'
        file.write(head + '\\n\\t' + name + ' = ' + mine + '\\n')
    file.write('[alias]\\n\\tdiff = !' + mine + '\\n')
os.makedirs(here + '/hooks', exist_ok=True)
for name in ('post-checkout', 'post-index-change', 'reference-transaction', 'pre-commit'):
    with open(here + '/hooks/' + name, 'w') as file:
        file.write('#!/bin/sh\\nexec ' + mine + '\\n')
    os.chmod(here + '/hooks/' + name, 0o755)
if deliver != 'merge':  # into a checkout, what passes a filter is not merged at all
    open('worker.dat', 'w').write('x')
    open('.gitattributes', 'a').write('worker.dat filter=x diff=x\\n')
print('done')
"""
CONFIG = """version = 1
deliver = "{deliver}"
[sandbox]
mode = "{sandbox}"
[worktree]
include = ["local.env"]
setup = [["python3", "-c", "print('set up')"]]
[checks]
unit = ["python3", "-m", "unittest", "-q"]
[rules]
red_base = "fix"
[roles.coder]
agent = "command"
command = {coder}
[roles.reviewer]
agent = "scripted"
script = "crew.yaml"
[roles.tester]
agent = "scripted"
script = "crew.yaml"
"""
WAITING = 3
ORDINARY = (
    "status", "diff", "diff HEAD~1", "add -A", "commit -m x", "log -p -1 --show-signature", "checkout -b other", "commit --allow-empty -m y",
    "checkout main", "merge --no-edit other", "merge --no-ff -m m other", "tag -s t -m t", "fetch origin", "push origin main", "push mine main",
    "submodule update --init", "submodule status", "stash", "stash pop", "archive --format=tar.mine HEAD", "gc --auto", "rebase -f HEAD~1", "mine",
    "commit --amend", "rebase -i HEAD~1", "difftool -y HEAD~1", "revert --no-edit HEAD", "clone . ../clone", "worktree add ../wt", "grep x",
    "blame calc.py", "show HEAD", "interpret-trailers --trailer mine=x /dev/null", "fsmonitor--daemon status", "ls-remote origin", "pull --no-edit origin main",
)  # fmt: skip


class HostileRunResult(NamedTuple):
    """What the commands of one repository did."""

    told: list[tuple[str, int]]  # each command and its exit code
    marks: list[str]  # what has run; nothing should
    laid: list[str]


class HostileRepository:
    """A project in a minefield."""

    def __init__(self, place: Path, sandbox: str, keys: tuple[str, ...]) -> None:
        self.field, self.sandbox = HostileGitConfig(place / "field", keys), sandbox
        self.project = Project(place, _template(place))
        self.repo = self.project.repo
        self.forge = FakeForge(place / "forge", "gh")
        self._lay(place)

    def _lay(self, place: Path) -> None:
        """First everything that needs git, then the mines: laying sets none off."""
        remote = place / "ann" / "calc.git"
        for words in (
            ("init", "-q", "--bare", "-b", "main", str(remote)),
            ("remote", "add", "origin", str(remote)),
        ):
            subprocess.run(["git", *words], cwd=self.repo, check=True)
        self.field.tree(self.repo)
        subprocess.run(["git", "init", "-q", str(self.repo / "module")], check=True)
        subprocess.run(
            ["git", *WHO, "commit", "-q", "--allow-empty", "-m", "x"], cwd=self.repo / "module", check=True
        )
        for words in (("add", "-A"), (*WHO, "commit", "-qm", "mines"), ("push", "-q", "origin", "main")):
            subprocess.run(["git", *words], cwd=self.repo, check=True, capture_output=True)
        (self.repo / ".git" / "info").mkdir(exist_ok=True)
        (self.repo / ".git" / "info" / "exclude").write_text(
            "steersman.toml\ncrew.yaml\nlocal.env\n.steersman\n"
        )
        (self.repo / "crew.yaml").write_text(json.dumps(roundtable_crew()))
        (self.repo / "local.env").write_text("X=1\n")
        self.field.submodule(self.repo)
        self.field.repository(self.repo)
        own = (remote / "config").read_text()
        self.field.settings("remote", place / "remote")
        (remote / "config").write_text(f"{(place / 'remote').read_text()}{own}")
        self.field.hooks("remote", remote / "hooks")
        path = f"{self.forge.bin}{os.pathsep}{self.project.env['PATH']}"
        self.env = {**self.field.environment(), "PATH": path}
        home = self.env.get("HOME", self.project.env["HOME"])
        own = Path(self.env.get("XDG_CONFIG_HOME", f"{home}/.config"), "steersman", "config.toml")
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text('[sandbox]\nmode = "off"\n')  # the widest that the project may ask for

    def ready(self, deliver: str) -> None:
        """The configuration of the next run; no commit is needed."""
        script = CODER.replace("{right!r}", repr(RIGHT_CODE))
        words = ["python3", "-c", script, "{workdir}", self.field.mine("worker", "laid"), deliver]
        self.repo.joinpath("steersman.toml").write_text(
            CONFIG.format(deliver=deliver, sandbox=self.sandbox, coder=json.dumps(words))
        )

    def run_commands(self) -> HostileRunResult:
        """Every form of delivery, revert, fork, abort, and whoever only looks."""
        told: list[tuple[str, int]] = []

        def call(*words: str) -> Any:
            said = self.project.call(*words, timeout=300, **self.env)
            told.append((" ".join(words[:2]), said.code))
            return said

        def answer(waiting: dict[str, Any]) -> Any:
            (gate,) = waiting["gates"]
            if gate["job"] == "evidence":
                return call("accept-evidence", waiting["run"], gate["digest"][:8], "--json")
            return call("approve", waiting["run"], "--json")

        def run(deliver: str) -> str:
            self.ready(deliver)
            said = call("run", "Fix add", "--mode", "implementation", "--json")
            for _ in range(3):  # changed attributes and a merge are questions to a person
                if said.code == WAITING:
                    said = answer(said.json())
            found: str = said.json()["run"]
            return found

        done, _, merged = (run(deliver) for deliver in ("branch", "draft-pr", "merge"))
        call("revert", merged)
        call("fork", done, "--at", "3")
        self.ready("branch")
        call("abort", call("run", "Fix add", "--json").json()["run"])
        for words in (("doctor",), ("show", done), ("why", done), ("report", done), ("gates",)):
            call(*words)
        call("audit", "anchor", done, "--to", "git")
        call("audit", "verify", done)
        return HostileRunResult(told, self.field.marks, sorted(set(self.field.laid)))

    def alive(self) -> list[str]:
        """What ordinary git, used by a person, runs of what was laid: each layer by itself, for the last one wins."""
        self.field.clear()
        folder = self.field.folder
        known = HostileGitConfig(
            folder, hostile_git_config.PROGRAM_SETTINGS
        )  # with git's whole list set, most of its commands refuse
        for layer in ("repository", "included", "home", "system", "submodule", "remote"):
            known.settings(layer, folder / "day")
            settings = _without((folder / "day").read_text(), "include", "path")
            self._use(settings, {})
            self._use(_without(settings, "core", "hooksPath|fsmonitor"), {})
        self._use("", {name: self.env[name] for name in hostile_git_config.PROGRAM_VARIABLES})
        for trace in hostile_git_config.TRACE_VARIABLES:
            hostile_git_config.run_git_with_config(folder, "ls-files", env={trace: self.env[trace]})
        return self.field.marks

    def _use(self, settings: str, env: dict[str, str]) -> None:
        """A person's day with git, in a repository with these settings alone and hooks in their usual place."""
        with tempfile.TemporaryDirectory(prefix="day-") as folder:
            place, home = Path(folder, "repo"), Path(folder, "home")
            home.mkdir()
            shutil.copytree(self.project.place / "template", place)
            self.field.tree(place)
            self.field.hooks("repository", place / ".git" / "hooks")
            (home / ".gitconfig").write_text(settings + "[user]\n\tname = t\n\temail = t@t\n")
            for words in ORDINARY:
                hostile_git_config.run_git_with_config(
                    place, *words.split(), env={"HOME": str(home), "TERM": "dumb", **env}, seconds=2
                )


def _without(settings: str, section: str, names: str) -> str:
    """The same without some settings, which hide or precede others."""
    return re.sub(rf"\[{section}[^\]]*\]\n\t({names}) = [^\n]*\n", "", settings)


def _template(place: Path) -> Path:
    repo = place / "template"
    repo.mkdir()
    (repo / "calc.py").write_text(WRONG_CODE)
    (repo / "test_calc.py").write_text(UNIT_TESTS)
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*WHO, "commit", "-qm", "base")):
        subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return repo


def expected(told: list[tuple[str, int]]) -> list[str]:
    """The commands that did not come to what they should."""
    codes = {"run": (0, 3), "approve": (0, 3), "fork": (0, 3), "revert": (0,), "abort": (0,), "audit": (0,)}
    wrong = []
    for words, code in told:
        if code not in codes.get(words.split()[0], (code,)):
            wrong.append(f"{words}: exit code {code}")
    return wrong


def run_in_hostile_repository(
    sandbox: str, keys: tuple[str, ...], *, alive: bool = False
) -> tuple[HostileRunResult, list[str]]:
    """Runs every command in a repository of its own; and lists the settings that git obeys there."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        repository = HostileRepository(Path(folder).resolve(), sandbox, keys)
        return repository.run_commands(), repository.alive() if alive else []


def prove(quick: bool) -> dict[str, Any]:
    """The commands with a sandbox and without one."""
    keys = (
        hostile_git_config.PROGRAM_SETTINGS
        if quick
        else tuple(
            dict.fromkeys(
                (*hostile_git_config.PROGRAM_SETTINGS, *hostile_git_config.usable_program_settings())
            )
        )
    )
    one, alive = run_in_hostile_repository("off", keys, alive=True)
    voyages = {"auto": run_in_hostile_repository("auto", keys)[0], "off": one}
    faults = [f"{mode}: {word} has run" for mode, v in voyages.items() for word in v.marks]
    faults += [f"{mode}: {word}" for mode, v in voyages.items() for word in expected(v.told)]
    faults += [] if len(alive) > 50 else [f"only {len(alive)} of what was laid is alive"]
    return {
        "ok": not faults,
        **stamp(quick, 0),
        "voyages": len(voyages),
        "commands": [f"{words}: {code}" for words, code in one.told],
        "laid": len(one.laid),
        "went_off": sum(len(v.marks) for v in voyages.values()),
        "alive_for_ordinary_git": len(alive),
        "settings_known_to_git": len(hostile_git_config.list_git_settings()),
        "settings_laid": sorted(
            {*keys, *hostile_git_config.PROGRAM_SETTING_FORMS, *hostile_git_config.ENABLING_SETTINGS}
        ),
        "layers": [
            "repository",
            "config.worktree",
            "include",
            "includeIf",
            "home",
            "XDG home",
            "system",
            "environment",
            "submodule",
            "remote",
            "worker",
        ],
        "hooks": list(hostile_git_config.GIT_HOOKS),
        "variables": [
            *hostile_git_config.PROGRAM_VARIABLES,
            *hostile_git_config.TRACE_VARIABLES,
            *hostile_git_config.MISLEADING_VARIABLES,
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_SYSTEM",
            "GIT_CONFIG_GLOBAL",
        ],
        "attributes": [
            "filter",
            "diff",
            "merge",
            "ident",
            "eol",
            "export-subst",
            "in the tree, in info/attributes, in core.attributesFile",
        ],
        "alive": alive,
        "faults": faults,
        "not_tried": [
            "settings that make git refuse to work when their value is a program",
            "credential helpers over https: no network",
            "a later git than the one named",
        ],
    }


def describe_result(result: dict[str, Any]) -> list[str]:
    """The figures in words."""
    return [
        f"   {result['laid']} mines laid, {result['alive_for_ordinary_git']} alive for ordinary git, {result['went_off']} went off in {result['voyages']} voyages",
        *(f"   {fault}" for fault in result["faults"]),
    ]


if __name__ == "__main__":
    sys.exit(main(__name__))
