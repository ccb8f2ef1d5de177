"""JavaScript: the package manager by its lock file, checks from the scripts of package.json, workspaces as one.

**Invariant:** a runner that would watch is run once: `CI=true` is in the environment, and a script with `--watch`
is no check.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import (
    Plan,
    ProjectFiles,
    Proposal,
    check_name,
    distinct_plans,
    is_material,
    strings_in,
    table_at,
)

MANIFESTS = ("package.json",)
READ = ("package.json", "pnpm-workspace.yaml", "yarn.lock")
LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
MOST_PACKAGES = 8  # packages of a workspace that get a check of their own
_SCRIPTS = ("test", "test:ci", "test:unit", "tests", "unit")
_RUNNERS = ("ava", "jest", "mocha", "vitest", "uvu", "tap", "tape", "jasmine")
_BUILD_SCRIPTS = ("compile", "build")
_BUILD_OUTPUT = re.compile(r"(?:^|[\s'\"(=./])(?:out|dist|build|lib)/")
_PLACEHOLDER = "no test specified"
_TEST_FILE = re.compile(r"(?:.*[._-])?test\.[cm]?[jt]s|(?:.*/)?tests?/.*\.[cm]?[jt]s|.*\.spec\.[cm]?[jt]s")
_PLAIN_WORD = re.compile(r"[\w./=:@-]+")
_YAML_ITEM = re.compile(r"^\s*-\s*['\"]?([^'\"#\s]+)", re.MULTILINE)


def is_javascript_test(path: str) -> bool:
    """Whether a path is that of a test file, by its name."""
    return bool(_TEST_FILE.fullmatch(path)) and not is_material(path)


def propose_javascript(files: ProjectFiles) -> Proposal | None:
    """One proposal for a package, its workspace included."""
    package = files.json("package.json")
    manager, checks = manager_of(files, package), list(_check_choices(files, package))
    if not checks:
        return None
    installs = list(_installs(files, package, manager))
    env = {"CI": "true"}
    plans = [Plan(steps, checks[0], env) for steps in installs]
    plans[1:1] = [Plan(installs[0], other, env) for other in checks[1:]]
    if (build := _build_script(package)) and installs[0]:
        step = SetupStep((manager, "run", build), files.folder)
        place = 1 if _tests_build_output(package) else len(plans)
        plans.insert(place, Plan((*installs[0], step), checks[0], env))
    if version := _named_version(package, manager):
        plans.insert(1, _with_version(plans[0], manager, version))
    return Proposal("javascript", files.folder, distinct_plans(plans))


def manager_of(files: ProjectFiles, package: dict[str, Any]) -> str:
    """npm, pnpm, yarn or bun: by the lock file, then by the field `packageManager`."""
    named = str(package.get("packageManager", "")).partition("@")[0]
    locked = next((manager for lock, manager in LOCKS.items() if lock in files.paths), "")
    return locked or (named if named in LOCKS.values() else "npm")


def _named_version(package: dict[str, Any], manager: str) -> str:
    """The exact version of the manager that `packageManager` names, where npm's registry has it under this name."""
    named = re.match(r"(pnpm|yarn)@(\d+(?:\.\d+){2})(?!\S*-)", str(package.get("packageManager", "")))
    known = named is not None and named[1] == manager and (manager != "yarn" or named[2].startswith("1."))
    return named[2] if named is not None and known else ""


def _with_version(plan: Plan, manager: str, version: str) -> Plan:
    """The same plan with exactly this version of the manager, which `npx` fetches in setup and finds again."""

    def exact(argv: tuple[str, ...]) -> tuple[str, ...]:
        return ("npx", "--yes", f"{manager}@{version}", *argv[1:]) if argv[0] == manager else argv

    setup = tuple(SetupStep(exact(step.run), step.cwd) for step in plan.setup)
    checks = {name: Check(exact(check.run), check.cwd) for name, check in plan.checks.items()}
    return Plan(setup, checks, plan.env)


def _installs(files: ProjectFiles, package: dict[str, Any], manager: str) -> Iterator[tuple[SetupStep, ...]]:
    """Ways to install, best first: what is locked; without scripts of packages; whatever npm finds."""
    needed = any(table_at(package, f"{kind}ependencies") for kind in ("d", "devD", "peerD", "optionalD"))
    if not needed and not any(lock in files.paths for lock in LOCKS) and not _members(files, package):
        yield ()
        return
    berry = "__metadata:" in files.text("yarn.lock")
    locked: dict[str, tuple[str, ...]] = {
        "npm": ("npm", "ci"),
        "pnpm": ("pnpm", "install", "--frozen-lockfile"),
        "yarn": ("yarn", "install", "--immutable" if berry else "--frozen-lockfile"),
        "bun": ("bun", "install", "--frozen-lockfile"),
    }
    free = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
    first = locked[manager] if any(lock in files.paths for lock in LOCKS) else (manager, "install")
    first = free if first == ("npm", "install") else first
    yield (SetupStep(first, files.folder),)
    if not berry:
        yield (SetupStep((*first, "--ignore-scripts"), files.folder),)
    if not _members(files, package):  # npm knows no workspaces of others
        yield (SetupStep(free, files.folder),)


