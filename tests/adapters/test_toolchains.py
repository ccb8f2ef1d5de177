"""What a box shows for the folders of PATH: programs that run, and no login that lies beside them."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.adapters.checks.tree_commands import build_command_environment
from steersman.adapters.config.visible_secrets import LOGIN_FILE_NAMES
from steersman.adapters.process.program_runner import run_program
from steersman.adapters.sandbox.bubblewrap import SandboxPolicy
from steersman.adapters.sandbox.toolchains import toolchain_mounts

# Beside each of these folders of PATH lies a login; the third column is what the toolchain needs of its neighbours.
BESIDE = (
    (".docker/bin", ".docker/config.json", ()),
    (".config/gcloud/bin", ".config/gcloud/application_default_credentials.json", ()),
    (".aws/bin", ".aws/credentials", ()),
    (".cargo/bin", ".cargo/credentials.toml", (".cargo/registry/index", ".rustup/toolchains/stable")),
    ("bin", ".npmrc", ()),
    ("sbin", ".netrc", ()),
    (".config/gh/bin", ".config/gh/hosts.yml", ()),
    (".local/bin", ".local/share/uv/credentials/credentials.toml", (".local/share/uv/tools/ruff",)),
    (".gradle/bin", ".gradle/gradle.properties", ()),
    (".pyenv/shims", ".netrc", (".pyenv/versions/3.12.0/lib",)),
    (".nvm/versions/node/v20/bin", ".npmrc", (".nvm/versions/node/v20/lib/node_modules",)),
    ("sdk/bin", "sdk/secret.json", ()),
)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """The home of a person with many logins and toolchains."""
    home = tmp_path / "home"
    for folder, login, shown in BESIDE:
        for name in (folder, *shown):
            (home / name).mkdir(parents=True, exist_ok=True)
        (home / login).parent.mkdir(parents=True, exist_ok=True)
        (home / login).write_text("machine x login y password z\n")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def write_program(path, text="echo ran"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def shown(path, **env):
    mounts = toolchain_mounts(("sh",), {"PATH": f"{path}:/usr/bin:/bin", **env})
    return {Path(mount.dest) for mount in mounts}


def run_in_box(sandbox, script, env, tree):
    async def run():
        async with sandbox.wrap(
            ("sh", "-c", script), SandboxPolicy(writes=(str(tree),)), env, str(tree)
        ) as boxed:
            return await run_program(boxed.argv, str(tree), boxed.env, 60, "none:0:0", doors=boxed.doors)

    done = asyncio.run(run())
    return done.output.decode()


def test_logins_beside_the_folders_of_path_are_not_in_the_box(sandbox, people, tmp_path):
    """With every one of these folders on PATH no login can be read, and what the toolchains need is there."""
    tree = tmp_path / "tree"
    tree.mkdir()
    env = {"PATH": ":".join(f"{people}/{folder}" for folder, _, _ in BESIDE) + ":/usr/bin:/bin"}
    logins = " ".join(sorted({f"{people}/{login}" for _, login, _ in BESIDE}))
    needs = " ".join(f"{people}/{name}" for _, _, names in BESIDE for name in names)
    script = (
        f"for f in {logins}; do cat $f 2>/dev/null && echo leaked $f; done; ls -d {needs} && echo all there"
    )
    lines = run_in_box(sandbox, script, env, tree).splitlines()
    assert lines[-1] == "all there", lines
    assert not any("password" in line or "leaked" in line for line in lines)


def test_a_folder_that_is_no_known_toolchain_shows_itself_alone(people):
    """`sdk/bin` shows `sdk/bin`; a folder that holds a login, or lies where logins are kept, shows nothing."""
    assert shown(people / "sdk/bin") & set(people.rglob("*")) == {people / "sdk/bin"}
    for folder in (".docker", ".config/gh/bin", ".aws/bin", ""):
        assert not [path for path in shown(people / folder) if path.is_relative_to(people)]
    for login in LOGIN_FILE_NAMES:
        places = shown(people / ".cargo/bin") | shown(people / ".local/bin")
        assert not any((people / login).is_relative_to(place) for place in places)


def test_links_lead_to_installations_and_not_to_what_lies_around_a_file(people, tmp_path):
    """Behind a link: a virtual environment as one, a node package with its packages, any other program as one file."""
    venv = people / "apps/tool"
    write_program(venv / "bin/tool")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (venv / "lib").mkdir()
    (venv / ".env").write_text("TOKEN=x")
    package = write_program(people / "js/node_modules/pkg/cli.js")
    plain = write_program(people / "Documents/hello.sh")
    secret = people / ".netrc"
    secret.chmod(0o700)
    for name, goal in (("tool", venv / "bin/tool"), ("pkg", package), ("hello", plain), ("odd", secret)):
        (people / "bin" / name).symlink_to(goal)
    found = {path for path in shown(people / "bin") if path.is_relative_to(people)}
    assert found == {
        people / "bin",
        *(venv / name for name in ("bin", "lib", "pyvenv.cfg")),
        people / "js/node_modules",
        plain,
    }


def test_a_variable_shows_a_toolchain_and_no_other_folder(people, tmp_path):
    """JAVA_HOME shows a Java installation, by its name and by where it leads; a home with a login shows its parts."""
    jdk = tmp_path / "jdk-21"
    write_program(jdk / "bin/java")
    (jdk / "release").write_text("")
    (tmp_path / "jdk").symlink_to(jdk)
    (people / "project").mkdir()
    assert {tmp_path / "jdk/bin", jdk / "bin", jdk / "release"} <= shown("", JAVA_HOME=str(tmp_path / "jdk"))
    for name in ("JAVA_HOME", "PYENV_ROOT", "GRADLE_HOME", "MAVEN_HOME", "PKG_CONFIG_PATH", "COLOUR"):
        for value in (people, people / "project", people / ".aws"):
            assert not [path for path in shown("", **{name: str(value)}) if path.is_relative_to(people)]


@pytest.mark.parametrize("program", ["python3", "node", "go", "cargo"])
def test_the_toolchains_of_this_machine_run_in_a_box(sandbox, tmp_path, program):
    """What runs outside with the environment of a check says the same inside, wherever it is installed."""
    argv = (program, "version" if program == "go" else "--version")
    if shutil.which(program) is None or subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip(f"{program} does not run here")  # rustup's cargo finds nothing without its person's home
    env = build_command_environment({}, setup=False, home=str(tmp_path))
    outside = subprocess.run(argv, env=env, capture_output=True, text=True, check=False).stdout
    assert outside
    assert run_in_box(sandbox, " ".join(argv), env, tmp_path) == outside


def test_an_environment_of_an_interpreter_that_is_not_the_systems_runs_in_a_box(sandbox, tmp_path):
    """A virtual environment on PATH finds its standard library behind its links."""
    venv = tmp_path / "venv"
    base = os.path.realpath(sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=120)
    (tmp_path / "tree").mkdir()
    env = {"PATH": f"{venv}/bin:/usr/bin:/bin"}
    code = "import json, sys; print(sys.prefix, sys.version_info[:2])"
    said = run_in_box(sandbox, f'python -c "{code}"', env, tmp_path / "tree")
    assert said == f"{venv} {sys.version_info[:2]}\n"
