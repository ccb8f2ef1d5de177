"""What the readers of project files find: whole small projects, and one line that makes the difference."""

from inspect import cleandoc
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.rule_contexts import (
    SCANNED,
    decide_commands,
    fact_bundle,
    plan_commands,
    scan_texts,
    warning_rule,
)

from steersman.contracts.planning.context import FactKind, FactPack
from steersman.contracts.planning.words import EvidenceRef
from steersman.judges.facts.choice import ALL_FACT_READERS, find_file_readers, select_project_files
from steersman.judges.facts.finding import MAX_INSPECTED_CHARACTERS
from steersman.judges.facts.pack import MANIFEST_FACT_KINDS, MAX_FACTS_PER_KIND
from steersman.judges.facts.sentence import select_detected_checks, summarize_project
from steersman.judges.planning.evidence import format_fact_ref
from steersman.kernel.canonical import canonical_bytes


def list_fact_lines(files):
    """Every fact but languages, as one line: kind, name, value, argv, root, and the place of its first evidence."""
    pack = scan_texts(files)
    places = {e.id: f"{e.source_file}:{e.first_line}" for e in pack.evidence}
    lines = []
    for f in pack.facts:
        value = f"[{' '.join(f.argv)}]" if f.argv else f"={f.value}" if f.value else ""
        root = f"in {f.root}" if f.root != "." else ""
        if f.kind != "language":
            lines.append(" ".join(filter(None, [f.kind, f.name, value, root, f"({places[f.evidence[0]]})"])))
    return lines


