"""Which changed files decide what runs, and which speak to agents: known by their names alone.

A tool loads such a file without being asked: a plugin, a start-up hook, the script behind `test`. A change to one
opens a gate, however harmless it looks. The tables are data; a test goes through every word of them.
**Invariant:** nothing is read; letter case, forms of Unicode and a leading "./" make no difference.
"""

import re
import sys
import unicodedata
from functools import cache, lru_cache
from typing import Literal

import msgspec

from steersman.judges.grammars.python_modules import PYTHONS_OWN

LONGEST = 4096  # bytes in a path that a file system takes


class Kind(msgspec.Struct, frozen=True):
    """One line of a table: why it matters, the file names it is about (`*` is any part), folders at any depth, and
    names and folders that count only at the top."""

    why: str
    names: str
    folders: str = ""
    top: str = ""
    top_folders: str = ""


# fmt: off
TESTS = (
    Kind("pytest loads it",
         "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pytest_plugin*.py"),
    Kind("Python's tools read their settings in it",
         "pyproject.toml setup.cfg tox.ini tox.toml"),
    Kind("a runner executes it",
         "noxfile.py dodo.py fabfile.py manage.py runtests.py runtest.py testrunner* "
         "behave.ini robot.toml nose2.cfg unittest.cfg .noserc .stestr.conf .testr.conf asv.conf.json"),
    Kind("coverage or a linter reads it",
         ".coveragerc .coveragerc.toml ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pylintrc pylintrc.toml "
         ".pylintrc.toml pyrightconfig.json .isort.cfg .bandit bandit.y*ml .pydocstyle* .pycodestyle .style.yapf .yapfignore "
         "ty.toml pyrefly.toml .importlinter .yamllint* .markdownlint* .codespellrc .typos.toml _typos.toml typos.toml "
         ".vale.ini .sqlfluff* .hadolint.y*ml .shellcheckrc .semgrep.y*ml .semgrepignore .ignore .rgignore"),
    Kind("a linter of another language reads it",
         ".golangci.y*ml .golangci.toml .golangci.json staticcheck.conf rustfmt.toml .rustfmt.toml deny.toml bacon.toml "
         "phpstan*.neon* psalm.xml* phpcs.xml* .phpcs.xml* .php-cs-fixer* rector.php checkstyle*.xml pmd*.xml spotbugs*.xml "
         "detekt*.y*ml .ktlint* .scalafmt.conf .swiftlint.y*ml .swiftformat .credo.exs .dialyzer* .clang-tidy "
         ".clang-format .clang-format-ignore .cppcheck* cpplint.cfg .hlint.y*ml .stylua.toml stylua.toml selene.toml "
         ".rubocop_todo.yml .standard.yml .reek.yml .perlcriticrc .perltidyrc .tflint.hcl"),
    Kind("Python runs it at start-up",
         "sitecustomize.py usercustomize.py *.pth pyvenv.cfg *._pth"),
    Kind("a package manager takes scripts and settings from it",
         "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml "
         "bunfig.toml deno.json deno.jsonc import_map.json lerna.json nx.json turbo.json rush.json",
         folders=".yarn .pnpm .rush",
         top="project.json workspace.json"),
    Kind("a JavaScript runner executes it",
         "jest.* jest-* jest_* *.jest.* vitest.* vitest-* vite.config.* babel.config.* .babelrc* .mocharc* mocha.* "
         "karma.* playwright.* playwright-* cypress.config.* ava.config.* rollup.config.* webpack.* "
         "esbuild.config.* setuptests.* setup-tests.* setup_tests.* test-setup* testsetup* "
         "globalsetup.* global-setup.* globalteardown.* global-teardown.* test-env* testenv* test-runner* "
         "web-test-runner.config.* wdio.conf.* testem.* nightwatch.conf.* .jestrc* .swcrc .taprc .nycrc* .c8rc* "
         "jasmine.json jasmine.* tsup.config.* metro.config.js wallaby.* stryker.conf.* intern.json",
         folders="web_modules jspm_packages bower_components"),
    Kind("a JavaScript checker reads it",
         "tsconfig*.json jsconfig.json eslint.config.* .eslintrc* .eslintignore biome.json* .prettierrc* prettier.config.* "
         ".prettierignore .oxlintrc.json .stylelintrc* stylelint.config.* .stylelintignore .biomeignore tslint.json "
         ".jshintrc .jscsrc .xo-config* dprint.json .secretlintrc*"),
    Kind("make or a task runner executes it",
         "makefile gnumakefile bsdmakefile *.mk *.mak makefile.* justfile .justfile taskfile*.yml "
         "taskfile*.yaml rakefile *.rake gruntfile.* gulpfile.* cmakelists.txt *.cmake "
         "cmakepresets.json cmakeuserpresets.json ctestconfig.cmake ctesttestfile.cmake dartconfiguration.tcl meson.build "
         "meson_options.txt conanfile.* vcpkg.json sconstruct sconscript wscript waf configure configure.ac "
         "build.zig build.zig.zon earthfile magefile.go build.xml phing.xml .scalafix.conf xmake.lua premake5.lua tup.config "
         "tupfile poe_tasks.toml pixi.toml"),
    Kind("Bazel or Buck executes it",
         "build build.bazel build.*.bazel workspace workspace.bazel workspace.bzlmod module.bazel .bazelrc .bazelversion "
         "*.bazelrc *.bzl buck targets .buckconfig pants.toml pants.*.toml build.pants please.build .plzconfig"),
    Kind("go builds with it",
         "go.mod go.work go.work.sum go.env testmain_test.go modules.txt .gotestsum*"),
    Kind("cargo builds with it",
         "cargo.toml build.rs rust-toolchain rust-toolchain.toml clippy.toml .clippy.toml nextest.toml trybuild.toml",
         folders=".cargo"),
    Kind("gradle executes it",
         "*.gradle *.gradle.kts *.init.gradle init.gradle* gradlew gradlew.bat gradle.properties *.versions.toml",
         folders="gradle buildsrc build-logic"),
    Kind("maven executes it",
         "pom.xml mvnw mvnw.cmd extensions.xml junit-platform.properties testng.xml testng*.xml jvm.config surefire*.xml "
         "cucumber.properties kotest.properties allure.properties org.junit.* org.testng.*",
         folders=".mvn"),
    Kind("another language's test runner reads it",
         "phpunit*.xml* composer.json pest.php behat.y*ml codeception.y*ml codeception.dist.yml infection.json* phpspec.y*ml "
         "kahlan-config.php gemfile *.gemspec .rspec* spec_helper.rb rails_helper.rb test_helper.* minitest.rb "
         ".minitest.rb .simplecov .rubocop.yml cucumber.y*ml guardfile mix.exs .formatter.exs coveralls.json deps.edn "
         "project.clj tests.edn build.sbt build.sc build.mill plugins.sbt build.boot *.csproj *.fsproj *.vbproj *.sln *.slnx "
         "*.props *.targets *.proj directory.build.* directory.packages.props nuget.config global.json *.runsettings "
         "xunit.runner.json *.testsettings testconfig.json *.playlist package.swift package@swift-*.swift "
         "*.xctestplan *.xcscheme *.xcconfig *.pbxproj podfile cartfile fastfile stack.yaml stack*.yaml *.cabal "
         "package.yaml cabal.project* hie.yaml .ghci setup.hs setup.lhs dune-project dune dune-workspace *.opam "
         "rebar.config rebar.config.script common_test.spec *.coverspec build.pl dist.ini .proverc "
         "pubspec.yaml pubspec_overrides.yaml build.yaml dart_test.yaml analysis_options.yaml flutter_test_config.dart "
         "melos.yaml luarocks.lua .busted *.rockspec .luacheckrc shard.yml nimble.* *.nimble project.toml "
         "runtests.jl run_tests.lua gtest_main.* testmain.* unity_config.h catch_main.* doctest_main.*"),
    Kind("installed packages are what the tests run with",
         "*.pyc *.pyo *.egg-link entry_points.txt",
         folders="node_modules .venv venv site-packages __pypackages__ __pycache__ .eggs *.egg-info *.dist-info",
         top_folders="vendor"),
    Kind("a check's script",
         "*test*.sh *check*.sh *verify*.sh *.bats test.cmd test.bat run_tests* run-tests* runtests* run_checks* "
         "run-checks* check_all* check-all* test-all*",
         folders=".ci",
         top_folders="ci hack",
         top="*.sh *.bash *.zsh *.fish *.ksh *.ps1 *.psm1 *.bat *.cmd"),
    Kind("tests lean on it",
         "test-helper* testhelper* test-util* testutil* test-support* testsupport* testlib* test-lib* testkit*",
         folders="test-utils test_utils testutils testutil test-helpers test_helpers testhelpers test-support "
         "test_support testsupport test-lib testlib testkit"),
    Kind("it says what steersman runs",
         "steersman.toml .worktreeinclude",
         folders=".steersman"),
)

