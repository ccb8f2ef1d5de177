"""What a run takes from the repository beside its tree: the words for its roles, and the programs that play them.

Both come from the base commit and are fixed when the run begins, so that no edit to the checkout and no change of an
agent decides what a role is told or which program plays it.
**Invariant:** no link is followed; of the checkout only a script is read that the base commit does not have.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from steersman.contracts.config import (
    Config,
    FrozenConfig,
    ProjectFile,
    freeze_config,
    program_words,
    table_of,
)
from steersman.errors import UserError
from steersman.ports.workspace import Workspace
from steersman.runtime.world import World

PROMPTS = ".steersman/prompts"
LONGEST = 32 * 1024  # bytes of the words for one role
CHAT = "chat"  # whose words go to everybody who is talked to
_TREE = "{workdir}"


class _Named(NamedTuple):
    word: str
    path: str
    script: bool


def freeze_project_files(world: World, config: Config, commit: str) -> FrozenConfig:
    """The configuration with the prompts and programs of a commit; UserError where one cannot be taken from it."""
    workspace = world.workspace(config)
    prompts, programs = _read_prompts(workspace, config, commit), _keep_programs(workspace, config, commit)
    return freeze_config(config, base_commit=commit, prompts=prompts, programs=programs)


def freeze_now(world: World, config: Config) -> FrozenConfig:
    """The same for a call beside all runs, from the commit that a run would begin on; as it is where there is none."""
    workspace = world.workspace(config)
    if workspace.problem() is not None:
        return freeze_config(config)
    return freeze_project_files(world, config, workspace.base_commit(config.base or None))


def describe_differences(workspace: Workspace, config: Config, commit: str) -> list[str]:
    """One sentence for each such file that is not in the person's checkout what the run uses."""
    scripts = {named.path for named in _named_files(workspace, config) if named.script}
    programs = [path for path in _programs(workspace, config, commit).values() if path[-1] != "/"]
    paths = dict.fromkeys((*prompt_paths(config).values(), *scripts, *programs))
    recorded, short = workspace.contents(commit, tuple(paths)), commit[:12]
    notes = []
    for path in paths:
        mine, theirs = workspace.checked_out(path), recorded.get(path)
        if mine == theirs:
            continue
        if theirs is not None:
            notes.append(f"{path} differs in your checkout; the run uses the one of commit {short}")
        elif path in scripts:
            notes.append(f"{path} is not in commit {short}; the run keeps your file as it is now")
        else:
            notes.append(f"{path} is not in commit {short}, so the run does without it; commit it first")
    return notes


def program_roles(config: FrozenConfig) -> dict[str, str]:
    """The roles that files of the project play, by path; a folder that is kept with its program ends with a slash."""
    found: dict[str, list[str]] = {}
    for name, role in config.roles.items():
        for word in (role.script, *program_words(role)):
            if file := config.programs.get(word or ""):
                folder = file.path.rpartition("/")[0] if file.kept and word != role.script else ""
                found.setdefault(f"{folder}/" if folder else file.path, []).append(name)
    return {path: ", ".join(dict.fromkeys(roles)) for path, roles in found.items()}


def prompt_paths(config: Config) -> dict[str, str]:
    """Where the project's words for each role are, in a commit."""
    return {role: f"{PROMPTS}/{role}.md" for role in (*config.roles, CHAT)}


def _read_prompts(workspace: Workspace, config: Config, commit: str) -> dict[str, str]:
    paths = prompt_paths(config)
    above = (".steersman", PROMPTS)
    for link in workspace.links(commit):
        if link in above or link in paths.values():
            raise UserError(
                f"{link} is a link in commit {commit[:12]}, and steersman follows none to a prompt: "
                "put the text itself there and commit it"
            )
    texts = {t.path: t for t in workspace.texts(commit, tuple(paths.values()), LONGEST, LONGEST * len(paths))}
    if long := next((path for path, text in texts.items() if not text.whole), ""):
        raise UserError(f"{long} is longer than {LONGEST} bytes in commit {commit[:12]}: shorten it")
    return {role: texts[path].content.strip() for role, path in paths.items() if path in texts}


def _keep_programs(workspace: Workspace, config: Config, commit: str) -> dict[str, ProjectFile]:
    _refuse_tree_programs(config)
    programs = _programs(workspace, config, commit)
    named = {n.word: n for n in _named_files(workspace, config)}.values()
    paths = {
        n.word: programs.get(n.path, n.path) for n in named if n.script or n.path in programs or "/" in n.word
    }
    return {
        n.word: ProjectFile(paths[n.word], workspace.keep_program(commit, paths[n.word], alone=n.script))
        for n in named
        if n.word in paths
    }


def _refuse_tree_programs(config: Config) -> None:
    """`{workdir}` is a word of its own: with a path behind it, a role would start what an agent can change."""
    for name, role in config.roles.items():
        for word in program_words(role):
            if _TREE in word and word != _TREE:
                raise UserError(
                    f"steersman.toml, {table_of(name)} names {word}, which an agent can change: write the path "
                    f"without {_TREE}/, and the program of the base commit is started; pass {_TREE} as a word of its own"
                )


def _programs(workspace: Workspace, config: Config, commit: str) -> dict[str, str]:
    """What roles start of a commit, by path: a file, or a folder (named by a path with a slash), which ends with one."""
    there = frozenset(workspace.paths(commit))
    folders = {path[: m.start()] for path in there for m in re.finditer("/", path)}
    found = {}
    for named in _named_files(workspace, config):
        if not named.script and named.path in there:
            found[named.path] = named.path
        elif not named.script and named.path in folders and "/" in named.word:
            found[named.path] = f"{named.path}/"
    return found


def _named_files(workspace: Workspace, config: Config) -> Iterator[_Named]:
    for role in config.roles.values():
        if role.script and (path := workspace.project_path(role.script)):
            yield _Named(role.script, path, True)
        for word in program_words(role):
            if path := workspace.project_path(word):
                yield _Named(word, path, False)
