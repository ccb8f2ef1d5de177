"""What secrets look like, and what only looks a little like one."""

import re

import pytest
from tests.support.cases import for_each_case

from steersman.judges.redaction.redact import redact_text, redaction_marker
from steersman.judges.redaction.secret_shapes import KEY_SHAPES, find_secret_signs, find_shaped_secrets

# Joined here, so that no scanner takes this file for a leak.
TOKENS = {
    "anthropic": ("api_key", "sk-ant-api03-" + "A" * 80),
    "openai": ("api_key", "sk-" + "proj-" + "aB3" * 12),
    "stripe": ("api_key", "sk_" + "live_" + "aB3" * 8),
    "slack": ("slack", "xox" + "b-" + "1a" * 12),
    "slack config": ("slack", "xox" + "e.xoxp-" + "1a" * 12),
    "slack app": ("slack", "xapp" + "-1-" + "A1" * 12),
    "gitlab": ("gitlab", "glpat-" + "x" * 20),
    "gitlab routable": ("gitlab", "glpat-" + "x" * 27 + ".01" + "0a1b2c3"),
    "npm": ("npm", "npm_" + "I" * 36),
    "pypi": ("pypi", "pypi-" + "AgEIcHlwaS5vcmc" + "C1" * 20),
    "google": ("google", "AI" + "za" + "Z" * 35),
    "google oauth": ("google", "ya29." + "a0" * 20),
    "hugging face": ("api_key", "hf_" + "Ab1" * 12),
    "groq": ("api_key", "gsk_" + "Ab1" * 17),
    "sendgrid": ("api_key", "SG." + "a1" * 11 + "." + "b2" * 21),
    "digital ocean": ("api_key", "dop_v1_" + "0a" * 32),
    "shopify": ("api_key", "shpat_" + "0a" * 16),
    "docker": ("api_key", "dckr_pat_" + "a-B_1" * 5),
    "vault": ("api_key", "hvs." + "Ab1" * 10),
    "grafana": ("api_key", "glsa_" + "Ab1" * 12),
    "linear": ("api_key", "lin_api_" + "Ab1" * 12),
    "age": ("api_key", "AGE-SECRET-KEY-1" + "QP" * 29),
    "atlassian": ("api_key", "ATATT3" + "xF" * 40),
    "mailgun": ("api_key", "key-" + "0a" * 16),
    "databricks": ("api_key", "dapi" + "0a" * 16),
    "telegram": ("api_key", "123456789" + ":AA" + "Ab1" * 11),
    "github": ("github", "ghp_" + "C" * 36),
    "github fine": ("github", "github" + "_pat_" + "D" * 60),
    "aws": ("aws", "AKIA" + "Q" * 16),
    "aws session": ("aws", "ASIA" + "Q" * 16),
    "jwt": ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl-_"),
    "twilio": ("twilio", "SK" + "0a" * 16),
    "twilio account": ("twilio", "AC" + "0a" * 16),
    "twilio with its token": ("twilio", "AC" + "0a" * 16 + ":" + "1b" * 16),
    "terraform cloud": ("terraform", "aB3dE6gH9jK2mN" + ".atlasv1." + "aB3-" * 16),
    "azure": ("azure", "abc8Q~" + "aB3" * 11),
    "alibaba": ("api_key", "LTAI" + "aB3d" * 5),
    "dynatrace": ("api_key", "dt0c01." + "A1" * 12 + "." + "B2" * 32),
    "fly": ("api_key", "fo1_" + "aB3" * 15),
    "harness": ("api_key", "pat." + "aB3" * 8 + "." + "a1" * 12 + "." + "b2" * 10),
    "octopus": ("api_key", "API-" + "A1" * 13),
    "openshift": ("api_key", "sha256~" + "aB3" * 15),
    "1password": ("api_key", "A3-" + "ABC123-" * 5 + "ABC12"),
    "brevo": ("api_key", "xkeysib-" + "0a" * 32 + "-" + "aB3d" * 4),
    "bedrock": ("aws", "ABSK" + "aB3d" * 28),
    "artifactory": ("api_key", "AKCp" + "aB3" * 23),
    "pem": ("private_key", "-----BEGIN RSA PRIV" + "ATE KEY-----\nDEK-Info: AES\nMIIE\n-----END RSA PRIV" + "ATE KEY-----"),
    "pem crlf": ("private_key", "-----BEGIN PRIV" + "ATE KEY-----\r\nMIIE+/==\r\n-----END PRIV" + "ATE KEY-----"),
    "pem flat": ("private_key", "-----BEGIN PRIV" + "ATE KEY----- " + "MII" * 8 + " -----END PRIV" + "ATE KEY-----"),
    "pgp": (
        "private_key",
        "-----BEGIN PGP PRIV" + "ATE KEY BLOCK-----\nVersion: 1\n\nlQOYBF\n=ab12\n-----END PGP PRIV" + "ATE KEY BLOCK-----",
    ),
}  # fmt: skip
IN_PLACE = {
    "env": ("aws_secret_access_key=", "F" * 40, "\n"),
    "env shouted": ("export DB_PASSWORD=", "correct", "\n"),
    "env with a suffix": ("DJANGO_SECRET_KEY=", "abcdef", "\n"), "ini": ("\npassword=", "letmein", "\n"),
    "ini with spaces": ("\naws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG", "\n"),
    "short": ("PASSWORD=", "x", ";"), "query": ("https://h/p?token=", "abc-def_1", "&a=b"),
    "query of words": ("https://h/p?token=", "letmein", "&a=b"),
    "connection": ("Server=h;Pwd=", "letmein", ";"), "option": ("curl --token=", "letmein", " x"),
    "a birthday": ('"password": "', "31.12.1990", '"'),
    "numbers that are no version": ('"password": "', "0123.45.6", '"'),
    "a version that nothing quotes": ("PASSWORD=", "1.2.3", "\n"),
    "option and word": ("mysql --password ", "letmein", " x"),
    "argv": ('["mysql", "--password", "', "letmein", '"]'), "user": ("curl -u me:", "letmein", " https://h"),
    "json": ('{"password": "', "hun, ter2", '"}'), "json in json": ('{\\"api_key\\": \\"', "hunter2", '\\"}'),
    "code": ("client_secret = '", "it\\'s", "'"), "typed code": ('token: str = "', "abc def", '"'),
    "item": ("config['password'] = '", "swordfish", "'"), "ruby": (":password => '", "swordfish", "'"),
    "yaml": ("api-key: ", "abc12345678", "\n"), "yaml shouted": ("DB_PASSWORD: ", "swordfish", "\n"),
    "yaml below": ("password:\n  ", "hunter2", "\n"),
    "yaml below in a diff": ("+  token:\n+    ", "abc12345", "\n"),
    "yaml below, quoted": ("api_key:\n  '", "abcdefghijklmnopqrstuv", "'  # prod\n"),
    "yaml below, shouted": ("DB_PASSWORD:\n    ", "swordfish", "\n"),
    "yaml below, any sign in quotes": ('password:\n  "', "Tr0ub4dor&3xyz", '"\n'),
    "yaml below, any sign": ("password:\n  ", "Tr0ub(4)dor;&3xyz", "\n"),
    "yaml below, two quotes for one": ("password:\n  '", "it''s, 4 you", "'\n"),
    "yaml below a comment": ("\npassword: # of prod\n\n  # rotated\n  ", "hunter2", " # x\n"),
    "yaml below, lines of Windows": ('\npassword:\r\n\r\n  "', "hunter, 2", '"\r\n'),
    "yaml below a tag": ("password: !!str\n  ", "hunter2", "\n"),
    "yaml below, after an anchor": ("password: &a\n  !!str ", "hunter2", "\n"),
    "yaml after an anchor": ("password: &a ", "hunter23", "\n"),
    "yaml after a tag": ("password: !!str '", "hun ter", "'\n"),
    "yaml list": ("- password:\n    - ${A}\n    - ", "hunter2", "\n"),
    "yaml list, its last": ("password:\n" + "    - ${A}\n" * 99 + "    - ", "hunter2", "\n    - hunter\n"),
    "yaml list without indent": ("password:\n- ", "hunter2", "\n"),
    "yaml below, changed": (" password:\n-  ${OLD}\n+  ", "hunter2", "\n"),
    "yaml below in a log": ("\nweb_1 12:01 | password:\nweb_1 12:02 |   ", "hunter2", "\n"),
    "yaml below, a word in quotes": ("password:\n  '", "swordfish", "'\n"),
    "json below": ('{"password":\n  "', "hun ter2", '",\n'),
    "yaml block after a tag": ("password: !!str |  # of prod\n  ", "correct horse", "\n"),
    "yaml block": ("password: |\n  ", "correct horse\n  battery staple", "\n"),
    "yaml block, folded": ("client_secret: >-\n    ", "abcdef", "\nname: x"),
    "twilio token": ("TWILIO_AUTH_TOKEN=", "1b" * 16, "\n"),
    "npmrc": ("//registry.invalid/:_auth=", "dXNlcjpwYXNz", "\n"),
    "header": ("Authorization: Basic ", "dXNlcjpwYXNz", "\r\n"),
    "header json": ('"authorization": "Bearer ', "abcd", '"'),
    "bare header": ("Authorization: ", "abc123def", "\n"),
    "argv header": ('"-H", "Authorization: token ', "abcd", '"'),
    "bearer": ("using bearer ", "a1" * 12, " now"),
    "cookie": ("Set-Cookie: ", "session=abcdef12", "; Path=/"),
    "url": ("https://", "user:p%40ss:w", "@example.invalid/x.git"),
    "url with an at": ("https://", "user:p@ss", "@example.invalid/x.git"),
    "url token": ("https://", "oauth2:" + "g" * 8, "@example.invalid"),
    "netrc": ("machine h.invalid login me password ", "letmein", "\n"),
    "netrc lines": ("machine h.invalid\n  login me\n  password ", "letmein", "\n"),
    "netrc default": ("default login me password ", "letmein", "\n"),
    "webhook": ("https://hooks.slack.com/services/", "T000/B000/" + "x1" * 12, " posted"),
    "turkish": ("İ password=", "hunter2", "\n"),
}  # fmt: skip
HARMLESS = [
    "max_tokens=4096", "tokens: 3000000", "token = make_token()", "token=make_token()", "token=tokens[0]",
    "if token == 'abc':", "password: must be long", "password: required", "Basic authentication is off",
    "Authorization: required for all calls", "task-0123456789012345678901", "sk-learn-compatible-estimator",
    "https://example.invalid/a:b@c", "git@example.invalid:team/project.git", "AKIA" + "q" * 16,
    "the secret of success", "authorization = base64.decodebytes(authorization)",
    "Set the default password for encrypted files.", "credentials = '{0}:{1}'.format(user, password)",
    "SERVER_AUTH = '1.3.6.1.5.5.7.3.1'", "token = tokens2\n", "token = response2023value(x)\n",
    "x = 1; token = abcdefgh12345678ijkl\n", "password=",
    "Client(api_key=api_key, token=self.token, password=user_password)", "    token=settings.token\n)",
    "    secret=other,\n", '"token": "${{ secrets.GITHUB_TOKEN }}"', 'password = "$DB_PASSWORD"',
    'api_key = "<your key here>"', 'TOKEN_FILE = "token.json"', 'credentials = ".credentials.json"',
    'password = "DB_PASSWORD"', '"password": "string"', "usage: tool --token TOKEN --password <password>",
    "--token --verbose", "docker run -u 1000:1000 image", "docker run --user 1000:1000 image",
    "password:\n    The password to use, 8 letters at least.\n", "token:\n  type: string\n  minLength: 16\n",
    "secret:\n  name2:\n    x\n", "password: |\n  ${DB_PASSWORD}\n",
    "password: >\n  Please enter the word that you were sent by letter.\n", "token:\n  read-only\n",
    "token:\n  - name: x1\n", "if token:\n    refresh2(token)\n", "    token:\n    process.env.TOKEN1,\n",
    "Set your api-key:\n\n    make2build\n", "server_auth:\n  hunter2\n", "password:\n  '${DB_PASSWORD}'\n",
    "AC/DC, SKU 0a0a0a0a, API-Gateway, ico-moon, sha256~x, LTAI", "AC" + "0a" * 20 + " SK" + "0A" * 20,
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    'if "-----BEGIN RSA PRIV" + "ATE KEY-----" in text:\n    return parse(text)',
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ me@host", "cookie: a banner",
    "machine learning: login is off, password unknown",
    '{"cmd_rotate_secret":"1.0.0","no_password":"12.0.345"}',
]  # fmt: skip
REAL = {
    "a diff": """diff --git a/app/client.py b/app/client.py
index 1d535067cab0833795fc5aa097d6c3b22bece439..2497138874416366ec0ab3834174912f75fd6168 100644
--- a/app/client.py
+++ b/app/client.py
@@ -12,7 +12,9 @@ class Client:
-    def __init__(self, token=None, max_tokens=4096):
+    def __init__(self, token: str | None = None, *, max_tokens: int = 4096):
+        self.token = token or os.environ["SERVICE_TOKEN"]
+        self.api_key = settings.api_key
         self.session = requests.Session()
+        self.request_id = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
+    integrity = "sha512-8d5MVEq3yXQ9Wq4qwB2W0i7Yf0Jx5dVq8m1m8o2m3r8l8kq0C0w7G0w1Tt3h0xA8k2d7n1b5v9c3x6z4l0p2o8=="
""",
    "test output": """============================= test session starts ==============================
tests/test_auth.py::test_token_is_refused[expired-401] FAILED
E       AssertionError: assert 'token' == 'secret'
E       at 0x7f2b5c0d4e50, digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
FAILED tests/test_auth.py::test_token_is_refused[expired-401] - AssertionError
1 failed, 12 passed in 0.42s
""",
    "a tape": '{"run":"261116-1mn3j1","seq":13,"prev":"369272fa4652dc7a919caa45afa5dda60d4e9bde739a5c8d70cc783fe6f5daa2",'
    '"cause":"261116-1mn3j1:12:1","data":{"nonce":"b1946ac92492d2347c6235b8","patch_ref":"p-faf3337557e11d490a420857585ca49d",'
    '"tokens":100,"tree":"739e71f06432487d7a673aa72afe539c25ffdb07"}}',
    "package-lock.json": '{"name":"a","lockfileVersion":3,"packages":{"node_modules/js-tokens":{"version":"4.0.0",'
    '"resolved":"https://registry.example.invalid/js-tokens/-/js-tokens-4.0.0.tgz","integrity":"sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0be'
    'YbPhHN4k6apgJtifcoCtT9bcxOpYBtpD2kCM6Sbzg4CausW/PKQ=="},"node_modules/secret":{"version":"1.2.3"}}}',
    "yarn.lock": 'js-tokens@^4.0.0:\n  version "4.0.0"\n  resolved "https://registry.example.invalid/js-tokens/-/js-tokens-4.0.0.tgz#19203f'
    'b59991df98e3a287050d4647cdeaf32499"\n  integrity sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0beYbPhHN4k6apgJtifcoCtT9bcxOpYBtpD2kCM6Sbzg4CausW/PKQ==\n',
    "pnpm-lock.yaml": "packages:\n  js-tokens@4.0.0:\n    resolution: {integrity: sha512-RdJUflcE3cUzKiMqQgsCu06FPu9UdIJO0beYbPhHN4k6apgJtif"
    "coCtT9bcxOpYBtpD2kCM6Sbzg4CausW/PKQ==}\n  registry-auth-token@5.0.2:\n    resolution: {integrity: sha512-o/3ikDxtXaA59BmZuZrJZDJv8NMDGSj+6j6X}\n",
    "Cargo.lock": '[[package]]\nname = "secrecy"\nversion = "0.8.0"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\n'
    'checksum = "9bd1c54ea06cfd2f6b63219704de0b9b4f72dcc2b8fdef820be6cd799780e91e"\n',
    "uv.lock": 'wheels = [\n    { url = "https://files.example.invalid/packages/5b/11/1e/itsdangerous-2.2.0-py3-none-any.whl", hash = "sha256:c6242f'
    'c49e35958c8b15141343aa660db5fc54d4f13a1db01a3f5891b98700ef", size = 16234 },\n]\n',
    "go.sum": "github.com/golang-jwt/jwt/v5 v5.2.1 h1:OuVbFODueb089Lh128TAcimifWaLhJwVflnrgM17wHk=\n"
    "github.com/golang-jwt/jwt/v5 v5.2.1/go.mod h1:pqrtFR0X4osieyHYxtmOUWsAWrfe1Q5UVIyoH402zdk=\n",
    "an image": "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==)",
    "a log": "commit 2497138874416366ec0ab3834174912f75fd6168 (HEAD -> main, tag: v1.2.3)\nAuthor: Ann <ann@example.invalid>\n"
    "    Rotate the token cache every hour\n    Steersman-Tree: 739e71f06432487d7a673aa72afe539c25ffdb07\n",
}  # fmt: skip


