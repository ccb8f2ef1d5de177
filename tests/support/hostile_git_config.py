"""A repository in which every setting and hook that can run a program runs one, and leaves a mark.

The settings are git's own list (`git help --config`), each with a program as its value, beside those that need more
than a value to be alive. They are laid in the repository, in a linked configuration, in files that these include, in a
home, in the system's place, in the caller's environment, in the attributes of the tree and in a submodule.
**Invariant:** a mark is a file; nothing here knows what is tested.
"""

import os
import re
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GIT_HOOKS = _split_words(
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit "
    "pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update "
    "reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman p4-changelist "
    "p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
)
# Those that are known to run something; git's whole list is longer, and most of it names no program.
PROGRAM_SETTINGS = _split_words(
    "core.fsmonitor core.sshCommand core.editor core.pager core.askPass core.alternateRefsCommand diff.external gpg.program "
    "gpg.ssh.defaultKeyCommand interactive.diffFilter sequence.editor pager.status difftool.mine.cmd difftool.mine.path "
    "mergetool.mine.cmd mergetool.mine.path guitool.mine.cmd imap.tunnel instaweb.httpd instaweb.browser commit.template "
    "format.signatureFile mailmap.file core.notesRef"
)
# Not in git's list of this version, or only alive in a form of their own; {mine} is the program.
PROGRAM_SETTING_FORMS = {
    "alias.status": "!{mine}", "alias.mine": "!{mine}", "core.gitProxy": "{mine} for *", "credential.helper": "!{mine}",
    "credential.https://forge.invalid.helper": "!{mine}", "submodule.module.update": "!{mine}",
    "submodule.module.url": "ext::{mine}", "remote.mine.url": "ext::{mine}", "remote.origin.uploadpack": "{mine}",
    "remote.origin.receivepack": "{mine}", "remote.origin.vcs": "mine", "filter.mine.process": "{mine}",
    "filter.mine.clean": "{mine}", "filter.mine.smudge": "{mine}", "filter.lfs.process": "{mine}", "diff.mine.command": "{mine}",
    "diff.mine.textconv": "{mine}", "merge.mine.driver": "{mine} %A %O %B", "gpg.x509.program": "{mine}", "gpg.ssh.program": "{mine}",
    "gc.recentObjectsHook": "{mine}", "pager.log": "{mine}", "pager.diff": "{mine}", "pager.branch": "{mine}", "man.mine.cmd": "{mine}",
    "browser.mine.cmd": "{mine}", "trailer.mine.cmd": "{mine}", "trailer.mine.command": "{mine}", "tar.mine.command": "{mine}",
    "hook.mine.command": "{mine}", "uploadpack.packObjectsHook": "{mine}", "sendemail.sendmailCmd": "{mine}", "web.browser": "mine",
}  # fmt: skip
ENABLING_SETTINGS = {
    "filter.mine.required": "true", "commit.gpgSign": "true", "tag.gpgSign": "true", "push.gpgSign": "if-asked", "log.showSignature": "true",
    "merge.verifySignatures": "true", "protocol.allow": "always", "protocol.ext.allow": "always", "submodule.recurse": "true",
    "submodule.module.active": "true", "fetch.recurseSubmodules": "true", "push.recurseSubmodules": "on-demand", "status.submoduleSummary": "true",
    "diff.tool": "mine", "merge.tool": "mine", "merge.default": "mine", "pull.twohead": "mine", "help.browser": "mine", "man.viewer": "mine",
    "gc.auto": "1", "gc.autoDetach": "false", "safe.directory": "*", "core.alternateRefsPrefixes": "refs/heads", "hook.mine.event": "post-index-change",
}  # fmt: skip
# Where a program as a value makes git itself refuse to work, or would make it another repository.
UNSETTABLE_SETTINGS = re.compile(r"(?i)(advice|color|column|extensions|fsck|receive\.fsck|fetch\.fsck|include|includeif|url)\..*|core\.(bare|"
                   r"worktree|repositoryformatversion|hookspath|attributesfile|excludesfile)|remote\.origin\.(url|pushurl)|alias\.mine")  # fmt: skip
