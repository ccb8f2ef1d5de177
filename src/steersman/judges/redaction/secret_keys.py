"""Keys that say what they are: prefix, alphabet and length of what follows, one row for each kind of token.

The facts are those that vendors document and that the rule list of gitleaks (MIT) collects. A minimum length is often
shorter than the real one, so that a key that was cut is found too. **Invariant:** data alone.
"""

from typing import NamedTuple

REDACTION_MARKER_PATTERN = r"\[redacted:[a-z_]+:[0-9a-f]{8}\]"
KEY_CHARACTER = r"[A-Za-z0-9_-]"
_ALPHANUMERIC = r"[A-Za-z0-9]"
_UPPER_ALPHANUMERIC = r"[A-Z0-9]"
_LOWER_HEX = r"[a-f0-9]"
_ANY_CASE_HEX = r"[A-Fa-f0-9]"
_BASE64_CHARACTER = r"[A-Za-z0-9+/=_-]"


class KeyRow(NamedTuple):
    """A kind of key: the marker's word, the prefixes, and each part that follows with the dot between them."""

    kind: str
    prefixes: tuple[str, ...]
    alphabet: str
    least: int
    exact: bool = False  # what follows is no longer than `least`
    more: str = ""  # a pattern for further parts


_DOTTED_KEY_PART = rf"\.{KEY_CHARACTER}{{16,}}+"
KEY_ROWS = (
    # Models and their tools; `sk-` also has to hold a capital or a digit: sk-learn-compatible is none.
    KeyRow("api_key", ("sk-", "sk_", "rk_"), rf"(?=[a-z_-]{{0,64}}+[A-Z0-9]){KEY_CHARACTER}", 16),
    KeyRow("api_key", ("hf_", "gsk_", "xai-", "pplx-", "r8_", "ntn_", "api_org_"), _ALPHANUMERIC, 20),
    KeyRow("api_key", ("nvapi-",), KEY_CHARACTER, 16),
    KeyRow("aws", ("ABSK", "bedrock-api-key-"), _BASE64_CHARACTER, 40),
    # Forges and registries
    KeyRow("github", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), KEY_CHARACTER, 20),
    KeyRow(
        "gitlab",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glffct-", "glsoat-", "glcbt-", "glimt-", "glagent-",
         "gloas-", "GR1348941"),
        KEY_CHARACTER, 16, more=rf"(?:\.{KEY_CHARACTER}++)*+",
    ),
    KeyRow("npm", ("npm_",), _ALPHANUMERIC, 30),
    KeyRow("pypi", ("pypi-",), KEY_CHARACTER, 16),
    KeyRow("api_key", ("rubygems_", "pul-", "sbp_"), _LOWER_HEX, 30),
    KeyRow("api_key", ("CLOJARS_", "AKCp", "cmVmd"), _ALPHANUMERIC, 50),
    KeyRow("api_key", ("dckr_pat_", "figd_", "lin_api_", "lin_oauth_", "tskey-"), KEY_CHARACTER, 16),
    KeyRow("api_key", ("sgp_",), KEY_CHARACTER, 40),
    # Clouds
    KeyRow(
        "aws",
        ("AKIA", "ASIA", "AGPA", "AIDA", "AROA", "AIPA", "ANPA", "ANVA", "ABIA", "ACCA"),
        _UPPER_ALPHANUMERIC, 16, exact=True,
    ),
    KeyRow("google", ("AIza",), KEY_CHARACTER, 30),
    KeyRow("google", ("ya29.", "GOCSPX-"), KEY_CHARACTER, 16),
    KeyRow("api_key", ("LTAI",), _ALPHANUMERIC, 20, exact=True),
    KeyRow("api_key", ("dop_v1_", "doo_v1_", "dor_v1_"), _LOWER_HEX, 30),
    KeyRow("api_key", ("v1.0-",), r"[a-f0-9-]", 150),
    KeyRow("api_key", ("fo1_", "fm1a_", "fm1r_", "fm2_"), _BASE64_CHARACTER, 40),
    KeyRow("api_key", ("HRKU-", "tk-us-", "sha256~", "pnu_"), KEY_CHARACTER, 36),
    KeyRow("api_key", ("dapi", "key-"), _LOWER_HEX, 32, exact=True),
    # Secrets and infrastructure
    KeyRow("api_key", ("hvs.", "hvb.", "hvr."), KEY_CHARACTER, 20),
    KeyRow("api_key", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), KEY_CHARACTER, 30),
    KeyRow("api_key", ("AGE-SECRET-KEY-1", "NRAK-", "PMAK-"), KEY_CHARACTER, 20),
    KeyRow("api_key", ("A3-",), r"[A-Z0-9-]", 30),
    KeyRow("api_key", ("API-",), _UPPER_ALPHANUMERIC, 26, exact=True),
    KeyRow("api_key", ("ops_eyJ", "whsec_"), _BASE64_CHARACTER, 20),
    KeyRow("api_key", ("glsa_", "glc_", "sntrys_", "sntryu_", "eyJrIjoi"), _BASE64_CHARACTER, 30),
    KeyRow("api_key", ("dt0c01.",), _ALPHANUMERIC, 24, more=rf"\.{_ALPHANUMERIC}{{30,}}+"),
    KeyRow("api_key", ("sat.", "pat."), KEY_CHARACTER, 20, more=rf"\.{_ALPHANUMERIC}{{20,}}+\.{_ALPHANUMERIC}{{16,}}+"),
    KeyRow("api_key", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), r"[A-Za-z0-9_=.-]", 20),
    KeyRow("api_key", ("ico-", "p8e-"), _ALPHANUMERIC, 32, exact=True),
    # Messages
    KeyRow(
        "slack",
        ("xoxa", "xoxb", "xoxc", "xoxd", "xoxe", "xoxo", "xoxp", "xoxr", "xoxs"),
        r"[.a-z]", 0, more=rf"{{0,6}}-{KEY_CHARACTER}{{10,}}+",
    ),
    KeyRow("slack", ("xapp-",), KEY_CHARACTER, 16),
    KeyRow("api_key", ("SG.",), KEY_CHARACTER, 16, more=_DOTTED_KEY_PART),
    KeyRow("api_key", ("xkeysib-",), r"[A-Za-z0-9-]", 64),
    # A Twilio account with its token beside it, and a Twilio key.
    KeyRow("twilio", ("AC",), _LOWER_HEX, 32, exact=True, more=rf"(?:[:,;|/ \t\"']{{1,6}}{_LOWER_HEX}{{32}}(?![A-Za-z0-9]))?"),
    KeyRow("twilio", ("SK",), _LOWER_HEX, 32, exact=True),
    # Trade
    KeyRow("api_key", ("shpat_", "shpca_", "shppa_", "shpss_", "shippo_live_", "shippo_test_"), _ANY_CASE_HEX, 32),
    KeyRow("api_key", ("sq0atp-", "sq0csp-", "duffel_test_", "duffel_live_", "fio-u-"), KEY_CHARACTER, 20),
    KeyRow("api_key", ("EZAK", "EZTK"), _ALPHANUMERIC, 54, exact=True),
    KeyRow("api_key", ("FLWSECK_TEST-", "FLWSECK-"), _ALPHANUMERIC, 12),
    KeyRow("api_key", ("EAAC", "EAAM"), _ALPHANUMERIC, 100),
    KeyRow("api_key", ("ATATT3", "ATCTT3"), r"[A-Za-z0-9_=.-]", 60),
    KeyRow("api_key", ("rdme_",), _ALPHANUMERIC, 60),
    KeyRow("api_key", ("sm_aat_", "sm_pat_", "sm_sat_"), _ALPHANUMERIC, 16),
    KeyRow("jwt", ("eyJ",), KEY_CHARACTER, 8, more=rf"\.{KEY_CHARACTER}{{8,}}+(?:\.{KEY_CHARACTER}*+)?"),
)  # fmt: skip
# Cache-key-… is none.
COMMON_KEY_PREFIXES = frozenset({"key-", "dapi", "eyJ", "ico-", "pat.", "sat.", "API-"})
# Keys whose prefix is not the beginning: (kind, the word in them, pattern)
INNER_PREFIX_ROWS = (
    ("terraform", ".atlasv1.", rf"(?<![A-Za-z0-9])(?P<s>[A-Za-z0-9]{{14}}\.atlasv1\.{_BASE64_CHARACTER}{{40,}}+)"),
    ("azure", "Q~", r"(?<![A-Za-z0-9_~.-])(?P<s>[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])"),
    ("api_key", ":AA", rf"(?<![A-Za-z0-9_:-])(?P<s>[0-9]{{8,10}}:AA{KEY_CHARACTER}{{30,40}})(?![A-Za-z0-9_-])"),
)  # fmt: skip
