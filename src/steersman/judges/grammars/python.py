"""Python: pytest, unittest, ruff and mypy, and what starts them. Left out of pytest, for instance: `-c`, `-o`,
`--rootdir`, `--basetemp`, `--pyargs`, `-p` of a plugin to load, `-W` with a category to import (they load, move or
delete), `--doctest-modules` (it runs every module), `--junitxml`, `--log-file` (they write), `--pdb`, `--trace` (they
wait), `--co`, `--deselect`, `--ignore` (they run less than they seem to), `--lf` (a cache, not its words, says what)."""

from steersman.contracts.commands import Argv
from steersman.judges.grammar import Grammar, Option, Value
from steersman.judges.grammars.python_modules import FOLDER, MODULE, PACKAGE, TEST_FILES
from steersman.judges.grammars.values import (
    EXPRESSION,
    NODE,
    PATH,
    WORDS,
    flags,
    number,
    one_of,
    takes,
)

_PYTHONS = ("python", "python3", *(f"python3.{minor}" for minor in range(8, 16)))
_WARNING = Value(
    name="FILTER",
    meaning="what becomes of warnings, such as error or error::DeprecationWarning; a category of Python's own",
    pattern=r"(?:error|ignore|default|always|once|module)(?:::(?:(?:Pending)?Deprecation|User|Runtime|Syntax|Future|Import|Unicode|Bytes|Resource|Encoding)?Warning)?",
)
# A name with a dot is imported to be found; one without is a folder or a module's name, and only looked up.
_COVERED = Value(
    name="SOURCE",
    meaning="a folder or a package of the tree, without dots",
    pattern=r"\.|(?:\w[\w-]*+/)*+\w[\w-]*+/?",
    path=r"(.+)",
)
# The report of the tests themselves, and what decides whether one has failed, stay on.
_UNPLUGGED = one_of(
    *(
        f"no:{name}"
        for name in ("cacheprovider", "faulthandler", "randomly", "random_order", "sugar", "xdist")
    )
)
_PYTEST: tuple[Option, ...] = (
    *flags("-q/--quiet -v/--verbose", often=3),
    *flags("-x/--exitfirst -s -l/--showlocals --ff/--failed-first --strict-markers --strict-config --no-header"),
    *flags("--disable-warnings --runxfail --full-trace"),
    takes("-k", EXPRESSION, " "),
    takes("-m", EXPRESSION, " "),
    takes("-r", Value(name="CHARS", meaning="letters of pytest's report", pattern=r"[fEsxXpPwaAN]{1,12}"), " ", ""),
    takes("-n/--numprocesses", Value(name="N", meaning="auto, or a number from 0 to 16", pattern=r"auto|[0-9]|1[0-6]"), "=", " ", ""),
    takes("--maxfail", number(1, 1000)),
    takes("--tb", one_of("auto", "long", "short", "line", "native", "no")),
    takes("--color", one_of("yes", "no", "auto")),
    takes("--capture", one_of("fd", "sys", "no", "tee-sys")),
    takes("--show-capture", one_of("no", "stdout", "stderr", "log", "all")),
    takes("--durations", number(0, 1000)),
    takes("--timeout", number(1, 3600)),
    takes("--log-level", one_of("DEBUG", "INFO", "WARNING", "ERROR")),
    takes("--randomly-seed", number(0, 9_999_999)),
    takes("-W/--pythonwarnings", _WARNING, "=", " ", "", often=5),
    takes("-p", _UNPLUGGED, " ", often=5),
    *flags("--cov --no-cov --cov-branch"),
    takes("--cov", _COVERED, "=", often=5),
    takes("--cov-report", one_of("term", "term-missing", "term:skip-covered", "term-missing:skip-covered"), often=2),
)  # fmt: skip
_UNITTEST: tuple[Option, ...] = (
    *flags("-v/--verbose -q/--quiet -f/--failfast -b/--buffer --locals"),
    takes("-k", EXPRESSION, " ", often=5),
)


def _module(*words: str) -> tuple[Argv, ...]:
    """Through Python, whichever."""
    return tuple((python, "-m", *words) for python in _PYTHONS)


