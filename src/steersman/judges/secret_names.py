"""Names under which people keep secrets: keys, logins, settings with passwords in them.

A name is all there is to judge before a file is opened. It is one of these when the file is called after a secret, or
when the tool that reads it has it kept out of repositories for the login in it. Settings that are committed like the
rest are not, be they those of production. What holds code or prose by its ending is no secret for having the word in
its name: `test_secrets.py` is a test.
**Invariant:** names alone are looked at; letter case makes no difference.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FOLDERS = _words(".ssh .aws .azure .gcloud .gnupg .docker .kube .m2 .gem .oci .password-store")
_NESTED = re.compile(r"(?:^|/)\.config/(?:gh|gcloud|op|hub|rclone|containers)(?:/|$)")
_TOOLS = re.compile(r"(?:^|/)\.gradle/gradle\.properties$")
_KEPT = frozenset({"secrets", ".secrets", "credentials", ".credentials"})  # folders of data files
_CODE = _words(
    "py pyi js mjs cjs jsx ts mts cts tsx vue svelte go rs java kt kts scala groovy rb php c h cc cpp hpp cs fs swift lua"
    " ex exs erl hs ml clj dart zig md mdx rst adoc html css scss less proto graphql"
)
_COPY = re.compile(r"(?:~|\.(?:bak|old|orig|save|sw[op]|tmp|backup|copy|enc))+$")
_NAMES = re.compile(
    r"\.env(?:rc|[._-].*)?|.+\.env(?:\.[\w-]+)?|[._]netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|pip\.conf|\.condarc"
    r"|\.git-?credentials|\.gitconfig|\.pgpass|pgpass\.conf|\.htpasswd|\.my(?:login)?\.cnf|\.s3cfg|\.boto|\.dockercfg"
    r"|\.dockerconfigjson|\.curlrc|\.wgetrc|\.terraformrc|\.vault.*|\.\w+_history|\.claude\.json|\.token|\.pass(?:wd|word)"
    r"|(?:.*[._-])?kubeconfig(?:[._-].*)?|(?:.*\.)?tfstate(?:\..*)?|.*\.tfvars(?:\.json)?|auth\.json|oauth_creds\.json"
    r"|local\.settings\.json|google-services\.json|googleservice-info\.plist|\.dev\.vars(?:\..*)?|vault\.ya?ml|wp-config\.php|authorized_keys|g?shadow|cookies\.(?:txt|sqlite)|wallet\.dat"
    r"|.*\.(?:pem|key|p8|p12|pfx|ppk|pkcs12|jks|bks|keystore|kdbx?|keytab|ovpn|gpg|pgp|agekey|keychain|keychain-db)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:[._-].*)?"
)
_BARE = re.compile(
    r"id_\w+|.*passwd"
)  # a folder of tests may be called like this, a file that is read may not
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS = _words(
    "secret secrets credential credentials creds password passwords passwd passphrase apikey apikeys token"
)
_JOINED = ("serviceaccount", "privatekey", "accesskey", "apikey", "adminsdk")


def keeps_secrets(path: str, *, folder: bool = False) -> bool:
    """Whether a file of this name is taken for one that keeps secrets; a `folder` may have more of the words in it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return False
    low = [part.casefold() for part in parts]
    if not _FOLDERS.isdisjoint(low) or _NESTED.search("/".join(low)) or _TOOLS.search("/".join(low)):
        return True
    name, plain = _COPY.sub("", parts[-1]), _COPY.sub("", low[-1])
    if _NAMES.fullmatch(plain):
        return True
    _, dot, ending = plain.rpartition(".")
    if (dot and ending in _CODE) or (folder and not dot):
        return False
    inside = not _KEPT.isdisjoint(low[:-1]) and not folder
    return inside or _BARE.fullmatch(plain) is not None or _says_so(name)


def _says_so(name: str) -> bool:
    words = [word.casefold() for word in _WORD.findall(name)]
    return (
        not _WORDS.isdisjoint(words) or _is_key(name) or any(joined in "".join(words) for joined in _JOINED)
    )


def _is_key(name: str) -> bool:
    """`gcp-key.json`: a key in a file of data; a public one is for all."""
    words = [word.casefold() for word in _WORD.findall(name.rpartition(".")[0] or name)]
    return words[-1:] == ["key"] and "public" not in words