# fmt: off
PROJECTS = {
    "python": (
        {"pyproject.toml": '[project]\nname = "shop"\nversion = "1.2"\ndependencies = ["Django>=5", "psycopg[binary]", "9bad", "!"]\n[project.scripts]\nshop = "shop:main"\n[build-system]\nbuild-backend = "hatchling.build"\n[tool.ruff]\n[tool.ruff.format]\n[tool.mypy]\n[tool.pytest.ini_options]\n',
         "uv.lock": ""},
        """
        build_command build [python -m build] (pyproject.toml:8)
        database postgresql =[binary] (pyproject.toml:4)
        entry_point shop =shop:main (pyproject.toml:6)
        format_command ruff [ruff format --check .] (pyproject.toml:10)
        framework django =>=5 (pyproject.toml:4)
        lint_command ruff [ruff check .] (pyproject.toml:9)
        lock_file uv.lock (uv.lock:0)
        package shop =1.2 (pyproject.toml:2)
        test_command pytest [python -m pytest -q] (pyproject.toml:12)
        type_command mypy [mypy .] (pyproject.toml:11)
        """,
    ),
    "poetry": (
        {"a/pyproject.toml": "[tool.poetry]\nname = 'x'\n[tool.poetry.group.dev.dependencies]\npytest = '*'\nflask= '3'\n"},
        """
        framework flask in a (a/pyproject.toml:5)
        package x in a (a/pyproject.toml:2)
        test_command pytest [python -m pytest -q] in a (a/pyproject.toml:4)
        """,
    ),
    "python by its older files": (
        {"setup.cfg": "[metadata]\nname = old\n[tool:pytest]\n[flake8]\n[mypy-x.*]\n",
         "setup.py": "from setuptools import setup\nsetup(\n    name='older',\n    version='1')\n",
         "tox.ini": "[tox]\nenvlist = py\n[testenv]\n",
         "noxfile.py": "import nox\n@nox.session\ndef tests(s): ...\n",
         "requirements-dev.txt": "# tools\n-r other.txt\nflask==3  # web\npytest\n\n", ".flake8": "", "mypy.ini": "",
         "manage.py": "os.environ['DJANGO_SETTINGS_MODULE'] = 'x'\n"},
        """
        entry_point manage.py (manage.py:1)
        framework django (manage.py:1)
        framework flask ===3 (requirements-dev.txt:3)
        lint_command flake8 [flake8] (.flake8:0)
        package old (setup.cfg:2)
        package older (setup.py:3)
        test_command django [python manage.py test] (manage.py:1)
        test_command nox [nox] (noxfile.py:2)
        test_command pytest [python -m pytest -q] (requirements-dev.txt:4)
        test_command tox [tox] (tox.ini:1)
        type_command mypy [mypy .] (mypy.ini:0)
        """,
    ),
    "python files that say nothing": (
        {"setup.py": "setup()\n", "noxfile.py": "", "manage.py": "", "tox.ini": "envlist = py\n",
         "test_a.py": "print()\n"},
        "",
    ),
    "unittest": (
        {"tests/test_a.py": "import unittest\n", "test_b.py": "import unittest\n"},
        """
        test_command unittest [python -m unittest discover -q -s tests] (tests/test_a.py:1)
        """,
    ),
    "unittest in a package": (
        {"tests/test_a.py": "import unittest\n", "tests/__init__.py": ""},
        """
        test_command unittest [python -m unittest discover -q] (tests/test_a.py:1)
        """,
    ),
    "pytest runs unittest too": (
        {"tests/test_a.py": "import unittest\n", "tests/conftest.py": "", "pytest.ini": ""},
        """
        test_command pytest [python -m pytest -q] (pytest.ini:0)
        """,
    ),
    "javascript": (
        {"package.json": '{\n "name": "shop", "version": "2.0.0",\n "bin": {"shop": "cli.js"},\n "scripts": {\n  "test": "vitest",\n  "build": "vite build",\n  "lint:css": "stylelint",\n  "type-check": "tsc",\n  "fmt": "prettier", "start": "node ."\n },\n "dependencies": {"react": "^19", "pg": "8"},\n "devDependencies": {"typescript": "5"}\n}',
         "tsconfig.json": "{}", "pnpm-lock.yaml": ""},
        """
        build_command pnpm [pnpm run build] (package.json:6)
        database postgresql =8 (package.json:11)
        entry_point shop =cli.js (package.json:3)
        format_command pnpm:fmt [pnpm run fmt] (package.json:9)
        framework react =^19 (package.json:11)
        lint_command pnpm:lint:css [pnpm run lint:css] (package.json:7)
        lock_file pnpm-lock.yaml (pnpm-lock.yaml:0)
        package shop =2.0.0 (package.json:2)
        test_command pnpm [pnpm test] (package.json:5)
        type_command pnpm:type-check [pnpm run type-check] (package.json:8)
        type_command tsc [npx tsc --noEmit] (package.json:12)
        """,
    ),
    "javascript with one program": (
        {"package.json": '{"name": "x", "bin": "x.js", "packageManager": "bun@1.2", "scripts": {"test": "bun test", "lint": 3, "test:$(id)": "x"}}'},
        """
        entry_point x =x.js (package.json:1)
        package x (package.json:1)
        test_command bun [bun run test] (package.json:1)
        """,
    ),
    "javascript of strangers": (
        {"package.json": '{"bin": "x.js", "scripts": {"test": "echo no test specified"}, "dependencies": {"typescript": "5"}}'},
        "",
    ),
    "deno": (
        {"deno.jsonc": '{\n // tasks\n "tasks": {"lint": "deno lint"}\n}', "b/deno.json": "nothing"},
        """
        lint_command deno-task [deno task lint] (deno.jsonc:3)
        test_command deno [deno test] (deno.jsonc:0)
        """,
    ),
    "go": (
        {"go.mod": "module example.com/shop\n\ngo 1.24\n\nrequire (\n\tgithub.com/gin-gonic/gin v1.10.0\n\tgithub.com/jackc/pgx/v5 v5.1.0\n\tgithub.com/spf13/cobra v1.0.0 // indirect\n)\n",
         "cmd/shop/main.go": "package main\n", "main.go": "package other\n", ".golangci.yml": "", "go.sum": ""},
        """
        build_command go [go build ./...] (go.mod:1)
        database postgresql =v5.1.0 (go.mod:7)
        entry_point cmd/shop/main.go =go run in cmd/shop (cmd/shop/main.go:1)
        framework gin =v1.10.0 (go.mod:6)
        lint_command go [go vet ./...] (go.mod:1)
        lint_command golangci-lint [golangci-lint run] (.golangci.yml:0)
        lock_file go.sum (go.sum:0)
        package example.com/shop =1.24 (go.mod:1)
        test_command go [go test ./...] (go.mod:1)
        """,
    ),
    "rust": (
        {"Cargo.toml": '[workspace]\n[workspace.dependencies]\ntokio = { version = "1" }\n[package]\nname = "shop"\nversion = "0.1.0"\n[[bin]]\nname = "shop"\npath = "src/main.rs"\n[dependencies]\naxum = "0.8"\nsqlx = { version = "0.8" }\n',
         "rustfmt.toml": "", "clippy.toml": "", "odd/Cargo.toml": "bin = [3, {}]\n"},
        """
        build_command cargo [cargo build] (Cargo.toml:1)
        build_command cargo [cargo build] in odd (odd/Cargo.toml:0)
        database sql =0.8 (Cargo.toml:12)
        entry_point shop =src/main.rs (Cargo.toml:7)
        format_command cargo-fmt [cargo fmt --check] (rustfmt.toml:0)
        framework axum =0.8 (Cargo.toml:11)
        framework tokio =1 (Cargo.toml:3)
        lint_command clippy [cargo clippy] (clippy.toml:0)
        package shop =0.1.0 (Cargo.toml:5)
        test_command cargo [cargo test] (Cargo.toml:1)
        test_command cargo [cargo test] in odd (odd/Cargo.toml:0)
        """,
    ),
    "maven": (
        {"pom.xml": '<project xmlns="http://maven.apache.org/POM/4.0.0">\n<parent>\n<groupId>org.springframework.boot</groupId>\n</parent>\n<artifactId>shop</artifactId>\n<version>1</version>\n<dependencies><dependency>\n<groupId>org.postgresql</groupId><artifactId>postgresql</artifactId></dependency></dependencies>\n</project>',
         "mvnw": "", "a/pom.xml": "<project><modules></modules></project>", "b/pom.xml": "<html/>",
         "c/pom.xml": "<project><artifactId>c</artifactId></project>"},
        """
        build_command maven [./mvnw package] (pom.xml:1)
        build_command maven [mvn package] in a (a/pom.xml:1)
        build_command maven [mvn package] in c (c/pom.xml:1)
        database postgresql (pom.xml:8)
        framework spring-boot (pom.xml:3)
        package shop =1 (pom.xml:5)
        package c in c (c/pom.xml:1)
        test_command maven [./mvnw test] (pom.xml:1)
        test_command maven [mvn test] in a (a/pom.xml:1)
        test_command maven [mvn test] in c (c/pom.xml:1)
        """,
    ),
    "gradle and sbt": (
        {"build.gradle.kts": 'plugins {\n  id("io.ktor.plugin") version "3"\n}\ndependencies {\n  implementation("org.postgresql:postgresql:42.7")\n}\n',
         "settings.gradle.kts": '\nrootProject.name = "shop"\n', "sub/build.gradle": "apply plugin: 'java'\n",
         "gradlew": "", "s/build.sbt": 'name := "scala-shop"\n\n'},
        """
        build_command gradle [./gradlew assemble] (build.gradle.kts:0)
        build_command sbt [sbt compile] in s (s/build.sbt:0)
        database postgresql =42.7 (build.gradle.kts:5)
        framework ktor (build.gradle.kts:2)
        package shop (settings.gradle.kts:2)
        package scala-shop in s (s/build.sbt:1)
        test_command gradle [./gradlew test] (build.gradle.kts:0)
        test_command sbt [sbt test] in s (s/build.sbt:0)
        """,
    ),
    "task runners": (
        {"Makefile": "test: x\n\ttrue\ntest: y\nlint := 3\ncheck::\nall: x\n",
         "justfile": "x := 'y'\nfmt file:\n  true\n", ".pre-commit-config.yaml": "repos:\n- repo: x\n",
         "sub/.pre-commit-config.yaml": "", "Taskfile.yml": "version: '3'\ntasks:\n  build:\n    cmds: [x]\n"},
        """
        build_command task [task build] (Taskfile.yml:3)
        format_command just:fmt [just fmt] (justfile:2)
        lint_command pre-commit [pre-commit run --all-files] (.pre-commit-config.yaml:1)
        test_command make [make test] (Makefile:1)
        test_command make:check [make check] (Makefile:5)
        """,
    ),
    "own checks": (
        {"steersman.toml": 'version = 1\n[checks]\nunit = ["uv", "run", "pytest"]\nlint = ["ruff", "check"]\nodd = "x"\nnone = []\n"a b" = ["x"]\n',
         "sub/steersman.toml": '[checks]\nunit = ["x"]\n'},
        """
        lint_command check:lint [ruff check] (steersman.toml:4)
        test_command check:unit [uv run pytest] (steersman.toml:3)
        """,
    ),
    "generic": (
        {".github/workflows/ci.yml": "name: x\non: push\njobs:\n  unit:\n    steps: []\n  lint:\n",
         ".github/workflows/empty.yml": "name: x\n", "sub/.github/workflows/ci.yml": "jobs:\n  a:\n",
         ".gitlab-ci.yml": "", "Jenkinsfile": "", ".circleci/config.yml": "", "sub/.gitlab-ci.yml": "",
         "CODEOWNERS": "# us\n* @acme/team\n", ".github/CODEOWNERS": "*.py ann@example.com\n",
         "docs/CODEOWNERS": "# nobody yet\n", "pkg/OWNERS": "approvers:\n- ann\n", "MAINTAINERS": "# \n",
         "Dockerfile": "# x\nFROM --platform=linux/amd64 python:3.13 AS a\nFROM scratch\n",
         "odd/Dockerfile.dev": "RUN x\n", "compose.yaml": "services:\n  db:\n    image: postgres\n",
         "docker-compose.test.yml": "version: 3\n", ".devcontainer/devcontainer.json": "{}", "infra/main.tf": "",
         "chart/Chart.yaml": "", "dbt_project.yml": "", "alembic.ini": "",
         "prisma/schema.prisma": 'generator x {\n provider = "js"\n}\ndatasource db {\n  provider = "postgresql"\n}\n',
         "b/schema.prisma": "", "db/migrations/1.sql": "create table x;\n", "db/1.sql": "",
         "shop/migrations/0001_initial.py": "class Migration(migrations.Migration):\n",
         "other/migrations/0001_x.py": "", "knexfile.ts": "", "diesel.toml": ""},
        """
        ci circleci (.circleci/config.yml:0)
        ci github-actions:ci =unit, lint (.github/workflows/ci.yml:4)
        ci gitlab-ci (.gitlab-ci.yml:0)
        ci jenkins (Jenkinsfile:0)
        container compose:compose.yaml (compose.yaml:1)
        container image:Dockerfile (Dockerfile:2)
        container devcontainer:.devcontainer/devcontainer.json in .devcontainer (.devcontainer/devcontainer.json:0)
        database alembic (alembic.ini:0)
        database dbt (dbt_project.yml:0)
        database diesel (diesel.toml:0)
        database knex (knexfile.ts:0)
        database prisma in prisma (prisma/schema.prisma:4)
        database migrations =sql in db/migrations (db/migrations/1.sql:0)
        database migrations =django in shop/migrations (shop/migrations/0001_initial.py:1)
        infrastructure helm in chart (chart/Chart.yaml:0)
        infrastructure terraform in infra (infra/main.tf:0)
        ownership codeowners =1 rules (.github/CODEOWNERS:1)
        ownership maintainers (MAINTAINERS:0)
        ownership owners in pkg (pkg/OWNERS:0)
        """,
    ),
    "documentation and licence": (
        {"README.md": "[![x](y)]\n\nShop\n====\n", "CONTRIBUTING": "no heading\n", "AGENTS.md": "## Rules\n",
         "LICENSE": "\nMIT License\n\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy\n",
         "COPYING": "ours\n", "LICENSE.old": "\n"},
        """
        documentation agents =Rules (AGENTS.md:1)
        documentation contributing (CONTRIBUTING:0)
        documentation readme =Shop (README.md:3)
        licence MIT (LICENSE:2)
        licence unknown (COPYING:1)
        """,
    ),
    "secrets": (
        {".env": "TOKEN=x\n", ".env.example": "TOKEN=\n", "conf/id_rsa": "x", ".npmrc": ""},
        """
        secret_file .env (.env:0)
        secret_file conf/id_rsa in conf (conf/id_rsa:0)
        """,
    ),
    "what others have written": (
        {"node_modules/x/package.json": '{"name": "x"}', "vendor/go.mod": "module x\n",
         "tests/fixtures/package.json": '{"name": "x"}', "app.min.js": "x"},
        "",
    ),
    "manifests that say little": (
        {"go.mod": " module x\n", "a/deno.json": "{}"},
        "",
    ),
    "other ecosystems": (
        {"Gemfile": "gem 'rails'\n", "src/shop.csproj": "<Project/>", "composer.json": "{}",
         "CMakeLists.txt": "project(shop)\n", "composer.lock": "", "mix.lock": ""},
        """
        lock_file composer.lock (composer.lock:0)
        lock_file mix.lock (mix.lock:0)
        """,
    ),
}
# fmt: on