@for_each_case(("kind", "secret"), TOKENS.values())
def test_tokens(kind, secret):
    """A token of a known shape goes, wherever it stands, and leaves the marker of its kind."""
    assert redact_text(secret) == redaction_marker(kind, secret)
    there = "key ({0}), twice: {0}\n"
    assert redact_text(there.format(secret)) == there.format(redaction_marker(kind, secret))


@for_each_case(("before", "secret", "after"), IN_PLACE.values())
def test_in_place(before, secret, after):
    """A value goes by its name alone, and the text around it stays."""
    found = redact_text(f"a {before}{secret}{after} b")
    assert re.fullmatch(
        rf"a {re.escape(before)}\[redacted:[a-z_]+:[0-9a-f]{{8}}\]{re.escape(after)} b", found
    )


@for_each_case("text", HARMLESS)
def test_harmless(text):
    """Ordinary words are left as they are."""
    assert redact_text(text) == text


@for_each_case("text", REAL.values())
def test_real_texts(text):
    """Hashes, digests, nonces, ids and the code that handles tokens are no secrets."""
    assert redact_text(text) == text


def test_a_part_of_a_word_is_no_key():
    """A prefix in the middle of a word begins nothing."""
    assert redact_text("bagh" + "p_" + "C" * 36) == "bagh" + "p_" + "C" * 36
    assert redact_text("cache-key-" + "0a" * 16) == "cache-key-" + "0a" * 16
    token = TOKENS["github"][1]
    assert redact_text(f"notes-{token}.txt") == f"notes-{redaction_marker('github', token)}.txt"


