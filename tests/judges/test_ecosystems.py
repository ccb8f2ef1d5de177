"""Setup and checks that are proposed from a project's own files."""

import json

from tests.support.cases import for_each_case

from steersman.judges.ecosystems import ProjectFiles, list_files_to_read, propose_project_checks
from steersman.judges.ecosystems.project import is_material_path

UNITTEST = "import unittest\n"
PYTEST = "def test_a():\n    pass\n"
VENV = "python3 -m venv .venv"
PIP = ".venv/bin/python -m pip install -q"
RUN = "pytest: .venv/bin/python -m pytest -q"


def files_of(files):
    texts = {path: text if isinstance(text, str) else json.dumps(text) for path, text in files.items()}
    wanted = list_files_to_read(texts)
    return ProjectFiles(frozenset(texts), {path: texts[path] for path in wanted})


def shown(files):
    """Each plan as lines: setup steps, then checks, each with its folder."""
    proposals, notes = propose_project_checks(files_of(files))
    plans = [
        [
            *(" ".join(step.run) + (f" ({step.cwd})" if step.cwd else "") for step in plan.setup),
            *(f"{n}: {' '.join(c.run)}" + (f" ({c.cwd})" if c.cwd else "") for n, c in plan.checks.items()),
        ]
        for proposal in proposals
        for plan in proposal.plans
    ]
    return plans, notes


def package(**more):
    return {"scripts": {"test": "ava"}, "devDependencies": {"ava": "6"}, **more}