@for_each_case(("files", "expected"), PROJECTS.values())
def test_a_project_is_known_by_its_files(files, expected):
    """Each fact has its value, its command, its part of the project and its line."""
    assert list_fact_lines(files) == cleandoc(expected).splitlines()
    check_pack_fits(scan_texts(files))


# For every kind: a file, what it shows, and one line of it changed.
FIRES = {
    "language": ("a.py", "x = 1\n", "python", None),
    "framework": ("requirements.txt", "flask\n", "flask", "flasks\n"),
    "package": ("pyproject.toml", "[project]\nname = 'x'\n", "x", "[project]\ntitle = 'x'\n"),
    "test_command": ("Makefile", "test:\n", "make", "toast:\n"),
    "build_command": ("Makefile", "build:\n", "make", "guild:\n"),
    "lint_command": ("Makefile", "lint:\n", "make", "hint:\n"),
    "format_command": ("Makefile", "format:\n", "make", "former:\n"),
    "type_command": ("Makefile", "typecheck:\n", "make", "typeset:\n"),
    "ci": (".github/workflows/a.yml", "jobs:\n  x:\n", "github-actions:a", "names:\n  x:\n"),
    "ownership": ("CODEOWNERS", "* @ann\n", "codeowners", "# @ann\n"),
    "container": ("Dockerfile", "FROM x\n", "image:Dockerfile", "RUN x\n"),
    "licence": ("LICENSE", "Boost Software License\n", "BSL-1.0", "Boot Software\n"),
    "documentation": ("README.md", "# x\n", "readme", None),
    "secret_file": (".env", "x\n", ".env", None),
    "lock_file": ("uv.lock", "x\n", "uv.lock", None),
    "entry_point": ("pyproject.toml", "[project.scripts]\nx = 'y'\n", "x", "[project.urls]\nx = 'y'\n"),
    "database": ("requirements.txt", "redis\n", "redis", "radish\n"),
    "infrastructure": ("fly.toml", "x\n", "fly.io", None),
}


