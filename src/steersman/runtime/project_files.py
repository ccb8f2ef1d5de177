"""What a run takes from the repository beside its tree: the words for its roles, and the programs that play them.

Both come from the base commit and are fixed when the run begins, so that no edit to the checkout and no change of an
agent decides what a role is told or which program plays it.
**Invariant:** no link is followed; of the checkout only a script is read that the base commit does not have.
"""

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
_TREE = "{workdir}/"


class _Named(NamedTuple):
    role: str
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
    return freeze_project_files(world, config, workspace.base(config.base or None).commit)


def describe_differences(workspace: Workspace, config: Config, commit: str) -> list[str]:
    """One sentence for each such file that is not in the person's checkout what the run uses."""
    scripts = {named.path for named in _named_files(workspace, config) if named.script}
    paths = dict.fromkeys((*prompt_paths(config).values(), *scripts, *_programs(workspace, config, commit)))
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
    programs = _programs(workspace, config, commit)
    return {
        named.word: ProjectFile(named.path, workspace.keep_program(commit, named.path, alone=named.script))
        for named in {n.word: n for n in _named_files(workspace, config)}.values()
        if named.script or named.path in programs or "/" in named.word
    }


def _programs(workspace: Workspace, config: Config, commit: str) -> list[str]:
    """The files of a commit that roles start; refused where a role would start the changed tree's own."""
    there = frozenset(workspace.paths(commit))
    found = []
    for named in _named_files(workspace, config):
        inside = workspace.project_path(named.word.removeprefix(_TREE))
        if named.word.startswith(_TREE) and inside in there:
            raise UserError(
                f"steersman.toml, {table_of(named.role)} names {named.word}, which an agent can change: "
                f"write {inside}, and the one of the base commit is started"
            )
        if not named.script and named.path in there:
            found.append(named.path)
    return found


def _named_files(workspace: Workspace, config: Config) -> Iterator[_Named]:
    for name, role in config.roles.items():
        if role.script and (path := workspace.project_path(role.script)):
            yield _Named(name, role.script, path, True)
        for word in program_words(role):
            if path := workspace.project_path(word):
                yield _Named(name, word, path, False)
