"""Which changed files decide what runs, and which speak to agents: known by their names alone.

A tool loads such a file without being asked: a plugin, a start-up hook, the script behind `test`. A change to one
opens a gate, however harmless it looks. The tables are data; a test goes through every word of them.
**Invariant:** nothing is read; letter case, forms of Unicode and a leading "./" make no difference.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import msgspec

from steersman.contracts.commands import Argv

LONGEST = 4096  # bytes in a path that a file system takes


class Kind(msgspec.Struct, frozen=True):
    """One line of a table: why it matters, the file names it is about (`*` is any part), and folders at any depth."""

    why: str
    names: str
    folders: str = ""


# fmt: off
TESTS = (
    Kind("pytest loads it",
         "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml"),
    Kind("Python's tools read their settings in it",
         "pyproject.toml setup.cfg tox.ini tox.toml"),
    Kind("a runner executes it",
         "noxfile.py dodo.py fabfile.py manage.py runtests.py"),
    Kind("coverage or a linter reads it",
         ".coveragerc ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .pylintrc pyrightconfig.json"),
    Kind("Python runs it at start-up",
         "sitecustomize.py usercustomize.py *.pth pyvenv.cfg *._pth"),
    Kind("a package manager takes scripts and settings from it",
         "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml "
         "bunfig.toml deno.json deno.jsonc lerna.json nx.json turbo.json project.json",
         folders=".yarn"),
    Kind("a JavaScript runner executes it",
         "jest.config.* jest.setup.* jest-*.js vitest.config.* vitest.workspace.* vitest.setup.* "
         "vite.config.* babel.config.* .babelrc* .mocharc* karma.conf.* playwright.config.* "
         "cypress.config.* ava.config.* rollup.config.* webpack.config.* setuptests.* test-setup.* "
         "globalsetup.* .swcrc .taprc .nycrc*"),
    Kind("a JavaScript checker reads it",
         "tsconfig*.json jsconfig.json eslint.config.* .eslintrc* .eslintignore biome.json* "
         ".prettierrc*"),
    Kind("make or a task runner executes it",
         "makefile gnumakefile bsdmakefile *.mk *.mak makefile.* justfile .justfile taskfile*.yml "
         "taskfile*.yaml rakefile *.rake gruntfile.* gulpfile.* cmakelists.txt *.cmake "
         "cmakepresets.json ctestconfig.cmake meson.build sconstruct wscript configure configure.ac "
         "build.zig earthfile magefile.go"),
    Kind("Bazel or Buck executes it",
         "build.bazel workspace workspace.bazel module.bazel .bazelrc *.bzl buck .buckconfig"),
    Kind("go builds with it",
         "go.mod go.work go.env testmain_test.go modules.txt"),
    Kind("cargo builds with it",
         "cargo.toml build.rs rust-toolchain rust-toolchain.toml clippy.toml .clippy.toml nextest.toml",
         folders=".cargo"),
    Kind("gradle executes it",
         "*.gradle *.gradle.kts gradlew gradlew.bat gradle.properties *.versions.toml",
         folders="gradle buildsrc"),
    Kind("maven executes it",
         "pom.xml mvnw mvnw.cmd extensions.xml junit-platform.properties testng.xml testng*.xml",
         folders=".mvn"),
    Kind("another language's test runner reads it",
         "phpunit.xml* composer.json gemfile .rspec spec_helper.rb rails_helper.rb test_helper.* "
         "mix.exs deps.edn project.clj build.sbt build.sc *.csproj *.fsproj *.sln directory.build.* "
         "nuget.config global.json *.runsettings package.swift stack.yaml *.cabal dune-project dune "
         "rebar.config build.pl .proverc pubspec.yaml dart_test.yaml"),
    Kind("installed packages are what the tests run with",
         "*.pyc *.pyo *.egg-link",
         folders="node_modules .venv venv site-packages __pypackages__ __pycache__ .eggs *.egg-info "
         "*.dist-info"),
    Kind("a check's script",
         "*test*.sh *check*.sh run_tests* run-tests* test.cmd test.bat",
         folders="ci .ci"),
    Kind("it says what steersman runs",
         "steersman.toml .worktreeinclude",
         folders=".steersman"),
)

CODE = (
    Kind("installing the project executes it",
         "setup.py hatch_build.py build.py _build_backend.py meson.options binding.gyp install.js "
         "postinstall.* preinstall.* extconf.rb"),
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
         "test_*.py *_test.py tests.py test.py *_test.go *.test.* *.spec.* *_test.* *_spec.* "
         "*test.java *tests.java *test.kt *tests.cs *.snap *.feature",
         folders="test tests testing __tests__ __snapshots__ __mocks__ spec specs testdata fixtures e2e "
         "cypress features"),
)

# `python -m …` looks into the folder it is started in before it looks anywhere else: these would be hidden.
_HIDDEN = (
    "pytest _pytest pluggy iniconfig packaging coverage xdist execnet hypothesis nose nose2 mypy ruff "
    "tox nox pip setuptools pkg_resources abc aifc antigravity argparse array ast asynchat asyncio "
    "asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cprofile calendar cgi cgitb chunk "
    "cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser "
    "contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal "
    "difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp "
    "fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib "
    "grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools "
    "json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap "
    "modulefinder multiprocessing netrc nntplib ntpath nturl2path numbers opcode operator optparse os "
    "pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint "
    "profile pstats pty pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib "
    "resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd "
    "smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat "
    "statistics string stringprep struct subprocess symtable sys sysconfig syslog tabnanny tarfile "
    "telnetlib tempfile termios textwrap threading time timeit token tokenize tomllib trace traceback "
    "tracemalloc tty types typing unicodedata unittest urllib uu uuid venv warnings wave weakref "
    "webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo"
)
# fmt: on
MODULES = frozenset(_HIDDEN.split())
_FIRST_FOLDERS = ("src", "lib", "test", "tests")
_SHADOWS = "it stands in for a module that the test run imports"
_TOO_LONG = "its name is longer than that of any file"


def runs_as_code(path: str) -> str | None:
    """Why a tool will execute this file, or obey it, without being asked; None for an ordinary one."""
    parts = _parts(path)
    return _why(parts, CODE) or _why(parts, TESTS) or _shadows(parts)


def changes_test_infrastructure(path: str, checks: Sequence[Argv] = ()) -> str | None:
    """Why a change to this file may change what the tests prove, also by being named in a check; else None."""
    parts = _parts(path)
    named = any(_parts(word) == parts for argv in checks for word in argv)
    return _why(parts, TESTS) or _shadows(parts) or ("a check of the project names it" if named else None)


def instructs_agents(path: str) -> str | None:
    """Why an agent would obey what this file says; None where none would."""
    return _why(_parts(path), AGENTS)


def is_test_file(path: str) -> bool:
    """Whether this looks like a test, or like something that a test compares with."""
    return _why(_parts(path), TEST_FILES) is not None


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
    return None


@cache
def _globs(words: str) -> re.Pattern[str]:
    """No part of a path is empty, so that no words match nothing."""
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words.split()), re.DOTALL)


def _shadows(parts: list[str]) -> str | None:
    """Only a module or a whole package hides another one; a folder without `__init__.py` hides nothing."""
    below = parts[1:] if parts[:1] and parts[0] in _FIRST_FOLDERS else parts
    match below:
        case [name] if name.endswith((".py", ".so", ".pyd")) and name.partition(".")[0] in MODULES:
            return _SHADOWS
        case [package, "__init__.py"] if package in MODULES:
            return _SHADOWS
        case _:
            return None