@for_each_case("kind", get_args(FactKind))
def test_every_kind_fires_and_one_line_silences_it(kind):
    """A fact is there because of a line, or because of a file's name; without it, it is not."""
    path, text, name, changed = FIRES[kind]

    def names(files):
        return [fact.name for fact in scan_texts(files).facts if fact.kind == kind]

    assert names({path: text}) == [name]
    without = {f"{path}.txt.x": text} if changed is None else {path: changed}
    assert name not in names(without)


def test_every_reader_is_in_a_project():
    """The projects above have a file for each reader; of those that only look for a file some stand for all."""
    used = {
        reader.find for files, _ in PROJECTS.values() for path in files for reader in find_file_readers(path)
    }
    left = [reader for reader in ALL_FACT_READERS if reader.find not in used]
    assert [reader.names for reader in left if reader.find.__name__ != "find_marker"] == []


def test_languages_count_files_and_show_the_first():
    """A language has a number and up to three files; what a tool has written does not count."""
    paths = ("b.py", "a.py", "c.py", "d.py", "x_pb2.py", "Makefile", ".py")
    pack = scan_texts({**dict.fromkeys(paths, ""), "e.GO": "package x"})
    assert [(f.name, f.value, len(f.evidence)) for f in pack.facts] == [
        ("go", "1 file", 1),
        ("python", "4 files", 3),
    ]
    shown = {e.source_file for e in pack.evidence if e.id in pack.facts[1].evidence}
    assert shown == {"a.py", "b.py", "c.py"}