SUPPORT = (
    Kind("tests load it",
         "conftest.py pytest_plugin*.py spec_helper.rb rails_helper.rb test_helper.* minitest.rb .minitest.rb "
         "setuptests.* setup-tests.* setup_tests.* test-setup* testsetup* globalsetup.* global-setup.* globalteardown.* "
         "global-teardown.* test-env* testenv* flutter_test_config.dart gtest_main.* catch_main.* doctest_main.* testmain.*"),
    Kind("tests lean on it",
         "test-helper* testhelper* test-util* testutil* test-support* testsupport* testlib* test-lib* testkit* "
         "expected.* *_expected.* *-expected.* *.expected *.golden",
         folders="test-utils test_utils testutils testutil test-helpers test_helpers testhelpers test-support "
         "test_support testsupport test-lib testlib testkit"),
)

CODE = (
    Kind("installing the project executes it",
         "setup.py hatch_build.py _build_backend.py meson.options binding.gyp install.js "
         "postinstall.* preinstall.* extconf.rb",
         top="build.py"),
    Kind("it says which packages are installed",
         "requirements*.txt requirements*.in constraints*.txt uv.toml uv.lock poetry.lock poetry.toml "
         "pdm.lock pipfile pipfile.lock pylock*.toml environment.yml environment.yaml "
         "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock "
         "cargo.lock go.sum gemfile.lock composer.lock gradle.lockfile mix.lock"),
    Kind("a build or CI service executes it",
         ".gitlab-ci.yml jenkinsfile* azure-pipelines*.yml bitbucket-pipelines.yml .travis.yml "
         "appveyor.yml .appveyor.yml .drone.yml .woodpecker* buildspec.yml cloudbuild.yaml",
         folders=".github .gitlab .circleci .buildkite .tekton"),
    Kind("a container is built or started from it",
         "dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml "
         ".devcontainer.json vagrantfile procfile* fly.toml *.nix flake.lock",
         folders=".devcontainer"),
    Kind("git starts programs because of it",
         ".gitattributes .gitmodules .gitconfig lefthook.y*ml .lefthook.y*ml .pre-commit-config.yaml "
         ".pre-commit-hooks.yaml .overcommit.yml .lintstagedrc*",
         folders=".git .githooks githooks .husky .lefthook"),
    Kind("a shell or an editor executes it",
         ".envrc .env .env.* .bashrc .bash_profile .profile .zshrc .zshenv .inputrc .vimrc .exrc "
         ".nvimrc .gdbinit .lldbinit .pdbrc .pythonrc* .irbrc .rprofile .dir-locals.el "
         "*.code-workspace .mise.toml mise.toml .tool-versions .asdfrc .python-version .node-version "
         ".nvmrc .ruby-version .sdkmanrc",
         folders=".vscode .idea .zed .fleet .mise"),
    Kind("a native library or an archive is loaded as it is",
         "*.so *.so.* *.dylib *.dll *.pyd *.node *.jar *.war *.wasm *.exe *.whl *.egg"),
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
# Tests as well as not: a product has such names too. Below one of its folders they mean nothing; elsewhere what was
# read of the base tree may say that the product uses the file.
LOOSE = (
    Kind("perhaps a test",
         "test*.py",
         folders="testing spec specs features snapshots steps acceptance integration unit qa t"),
)
Decides = Literal["tests", "dependencies", "ci"]
# What a file of each line above decides about; a line that is not here counts where a check leads to it.
DECIDES: dict[str, Literal["tests", "dependencies", "ci", "linter"]] = {
    "pytest loads it": "tests",
    "Python's tools read their settings in it": "tests",
    "Python runs it at start-up": "tests",
    "a JavaScript runner executes it": "tests",
    "Bazel or Buck executes it": "linter",
    "cargo builds with it": "tests",
    "gradle executes it": "dependencies",
    "maven executes it": "dependencies",
    "another language's test runner reads it": "tests",
    "it says what steersman runs": "tests",
    "coverage or a linter reads it": "linter",
    "a linter of another language reads it": "linter",
    "a JavaScript checker reads it": "linter",
    "a package manager takes scripts and settings from it": "dependencies",
    "installed packages are what the tests run with": "dependencies",
    "installing the project executes it": "dependencies",
    "it says which packages are installed": "dependencies",
    "a native library or an archive is loaded as it is": "dependencies",
    "go builds with it": "dependencies",
    "a build or CI service executes it": "ci",
    "a container is built or started from it": "ci",
    "git starts programs because of it": "ci",
    "a shell or an editor executes it": "ci",
    "its name is longer than that of any file": "tests",
}
_PRODUCT = "src lib app apps pkg packages internal cmd source sources crates include main"
PRODUCT = frozenset(_PRODUCT.split())

# `python -m …` looks into the folder it is started in before it looks anywhere else: these would be hidden.
_RUNNERS = (
    "pytest _pytest py pluggy iniconfig packaging coverage xdist execnet hypothesis _hypothesis_pytestplugin "
    "_hypothesis_ftz_detector _hypothesis_globals nose nose2 mypy mypyc ruff tox nox pip setuptools pkg_resources "
    "pygments exceptiongroup tomli colorama attr attrs typing_extensions anyio sniffio trio twisted mock unittest "
    "unittest2 testtools stestr subunit behave robot virtualenv distlib filelock platformdirs cachetools pyproject_api "
    "chardet wheel hatch hatchling poetry pdm uv invoke doit fabric asv freezegun responses vcr factory faker "
    "sortedcontainers _distutils_hack distutils-precedence _virtualenv"
)
# fmt: on
RUNNERS = frozenset(_RUNNERS.split())
MODULES = RUNNERS | {name.casefold() for name in PYTHONS_OWN | sys.stdlib_module_names}
# Packages of the standard library that a runner lives on: also a file below one stands in for another.
_PACKAGES = "json importlib logging collections encodings asyncio re concurrent ctypes xml multiprocessing urllib tomllib"
_DEEP = RUNNERS | frozenset(_PACKAGES.split())
_LOADED = (".py", ".pyi", ".so", ".pyd")
_FIRST_FOLDERS = ("src", "lib", "test", "tests")
_SHADOWS = "it stands in for a module that the test run imports"
_SAMPLES = (".example", ".sample", ".template", ".dist")  # shown to people, loaded by nothing
_TOO_LONG = "its name is longer than that of any file"


def runs_as_code(path: str) -> str | None:
    """Why a tool will execute this file, or obey it, without being asked; None for an ordinary one."""
    parts = _parts(path)
    return (None if _is_sample(parts) else _why(parts, CODE)) or _why(parts, TESTS) or _shadows(parts)


def decides_by_name(path: str, words: frozenset[str]) -> tuple[Decides, str] | None:
    """Whether a change to this file is shown whatever is in it: what it decides about, and why in one sentence.

    Settings of a linter decide where a check runs it: `words` are those of the checks.
    """
    parts = _parts(path)
    why = _why(parts, CODE) or _why(parts, TESTS)
    about = DECIDES.get(why or "")
    if why is None or about is None or _is_sample(parts):
        return None
    if about == "linter":
        name = parts[-1].replace(".", "")
        used = any(len(word) > 2 and word.partition("-")[0] in name for word in words)
        return ("tests", why) if used or ("tsc" in words and "tsconfig" in name) else None
    return about, why


def _is_sample(parts: list[str]) -> bool:
    return bool(parts) and parts[-1].startswith(".env.") and parts[-1].endswith(_SAMPLES)


def instructs_agents(path: str) -> str | None:
    """Why an agent would obey what this file says; None where none would."""
    return _why(_parts(path), AGENTS)


def is_test_file(path: str, *, loose: bool = True) -> bool:
    """Whether this looks like a test, or like something that a test compares with; `loose` names may be a product's."""
    folder, _, name = path.rpartition("/")
    kinds = (*TEST_FILES, *LOOSE) if loose else TEST_FILES
    return len(path) > LONGEST or _holds_tests(folder, loose) or _why(_parts(name), kinds) is not None


@lru_cache(maxsize=10_000)
def _holds_tests(folder: str, loose: bool) -> bool:
    parts = _parts(folder)
    strict = not loose or (parts[:1] and parts[0] in PRODUCT)
    kinds = TEST_FILES if strict else (*TEST_FILES, *LOOSE)
    return any(map(_globs(" ".join(kind.folders for kind in kinds)).fullmatch, parts))


def is_test_support(path: str) -> bool:
    """Whether tests alone load this, or take their settings from it, by its name."""
    return _why(_parts(path), SUPPORT) is not None


def is_named_as_test(path: str) -> bool:
    """Whether its own name says that it is a test and can hardly mean anything else."""
    return _why(_parts(path)[-1:], TEST_FILES) is not None


def is_product(path: str) -> bool:
    """Whether this lies in a folder that holds a product, as a rule."""
    return "/" in path and path.casefold().partition("/")[0] in PRODUCT


def _parts(path: str) -> list[str]:
    """As a file system that forgives case and forms of Unicode would see it; nothing of what is too long."""
    if len(path) > LONGEST:
        return []
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", path).casefold())
    return [p for p in folded.split("/") if p not in ("", ".")]


def _why(parts: list[str], kinds: tuple[Kind, ...]) -> str | None:
    if not parts:
        return _TOO_LONG
    for kind in kinds:
        name, folder = _globs(kind.names), _globs(kind.folders)
        if name.fullmatch(parts[-1]) or any(map(folder.fullmatch, parts)):
            return kind.why
        if len(parts) == 1 and _globs(kind.top).fullmatch(parts[0]):
            return kind.why
        if len(parts) > 1 and _globs(kind.top_folders).fullmatch(parts[0]):
            return kind.why
    return None


@cache
def _globs(words: str) -> re.Pattern[str]:
    """No part of a path is empty, so that no words match nothing."""
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words.split()), re.DOTALL)


def _shadows(parts: list[str]) -> str | None:
    """A module, a whole package, or a file below the package of a runner; any other folder hides nothing."""
    below = parts[1:] if parts[:1] and parts[0] in _FIRST_FOLDERS else parts
    match below:
        case [name] if name.endswith(_LOADED) and hides(name.partition(".")[0]):
            return _SHADOWS
        case [package, "__init__.py"] if hides(package):
            return _SHADOWS
        case [package, *_, name] if name.endswith(_LOADED) and package in _DEEP:
            return _SHADOWS
        case _:
            return None


def hides(module: str) -> bool:
    """Whether a module of this name, found first, would be imported in place of one that a test run needs."""
    return module in MODULES or module.startswith("pytest_")