PYTEST = Grammar(
    name="pytest",
    set="tests",
    about="pytest on the tree, a file, or single tests.",
    starts=(("pytest",), *_module("pytest")),
    options=_PYTEST,
    clusters=True,
    greedy=("--cov",),
    rest=NODE,
)
DISCOVER = Grammar(
    name="unittest discover",
    set="tests",
    about="unittest, looking for tests in a folder.",
    starts=_module("unittest", "discover"),
    options=(
        *_UNITTEST,
        takes("-s/--start-directory", FOLDER),
        takes("-t/--top-level-directory", PATH),
        takes("-p/--pattern", TEST_FILES),
    ),
    rest=FOLDER,
    most=1,
)
UNITTEST = Grammar(
    name="unittest",
    set="tests",
    about="unittest, everything or tests by name.",
    starts=_module("unittest"),
    options=_UNITTEST,
    rest=MODULE,
)
RUFF = Grammar(
    name="ruff check",
    set="tests",
    about="ruff's rules as the project has them; nothing is fixed.",
    starts=(("ruff", "check"), *_module("ruff", "check")),
    options=(
        *flags("-q/--quiet --no-fix --no-cache --statistics"),
        takes("--output-format", one_of("concise", "full", "grouped", "json", "github")),
    ),
    rest=PATH,
    proves="check",
)
RUFF_FORMAT = Grammar(
    name="ruff format --check",
    set="tests",
    about="Whether it is formatted; nothing is written.",
    starts=(("ruff", "format"), *_module("ruff", "format")),
    options=flags("--check --diff -q/--quiet --no-cache"),
    rest=PATH,
    needs=("--check", "--diff"),
    proves="check",
)
MYPY = Grammar(
    name="mypy",
    set="tests",
    about="Types, with the project's own settings.",
    starts=(("mypy",), *_module("mypy")),
    options=(
        *flags("--strict --pretty --no-incremental --show-error-codes --show-error-context --no-color-output"),
        takes("-p/--package", PACKAGE, often=10),
    ),
    rest=PATH,
    proves="check",
)  # fmt: skip

_COMMANDS = (PYTEST, DISCOVER, UNITTEST, RUFF, RUFF_FORMAT, MYPY)
_UV = Grammar(
    name="uv run",
    set="uv",
    about="One of the Python commands in the project's environment.",
    starts=(("uv", "run"),),
    options=(
        *flags("--frozen --locked --no-sync --offline --all-extras --all-groups --dev --no-dev -q/--quiet"),
        takes("--extra", WORDS, often=5),
        takes("--group", WORDS, often=5),
    ),
    inner=_COMMANDS,
)
_POETRY = Grammar(
    name="poetry run",
    set="poetry",
    about="One of the Python commands in the project's environment.",
    starts=(("poetry", "run"),),
    inner=_COMMANDS,
)
_HATCH = Grammar(
    name="hatch run",
    set="hatch",
    about="One of the Python commands in the project's environment.",
    starts=(("hatch", "run"),),
    inner=_COMMANDS,
)
_HATCH_TEST = Grammar(
    name="hatch test",
    set="hatch",
    about="pytest as hatch sets it up.",
    starts=(("hatch", "test"),),
    options=flags("-a/--all -q/--quiet -v/--verbose"),
    rest=NODE,
)
_TOX = Grammar(
    name="tox",
    set="tox",
    about="The project's environments, or some by name.",
    starts=(("tox",), ("tox", "run")),
    options=(*flags("-q/--quiet -v/--verbose", often=2), takes("-e", WORDS, " "), *flags("--skip-pkg-install")),
)  # fmt: skip


def python(scripts: tuple[str, ...]) -> tuple[Grammar, ...]:
    """The grammars of this page; hatch may also run the project's own scripts."""
    script = Grammar(
        name="hatch script",
        set="hatch",
        about="A script of the project by its name.",
        starts=(("hatch", "run"),),
        first=(one_of("test", *scripts),),
        proves="check",
    )
    return (*_COMMANDS, _UV, _POETRY, _HATCH, script, _HATCH_TEST, _TOX)