def test_only_some_tests_of_a_folder_are_looked_into():
    """Fifty of them say whether they use unittest."""
    many = {f"tests/test_{n:03}.py": "pass\n" for n in range(60)}
    assert len([p for p in select_project_files(tuple(sorted(many))).read if p.startswith("tests/")]) == 50


CHECKS = {
    "nothing": ({}, {}),
    "the first of its line": ({"manage.py": "DJANGO_SETTINGS_MODULE", "pytest.ini": ""}, {"pytest": "python -m pytest -q"}),
    "several": ({"go.mod": "module x\n", "Cargo.toml": ""}, {"go": "go test ./...", "cargo": "cargo test"}),
    "a wrapper where nothing else is": ({"Makefile": "test:\n", "tox.ini": "[tox]\n"}, {"make": "make test"}),
    "no wrapper beside a runner": ({"Makefile": "test:\n", "go.mod": "module x\n"}, {"go": "go test ./..."}),
    "only at the top": ({"sub/go.mod": ""}, {}),
}  # fmt: skip


@for_each_case(("files", "expected"), CHECKS.values())
def test_checks_are_the_test_commands_at_the_top(files, expected):
    """One runner of each kind; make and the like only where there is none."""
    checks = select_detected_checks(scan_texts(files).facts)
    assert {name: " ".join(argv) for name, argv in checks.items()} == expected