def _check_choices(files: ProjectFiles, package: dict[str, Any]) -> Iterator[dict[str, Check]]:
    """Ways to check, best first: the script at the top, one command for all packages, each package alone."""
    manager = manager_of(files, package)
    script = test_script(package)
    if script:
        yield {check_name(manager, files.folder): Check(_script_argv(manager, script, package), files.folder)}
    members = [m for m in _members(files, package) if test_script(files.json(f"{m}/package.json"))]
    if members:
        berry = "__metadata:" in files.text("yarn.lock")
        yield {check_name(manager, files.folder): Check(_all_packages(manager, berry=berry), files.folder)}
        yield dict(_single(files, manager, folder) for folder in members[:MOST_PACKAGES])
    elif not script and any("node:test" in files.text(p) for p in files.paths if is_javascript_test(p)):
        yield {check_name("node", files.folder): Check(("node", "--test"), files.folder)}
    if runner := _runner_alone(str(table_at(package, "scripts").get(script, ""))):
        yield {check_name(runner[2], files.folder): Check(runner, files.folder)}


def test_script(package: dict[str, Any]) -> str:
    """The script that runs the tests once; "" where there is none, or only npm's placeholder."""
    scripts = table_at(package, "scripts")
    return next((name for name in _SCRIPTS if _runs_once(scripts.get(name))), "")


def _build_script(package: dict[str, Any]) -> str:
    """The script that builds what tests may need; `build` often lints and tests too, `compile` only compiles."""
    scripts = table_at(package, "scripts")
    return next((name for name in _BUILD_SCRIPTS if isinstance(scripts.get(name), str)), "")


def _tests_build_output(package: dict[str, Any]) -> bool:
    """Whether the tests are run from a directory that a compiler fills."""
    script = str(table_at(package, "scripts").get(test_script(package), ""))
    return bool(_BUILD_OUTPUT.search(script))


def _runs_once(script: Any) -> bool:
    return (
        isinstance(script, str)
        and bool(script.strip())
        and _PLACEHOLDER not in script
        and "--watch" not in script
    )


def _script_argv(manager: str, script: str, package: dict[str, Any]) -> tuple[str, ...]:
    """`node --test` is started directly, because then it is asked for its report; anything else by its script."""
    scripts = table_at(package, "scripts")
    words = str(scripts[script]).split()
    alone = f"pre{script}" not in scripts and f"post{script}" not in scripts
    if words[:2] == ["node", "--test"] and alone and all(_PLAIN_WORD.fullmatch(word) for word in words):
        return tuple(words)
    # `bun test` is bun's own runner, not the script.
    return (manager, "test") if script == "test" and manager != "bun" else (manager, "run", script)


def _runner_alone(script: str) -> tuple[str, ...]:
    """The runner that a script starts after other things, such as a linter; () where none is seen."""
    for part in script.split("&&")[1:] if "||" not in script else ():
        words = part.split()
        if words and words[0] in _RUNNERS and all(_PLAIN_WORD.fullmatch(word) for word in words):
            return ("npx", "--no-install", *words)
    return ()


def _all_packages(manager: str, *, berry: bool) -> tuple[str, ...]:
    match manager:
        case "pnpm":
            return ("pnpm", "-r", "test")
        case "yarn" if berry:
            return ("yarn", "workspaces", "foreach", "-A", "run", "test")
        case "yarn":
            return ("yarn", "workspaces", "run", "test")
        case "bun":
            return ("bun", "run", "--filter", "*", "test")
        case _:
            return ("npm", "test", "--workspaces", "--if-present")


def _single(files: ProjectFiles, manager: str, folder: str) -> tuple[str, Check]:
    package = files.json(f"{folder}/package.json")
    whole = f"{files.folder}/{folder}".lstrip("/")
    return check_name(manager, whole), Check(_script_argv(manager, test_script(package), package), whole)


def _members(files: ProjectFiles, package: dict[str, Any]) -> list[str]:
    """The folders of the packages of a workspace."""
    workspaces = package.get("workspaces")
    globs = strings_in(workspaces) or strings_in(table_at(package, "workspaces").get("packages"))
    globs += _YAML_ITEM.findall(_packages_part(files.text("pnpm-workspace.yaml")))
    wanted = [g.strip("./").rstrip("/") for g in globs if not g.startswith("!")]
    unwanted = [g[1:].strip("./").rstrip("/") for g in globs if g.startswith("!")]
    folders = files.folders_with("package.json") if wanted else []
    return [f for f in folders if _fits(f, wanted) and not _fits(f, unwanted)]


def left_out_packages(files: ProjectFiles) -> list[str]:
    """The packages of a workspace beyond those that get a check of their own."""
    package = files.json("package.json")
    return [m for m in _members(files, package) if test_script(files.json(f"{m}/package.json"))][
        MOST_PACKAGES:
    ]


def _packages_part(text: str) -> str:
    """The list below `packages:` of pnpm-workspace.yaml."""
    _, found, rest = text.partition("packages:")
    return re.split(r"^\S*:", rest, maxsplit=1, flags=re.MULTILINE)[0] if found else ""


def _fits(folder: str, globs: list[str]) -> bool:
    return any(_matches(folder.split("/"), glob.split("/")) for glob in globs)


def _matches(folder: list[str], glob: list[str]) -> bool:
    if not glob or not folder:
        return not glob and not folder
    if glob[0] == "**":
        return len(glob) == 1 or any(_matches(folder[n:], glob[1:]) for n in range(len(folder)))
    return fnmatchcase(folder[0], glob[0]) and _matches(folder[1:], glob[1:])
