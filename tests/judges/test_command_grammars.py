"""Which commands may run: the grammars that ship, a project's own, and what the matcher promises."""

import tomllib
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.adapters.checks.tree_paths import load_command_grammars
from steersman.contracts.grammars import CommandGrammar, Commands, GrammarSetName, OptionValueKind
from steersman.judges.commands.tester_commands import (
    DEFAULT_COMMANDS,
    ApprovedCommand,
    BlockedCommand,
    CommandRules,
)
from steersman.judges.commands.value_kinds import find_word_kind, split_command_line

SHIPPED = load_command_grammars()
GRAMMARS = {name: g for given in SHIPPED.values() for name, g in given.grammars.items()}
EVERYTHING = Commands(sets=tuple(SHIPPED), scripts=("lint", "test:unit"), targets=("verify",))
ALL = CommandRules((), EVERYTHING, SHIPPED)
LINES = tomllib.loads(Path(__file__).with_name("command_lines.toml").read_text(encoding="utf-8"))


def rules(*checks, **commands):
    return CommandRules(checks, Commands(**commands), SHIPPED)


def approved(rules, line):
    return isinstance(rules.approve(line), ApprovedCommand)


def rows(name):
    return [f"{start} {rest}".strip() for start, rests in LINES[name].items() for rest in rests]


# ── the grammars that ship ──────────────────────────────────────────────────────────────────────────────────────────


def test_ordinary_commands_are_accepted():
    """What a tester ordinarily asks for may run, when its set is on."""
    lines = rows("accepted")
    assert [line for line in lines if not approved(ALL, line)] == []
    assert len(lines) > 150


@pytest.mark.untraced
def test_everything_else_is_refused():
    """Options that load, write, reach out, wait or run nothing, and unknown programs: refused as a line and as words."""
    lines = rows("refused")
    for line in lines:
        words = split_command_line(line)
        assert not approved(ALL, list(words) if isinstance(words, tuple) else line.split()), line
        assert not approved(ALL, line), line
    assert len(lines) > 700


def test_the_data_has_one_form():
    """Sets have one name everywhere, a grammar is known by its name, and the schema of a project's own takes each."""
    assert set(SHIPPED) == set(get_args(GrammarSetName))
    assert len(GRAMMARS) == sum(len(given.grammars) for given in SHIPPED.values())
    for grammar in GRAMMARS.values():
        assert msgspec.convert(msgspec.to_builtins(grammar), CommandGrammar) == grammar
        assert {*grammar.runs, grammar.like} - {None} <= set(GRAMMARS)


SECRETS = """
.env .env.local prod.env .netrc .npmrc .git-credentials .pgpass .vault-token credentials.json config/credentials.yml.enc
service-account.json id_rsa keys/id_ed25519 server.pem SERVER.PEM a/b.key .aws/credentials .ssh/config .kube/config
terraform.tfstate secrets.yml k8s/secrets/db.yaml passwords.txt token.txt .dev.vars vault.yml google-services.json
"""
READERS = ("cat", "head -n 5", "tail", "sort", "grep x", "grep -r x", "rg x", "sed -n 1p", "awk {print}")
LOADERS = ("pytest", "mypy", "ruff check", "eslint", "node --test", "jest", "python -m unittest")


def test_a_file_that_keeps_secrets_is_given_to_no_program():
    """Neither to one that shows it nor to one that would print the line that it does not understand."""
    for name in SECRETS.split():
        for words in READERS:
            assert approved(ALL, [*words.split(), "notes.txt"]), words
            for path in (name, f"./{name}", f"HEAD:{name}"):
                assert not approved(ALL, [*words.split(), path]), (words, path)
    for words in LOADERS:
        for path in (".env", ".ssh/test", "keys/test.pem", "tests/.env*"):
            assert not approved(ALL, [*words.split(), path]), (words, path)


HOSTILE = [
    "", "-", "--", "-x", "--exec", "@x", "+x", "/etc/passwd", "/", "..", "../x", "a/../x", "a/..", "./..", "~", "~/x", "a\nb", "\n",
    "a\0", "$(x)", "`x`", "a;b\n", ".git/config", ".git", "a/.git/x", "\\x", "C:\\x", "file:///x", "http://x/y",
]  # fmt: skip