def check_pack_fits(pack):
    """A pack reads back as it is, bounds of its fields included, and every fact can be cited."""
    assert msgspec.json.decode(canonical_bytes(pack), type=FactPack) == pack
    msgspec.convert([format_fact_ref(fact) for fact in pack.facts], list[EvidenceRef])


SEEDS = sorted({path: text for files, _ in PROJECTS.values() for path, text in files.items()}.items())
ODD = [
    b"\x00", b"\n" * 9, b"[" * 60, b'{"a":' * 40, b'"', b"<!DOCTYPE x>", b"\xff\xfe", b": |\n  x\n", b"\xe2\x80\xae",
    b"\\", b"- " * 20,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_no_text_makes_a_reader_raise(data):
    """Whatever a file holds, its readers answer, and every finding fits the contract."""
    path, text = data.draw(st.sampled_from(SEEDS))
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=12) | st.sampled_from(ODD))
    check_pack_fits(scan_texts({path: raw.decode("utf-8", "replace")}))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([path for path, _ in SEEDS]), st.text(max_size=300))
def test_any_text_at_all(path, text):
    """The same for texts that are nothing at all."""
    check_pack_fits(scan_texts({path: text}))


def test_a_project_in_sentences():
    """What it is written in, what it uses, how it is tested and built; many names are counted."""
    manifest = "[tool.pytest]\n[build-system]\nbuild-backend = 'x'\n"
    assert summarize_project(
        scan_texts({"a.py": "", "b.py": "", "x.go": "", "pyproject.toml": manifest})
    ) == (
        "shop is written in python (2 files), go (1 file). It is tested by: python -m pytest -q. "
        "It is built by: python -m build."
    )
    many = {f"p{n}/go.mod": f"module m{n}\n" for n in range(10)}
    assert "Its packages: m0, m1, m2, m3, m4, m5, m6, m7 and 2 more." in summarize_project(scan_texts(many))
    assert summarize_project(scan_texts({})) == "Of shop no language is known."


# ── manifests that cannot be read (001 §3) ──────────────────────────────────────────────────────────────────────────