# name → files, the plans in order
PROJECTS = {
    "nothing": ({"readme.md": ""}, []),
    "python without tests": ({"pyproject.toml": "[project]\nname='x'\n"}, []),
    "uv": (
        {"uv.lock": "", "pyproject.toml": "[dependency-groups]\ntests=['pytest']\ndocs=[]\n[project]\nname='x'\n[project.optional-dependencies]\nh2=['h2']\n", "tests/test_a.py": PYTEST},
        [
            ["uv sync --frozen --all-extras --all-groups", RUN],
            ["uv sync --frozen --group tests", RUN],
            [VENV, f"{PIP} -e . pytest", RUN],
            [VENV, f"{PIP} pytest", RUN],
        ],
    ),
    "uv workspace": (
        {"uv.lock": "", "pyproject.toml": "[tool.uv.workspace]\nmembers=['libs/*']\n", "libs/a/pyproject.toml": "", "libs/a/tests/test_a.py": PYTEST},
        [["uv sync --frozen --all-packages", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "poetry": (
        {"poetry.lock": "", "pyproject.toml": "[tool.poetry.dependencies]\npython='*'\nattrs='*'\n[tool.poetry.extras]\na=['attrs']\n[tool.poetry.group.test]\noptional=true\n[tool.poetry.group.test.dependencies]\npytest='^8'\npython='*'\n[tool.poetry.group.docs.dependencies]\nfuro='*'\n", "tests/test_a.py": PYTEST},
        [
            ["poetry install --all-extras --with test", RUN],
            ["poetry install", RUN],
            [VENV, f"{PIP} -e . pytest", RUN],
            [VENV, f"{PIP} attrs pytest", RUN],
        ],
    ),
    "poetry of old": (
        {"poetry.lock": "", "pyproject.toml": "[tool.poetry.dev-dependencies]\npytest='^8'\nresponses='*'\n", "tests/test_a.py": PYTEST},
        [["poetry install", RUN], [VENV, f"{PIP} -e . pytest responses", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "pdm and pipenv": (
        {"pdm.lock": "", "Pipfile.lock": "", "Pipfile": "pytest = '*'\n", "tests/test_a.py": UNITTEST},
        [["pdm install --frozen-lockfile", RUN], ["pipenv sync --dev", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "extras": (
        {"pyproject.toml": "[build-system]\n[project]\ndependencies=['attrs']\n[project.optional-dependencies]\ntests=['pytest','responses']\ndev=['ruff']\n", "tests/test_a.py": PYTEST},
        [[VENV, f"{PIP} -e .[tests]", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} attrs pytest", RUN]],
    ),
    "an extra that names pytest": (
        {"pyproject.toml": "[project.optional-dependencies]\nqa=['pytest>=8']\nother=['pytest-httpserver']\n", "tests/test_a.py": PYTEST},
        [[VENV, f"{PIP} -e .[qa]", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "setup.py": (
        {"setup.py": "setup(extras_require={'test': ['pytest', 'nose'], 'docs': []})", "tests/test_a.py": PYTEST},
        [[VENV, f"{PIP} -e .[test]", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "setup.cfg": (
        {"setup.cfg": "[metadata]\nname=x\n[options.extras_require]\ndev =\n  pytest\n  ruff\n[tool:pytest]\naddopts = --cov=x -n 4\n", "tests/test_a.py": PYTEST},
        [
            [VENV, f"{PIP} -e .[dev] pytest-cov pytest-xdist", RUN],
            [VENV, f"{PIP} -e . pytest pytest-cov pytest-xdist", RUN],
            [VENV, f"{PIP} pytest pytest-cov pytest-xdist", RUN],
        ],
    ),
    "broken setup.cfg": ({"setup.cfg": "[[[\nx", "tests/test_a.py": PYTEST}, [[VENV, f"{PIP} pytest", RUN]]),
    "requirements": (
        {"requirements.txt": "flask\n", "requirements-dev.txt": "pytest\n", "requirements-docs.txt": "", "tests/test_a.py": PYTEST},
        [[VENV, f"{PIP} -r requirements.txt -r requirements-dev.txt", RUN], [VENV, f"{PIP} -r requirements.txt", f"{PIP} pytest", RUN]],
    ),
    "requirements in a folder": (
        {"requirements/base.txt": "flask\n", "requirements/tests.txt": "pytest\n", "requirements/dev.txt": "", "setup.py": "", "tests/test_a.py": PYTEST},
        [
            [VENV, f"{PIP} -r requirements/base.txt -r requirements/tests.txt", f"{PIP} -e .", RUN],
            [VENV, f"{PIP} -r requirements/base.txt", f"{PIP} -e . pytest", RUN],
            [VENV, f"{PIP} -r requirements/base.txt", f"{PIP} pytest", RUN],
        ],
    ),
    "tox": (
        {
            "tox.ini": "[testenv]\ndeps =\n  -r{toxinidir}/qa.txt\n  -rgone.txt\n  trio >= 1\n  py38: old\n  {[base]deps}\nextras = http2\ndependency_groups = qa\ncommands =\n  python -V\n  coverage run -m pytest --cov tests {posargs:tests/} tests nowhere\n",
            "requirements-dev.txt": "", "qa.txt": "pytest\n", "setup.py": "", "pyproject.toml": "[dependency-groups]\nqa=['nose', {include-group='more'}]\nmore=['mock', {include-group='qa'}, 3]\n", "tests/test_a.py": PYTEST,
        },
        [
            [VENV, f"{PIP} -r qa.txt", f"{PIP} -e .[http2] trio >= 1 nose mock", f"{RUN} tests"],
            [VENV, f"{PIP} -r requirements-dev.txt -r qa.txt", f"{PIP} -e .[http2] nose mock trio >= 1 pytest", f"{RUN} tests"],
            [VENV, f"{PIP} -e . pytest", f"{RUN} tests"],
            [VENV, f"{PIP} pytest", f"{RUN} tests"],
        ],
    ),
    "tox with conditions": (
        {
            "tox.ini": "[tox]\nenvlist = lint, py{310,311}-{old,new}, pypy3\n[testenv]\ndeps =\n  pytest\n  py{310, 311}: ipython\n  !lint: mock\n  old,new: trio\n  py310-old,py311: some\n  new: nose\n  !old: nose\ncommands = pytest\n",
            "setup.py": "", "tests/test_a.py": PYTEST,
        },
        [[VENV, f"{PIP} -e . pytest ipython mock trio", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "hatch": (
        {"pyproject.toml": "[project]\n[tool.hatch.envs.default]\ndependencies=['pytest','nose']\nfeatures=['all']\n", "tests/test_a.py": PYTEST},
        [[VENV, f"{PIP} -e .[all] pytest nose", RUN], [VENV, f"{PIP} -e . pytest", RUN], [VENV, f"{PIP} pytest", RUN]],
    ),
    "pytest without configuration": ({"tests/test_a.py": PYTEST}, [[VENV, f"{PIP} pytest", RUN]]),
    "an async plugin": ({"pytest.ini": "[pytest]\nasyncio_mode = auto\nxfail_strict = 1\n", "a_test.py": ""}, [[VENV, f"{PIP} pytest pytest-asyncio", RUN]]),
    "a test of no form": ({"tests/test_a.py": "x = 1\n"}, [[VENV, f"{PIP} pytest", RUN]]),
    "unittest at the top": ({"test_a.py": UNITTEST}, [["unittest: python3 -m unittest discover -q"]]),
    "unittest in a folder": ({"tests/test_a.py": UNITTEST}, [["unittest: python3 -m unittest discover -q -s tests"]]),
    "unittest in a package": ({"tests/__init__.py": "", "tests/test_a.py": UNITTEST}, [["unittest: python3 -m unittest discover -q"]]),
    "unittest with requirements": ({"requirements.txt": "flask\n", "tests/__init__.py": "", "tests/test_a.py": UNITTEST}, [[VENV, f"{PIP} -r requirements.txt", "unittest: .venv/bin/python -m unittest discover -q"]]),
    "unittest with nothing to install": ({"tox.ini": "", "tests/__init__.py": "", "tests/test_a.py": UNITTEST}, [[VENV, "unittest: .venv/bin/python -m unittest discover -q"]]),
    "django": ({"manage.py": "import django\n", "requirements.txt": "django\n", "shop/tests.py": "from django.test import TestCase\n"}, [[VENV, f"{PIP} -r requirements.txt", "django: .venv/bin/python manage.py test"]]),
    "python below": (
        {"api/pyproject.toml": "[dependency-groups]\ndev=['pytest']\n", "api/tests/test_a.py": PYTEST, "api/inner/setup.py": "", "examples/x/setup.py": "", "examples/x/test_a.py": PYTEST},
        [[f"{VENV} (api)", f"{PIP} pytest (api)", "pytest-api: .venv/bin/python -m pytest -q (api)"]],
    ),
    "npm": (
        {"package.json": package(), "package-lock.json": "{}"},
        [["npm ci", "npm: npm test"], ["npm ci --ignore-scripts", "npm: npm test"], ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test"]],
    ),
    "npm without a lock": (
        {"package.json": package(scripts={"test": "uvu", "build": "tsc"})},
        [
            ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock --ignore-scripts", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock", "npm run build", "npm: npm test"],
        ],
    ),
    "tests of what a compiler writes": (
        {"package.json": package(scripts={"test": "mocha 'out/**/*.spec.js'", "build": "npm run compile && xo", "compile": "tsc"})},
        [
            ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock", "npm run compile", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock --ignore-scripts", "npm: npm test"],
        ],
    ),
    "a linter first": (
        {"package.json": package(scripts={"test": "xo && ava --serial && tsd"}), "package-lock.json": ""},
        [
            ["npm ci", "npm: npm test"],
            ["npm ci", "ava: npx --no-install ava --serial"],
            ["npm ci --ignore-scripts", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test"],
        ],
    ),
    "a linter alone": ({"package.json": {"scripts": {"test": "xo || true && ava", "test:unit": "x"}}}, [["npm: npm test"]]),
    "runners by a shell": ({"package.json": {"scripts": {"test": "xo && && ava 'x*' && tsd"}}}, [["npm: npm test"]]),
    "npm placeholder": ({"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})}, []),
    "npm odd": ({"package.json": "[]"}, []),
    "npm broken": ({"package.json": "{"}, []),
    "npm watches": ({"package.json": {"scripts": {"test": "jest --watch", "test:ci": "jest"}}}, [["npm: npm run test:ci"]]),
    "pnpm by its field": ({"package.json": package(packageManager="pnpm@9")}, [["pnpm install", "pnpm: pnpm test"], ["pnpm install --ignore-scripts", "pnpm: pnpm test"], ["npm install --no-audit --no-fund --no-package-lock", "pnpm: pnpm test"]]),
    "pnpm of a version": (
        {"package.json": package(packageManager="pnpm@11.9.0+sha512.x"), "pnpm-lock.yaml": ""},
        [
            ["pnpm install --frozen-lockfile", "pnpm: pnpm test"],
            ["npx --yes pnpm@11.9.0 install --frozen-lockfile", "pnpm: npx --yes pnpm@11.9.0 test"],
            ["pnpm install --frozen-lockfile --ignore-scripts", "pnpm: pnpm test"],
            ["npm install --no-audit --no-fund --no-package-lock", "pnpm: pnpm test"],
        ],
    ),
    "yarn of a version": ({"package.json": {"packageManager": "yarn@1.22.0", "scripts": {"test": "node --test"}}}, [["yarn: node --test"]]),
    "berry of a version": ({"package.json": {"packageManager": "yarn@4.1.0", "scripts": {"test": "x"}}}, [["yarn: yarn test"]]),
    "yarn classic": ({"package.json": package(), "yarn.lock": "# yarn lockfile v1\n"}, [["yarn install --frozen-lockfile", "yarn: yarn test"], ["yarn install --frozen-lockfile --ignore-scripts", "yarn: yarn test"], ["npm install --no-audit --no-fund --no-package-lock", "yarn: yarn test"]]),
    "yarn berry": ({"package.json": package(), "yarn.lock": "__metadata:\n"}, [["yarn install --immutable", "yarn: yarn test"], ["npm install --no-audit --no-fund --no-package-lock", "yarn: yarn test"]]),
    "bun": ({"package.json": package(), "bun.lock": ""}, [["bun install --frozen-lockfile", "bun: bun run test"], ["bun install --frozen-lockfile --ignore-scripts", "bun: bun run test"], ["npm install --no-audit --no-fund --no-package-lock", "bun: bun run test"]]),
    "node directly": ({"package.json": {"scripts": {"test": "node --test test/a.js"}}}, [["npm: node --test test/a.js"]]),
    "node by a shell": ({"package.json": {"scripts": {"test": "node --test test/*.js"}}}, [["npm: npm test"]]),
    "node with a pretest": ({"package.json": {"scripts": {"pretest": "x", "test": "node --test"}}}, [["npm: npm test"]]),
    "plain node": ({"package.json": "{}", "test/a.mjs": "import test from 'node:test';\n"}, [["node: node --test"]]),
    "plain node without package": ({"a.test.js": "require('node:test')\n", "b.js": ""}, [["node: node --test"]]),
    "other tests in a folder": ({"a.test.js": "require('tap')\n"}, []),
    "pnpm workspace": (
        {"package.json": {"private": True}, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages:\n  - 'packages/*'\n  - '!packages/b'\ncatalog:\n  - x\n", **{f"packages/{n}/package.json": package() for n in "abc"}, "packages/d/package.json": "{}"},
        [
            ["pnpm install --frozen-lockfile", "pnpm: pnpm -r test"],
            ["pnpm install --frozen-lockfile", "pnpm-packages-a: pnpm test (packages/a)", "pnpm-packages-c: pnpm test (packages/c)"],
            ["pnpm install --frozen-lockfile --ignore-scripts", "pnpm: pnpm -r test"],
        ],
    ),
    "a workspace with a script at the top": (
        {"package.json": {"scripts": {"test": "turbo test"}, "workspaces": {"packages": ["./libs/**"]}}, "libs/x/a/package.json": package()},
        [
            ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test"],
            ["npm install --no-audit --no-fund --no-package-lock", "npm: npm test --workspaces --if-present"],
            ["npm install --no-audit --no-fund --no-package-lock", "npm-libs-x-a: npm test (libs/x/a)"],
            ["npm install --no-audit --no-fund --no-package-lock --ignore-scripts", "npm: npm test"],
        ],
    ),
    "yarn workspaces": ({"package.json": {"workspaces": ["**/a"]}, "yarn.lock": "", "x/a/package.json": package()}, [["yarn install --frozen-lockfile", "yarn: yarn workspaces run test"], ["yarn install --frozen-lockfile", "yarn-x-a: yarn test (x/a)"], ["yarn install --frozen-lockfile --ignore-scripts", "yarn: yarn workspaces run test"]]),
    "berry workspaces": ({"package.json": {"workspaces": ["a", "b/c"]}, "yarn.lock": "__metadata:", "a/package.json": package()}, [["yarn install --immutable", "yarn: yarn workspaces foreach -A run test"], ["yarn install --immutable", "yarn-a: yarn test (a)"]]),
    "bun workspaces": ({"package.json": {"workspaces": ["a"]}, "bun.lockb": "", "a/package.json": package()}, [["bun install --frozen-lockfile", "bun: bun run --filter * test"], ["bun install --frozen-lockfile", "bun-a: bun run test (a)"], ["bun install --frozen-lockfile --ignore-scripts", "bun: bun run --filter * test"]]),
    "go": ({"go.mod": "module x\nrequire y v1\n", "a/x_test.go": ""}, [["go mod download", "go: go test ./..."]]),
    "go without tests": ({"go.mod": "module x\n", "x.go": ""}, []),
    "go modules": (
        {"go.work": "", "go.mod": "module x\n", "x_test.go": "", "b/go.mod": "require y\n", "b/c/x_test.go": "", "d/go.mod": "", "d/e/go.mod": "", "d/e/x_test.go": ""},
        [["go: go test ./..."], ["go mod download (b)", "go-b: go test ./... (b)"], ["go-d-e: go test ./... (d/e)"]],
    ),
    "rust": ({"Cargo.toml": "[package]\n"}, [["cargo fetch", "cargo: cargo test"]]),
    "rust workspace": ({"Cargo.toml": "[workspace]\n", "Cargo.lock": "", "a/Cargo.toml": ""}, [["cargo fetch --locked", "cargo: cargo test --workspace"], ["cargo fetch", "cargo: cargo test --workspace"]]),
    "broken Cargo.toml": ({"Cargo.toml": "[[["}, [["cargo fetch", "cargo: cargo test"]]),
    "rust below": ({"native/Cargo.toml": "", "readme.md": ""}, [["cargo fetch (native)", "cargo-native: cargo test (native)"]]),
    "gradle": ({"build.gradle.kts": "", "gradlew": "", "src/test/java/A.java": ""}, [["./gradlew --no-daemon testClasses", "gradle: ./gradlew --no-daemon --offline test"]]),
    "gradle of the machine": ({"build.gradle": "", "app/src/test/java/A.java": ""}, [["gradle --no-daemon testClasses", "gradle: gradle --no-daemon --offline test"]]),
    "maven": ({"pom.xml": "", "src/test/java/A.java": ""}, [["mvn -B -q test -Dtest=NoSuchTest -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false", "maven: mvn -B -o test"]]),
    "maven wrapper": ({"pom.xml": "", "mvnw": "", "src/test/java/A.java": ""}, [["./mvnw -B -q test -Dtest=NoSuchTest -DfailIfNoTests=false -Dsurefire.failIfNoSpecifiedTests=false", "maven: ./mvnw -B -o test"]]),
    "java without a build": ({"src/test/java/A.java": ""}, []),
}  # fmt: skip


@for_each_case(("files", "plans"), PROJECTS.values())
def test_plans(files, plans):
    """Lock files, manifests and test folders lead to these plans, the best first."""
    assert shown(files) == (plans, [])


def test_environment():
    """A tool that needs a variable to work in the tree gets it."""
    files = {"poetry.lock": "", "pyproject.toml": "", "test_a.py": PYTEST, "package.json": package()}
    python, javascript = propose_project_checks(files_of(files))[0]
    assert python.plans[0].env["POETRY_VIRTUALENVS_IN_PROJECT"] == "true"
    assert javascript.plans[0].env == {"CI": "true"}


def test_what_is_left_out_is_said():
    """Beyond a number of folders, or of packages, the rest is named and gets no check."""
    modules = {f"m{n}/{name}": "" for n in range(10) for name in ("go.mod", "x_test.go")}
    plans, notes = shown(modules)
    assert (len(plans), notes) == (8, ["go: no check is proposed for m8, m9"])
    packages = {f"p/{n}/package.json": package() for n in range(9)}
    plans, notes = shown({"package.json": {"workspaces": ["p/*"]}, **packages})
    assert notes == ["javascript: no check of its own is proposed for p/8"]
    assert len(plans[1]) == 1 + 8


def test_material_is_no_part_of_a_project():
    """Examples, fixtures and vendored code are not read as the project's own."""
    assert is_material_path("examples/a/setup.py")
    assert not is_material_path("example_app/setup.py")
    assert list_files_to_read(["b/setup.py", "setup.py", "x.txt", "tests/test_a.py"]) == [
        "tests/test_a.py", "setup.py", "b/setup.py",
    ]  # fmt: skip