def test_no_kind_takes_a_hostile_word():
    """Options, ways out of the tree, git's own folder and lines are values of nothing; text that is searched for is free."""
    free = {"text", "sed", "awk"}
    for kind in get_args(OptionValueKind):
        words = [w for w in HOSTILE if w.startswith("-") or "\n" in w or not w] if kind in free else HOSTILE
        taken = [w for w in words if find_word_kind(kind, EVERYTHING).matches(w)]
        assert taken == ([".git"] if kind == "glob" else []), (
            kind
        )  # names are compared with it, nothing is opened


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pytest -p evil", "`evil` is not a value for `-p`: one of no:cacheprovider, "),
        ("pytest --rootdir=..", "`--rootdir=..` is not an option of `pytest` that may be used here; it has: -q/--quiet "),
        ("pytest ../x", "`../x` is not a folder or a file of tests inside the tree"),
        ("pytest --cov tests", "`tests` would be taken for the value of `--cov`: write `--cov=VALUE`"),
        ("npm test x", "`x` has no place after `npm test`: it takes no more operands"),
        ("python -m unittest discover a b", "more than 1 operands"),
        ("make", "after `make` has to come one of test"),
        ("gradle", "after `gradle` has to come a task: clean, test, check"),
        ("hatch run lint", "`lint` has no grammar"),
        ("uv run", "after `uv run` has to come a command of: pytest, "),
        ("uv run pytest -c x", "`-c` is not an option of `pytest`"),
        ("yarn test -x", "it has: -s/--silent"),
        ("bun run test -x", "it has: none"),
        ("ruff clean", "after `ruff` has to come `check` or `format`, not `clean`"),
        ("ruff format", "`ruff format` needs --check or --diff"),
        ("cargo run", "after `cargo` has to come `test`, not `run`"),
        ("python -m pip", "after `python -m` has to come `pytest` or `unittest` or `ruff` or `mypy`, not `pip`"),
        ("python", "after `python` has to come `-m`;"),
        ("npx jest", "after `npx` has to come `--no-install` or `--no`, not `jest`"),
        ("git log", "after `git` has to come `status` or `diff`, not `log`"),
        ("sh -c pytest", "`sh` has no grammar"),
        ("frob", "add it under [checks] in steersman.toml"),
        (["pytest", 3], "not a command"),
        (["pytest", "a\0b"], "word 2 has a control"),
        (["pytest", "ｔests"], "word 2 is written with look-alike"),
        ("uv run pytest", "it is in the set 'uv', which is off; add 'uv' to sets under [commands], or add it under"),
    ],
)  # fmt: skip
def test_the_reason_names_the_word_and_what_would_be_accepted(line, words):
    """A program that is known is not called unknown, also where its set is off; a reason is short."""
    verdict = rules().approve(line)
    assert isinstance(verdict, BlockedCommand)
    assert words in verdict.reason


def test_a_reason_is_short():
    """However long the proposal is."""
    assert len(rules().approve(["echo", "x" * 2000]).reason) < 300


# ── what a project says ─────────────────────────────────────────────────────────────────────────────────────────────


def test_only_tests_are_on_without_being_asked_for():
    """Reading and launchers are off; a check turns its launcher on, but never reading."""
    assert CommandRules((), DEFAULT_COMMANDS, SHIPPED).sets_on() == {"own", "tests"}
    checked = rules(("uv", "run", "pytest", "-q"), ("cat", "README.md"), ("./own", "thing"))
    assert checked.sets_on() == {"own", "tests", "uv"}
    assert approved(checked, "uv run pytest tests/test_a.py")
    assert not approved(checked, "uv run --with evil pytest")
    assert not approved(checked, "cat other.md")


def test_a_check_may_be_repeated_word_for_word():
    """A project's own check is approved as it is, as a list or a line, whatever words it holds; nothing like it is."""
    checked = rules(("./own", "*", ""), ("make", "all"))
    assert checked.approve(["./own", "*", ""]).fits == "a check of the project"
    assert checked.approve("make all").set == "checks"
    for other in (["./own", "*"], ["./own", "x", ""], "make all -k"):
        assert not approved(checked, other)


# What `init` proposes for the usual ecosystems, and what a tester adds to it.
PROPOSED = {
    ".venv/bin/python -m pytest -q": ".venv/bin/python -m pytest -q tests/test_a.py -k adds",
    "python3 -m pytest -q": "python3 -m pytest -x tests",
    "python3 -m unittest": "python3 -m unittest tests.test_a",
    "uv run pytest -q": "uv run pytest -q tests/test_a.py",
    "node_modules/.bin/jest": "node_modules/.bin/jest tests/a.test.js", "npm test": "npm run test",
    "pnpm test": "pnpm run test", "yarn test": "yarn run test", "bun test": "bun test src/a.test.ts",
    "go test ./...": "go test -run TestAdd ./pkg", "cargo test": "cargo test adds -- --nocapture",
    "mvn test": "mvn -B test -Dtest=CartTest", "./gradlew test": "./gradlew test --tests CartTest",
    "tox": "tox -e py311", "make test": "make -s test",
}  # fmt: skip


def test_what_init_proposes_may_be_narrowed_by_a_tester():
    """Each check that `init` writes is accepted, and so is a part of it; a program by the path that the check has."""
    for check, narrowed in PROPOSED.items():
        checked = rules(tuple(check.split()))
        assert approved(checked, check), check
        assert approved(checked, narrowed), narrowed
    assert not approved(rules(), ".venv/bin/python -m pytest -q")
    assert not approved(rules((".venv/bin/python", "-m", "pytest")), ".venv/bin/python -c x")
    assert not approved(rules((".venv/bin/python", "-m", "pytest")), "other/python -m pytest")


