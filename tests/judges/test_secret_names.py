"""Names of secrets: what is taken for one, what is not, and what asks for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.judges.searches import Search
from steersman.judges.secret_names import SAMPLES, asks_for_secrets, keeps_secrets

ORDINARY = """
README.md src/app.py tests/test_secrets.py docs/credentials.md src/secrets/vault.py env.py environment.yml
.envoy.yaml package.json tokens.json .gitignore .github/x.yml keyboard.txt monkey.json id_map.py secretary.txt
public.crt . ./ src/ .cargo/config.toml .config/nextest.toml Dockerfile keys passkey.ts
tokenizer.json special_tokens_map.json public-key.json keys.json key.py keymap.json gradle.properties android/gradle.properties
config/database.yml appsettings.Production.json application-prod.yml session.json vault/index.yml vault.hcl
"""


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_samples_are_secrets(name):
    """Each is one itself, in a folder, in capitals, as a copy; and a glob that is its name asks for it."""
    for path in (name, f"deep/{name}", f"./{name}", name.upper(), f"{name}.bak", f"{name}~"):
        assert keeps_secrets(path), path
    assert asks_for_secrets(name)
    assert asks_for_secrets(name.upper())


@pytest.mark.parametrize(
    "path",
    ORDINARY.split(),
)
def test_ordinary_files_are_none(path):
    """Code, prose and settings are no secrets for having a letter in common with one."""
    assert not keeps_secrets(path)
    assert not keeps_secrets(path, folder=True)


@pytest.mark.parametrize("path", ["tests/secrets", "credentials", "tests/id_mapping", "tests/secrets/deep"])
def test_a_folder_may_be_called_like_one(path):
    """A runner is given folders: words in their names say nothing; what is read is judged by them."""
    assert not keeps_secrets(path, folder=True)
    assert keeps_secrets(path)
    assert keeps_secrets(".ssh", folder=True)
    assert keeps_secrets("config/secrets.yml", folder=True)


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "**",
        "*.json",
        "*.yml",
        "*.py",
        "*_test.go",
        "test_*.py",
        "README*",
        "tsconfig*.json",
        "*.test.*js",
    ],
)
def test_globs_for_everything_are_judged_by_what_they_find(glob):
    """All names, all of an ending, and what is written for other names."""
    assert not asks_for_secrets(glob)


@given(st.text(max_size=30), st.text(alphabet="*?[].abc/", max_size=30))
def test_total(path, glob):
    """No name is too odd, and what is one stays one in every folder."""
    assert keeps_secrets(f"a/{path}") or not keeps_secrets(path)
    assert asks_for_secrets(glob) in (True, False)


def test_in_doubt_it_is_read():
    """Only what a program surely leaves out is left out."""
    assert Search(roots=(".",)).reads("a/.env")
    assert not Search(roots=(".",), hidden=False).reads(".a/env")
    assert not Search(roots=(".",), only=("*.py",)).reads("a.txt")
    assert Search(roots=(".",), only=("*.PY",)).reads("a.py")
    assert Search(roots=(".",), without=("*.PY",)).reads("a.py")
    assert Search(roots=(".",), only=("*.py",), without=("b*",)).reads("a.txt")
    assert Search(roots=(".",), only=("a*",), without=("a*",)).reads("a.txt")
    assert not Search(roots=(".",), without=("a*",)).reads("b/a.txt")
    assert not Search(roots=(".",), without_folders=("b",)).reads("x/b/a.txt")
    assert Search(roots=(".",), without_folders=("a.txt",)).reads("a.txt")


def test_only_secrets_that_are_read_are_shown():
    """A file is shown when it looks like a secret, by its own name or its folder's, and the search opens it."""
    search = Search(roots=("src", ".aws"), without=("*.pem",))
    assert search.shows("src", "deep/.env")
    assert search.shows(".aws", "notes")
    assert not search.shows("src", "app.py")
    assert not search.shows("src", "server.pem")
