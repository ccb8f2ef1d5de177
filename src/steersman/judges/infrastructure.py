"""Which changed files decide what runs, and which speak to agents: known by their names alone.

A tool loads such a file without being asked: settings of a runner, a start-up hook, a list of packages. A change to one
opens a gate, however harmless it looks. The tables are data; a test goes through every word of them.
**Invariant:** nothing is read; letter case, forms of Unicode and a leading "./" make no difference.
"""

import re
import unicodedata
from functools import cache, lru_cache
from typing import Literal

import msgspec

LONGEST = 4096  # bytes in a path that a file system takes
Decides = Literal["tests", "dependencies", "ci"]


class Kind(msgspec.Struct, frozen=True):
    """One line of a table: why it matters, the file names it is about (`*` is any part), folders at any depth, folders
    that count only at the top, and what it decides about; a linter's settings decide where a check runs the linter, a
    recipe where a check uses it."""

    why: str
    names: str
    folders: str = ""
    top_folders: str = ""
    about: Decides | Literal["linter", "recipe"] = "tests"


# fmt: off
TESTS = (
    Kind("pytest loads it",
         "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pytest_plugin*.py"),
    Kind("Python's tools read their settings in it",
         "pyproject.toml setup.cfg tox.ini tox.toml"),
    Kind("a linter or a type checker reads it",
         ".coveragerc ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pylintrc pyrightconfig.json .isort.cfg "
         "tsconfig*.json jsconfig.json eslint.config.* .eslintrc* .eslintignore biome.json* .prettierrc* "
         "prettier.config.* .prettierignore .stylelintrc* .golangci.y*ml .golangci.toml staticcheck.conf rustfmt.toml "
         ".rustfmt.toml clippy.toml .clippy.toml deny.toml phpstan*.neon* psalm.xml* .rubocop.yml .shellcheckrc "
         ".yamllint* .markdownlint*",
         about="linter"),
    Kind("Python runs it at start-up",
         "sitecustomize.py usercustomize.py *.pth pyvenv.cfg"),
    Kind("a package manager takes scripts and settings from it",
         "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml bunfig.toml deno.json deno.jsonc "
         "lerna.json nx.json turbo.json",
         folders=".yarn", about="dependencies"),
    Kind("a JavaScript runner executes it",
         "jest.* jest-* jest_* *.jest.* vitest.* vitest-* vite.config.* babel.config.* .babelrc* .mocharc* mocha.* "
         "karma.* playwright.* playwright-* cypress.config.* ava.config.* .swcrc .taprc .nycrc* .c8rc* jasmine.*"),
    Kind("make or a task runner executes it",
         "makefile gnumakefile *.mk justfile .justfile taskfile*.yml taskfile*.yaml rakefile noxfile.py cmakelists.txt",
         about="recipe"),
    Kind("go builds with it",
         "go.mod go.work go.work.sum go.env modules.txt", about="dependencies"),
    Kind("cargo builds with it",
         "cargo.toml build.rs rust-toolchain rust-toolchain.toml nextest.toml",
         folders=".cargo"),
    Kind("gradle or maven executes it",
         "*.gradle *.gradle.kts gradlew gradlew.bat gradle.properties *.versions.toml pom.xml mvnw mvnw.cmd "
         "extensions.xml junit-platform.properties testng*.xml",
         folders="gradle buildsrc .mvn", about="dependencies"),
    Kind("another language's test runner reads it",
         "phpunit*.xml* composer.json pest.php gemfile *.gemspec .rspec* mix.exs build.sbt *.csproj *.fsproj *.sln *.slnx "
         "*.props *.targets directory.build.* nuget.config global.json *.runsettings package.swift "
         "pubspec.yaml dart_test.yaml stack.yaml *.cabal"),
    Kind("installed packages are what the tests run with",
         "*.pyc *.pyo *.egg-link entry_points.txt",
         folders="node_modules .venv venv site-packages __pycache__ .eggs *.egg-info *.dist-info",
         top_folders="vendor", about="dependencies"),
    Kind("it says what steersman runs",
         "steersman.toml .worktreeinclude",
         folders=".steersman"),
)

