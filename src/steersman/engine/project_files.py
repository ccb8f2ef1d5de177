"""What a run takes from the repository beside its tree: the words for its roles, and the programs that play them.

Both come from the base commit and are fixed when the run begins, so that no edit to the checkout and no change of an
agent decides the words of a role or the program that plays it.
**Invariant:** no link is followed; of the checkout only a script is read that the base commit does not have.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from steersman.contracts.config import (
    Config,
    FrozenConfig,
    ProjectFile,
    find_program_words,
    freeze_config,
    role_table_name,
)
from steersman.engine.ports import Ports
from steersman.errors import UserError
from steersman.ports.workspace import Workspace

PROMPTS_DIRECTORY = ".steersman/prompts"
MAX_PROMPT_BYTES = 32 * 1024  # bytes of the words for one role
CHAT_PROMPT_NAME = "chat"  # whose words go to every agent of a conversation
_WORKDIR_PLACEHOLDER = "{workdir}"


class _NamedFile(NamedTuple):
    word: str
    path: str
    script: bool


def freeze_project_files(ports: Ports, config: Config, commit: str) -> FrozenConfig:
    """The configuration with the prompts and programs of a commit; UserError where one cannot be taken from it."""
    workspace = ports.workspace(config)
    prompts, programs = _read_prompts(workspace, config, commit), _keep_programs(workspace, config, commit)
    return freeze_config(config, base_commit=commit, prompts=prompts, programs=programs)


def freeze_current_files(ports: Ports, config: Config) -> FrozenConfig:
    """The same for a call beside all runs, from the commit that a run would begin on; as it is where there is none."""
    workspace = ports.workspace(config)
    if workspace.find_start_problem() is not None:
        return freeze_config(config)
    return freeze_project_files(ports, config, workspace.base_commit(config.base or None))


def describe_checkout_differences(workspace: Workspace, config: Config, commit: str) -> list[str]:
    """One sentence for each such file that is not in the person's checkout what the run uses."""
    scripts = {named_file.path for named_file in _named_files(workspace, config) if named_file.script}
    programs = [path for path in _committed_programs(workspace, config, commit).values() if path[-1] != "/"]
    paths = dict.fromkeys((*prompt_paths(config).values(), *scripts, *programs))
    recorded, short_commit = workspace.read_contents(commit, tuple(paths)), commit[:12]
    notes = []
    for path in paths:
        checkout_content, commit_content = workspace.checked_out(path), recorded.get(path)
        if checkout_content == commit_content:
            continue
        if commit_content is not None:
            notes.append(f"{path} differs in your checkout; the run uses the one of commit {short_commit}")
        elif path in scripts:
            notes.append(f"{path} is not in commit {short_commit}; the run keeps your file as it is now")
        else:
            notes.append(
                f"{path} is not in commit {short_commit}, so the run does without it; commit it first"
            )
    return notes


def program_roles(config: FrozenConfig) -> dict[str, str]:
    """The roles that files of the project play, by path; a folder that is kept with its program ends with a slash."""
    roles_by_path: dict[str, list[str]] = {}
    for name, role in config.roles.items():
        for word in (role.script, *find_program_words(role)):
            if file := config.programs.get(word or ""):
                folder = file.path.rpartition("/")[0] if file.kept and word != role.script else ""
                roles_by_path.setdefault(f"{folder}/" if folder else file.path, []).append(name)
    return {path: ", ".join(dict.fromkeys(roles)) for path, roles in roles_by_path.items()}


def prompt_paths(config: Config) -> dict[str, str]:
    """Where the project's words for each role are, in a commit."""
    return {role: f"{PROMPTS_DIRECTORY}/{role}.md" for role in (*config.roles, CHAT_PROMPT_NAME)}


def _read_prompts(workspace: Workspace, config: Config, commit: str) -> dict[str, str]:
    paths = prompt_paths(config)
    parent_paths = (".steersman", PROMPTS_DIRECTORY)
    for link in workspace.links(commit):
        if link in parent_paths or link in paths.values():
            raise UserError(
                f"{link} is a link in commit {commit[:12]}, and steersman follows none to a prompt: "
                "put the text itself there and commit it"
            )
    texts = {
        t.path: t
        for t in workspace.read_texts(
            commit, tuple(paths.values()), MAX_PROMPT_BYTES, MAX_PROMPT_BYTES * len(paths)
        )
    }
    if long_path := next((path for path, text in texts.items() if not text.whole), ""):
        raise UserError(
            f"{long_path} is longer than {MAX_PROMPT_BYTES} bytes in commit {commit[:12]}: shorten it"
        )
    return {role: texts[path].content.strip() for role, path in paths.items() if path in texts}


def _keep_programs(workspace: Workspace, config: Config, commit: str) -> dict[str, ProjectFile]:
    _refuse_tree_programs(config)
    programs = _committed_programs(workspace, config, commit)
    files = {n.word: n for n in _named_files(workspace, config)}.values()
    paths = {
        n.word: programs.get(n.path, n.path) for n in files if n.script or n.path in programs or "/" in n.word
    }
    return {
        n.word: ProjectFile(paths[n.word], workspace.keep_program(commit, paths[n.word], alone=n.script))
        for n in files
        if n.word in paths
    }


def _refuse_tree_programs(config: Config) -> None:
    """`{workdir}` is a word of its own: with a path behind it, a role would start what an agent can change."""
    for name, role in config.roles.items():
        for word in find_program_words(role):
            if _WORKDIR_PLACEHOLDER in word and word != _WORKDIR_PLACEHOLDER:
                raise UserError(
                    f"steersman.toml, {role_table_name(name)} names {word}, which an agent can change: write the path "
                    f"without {_WORKDIR_PLACEHOLDER}/, and the program of the base commit is started; pass {_WORKDIR_PLACEHOLDER} as a word of its own"
                )


def _committed_programs(workspace: Workspace, config: Config, commit: str) -> dict[str, str]:
    """What roles start of a commit, by path: a file, or a folder (named by a path with a slash), which ends with one."""
    commit_files = frozenset(workspace.paths(commit))
    commit_directories = {path[: m.start()] for path in commit_files for m in re.finditer("/", path)}
    programs = {}
    for named_file in _named_files(workspace, config):
        if not named_file.script and named_file.path in commit_files:
            programs[named_file.path] = named_file.path
        elif not named_file.script and named_file.path in commit_directories and "/" in named_file.word:
            programs[named_file.path] = f"{named_file.path}/"
    return programs


def _named_files(workspace: Workspace, config: Config) -> Iterator[_NamedFile]:
    for role in config.roles.values():
        if role.script and (path := workspace.project_path(role.script)):
            yield _NamedFile(role.script, path, True)
        for word in find_program_words(role):
            if path := workspace.project_path(word):
                yield _NamedFile(word, path, False)
