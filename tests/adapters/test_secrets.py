"""Which values of the environment and of login files are secrets, and which are ordinary."""

import base64
import json

import pytest
from tests.support.cases import for_each_case

from steersman.adapters.config.visible_secrets import KnownSecrets, find_secret_values, is_secret_variable

SECRET = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-abcdefgh", "GITHUB_TOKEN": "abcdefgh12",
    "DB_PASSWORD": "correct-horse", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG",
    "DD_API_KEY": "0123456789abcdef0123456789abcdef", "MY_PAT": "abcd1234efgh",
    "GREETING": "Zx81qP0vLm3NsT7uWkYbR2", "SERVICE_CREDENTIALS": "someword somewhere",
}  # fmt: skip
ORDINARY = {
    "PWD": "/work/project", "OLDPWD": "/work", "API_TOKEN_FILE": "/run/secrets/token",
    "TOKEN_PATH": "~/.config/token", "DB_PASSWORD": "postgres", "PASSWORD": "short", "TOKENS": "3000000",
    "GPG_KEY": "E3FF2839C048B25C084DEBE9B26995E310250568",
    "GIT_COMMIT": "2497138874416366ec0ab3834174912f75fd6168",
    "WT_SESSION": "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "SSH_AUTH_SOCK": "/run/user/1000/ssh/agent.1",
    "LANG": "en_US.UTF-8", "LS_COLORS": "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35",
    "EDITOR_NAME": "aaaaaaaaaaaaaaaaaaaaAB1", "KEY": "Ab1Ab1Ab1", "PATH": "/usr/local/bin:/usr/bin",
}  # fmt: skip


@for_each_case(("name", "value"), SECRET.items())
def test_secret(name, value):
    """By its name, or by a value that nobody would write by hand."""
    assert is_secret_variable(name, value)


@for_each_case(("name", "value"), ORDINARY.items())
def test_ordinary(name, value):
    """Places, plain words, numbers, hashes and fingerprints may stand in any text."""
    assert not is_secret_variable(name, value)


FILES = {
    ".netrc": "machine h.invalid\n  login me\n  password secretword7\n",
    ".git-credentials": "https://me:secretword7@h.invalid\n",
    ".npmrc": "//registry.invalid/:_authToken=npm_" + "I" * 36 + "\n",
    ".aws/credentials": "[default]\naws_access_key_id = AKIA" + "Q" * 16 + "\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG\n",
    ".config/gh/hosts.yml": "github.com:\n    user: me\n    oauth_token: gho_" + "C" * 36 + "\n",
    ".docker/config.json": json.dumps({"auths": {"r": {"auth": base64.b64encode(b"me:secretword7xyz").decode()}}}),
    ".claude/.credentials.json": json.dumps({"claudeAiOauth": {"accessToken": "Zx81qP0vLm3NsT7uWkYbR2", "n": [1]}}),
    ".codex/auth.json": json.dumps({"tokens": {"refresh_token": "rt_abcdefgh12"}, "list": ["Yx81qP0vLm3NsT7uWkYbR2"]}),
}  # fmt: skip
EXPECTED = {
    ".netrc": "secretword7", ".git-credentials": "secretword7", ".npmrc": "npm_" + "I" * 36,
    ".aws/credentials": "wJalrXUtnFEMI/K7MDENG", ".config/gh/hosts.yml": "gho_" + "C" * 36,
    ".docker/config.json": base64.b64encode(b"me:secretword7xyz").decode(),
    ".claude/.credentials.json": "Zx81qP0vLm3NsT7uWkYbR2", ".codex/auth.json": "rt_abcdefgh12",
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_logins(tmp_path, name):
    """What the usual login files hold is known."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[name])
    assert EXPECTED[name] in KnownSecrets({"HOME": str(tmp_path)}, str(tmp_path / "none"))()


def test_the_environment(tmp_path):
    """Secret variables are known; others are when the project names them."""
    known = KnownSecrets(
        {"HOME": str(tmp_path), "GITHUB_TOKEN": "abcdefgh12", "PLAIN": "any words"}, str(tmp_path)
    )
    assert known() == ("abcdefgh12",)
    assert known(("PLAIN", "ABSENT")) == ("abcdefgh12", "any words")


def test_a_file_that_changes_is_read_again(tmp_path):
    """A refreshed login is known as soon as it is there; a moved one is found where its variable says."""
    place = tmp_path / "codex"
    place.mkdir()
    known = KnownSecrets({"CODEX_HOME": str(place)}, str(tmp_path))
    assert known() == ()
    (place / "auth.json").write_text(json.dumps({"access_token": "first-value-1"}))
    assert known() == ("first-value-1",)
    (place / "auth.json").write_text(json.dumps({"access_token": "second-value-22"}))
    assert known() == ("second-value-22",)


def test_the_projects_own_variables(tmp_path):
    """Values of .env are known, with their quotes taken off."""
    (tmp_path / ".env").write_text("export API_TOKEN='abc def 12'\nDEBUG=true\nNAME=Ann\n")
    assert KnownSecrets({}, str(tmp_path))() == ("abc def 12",)


def test_a_link_of_the_project_is_not_followed(tmp_path):
    """A link that came with a clone leads to no file outside it; a person's own login may be a link."""
    secret = tmp_path / "outside"
    secret.write_text("API_TOKEN=secretword7\n")
    for folder, name in (("repo", ".env"), ("home", ".netrc")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).symlink_to(secret)
    assert KnownSecrets({}, str(tmp_path / "repo"))() == ()
    assert KnownSecrets({"HOME": str(tmp_path / "home")}, str(tmp_path / "repo"))() == ("secretword7",)


def test_odd_files():
    """What cannot be decoded or is no JSON yields what can be seen in it."""
    assert list(find_secret_values('{"a": "\ud800", "token": "secretword7"}')) == [
        "secretword7",
        "secretword7",
    ]
    assert list(find_secret_values("{")) == []
