"""Names under which people keep secrets: keys, logins, settings with passwords in them.

A name is all there is to judge before a file is opened. It is one of these when the file is called after a secret, or
when the tool that reads it has it kept out of repositories for the login in it. Settings that are committed like the
rest are not, be they those of production. What holds code or prose by its ending is no secret for having the word in
its name: `test_secrets.py` is a test.
**Invariant:** names alone are looked at; letter case makes no difference.
"""

import re


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_DIRECTORIES = _word_set(".ssh .aws .azure .gcloud .gnupg .docker .kube .m2 .gem .oci .password-store")
_NESTED_SECRET_DIRECTORY = re.compile(r"(?:^|/)\.config/(?:gh|gcloud|op|hub|rclone|containers)(?:/|$)")
_TOOL_SECRET_FILE = re.compile(r"(?:^|/)\.gradle/gradle\.properties$")
# Folders of data files.
_SECRET_DATA_DIRECTORIES = frozenset({"secrets", ".secrets", "credentials", ".credentials"})
_CODE_ENDINGS = _word_set(
    "py pyi js mjs cjs jsx ts mts cts tsx vue svelte go rs java kt kts scala groovy rb php c h cc cpp hpp cs fs swift lua"
    " ex exs erl hs ml clj dart zig md mdx rst adoc html css scss less proto graphql"
)
_BACKUP_ENDING = re.compile(r"(?:~|\.(?:bak|old|orig|save|sw[op]|tmp|backup|copy|enc))+$")
_SECRET_FILE_NAME = re.compile(
    r"\.env(?:rc|[._-].*)?|.+\.env(?:\.[\w-]+)?|[._]netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|pip\.conf|\.condarc"
    r"|\.git-?credentials|\.gitconfig|\.pgpass|pgpass\.conf|\.htpasswd|\.my(?:login)?\.cnf|\.s3cfg|\.boto|\.dockercfg"
    r"|\.dockerconfigjson|\.curlrc|\.wgetrc|\.terraformrc|\.vault.*|\.\w+_history|\.claude\.json|\.token|\.pass(?:wd|word)"
    r"|(?:.*[._-])?kubeconfig(?:[._-].*)?|(?:.*\.)?tfstate(?:\..*)?|.*\.tfvars(?:\.json)?|auth\.json|oauth_creds\.json"
    r"|local\.settings\.json|google-services\.json|googleservice-info\.plist|\.dev\.vars(?:\..*)?|vault\.ya?ml|wp-config\.php|authorized_keys|g?shadow|cookies\.(?:txt|sqlite)|wallet\.dat"
    r"|.*\.(?:pem|key|p8|p12|pfx|ppk|pkcs12|jks|bks|keystore|kdbx?|keytab|ovpn|gpg|pgp|agekey|keychain|keychain-db)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?"
)
# A folder of tests may be called like this, a file that is read may not.
_SECRET_BARE_NAME = re.compile(r"id_\w+|.*passwd")
_FILE_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = _word_set(
    "secret secrets credential credentials creds password passwords passwd passphrase apikey apikeys token"
)
_JOINED_SECRET_WORDS = ("serviceaccount", "privatekey", "accesskey", "apikey", "adminsdk")


def is_secret_file_name(path: str, *, is_directory: bool = False) -> bool:
    """Whether a file of this name is taken for one that keeps secrets; a `folder` may have more of the words in it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return False
    lower_parts = [part.casefold() for part in parts]
    if (
        not _SECRET_DIRECTORIES.isdisjoint(lower_parts)
        or _NESTED_SECRET_DIRECTORY.search("/".join(lower_parts))
        or _TOOL_SECRET_FILE.search("/".join(lower_parts))
    ):
        return True
    name, plain = _BACKUP_ENDING.sub("", parts[-1]), _BACKUP_ENDING.sub("", lower_parts[-1])
    if _SECRET_FILE_NAME.fullmatch(plain):
        return True
    _, dot, ending = plain.rpartition(".")
    if (dot and ending in _CODE_ENDINGS) or (is_directory and not dot):
        return False
    in_secret_directory = not _SECRET_DATA_DIRECTORIES.isdisjoint(lower_parts[:-1]) and not is_directory
    return in_secret_directory or _SECRET_BARE_NAME.fullmatch(plain) is not None or _has_secret_word(name)


def _has_secret_word(name: str) -> bool:
    words = [word.casefold() for word in _FILE_NAME_WORD.findall(name)]
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or _is_key_file_name(name)
        or any(joined in "".join(words) for joined in _JOINED_SECRET_WORDS)
    )


def _is_key_file_name(name: str) -> bool:
    """`gcp-key.json`: a key in a file of data; a public one is for all."""
    words = [word.casefold() for word in _FILE_NAME_WORD.findall(name.rpartition(".")[0] or name)]
    return words[-1:] == ["key"] and "public" not in words
