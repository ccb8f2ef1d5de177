"""Names of secrets: what is taken for one, and what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.judges.redaction.named_secrets import is_secret_file_name

SAMPLES = """
.env .env.local .env.production .envrc prod.env .netrc _netrc .npmrc .pypirc .git-credentials .gitconfig .pgpass
.htpasswd .my.cnf .s3cfg .dockercfg .vault-token .bash_history .claude.json .credentials.json .secrets kubeconfig
kubeconfig.yaml terraform.tfstate prod.tfvars auth.json id_rsa id_ed25519 authorized_keys server.pem server.key
client.p12 client.pfx store.jks passwords.kdbx credentials credentials.json credentials.yml secrets.json secrets.yml
secrets.yaml secrets.toml service-account.json service_account.json client_secret.json password.txt passwd token.txt
token gcp-key.json .dev.vars vault.yml google-services.json
"""
ORDINARY = """
README.md src/app.py tests/test_secrets.py docs/credentials.md src/secrets/vault.py env.py environment.yml
.envoy.yaml package.json tokens.json .gitignore .github/x.yml keyboard.txt monkey.json id_map.py secretary.txt
public.crt . ./ src/ .cargo/config.toml .config/nextest.toml Dockerfile keys passkey.ts
tokenizer.json special_tokens_map.json public-key.json keys.json key.py keymap.json gradle.properties android/gradle.properties
config/database.yml appsettings.Production.json application-prod.yml session.json vault/index.yml vault.hcl
"""


@pytest.mark.parametrize("name", SAMPLES.split())
def test_samples_are_secrets(name):
    """Each is one itself, in a folder, in capitals, as a copy."""
    for path in (name, f"deep/{name}", f"./{name}", name.upper(), f"{name}.bak", f"{name}~"):
        assert is_secret_file_name(path), path


@pytest.mark.parametrize("path", ORDINARY.split())
def test_ordinary_files_are_none(path):
    """Code, prose and settings are no secrets for having a letter in common with one."""
    assert not is_secret_file_name(path)
    assert not is_secret_file_name(path, is_directory=True)


@pytest.mark.parametrize("path", ["tests/secrets", "credentials", "tests/id_mapping", "tests/secrets/deep"])
def test_a_folder_may_be_called_like_one(path):
    """A runner is given folders: words in their names say nothing; what is read is judged by them."""
    assert not is_secret_file_name(path, is_directory=True)
    assert is_secret_file_name(path)
    assert is_secret_file_name(".ssh", is_directory=True)
    assert is_secret_file_name("config/secrets.yml", is_directory=True)


@given(st.text(max_size=30))
def test_total(path):
    """No name is too odd, and what is one stays one in every folder."""
    assert is_secret_file_name(f"a/{path}") or not is_secret_file_name(path)
