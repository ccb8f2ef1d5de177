"""Looking, never touching: two commands of git, and the tools that read files. Left out, for instance: `-exec`, `-delete`,
`-fprint`, `-L`; `-f`, `-P`, `-R`; `--pre`, `--follow`; `-i`, and sed's `e`, `w`, `r`; every awk program but the plainest;
`-o`, `-T`, `--compress-program`; `-F` of tail; git's `-c`, `-C`, `--output`, `--ext-diff`, `--textconv`, `--no-index`."""

import msgspec

from steersman.judges.grammar import Grammar, Option, Searching, Value
from steersman.judges.grammars.values import (
    ASKED,
    GLOB,
    PATH,
    SOURCE,
    TEXT,
    WORD,
    flags,
    number,
    one_of,
    takes,
)

_REVISION = Value(
    name="REVISION", meaning="HEAD, HEAD~N or a commit's name", pattern=r"HEAD(?:~[0-9]{1,4}|\^)?|[0-9a-f]{7,64}"
)  # fmt: skip
_AMOUNT = Value(name="N", meaning="a number up to 999999", pattern=r"\+?[0-9]{1,6}")
_LINE = r"(?:[0-9]+|\$|/[^/\\\n]+/)"
_SED = Value(
    name="SCRIPT",
    meaning="`1,9p`, `$p`, `/word/p`, `/one/,/other/p`, or `s/one/other/g`",
    pattern=rf"{_LINE}(?:,(?:{_LINE}|\+[0-9]+))?[pd]|s/[^/\\\n]+/[^/\\&\n]*/[gpI0-9]{{0,3}}",
)
_FIELD = r"(?:\$(?:[0-9]{1,3}|NF)|NR|NF|\"[^\"\\]{0,20}\")"
_WHERE = r"(?:/[^/\\]+/|NR ?[=!]= ?[0-9]+|NR ?[<>]=? ?[0-9]+(?: ?&& ?NR ?[<>]=? ?[0-9]+)?)"
_AWK = Value(
    name="PROGRAM",
    meaning="`/word/` or `NR==1`, or `{print $1, $2}` with one of these or END in front",
    pattern=rf"(?:{_WHERE}|END)? ?\{{ ?print(?: {_FIELD}(?:,? ?{_FIELD}){{0,20}})? ?\}}|{_WHERE}",
)
_SEPARATOR = Value(name="CHAR", meaning="one character between fields", pattern=r"[,:;|=/ _#%]|\\t")
_GREP: tuple[Option, ...] = (
    *flags("-r/--recursive -n/--line-number -i/--ignore-case -l/--files-with-matches -c/--count -w/--word-regexp"),
    *flags("-x/--line-regexp -v/--invert-match -o/--only-matching -h/--no-filename -H/--with-filename"),
    *flags("-s/--no-messages -E/--extended-regexp -F/--fixed-strings -I"),
    *(takes(name, number(0, 1000), "=", " ", "") for name in ("-A", "-B", "-C", "-m")),
    takes("--include", ASKED, "=", often=10),
    takes("--exclude", GLOB, "=", often=10),
    takes("--exclude-dir", GLOB, "=", often=10),
    takes("--color", one_of("never"), "="),
)  # fmt: skip
_RECURSIVE = Searching(when=("-r",), only="--include", without="--exclude", without_folders="--exclude-dir")
_RIPGREP: tuple[Option, ...] = (
    *flags("-n/--line-number -i/--ignore-case -l/--files-with-matches -c/--count -w/--word-regexp -v/--invert-match"),
    *flags("-F/--fixed-strings -S/--smart-case -s/--case-sensitive -o/--only-matching -N --no-heading --heading"),
    *(takes(name, number(0, 1000), "=", " ", "") for name in ("-A", "-B", "-C", "-m")),
    takes("-g/--glob", ASKED, "=", " ", often=10),
    takes("-t/--type", WORD, "=", " ", "", often=10),
    takes("--color", one_of("never"), "="),
)  # fmt: skip
_ALWAYS = Searching(only="-g", reveals=("-g", "-t"))
_FIND: tuple[Option, ...] = (
    *(takes(name, GLOB, " ", often=10) for name in ("-name", "-iname")),
    *(takes(name, Value(name="FILTER", meaning="a path with * in it", pattern=r"[\w.*?][\w.*?/-]{0,199}"), " ", often=10) for name in ("-path", "-ipath")),
    takes("-type", one_of("f", "d", "l"), " "),
    takes("-maxdepth", number(0, 100), " "),
    takes("-mindepth", number(0, 100), " "),
    takes("-size", Value(name="SIZE", meaning="a size such as +10k", pattern=r"[+-]?[0-9]{1,9}[bckwMG]?"), " "),
    takes("-mtime", Value(name="DAYS", meaning="a number of days such as -1", pattern=r"[+-]?[0-9]{1,5}"), " "),
    *flags("-empty -print -o -not -a", often=10),
)  # fmt: skip
_LS: tuple[Option, ...] = (
    *flags("-l -1 -a/--all -A/--almost-all -h/--human-readable -R/--recursive -r/--reverse -t -S -F/--classify -d/--directory"),
)  # fmt: skip
_SORT: tuple[Option, ...] = (
    *flags("-n/--numeric-sort -r/--reverse -u/--unique -f/--ignore-case -h/--human-numeric-sort -V/--version-sort"),
    *flags("-b/--ignore-leading-blanks -d/--dictionary-order -s/--stable -c/--check"),
    takes("-k/--key", Value(name="KEY", meaning="a key such as 2,2n", pattern=r"[0-9]{1,3}(?:\.[0-9]{1,3})?[bdfhnrV]*(?:,[0-9]{1,3}(?:\.[0-9]{1,3})?[bdfhnrV]*)?"), "=", " ", "", often=5),
    takes("-t/--field-separator", _SEPARATOR, "=", " ", ""),
)  # fmt: skip
_ENDS: tuple[Option, ...] = (
    takes("-n/--lines", _AMOUNT, "=", " ", ""),
    takes("-c/--bytes", number(0, 1_000_000), "=", " ", ""),
    *flags("-q/--quiet -v/--verbose"),
    takes("-", number(1, 99_999), ""),  # `-5`; last, because every option begins like this
)