PROGRAM_VARIABLES = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER", "PAGER", "EDITOR", "VISUAL",
             "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "GIT_MAN_VIEWER", "GIT_BROWSER", "GIT_DIFFTOOL_EXTCMD")  # fmt: skip
TRACE_VARIABLES = (
    "GIT_TRACE", "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE_SETUP", "GIT_TRACE_PACKET", "GIT_TRACE_REFS",
)  # fmt: skip
MISLEADING_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR",
              "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE")  # fmt: skip


class HostileGitConfig:
    """Lays mines below `folder`; `marks` are the names of those that went off, `laid` of all."""

    def __init__(self, folder: Path, keys: tuple[str, ...] = PROGRAM_SETTINGS) -> None:
        self.folder, self.keys = folder, keys
        self.laid: list[str] = []
        for name in ("mines", "marks", "home", "hooks", "template/hooks", "exec"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def marks(self) -> list[str]:
        """What has run."""
        return sorted(path.name for path in (self.folder / "marks").iterdir())

    def clear(self) -> None:
        """Forgets what has run."""
        for path in (self.folder / "marks").iterdir():
            path.unlink()

    def mine(self, layer: str, name: str, path: Path | None = None) -> str:
        """A program that leaves the mark `layer name` and passes its input on."""
        slug = re.sub(r"[^A-Za-z0-9.-]+", "_", f"{layer}_{name}")
        self.laid.append(slug)
        place = path or self.folder / "mines" / slug
        place.write_text(f"#!/bin/sh\n: > '{self.folder}/marks/{slug}'\n[ -t 0 ] || cat\nexit 0\n")
        place.chmod(0o755)
        return str(place)

    def settings(self, layer: str, path: Path) -> None:
        """Writes a configuration file with every setting there is."""
        values = {key: self.mine(layer, key) for key in self.keys}
        values |= {
            key: form.replace("{mine}", self.mine(layer, key)) for key, form in PROGRAM_SETTING_FORMS.items()
        }
        values |= ENABLING_SETTINGS | {
            "core.hooksPath": str(self.hooks(layer, self.folder / "hooks")),
            "init.templateDir": str(
                self.hooks(f"{layer}-template", self.folder / "template" / "hooks").parent
            ),
            "core.attributesFile": str(
                self._file("attributes", "* diff=mine merge=mine\n*.dat filter=mine\n")
            ),
        }
        if layer in {"home", "home-config", "system"}:  # elsewhere git does not look for these
            for name in ("normal", "event", "perf"):
                values[f"trace2.{name}Target"] = str(self.folder / "marks" / f"{layer}_trace2-{name}")
                self.laid.append(f"{layer}_trace2-{name}")
        if layer not in {"included", "conditional"}:
            for inner, key in (("included", "include.path"), ("conditional", "includeIf.gitdir:/**.path")):
                (self.folder / inner).touch()
                values[key] = str(self.folder / inner)
        path.write_text(_format_git_config(values))

    def hooks(self, layer: str, folder: Path) -> Path:
        """Every hook there is."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in GIT_HOOKS:
            self.mine(layer, f"hook-{name}", folder / name)
        return folder

    def repository(self, repo: Path) -> None:
        """Lays everything in a repository that has a commit; a remote called origin keeps its address."""
        gitdir = repo / ".git"
        own = (gitdir / "config").read_text()
        self.settings("included", self.folder / "included")
        self.settings("conditional", self.folder / "conditional")
        self.settings("repository", self.folder / "repository")
        self.settings("worktree", gitdir / "config.worktree")
        rewritten = "".join(
            f'[url "ext::{self.mine("repository", f"url-{n}")} "]\n\t{n} = /\n'
            for n in ("insteadOf", "pushInsteadOf")
        )
        settings_text = (self.folder / "repository").read_text()
        (gitdir / "config").write_text(
            f"{settings_text}{rewritten}[extensions]\n\tworktreeConfig = true\n{_required_git_config(own)}"
        )
        self.hooks("repository", gitdir / "hooks")
        (gitdir / "info").mkdir(exist_ok=True)
        (gitdir / "info" / "attributes").write_text("* diff=mine merge=mine\n*.dat filter=mine\n")

    def environment(self) -> dict[str, str]:
        """What a caller may have in its environment: a home, the system's file, programs, traces, other repositories."""
        home, decoy = self.folder / "home", self.folder / "decoy"
        self.settings("home", home / ".gitconfig")
        (home / ".config" / "git").mkdir(parents=True, exist_ok=True)
        self.settings("home-config", home / ".config" / "git" / "config")
        (home / ".config" / "git" / "attributes").write_text("* filter=mine diff=mine merge=mine\n")
        self.settings("system", self.folder / "system")
        for name in ("git-remote-ext", "git-remote-mine", "git-merge-mine", "git-upload-pack", "git-status"):
            self.mine("exec", name, self.folder / "exec" / name)
        subprocess.run(["git", "init", "-q", str(decoy)], check=True, capture_output=True)
        self.repository(decoy)
        env = {name: self.mine("environment", name) for name in PROGRAM_VARIABLES}
        env |= {name: str(self.folder / "marks" / f"trace_{name}") for name in TRACE_VARIABLES}
        self.laid += [f"trace_{name}" for name in TRACE_VARIABLES]
        env |= {name: str(decoy / ".git") for name in MISLEADING_VARIABLES}
        env |= {"GIT_WORK_TREE": str(decoy), "GIT_EXEC_PATH": str(self.folder / "exec"), "GIT_NAMESPACE": "mine",
                "GIT_TEMPLATE_DIR": str(self.folder / "template"), "GIT_CONFIG_SYSTEM": str(self.folder / "system"),
                "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "GIT_ALLOW_PROTOCOL": "ext:file:ssh"}  # fmt: skip
        config_values = {
            "core.fsmonitor": self.mine("environment", "config-fsmonitor"),
            "core.hooksPath": str(self.folder / "hooks"),
        }
        env |= {"GIT_CONFIG_COUNT": str(len(config_values))}
        for number, (key, value) in enumerate(config_values.items()):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return {**env, "HOME": str(home)}

    def tree(self, repo: Path) -> None:
        """Files whose attributes ask for drivers, and a submodule with an address that is a program."""
        (repo / ".gitattributes").write_text(
            "* diff=mine merge=mine\n*.dat filter=mine\n*.sub export-subst ident eol=crlf\n"
        )
        (repo / "x.dat").write_text("x\n")
        (repo / "x.sub").write_text("$Format:%H$ $Id$\n")
        (repo / ".gitmodules").write_text(
            f'[submodule "module"]\n\tpath = module\n\turl = ext::{self.mine("tree", "submodule-url")}\n'
            f'\tupdate = !{self.mine("tree", "submodule-update")}\n[submodule "../../x"]\n\tpath = -u./evil\n\turl = -u./evil\n'
        )

    def submodule(self, repo: Path, name: str = "module") -> None:
        """A filled submodule of a person's checkout, with settings of its own."""
        place = repo / name
        subprocess.run(["git", "init", "-q", str(place)], check=True, capture_output=True)
        (place / ".gitattributes").write_text("* filter=mine\n")
        (place / "f").write_text("f\n")
        identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")
        for words in (("add", "-A"), (*identity, "commit", "-qm", "x")):
            subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)
        own = (place / ".git" / "config").read_text()
        self.settings("submodule", self.folder / "submodule")
        (place / ".git" / "config").write_text(
            f"{(self.folder / 'submodule').read_text()}{_required_git_config(own)}"
        )
        self.hooks("submodule", place / ".git" / "hooks")
        (place / "f").write_text("changed\n")

    def _file(self, name: str, words: str) -> Path:
        path = self.folder / name
        path.write_text(words)
        return path


def run_git_with_config(
    place: Path, *args: str, env: dict[str, str] | None = None, seconds: float = 5
) -> None:
    """git as a person uses it, with everything that is laid; whether it ends well is no matter, that it ends is."""
    full = {"PATH": os.environ["PATH"], **(env or {})}
    null = subprocess.DEVNULL
    with subprocess.Popen(
        ["git", *args], cwd=place, env=full, start_new_session=True, stdin=null, stdout=null, stderr=null
    ) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


@cache
def list_git_settings() -> tuple[str, ...]:
    """Every setting that this git knows by name, with something in the place of what varies."""
    completed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True)
    names = [
        line.strip() for line in completed.stdout.splitlines() if re.match(r"[a-z]", line) and "." in line
    ]
    return tuple(dict.fromkeys(_fill_setting_placeholders(name) for name in names))