SUPPORT = (
    Kind("tests load it",
         "conftest.py pytest_plugin*.py spec_helper.rb rails_helper.rb test_helper.* minitest.rb .minitest.rb "
         "setuptests.* setup-tests.* setup_tests.* test-setup* testsetup* globalsetup.* global-setup.* globalteardown.* "
         "global-teardown.* test-env* testenv* testmain.* "
         "test-helper* testhelper* test-util* testutil* test-support* testsupport* testlib* test-lib* testkit* "
         "expected.* *_expected.* *-expected.* *.expected *.golden",
         folders="test-utils test_utils testutils testutil test-helpers test_helpers testhelpers test-support "
         "test_support testsupport test-lib testlib testkit"),
)

CODE = (
    Kind("installing the project executes it",
         "setup.py hatch_build.py binding.gyp install.js postinstall.* preinstall.* extconf.rb", about="dependencies"),
    Kind("it says which packages are installed",
         "requirements*.txt requirements*.in constraints*.txt uv.toml uv.lock poetry.lock poetry.toml "
         "pdm.lock pipfile pipfile.lock pylock*.toml environment.yml environment.yaml "
         "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock "
         "cargo.lock go.sum gemfile.lock composer.lock gradle.lockfile mix.lock", about="dependencies"),
    Kind("a build or CI service executes it",
         ".gitlab-ci.yml jenkinsfile* azure-pipelines*.yml bitbucket-pipelines.yml .travis.yml "
         "appveyor.yml .appveyor.yml .drone.yml .woodpecker* buildspec.yml cloudbuild.yaml",
         folders=".github .gitlab .circleci .buildkite", about="ci"),
    Kind("a container is built or started from it",
         "dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml "
         ".devcontainer.json vagrantfile procfile* fly.toml *.nix flake.lock",
         folders=".devcontainer", about="ci"),
    Kind("git starts programs because of it",
         ".gitattributes .gitmodules .gitconfig lefthook.y*ml .lefthook.y*ml .pre-commit-config.yaml "
         ".pre-commit-hooks.yaml .lintstagedrc*",
         folders=".git .githooks githooks .husky .lefthook", about="ci"),
    Kind("a shell or an editor executes it",
         ".envrc .env .env.* .bashrc .bash_profile .profile .zshrc .zshenv .vimrc .exrc .gdbinit .pdbrc "
         "*.code-workspace .mise.toml mise.toml .tool-versions .python-version .node-version .nvmrc .ruby-version",
         folders=".vscode .idea .zed .mise", about="ci"),
    Kind("a native library or an archive is loaded as it is",
         "*.so *.so.* *.dylib *.dll *.pyd *.node *.jar *.war *.wasm *.exe *.whl *.egg", about="dependencies"),
)

AGENTS = (
    Kind("an agent takes its instructions from it",
         "agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md codex.md "
         "copilot-instructions.md *.instructions.md .cursorrules .windsurfrules .clinerules .roorules* "
         ".goosehints conventions.md skill.md llms.txt",
         folders=".cursor .windsurf .clinerules .roo .goose .continue .junie"),
    Kind("an agent takes its settings from it",
         ".claude.json opencode.json* .mcp.json mcp.json .aider* .crush.json crush.json",
         folders=".claude .codex .gemini .opencode .agents .agent .amp .kiro .qwen .copilot .openhands "
         ".augment .trae"),
)