def test_a_project_adds_its_own():
    """Its words, its flags, values by kind or by list, operands; it may build on a grammar that ships, or replace one."""
    phpunit = CommandGrammar(
        start=("vendor/bin/phpunit",), flags=("--stop-on-failure",),
        values={"--filter": "name", "--order-by": ("random", "default")}, operands="path", least=1, most=2,
    )  # fmt: skip
    php = rules(grammars={"phpunit": phpunit})
    good = php.approve("vendor/bin/phpunit --stop-on-failure --filter=Cart --order-by random tests")
    assert (good.fits, good.set, good.proves, good.reach.paths) == ("phpunit", "own", "tests", ("tests",))
    for bad in ("", " tests --order-by=other", " a b c", " tests --filter=../x", " tests --x", " /x"):
        assert not approved(php, f"vendor/bin/phpunit{bad}"), bad
    pdm = CommandGrammar(start=("pdm", "run"), runs=("pytest",))
    own = rules(grammars={"pdm run": pdm, "mypy": CommandGrammar(start=("mypy",), proves="check")})
    assert own.approve("pdm run pytest -q tests").proves == "tests"
    assert not approved(own, "pdm run mypy")
    assert own.approve("mypy").set == "own"
    assert not approved(own, "mypy src")


def test_what_it_proves_is_said():
    """Looking proves nothing, a linter's exit is a check, a runner's needs counted tests; a launcher adds nothing."""
    lines = ("git status", "ruff check", "uv run mypy", "uv run pytest")
    assert [ALL.approve(line).proves for line in lines] == ["nothing", "check", "check", "tests"]


def test_what_it_touches_is_said():
    """Paths, modules that have to be there, globs and searched folders, to be looked at on the disk."""
    reach = lambda line: ALL.approve(line).reach  # noqa: E731  a short name for a long call
    assert reach("pytest tests/test_a.py::test_b -q").paths == ("tests/test_a.py",)
    assert reach("uv run pytest --cov=src tests").paths == ("src", "tests")
    assert reach("python -m unittest tests.test_a tests/test_b.py").there == ("tests", "tests/test_b.py")
    assert reach("node --test 'tests/**/*.test.js' a/test.js").globs == ("tests/**/*.test.js",)
    assert reach("grep -rn --include='*.py' word src lib").searched == ("src", "lib")
    assert reach("rg word").searched == (".",)
    assert reach("grep word README.md").searched == ()


# ── what the matcher promises ───────────────────────────────────────────────────────────────────────────────────────

WORDS = st.sampled_from(
    ["pytest", "python", "-m", "-q", "-p", "--co", "tests", "..", "-k", "x", "uv", "run", "--", "npm", "test", "make", "-f", "-n", "3"]
)  # fmt: skip


@given(st.lists(WORDS | st.text(max_size=4), max_size=8))
def test_approved_is_exactly_what_was_proposed(words):
    """Total, and never changes a word: the approved argv is the proposed one."""
    verdict = ALL.approve(words)
    if isinstance(verdict, ApprovedCommand):
        assert verdict.argv == tuple(words)
        assert all(path in "\n".join(words) for path in verdict.reach.paths)


EXAMPLES = {"package": "app", "folder": "src", "go_package": "./...", "tsconfig": "tsconfig.json", "module": "tests.test_a", "revision": "HEAD",
            "test_files": "a.test.js", "test_glob": "test_*.py", "duration": "9s", "script": "lint", "target": "verify",
            "phase": "test", "task": "check", "sed": "1p", "awk": "{print}"}  # fmt: skip


@st.composite
def sentences(draw):
    """A command as a grammar has it: its operands, then options in all the ways to write them."""
    grammar = GRAMMARS[draw(st.sampled_from(sorted(name for name, g in GRAMMARS.items() if not g.runs)))]
    operands = [
        *grammar.first,
        *[grammar.operands] * max(grammar.least, draw(st.integers(0, grammar.most > 0))),
    ]
    words = [EXAMPLES.get(kind, "1") for kind in operands if kind]
    words += [draw(st.sampled_from(f.split("/"))) for f in grammar.flags if draw(st.booleans())] + [
        *grammar.needs
    ]
    for names, kind in grammar.values.items():
        value = EXAMPLES.get(kind, "1") if isinstance(kind, str) else draw(st.sampled_from(kind))
        name = draw(st.sampled_from(names.split("/")))
        together = f"{name}{'' if len(name) == 2 or name.endswith('=') else '='}{value}"
        words += [together] if name.endswith("=") or draw(st.booleans()) else [name, value]
    return (*draw(st.sampled_from((grammar.start, *grammar.also))), *words)


@given(sentences(), st.data())
def test_a_sentence_is_accepted_and_a_foreign_word_is_not(argv, data):
    """Whatever is built from a grammar is accepted; with an option that it does not have, at any place, it is not."""
    assert approved(ALL, argv), argv
    place = data.draw(st.integers(1, len(argv)))
    word = data.draw(st.sampled_from(["--config=x", "--zz", "-Z", "--qui", "-", "-\N{EM DASH}x"]))
    assert not approved(ALL, (*argv[:place], word, *argv[place:]))