def test_what_a_text_can_show_a_secret_by():
    """A key's word that begins no word is no sign; one that does is, wherever it stands, and so are other words."""
    assert find_secret_signs("risk_level and task_id") == ((), False)
    assert find_secret_signs("risk_level, sk_1").words == ("sk_",)
    assert find_secret_signs("sk_1, risk_level").words == ("sk_",)
    assert find_secret_signs("A Bearer told it").words == ("earer",)
    assert find_secret_signs("my password").named


@for_each_case("secret", [secret for _, secret in TOKENS.values()])
def test_the_signs_of_a_whole_are_those_of_its_parts(secret):
    """What is found in a text is found by the signs of any text that it is a part of."""
    whole = f"risk_level {secret} and so on"
    assert list(find_shaped_secrets(secret, find_secret_signs(whole))) == list(find_shaped_secrets(secret))


def test_every_prefix_is_looked_for_by_itself():
    """No prefix of a key is hidden behind another one that is shorter."""
    words = [shape.words[0] for shape in KEY_SHAPES]
    assert len(words) == len(set(words))


HEADLINE = "-----BEGIN RSA PRIV" + "ATE KEY-----"


def test_unterminated_key():
    """A key block that was cut off is hidden to the end of its lines."""
    assert redact_text(f"x {HEADLINE}\nMIIEabc\nMIIE").startswith("x [redacted:private_key:")
    assert "MIIE" not in redact_text(f"{HEADLINE}\nMIIEabc\nMIIE")


