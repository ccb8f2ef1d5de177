"""JavaScript: the package managers' `test`, and the runners and checkers themselves. Left out, for instance: `--`
behind a script, `--prefix`, `--script-shell`, `--userconfig`, `--if-present`, `--ignore-scripts`, `exec`, `npx` that may
download, `--config`, `--rulesdir`, `--plugin`, `--fix`, `--outputFile`, `--passWithNoTests`, `-u`, `--watch`."""

from steersman.contracts.commands import Argv
from steersman.judges.grammar import Grammar, Option, Value
from steersman.judges.grammars.values import GLOBS, PATH, TEST_GLOBS, TEXT, flags, number, one_of, takes

_SILENT = flags("-s/--silent")
_TITLE = takes("-t/--testNamePattern", TEXT)
_NODE: tuple[Option, ...] = (
    *flags("--test-only --test-force-exit --experimental-test-coverage"),
    takes("--test-name-pattern", TEXT, often=5),
    takes("--test-concurrency", number(1, 16), "="),
    takes("--test-timeout", number(1, 3_600_000), "="),
    takes("--test-reporter", one_of("spec", "tap", "dot"), "="),
)
_VITEST: tuple[Option, ...] = (
    *flags("--no-color --silent --coverage"),
    _TITLE,
    takes("--bail", number(1, 1000), "="),
    takes("--reporter", one_of("default", "verbose", "dot", "json", "tap", "tap-flat"), "="),
)
_JEST: tuple[Option, ...] = (
    *flags("--ci -i/--runInBand --verbose --silent --bail --no-color --coverage"),
    _TITLE,
    takes("-w/--maxWorkers", number(1, 16), "="),
)
_ESLINT: tuple[Option, ...] = (
    *flags("--no-color"),
    takes("--max-warnings", number(0, 100_000)),
    takes("-f/--format", one_of("stylish", "json", "json-with-metadata")),
    takes("--ext", Value(name="ENDINGS", meaning="file endings with commas between", pattern=r"\.\w+(?:,\.\w+)*")),
)  # fmt: skip
_TSCONFIG = Value(
    name="TSCONFIG", meaning="a tsconfig of the tree", pattern=r"(?:[\w-]+/){0,5}tsconfig[\w.-]*\.json", path=r"(.+)"
)  # fmt: skip


def _installed(*words: str) -> tuple[Argv, ...]:
    """As it is on the PATH, or through npx where that may not download."""
    return (words, ("npx", "--no-install", *words), ("npx", "--no", *words))


_RUNNERS = (
    Grammar(
        name="node --test",
        set="node",
        about="Node's own runner.",
        starts=(("node", "--test"),),
        options=_NODE,
        rest=TEST_GLOBS,
    ),
    Grammar(
        name="vitest run",
        set="vitest",
        about="vitest, once.",
        starts=_installed("vitest", "run"),
        options=_VITEST,
        rest=PATH,
    ),
    Grammar(
        name="jest", set="jest", about="jest, once.", starts=_installed("jest"), options=_JEST, rest=PATH
    ),
    Grammar(
        name="bun test",
        set="bun",
        about="bun's own runner.",
        starts=(("bun", "test"),),
        options=(
            takes("-t/--test-name-pattern", TEXT),
            takes("--timeout", number(1, 3_600_000)),
            takes("--bail", number(1, 1000), "="),
        ),
        rest=PATH,
    ),
    Grammar(
        name="tsc --noEmit",
        set="tsc",
        about="Types; nothing is written.",
        starts=_installed("tsc"),
        options=(*flags("--noEmit --strict"), takes("-p/--project", _TSCONFIG, " ")),
        needs=("--noEmit",),
        proves="check",
    ),
    Grammar(
        name="eslint",
        set="eslint",
        about="The project's own rules; nothing is fixed.",
        starts=_installed("eslint"),
        options=_ESLINT,
        rest=GLOBS,
        proves="check",
    ),
)


def javascript(scripts: tuple[str, ...]) -> tuple[Grammar, ...]:
    """The grammars of this page; `run` takes `test` and the project's own scripts."""
    npm = _manager("npm", "tests", scripts, words=("test", "t"), options=flags("-ws/--workspaces"))
    managers = [npm, *(_manager(name, name, scripts) for name in ("pnpm", "yarn"))]
    bun = Grammar(
        name="bun run",
        set="bun",
        about="A script of package.json by its name.",
        starts=(("bun", "run"),),
        first=(one_of("test", *scripts),),
    )
    return (*(g for pair in managers for g in pair), bun, *_RUNNERS)


def _manager(
    name: str,
    belongs: str,
    scripts: tuple[str, ...],
    *,
    words: tuple[str, ...] = ("test",),
    options: tuple[Option, ...] = (),
) -> tuple[Grammar, Grammar]:
    test = Grammar(
        name=f"{name} test",
        set=belongs,
        about="The script `test` of package.json.",
        starts=tuple((name, word) for word in words),
        options=(*_SILENT, *options),
    )
    run = Grammar(
        name=f"{name} run",
        set=belongs,
        about="A script of package.json by its name.",
        starts=((name, "run"),),
        options=(*_SILENT, *options),
        first=(one_of("test", *scripts),),
    )
    return test, run