def _tool(
    name: str,
    about: str,
    options: tuple[Option, ...],
    *first: Value,
    rest: Value = SOURCE,
    least: int = 1,
    clusters: bool = True,
    searching: Searching | None = None,
) -> Grammar:
    return Grammar(
        name=name,
        set="read",
        about=about,
        starts=((name,),),
        options=options,
        first=first,
        rest=rest,
        least=least,
        clusters=clusters,
        searching=searching,
        proves="nothing",
    )


def _by_option(search: Grammar) -> Grammar:
    """The same program with what it looks for behind `-e`: then every operand is a file."""
    wanted = takes("-e/--regexp", TEXT, often=10)
    return msgspec.structs.replace(
        search, name=f"{search.name} -e", options=(wanted, *search.options), first=(), needs=("-e",)
    )


_SEARCHES = (
    _tool("grep", "Lines that match.", _GREP, TEXT, least=0, searching=_RECURSIVE),
    _tool("rg", "Lines that match.", _RIPGREP, TEXT, least=0, searching=_ALWAYS),
)
READING: tuple[Grammar, ...] = (
    Grammar(
        name="git status",
        set="tests",
        about="What has changed.",
        starts=(("git", "status"),),
        options=(
            *flags("-s/--short -b/--branch --long"),
            *flags("--porcelain --porcelain=v1 --porcelain=v2 -uno -unormal -uall"),
            takes("--untracked-files", one_of("no", "normal", "all"), "="),
        ),
        proves="nothing",
    ),
    Grammar(
        name="git diff --stat",
        set="tests",
        about="How much has changed, or which files.",
        starts=(("git", "diff"),),
        options=flags("--stat --shortstat --numstat --name-only --name-status --cached/--staged --no-color"),
        needs=("--stat", "--shortstat", "--numstat", "--name-only", "--name-status"),
        rest=_REVISION,
        most=2,
        proves="nothing",
    ),
    _tool("find", "Names of files.", _FIND, rest=PATH, least=0, clusters=False),
    _tool("ls", "Names in folders.", _LS, rest=PATH, least=0),
    _SEARCHES[0],
    _by_option(_SEARCHES[0]),
    _SEARCHES[1],
    _by_option(_SEARCHES[1]),
    _tool("sed", "Some lines, or lines with a word replaced, on the screen.", flags("-n/--quiet -E/--regexp-extended"), _SED),
    _tool("awk", "Some fields of some lines.", (takes("-F", _SEPARATOR, " ", ""),), _AWK, clusters=False),
    _tool("sort", "Lines in order.", _SORT),
    _tool("wc", "How many lines, words, bytes.", flags("-l/--lines -w/--words -c/--bytes -m/--chars -L/--max-line-length")),
    _tool("cat", "Whole files.", flags("-n/--number -b/--number-nonblank -s/--squeeze-blank -A/--show-all")),
    _tool("head", "The first lines.", _ENDS, clusters=False),
    _tool("tail", "The last lines.", _ENDS, clusters=False),
)  # fmt: skip