def _fill_setting_placeholders(name: str) -> str:
    places = {
        "<url>": "https://forge.invalid", "<cmd>": "status", "<command>": "status", "<format>": "openpgp",
    }  # fmt: skip
    for place, word in places.items():
        name = name.replace(place, word)
    return re.sub(r"<[^>]*>|\*", "mine", name)


@cache
def usable_program_settings() -> tuple[str, ...]:
    """Those of them that may be a program without git refusing to work at all."""
    keys = [
        key
        for key in list_git_settings()
        if not UNSETTABLE_SETTINGS.fullmatch(key)
        and key not in PROGRAM_SETTING_FORMS
        and key not in ENABLING_SETTINGS
    ]
    keys = [key for key in keys if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", key.rpartition(".")[2])]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True, capture_output=True)
        while (wrong := _find_refused_setting(Path(folder), keys)) is not None:
            keys.remove(wrong)
    return tuple(keys)


def _find_refused_setting(repo: Path, keys: list[str]) -> str | None:
    """The first setting that makes git refuse, by its own words or found by halves."""
    refusal = _git_refusal_text(repo, keys)
    if not refusal:
        return None
    known = {key.lower(): key for key in keys}
    named_keys = [
        known[word.lower()] for word in re.findall(r"[A-Za-z][\w.:/-]+", refusal) if word.lower() in known
    ]
    if named_keys:
        return named_keys[0]
    low, high = 0, len(keys)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _git_refusal_text(repo, keys[:middle]) else (middle, high)
    return keys[low]


def _git_refusal_text(repo: Path, keys: list[str]) -> str:
    """What git says when it does not work with these."""
    (repo / "settings").write_text(_format_git_config(dict.fromkeys(keys, "/bin/true")))
    env = {
        "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": str(repo / "settings"), "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    for words in (
        ("rev-parse", "--git-dir"),
        ("worktree", "list"),
        ("status",),
        ("diff",),
        ("add", "-N", "settings"),
    ):
        completed = subprocess.run(
            ["git", *words], cwd=repo, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if completed.returncode > 1:
            return completed.stderr.decode("utf-8", "replace")
    return ""


def _format_git_config(values: dict[str, str]) -> str:
    lines = []
    for key, value in values.items():
        section, _, rest = key.partition(".")
        inner, _, name = rest.rpartition(".")
        head = f'[{section} "{inner}"]' if inner else f"[{section}]"
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'{head}\n\t{name} = "{quoted}"\n')
    return "".join(lines)


def _required_git_config(config: str) -> str:
    """What a repository needs of its own configuration to stay one, with its remotes."""
    lines, section = [], ""
    for line in config.splitlines():
        section = line if line.startswith("[") else section
        wanted = section == "[core]" and re.match(r"\s*(repositoryformatversion|bare|filemode)\b", line)
        if wanted or (section.startswith("[remote ") and re.match(r"\s*(url|fetch)\b", line)):
            lines += [section, line]
    return "\n".join(lines) + "\n"