def test_a_headline_hides_no_code():
    """Whoever writes the first line of a key into a comment hides nothing of what follows from a reviewer."""
    code = f"+# {HEADLINE}\n+import os\n+os.system('curl evil')\n"
    assert redact_text(code) == code
    block = f"+K = '''{HEADLINE}\n+MIIE\n+'''\n+os.system('curl evil')\n"
    assert "MIIE" not in redact_text(block)
    assert "os.system('curl evil')" in redact_text(block)


@pytest.mark.parametrize(
    "block",
    [
        'K = ("{0}\\n"\n     "MIIEow\\n"\n     "abcd==\\n"\n     "-----END RSA PRIV' + 'ATE KEY-----\\n")',
        "+{0}\n+MIIEow\n+abcd==\n+-----END RSA PRIV" + "ATE KEY-----\n",
        '{{"key": "{0}\\nMIIEow\\nabcd==\\n-----END RSA PRIV' + 'ATE KEY-----\\n"}}',
    ],
    ids=["string", "diff", "json"],
)
def test_key_blocks_as_they_are_quoted(block):
    """In code, in a diff and in JSON a key is a key."""
    hidden = redact_text(block.format(HEADLINE))
    assert "MIIEow" not in hidden
    assert "abcd" not in hidden
    assert "[redacted:private_key:" in hidden