READABLE = {
    "pyproject.toml": "\ufeff[project]\r\nname = 'x'\r\n", "Cargo.toml": "", "package.json": "{}", "pom.xml": "<project/>",
    "deno.jsonc": '// tasks\n{"tasks": {}}', "go.mod": "// a comment\nmodule example.com/x\n", "notes.json": "{bad",
    "README.md": "\0",
}  # fmt: skip
DOCTYPE = ": it declares a document type, is too deep or has too many elements"
BROKEN = [
    ("pyproject.toml", "[[[[", ", line 1: it is no TOML"),
    ("pyproject.toml", "a = 1\nb =\n", ", line 2: it is no TOML"),
    ("pyproject.toml", "a = " + "[" * 4000, ": it is no TOML"),
    ("sub/Cargo.toml", "x", ", line 1: it is no TOML"),
    ("package.json", "{bad", ", line 1: it is no JSON"),
    ("package.json", '{\n"a": 1,\n}', ", line 3: it is no JSON"),
    ("package.json", "", ", line 1: it is no JSON"),
    ("package.json", "\ud800", ", line 1: it is no JSON"),
    ("package.json", "[]", ", line 1: it is no JSON object"),
    ("package.json", "{" + " " * MAX_INSPECTED_CHARACTERS + "}", ": it is too long to be looked into"),
    ("deno.json", "// x\n{,}", ", line 2: it is no JSON"),
    ("pom.xml", "<project>\n", ", line 2: it is no XML"),
    ("pom.xml", "<!DOCTYPE x>\n<project/>", DOCTYPE),
    ("go.mod", "\n\0\0", ", line 2: it is no text"),
    ("go.mod", "require x v1", ": it names no module"),
    *(
        (path, "x", ": manifests of this kind are not read")
        for path in ("Gemfile", "a/b.csproj", "composer.json", "CMakeLists.txt", "mix.exs", "Package.swift")
    ),
]


@for_each_case("path", READABLE)
def test_what_can_be_read_is_not_told(path):
    """A manifest that is whole, and a file that is none, leave the scan complete."""
    assert scan_texts({path: READABLE[path]}).bounds == SCANNED


@for_each_case(("path", "text", "reason"), BROKEN)
def test_a_manifest_that_cannot_be_read_is_told(path, text, reason):
    """The file, its line and why; nothing is found in it, and the scan is not complete."""
    pack = scan_texts({path: text})
    assert not [f for f in pack.facts if f.kind in MANIFEST_FACT_KINDS]
    assert pack.bounds.unread == (f"{path}{reason}",)
    assert (pack.bounds.complete, pack.bounds.stopped_by) == (False, "1 manifests cannot be read")


@pytest.mark.untraced
def test_only_what_manifests_tell_of_is_not_known():
    """Where nothing else stopped the scan, other kinds stay complete; where something did, none is."""
    assert scan_texts({"package.json": "{"}).bounds.unknown == MANIFEST_FACT_KINDS
    stopped = replace(SCANNED, complete=False, stopped_by="too many files")
    bounds = scan_texts({"package.json": "{"}, stopped).bounds
    assert (bounds.unknown, bounds.stopped_by) == ((), "too many files; 1 manifests cannot be read")
    many = {f"p{n}/Makefile": "test:\n" for n in range(MAX_FACTS_PER_KIND + 1)}
    cut = scan_texts({**many, "package.json": "{"}).bounds
    assert (cut.unknown, len(cut.unread)) == ((), 1)
    assert f"more than {MAX_FACTS_PER_KIND}" in cut.stopped_by


@pytest.mark.parametrize(("kind", "known"), [("test_command", False), ("ci", True)])
def test_a_rule_does_not_take_the_silence_of_a_manifest_for_an_absence(kind, known):
    """§4: what a broken manifest would have told is not known to be missing; a rule about it cannot be decided."""
    broken = scan_texts({"package.json": "{"})
    there = fact_bundle("language/python")
    found = replace(there, facts=replace(there.facts, bounds=broken.bounds))
    asks = warning_rule("rule_asks", f'!("{kind}" in facts.kinds)', evidence_required=[f"known:{kind}"])
    (decision,) = decide_commands(plan_commands("cmd_read_code"), found, asks)
    assert decision.undecidable != known
    assert decide_commands(plan_commands("cmd_read_code"), there, asks)[0].undecidable is False