TEST_FILES = (
    Kind("a test",
         "test_*.* test-*.* test.py test.js test.mjs test.cjs test.ts test.c test.cc test.cpp test.rb test.php test.pl test.lua "
         "test.rs test.hs tests.py tests.js tests.ts tests.c tests.cpp tests.rs tests.rb *_test.* *_tests.* *-test.* *_spec.* "
         "*-spec.* *.test.* *.spec.* *.tests.* *.steps.* *_steps.* *test.java *tests.java *testcase.java *test.kt *tests.kt "
         "*spec.kt *test.groovy *spec.groovy *test.cs *tests.cs *test.php *tests.swift *test.swift *spec.scala *test.scala "
         "*spec.hs *test.hs *_suite.erl *.t *.snap *.feature *.cy.* *.e2e.* *.approved.* *.verified.*",
         folders="test tests __tests__ __snapshots__ __mocks__ __fixtures__ testdata test-data test_data fixtures cassettes "
         "e2e cypress golden goldens testcases test_cases test-cases unit_tests integration_tests unittests uitests "
         "step_definitions *_tests *-tests *.tests"),
)
# Tests as well as not: a product has such names too. Below one of its folders they mean nothing.
LOOSE = (
    Kind("perhaps a test",
         "test*.py",
         folders="testing spec specs features snapshots steps acceptance integration unit qa t"),
)
# fmt: on
_PRODUCT = "src lib app apps pkg packages internal cmd source sources crates include main"
PRODUCT = frozenset(_PRODUCT.split())
_SAMPLES = (".example", ".sample", ".template", ".dist")  # shown to people, loaded by nothing
_TOO_LONG = Kind("its name is longer than that of any file", "")


def runs_as_code(path: str) -> str | None:
    """Why a tool will execute this file, or obey it, without being asked; None for an ordinary one."""
    kind = _decisive_kind(path)
    return kind.why if kind else None


def decides_by_name(path: str, words: frozenset[str]) -> tuple[Decides, str] | None:
    """Whether a change to this file is shown whatever is in it: what it decides about, and why in one sentence.

    Settings of a linter decide where a check runs it: `words` are those of the checks.
    """
    kind = _decisive_kind(path)
    if kind is None or kind.about == "recipe":
        return None
    if kind.about == "linter":
        name = _parts(path)[-1].replace(".", "")
        used = any(len(word) > 2 and word.partition("-")[0] in name for word in words)
        return ("tests", kind.why) if used or ("tsc" in words and "tsconfig" in name) else None
    return kind.about, kind.why


def _decisive_kind(path: str) -> Kind | None:
    parts = _parts(path)
    is_sample = bool(parts) and parts[-1].startswith(".env.") and parts[-1].endswith(_SAMPLES)
    return None if is_sample else _kind(parts, (*CODE, *TESTS))


def instructs_agents(path: str) -> str | None:
    """Why an agent would obey what this file says; None where none would."""
    kind = _kind(_parts(path), AGENTS)
    return kind.why if kind else None


def is_test_file(path: str, *, loose: bool = True) -> bool:
    """Whether this looks like a test, or like something that a test compares with; `loose` names may be a product's."""
    folder, _, name = path.rpartition("/")
    kinds = (*TEST_FILES, *LOOSE) if loose else TEST_FILES
    return len(path) > LONGEST or _holds_tests(folder, loose) or _kind(_parts(name), kinds) is not None


@lru_cache(maxsize=10_000)
def _holds_tests(folder: str, loose: bool) -> bool:
    parts = _parts(folder)
    strict = not loose or (parts[:1] and parts[0] in PRODUCT)
    kinds = TEST_FILES if strict else (*TEST_FILES, *LOOSE)
    return any(map(_globs(" ".join(kind.folders for kind in kinds)).fullmatch, parts))


def is_test_support(path: str) -> bool:
    """Whether tests alone load this, or take their settings from it, by its name."""
    return _kind(_parts(path), SUPPORT) is not None


def is_named_as_test(path: str) -> bool:
    """Whether its own name says that it is a test and can hardly mean anything else."""
    return _kind(_parts(path)[-1:], TEST_FILES) is not None


def _parts(path: str) -> list[str]:
    """As a file system that forgives case and forms of Unicode would see it; nothing of what is too long."""
    if len(path) > LONGEST:
        return []
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return [p for p in folded.split("/") if p not in ("", ".")]


def _kind(parts: list[str], kinds: tuple[Kind, ...]) -> Kind | None:
    if not parts:
        return _TOO_LONG
    for kind in kinds:
        folder, top = _globs(kind.folders), _globs(kind.top_folders)
        if _globs(kind.names).fullmatch(parts[-1]) or any(map(folder.fullmatch, parts)):
            return kind
        if len(parts) > 1 and top.fullmatch(parts[0]):
            return kind
    return None


@cache
def _globs(words: str) -> re.Pattern[str]:
    """No part of a path is empty, so that no words match nothing."""
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words.split()), re.DOTALL)
