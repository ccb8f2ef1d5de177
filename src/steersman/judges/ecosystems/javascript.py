"""JavaScript: the package manager by its lock file, checks from the scripts of package.json, workspaces as one.

**Invariant:** a runner that would watch is run once: `CI=true` is in the environment, and a script with `--watch`
is no check.
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.ecosystem import (
    COUNT_DIGITS,
    COUNT_WITH_WORD,
    INSTALLED_REASON,
    INSTALLER_REASON,
    LINTER_REASON,
    Ecosystem,
    FileNameRule,
    ManifestParts,
    RunnerSummaryPattern,
)
from steersman.judges.ecosystems.project import (
    ProjectFiles,
    SetupPlan,
    SetupProposal,
    is_material_path,
    list_distinct_plans,
    proposed_check_name,
)
from steersman.judges.facts.finding import (
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
    marker_reader,
    parse_known_dependencies,
    task_findings,
)
from steersman.judges.facts.reading import (
    find_json_problem,
    get_manifest_table,
    get_manifest_text,
    list_manifest_texts,
    parse_manifest_json,
)
from steersman.judges.text import lazy_pattern

_KNOWN_DEPENDENCIES = parse_known_dependencies(
    frameworks="react vue svelte @angular/core=angular next=next.js nuxt express fastify koa @nestjs/core=nestjs hono astro "
    "@remix-run/react=remix gatsby electron react-native solid-js=solid preact vite webpack ember-source=ember "
    "@sveltejs/kit=sveltekit",
    databases="pg=postgresql mysql mysql2=mysql redis ioredis=redis mongodb mongoose=mongodb sqlite3=sqlite "
    "better-sqlite3=sqlite @prisma/client=prisma",
)
_DEPENDENCY_TABLES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LINE_COMMENT = lazy_pattern(r"(?m)^[ \t]*//.*$")
JAVASCRIPT_LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
MAX_CHECKED_PACKAGES = 8  # packages of a workspace that get a check of their own
_TEST_SCRIPT_NAMES = ("test", "test:ci", "test:unit", "tests", "unit")
_JAVASCRIPT_RUNNERS = ("ava", "jest", "mocha", "vitest", "uvu", "tap", "tape", "jasmine")
_BUILD_SCRIPTS = ("compile", "build")
_BUILD_OUTPUT = re.compile(r"(?:^|[\s'\"(=./])(?:out|dist|build|lib)/")
_NPM_TEST_PLACEHOLDER = "no test specified"
_JAVASCRIPT_TEST_FILE = re.compile(
    r"(?:.*[._-])?test\.[cm]?[jt]s|(?:.*/)?tests?/.*\.[cm]?[jt]s|.*\.spec\.[cm]?[jt]s"
)
_PLAIN_SCRIPT_WORD = re.compile(r"[\w./=:@-]+")
_YAML_LIST_ITEM = re.compile(r"^\s*-\s*['\"]?([^'\"#\s]+)", re.MULTILINE)


def is_javascript_test(path: str) -> bool:
    """Whether a path is that of a test file, by its name."""
    return bool(_JAVASCRIPT_TEST_FILE.fullmatch(path)) and not is_material_path(path)


def propose_javascript(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a package, its workspace included."""
    package = files.json("package.json")
    manager, checks = find_package_manager(files, package), list(_list_check_choices(files, package))
    if not checks:
        return None
    installs = list(_list_install_steps(files, package, manager))
    env = {"CI": "true"}
    plans = [SetupPlan(steps, checks[0], env) for steps in installs]
    plans[1:1] = [SetupPlan(installs[0], other, env) for other in checks[1:]]
    if (build := _find_build_script(package)) and installs[0]:
        step = SetupStep((manager, "run", build), files.folder)
        place = 1 if _has_tests_of_build_output(package) else len(plans)
        plans.insert(place, SetupPlan((*installs[0], step), checks[0], env))
    if version := _find_manager_version(package, manager):
        plans.insert(1, _pin_manager_version(plans[0], manager, version))
    return SetupProposal("javascript", files.folder, list_distinct_plans(plans))


def find_package_manager(files: ProjectFiles, package: dict[str, Any]) -> str:
    """npm, pnpm, yarn or bun: by the lock file, then by the field `packageManager`."""
    return _choose_package_manager(files.paths, package)


def _choose_package_manager(names: frozenset[str], package: dict[str, Any]) -> str:
    named_manager = str(package.get("packageManager", "")).partition("@")[0]
    locked = next((manager for lock, manager in JAVASCRIPT_LOCK_FILES.items() if lock in names), "")
    return locked or (named_manager if named_manager in JAVASCRIPT_LOCK_FILES.values() else "npm")


def _find_manager_version(package: dict[str, Any], manager: str) -> str:
    """The exact version of the manager that `packageManager` names, where npm's registry has it under this name."""
    match = re.match(r"(pnpm|yarn)@(\d+(?:\.\d+){2})(?!\S*-)", str(package.get("packageManager", "")))
    is_known_version = (
        match is not None and match[1] == manager and (manager != "yarn" or match[2].startswith("1."))
    )
    return match[2] if match is not None and is_known_version else ""


def _pin_manager_version(plan: SetupPlan, manager: str, version: str) -> SetupPlan:
    """The same plan with exactly this version of the manager, which `npx` fetches in setup and finds again."""

    def pin_argv(argv: tuple[str, ...]) -> tuple[str, ...]:
        return ("npx", "--yes", f"{manager}@{version}", *argv[1:]) if argv[0] == manager else argv

    setup = tuple(SetupStep(pin_argv(step.run), step.cwd) for step in plan.setup)
    checks = {name: Check(pin_argv(check.run), check.cwd) for name, check in plan.checks.items()}
    return SetupPlan(setup, checks, plan.env)


def _list_install_steps(
    files: ProjectFiles, package: dict[str, Any], manager: str
) -> Iterator[tuple[SetupStep, ...]]:
    """Ways to install, best first: what is locked; without scripts of packages; whatever npm finds."""
    has_dependencies = any(get_manifest_table(package, name) for name in _DEPENDENCY_TABLES)
    if (
        not has_dependencies
        and not any(lock in files.paths for lock in JAVASCRIPT_LOCK_FILES)
        and not _find_workspace_members(files, package)
    ):
        yield ()
        return
    berry = "__metadata:" in files.text("yarn.lock")
    locked: dict[str, tuple[str, ...]] = {
        "npm": ("npm", "ci"),
        "pnpm": ("pnpm", "install", "--frozen-lockfile"),
        "yarn": ("yarn", "install", "--immutable" if berry else "--frozen-lockfile"),
        "bun": ("bun", "install", "--frozen-lockfile"),
    }
    unlocked_argv = ("npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
    install_argv = (
        locked[manager]
        if any(lock in files.paths for lock in JAVASCRIPT_LOCK_FILES)
        else (manager, "install")
    )
    install_argv = unlocked_argv if install_argv == ("npm", "install") else install_argv
    yield (SetupStep(install_argv, files.folder),)
    if not berry:
        yield (SetupStep((*install_argv, "--ignore-scripts"), files.folder),)
    if not _find_workspace_members(files, package):  # npm knows no workspaces of others
        yield (SetupStep(unlocked_argv, files.folder),)


def _list_check_choices(files: ProjectFiles, package: dict[str, Any]) -> Iterator[dict[str, Check]]:
    """Ways to check, best first: the script at the top, one command for all packages, each package alone."""
    manager = find_package_manager(files, package)
    script = find_test_script(package)
    if script:
        yield {
            proposed_check_name(manager, files.folder): Check(
                _script_argv(manager, script, package), files.folder
            )
        }
    members = [
        member
        for member in _find_workspace_members(files, package)
        if find_test_script(files.json(f"{member}/package.json"))
    ]
    if members:
        berry = "__metadata:" in files.text("yarn.lock")
        yield {
            proposed_check_name(manager, files.folder): Check(
                _workspace_test_argv(manager, berry=berry), files.folder
            )
        }
        yield dict(_package_check(files, manager, directory) for directory in members[:MAX_CHECKED_PACKAGES])
    elif not script and any(
        "node:test" in files.text(path) for path in files.paths if is_javascript_test(path)
    ):
        yield {proposed_check_name("node", files.folder): Check(("node", "--test"), files.folder)}
    if runner := _find_runner_argv(str(get_manifest_table(package, "scripts").get(script, ""))):
        yield {proposed_check_name(runner[2], files.folder): Check(runner, files.folder)}


def find_test_script(package: dict[str, Any]) -> str:
    """The script that runs the tests once; "" where there is none, or only npm's placeholder."""
    scripts = get_manifest_table(package, "scripts")
    return next((name for name in _TEST_SCRIPT_NAMES if _is_single_run_script(scripts.get(name))), "")


def _find_build_script(package: dict[str, Any]) -> str:
    """The script that builds what tests may need; `build` often lints and tests too, `compile` only compiles."""
    scripts = get_manifest_table(package, "scripts")
    return next((name for name in _BUILD_SCRIPTS if isinstance(scripts.get(name), str)), "")


def _has_tests_of_build_output(package: dict[str, Any]) -> bool:
    """Whether the tests are run from a directory that a compiler fills."""
    script = str(get_manifest_table(package, "scripts").get(find_test_script(package), ""))
    return bool(_BUILD_OUTPUT.search(script))


def _is_single_run_script(script: Any) -> bool:
    return (
        isinstance(script, str)
        and bool(script.strip())
        and _NPM_TEST_PLACEHOLDER not in script
        and "--watch" not in script
    )


def _script_argv(manager: str, script: str, package: dict[str, Any]) -> tuple[str, ...]:
    """`node --test` is started directly, because then it is asked for its report; anything else by its script."""
    scripts = get_manifest_table(package, "scripts")
    words = str(scripts[script]).split()
    alone = f"pre{script}" not in scripts and f"post{script}" not in scripts
    if (
        words[:2] == ["node", "--test"]
        and alone
        and all(_PLAIN_SCRIPT_WORD.fullmatch(word) for word in words)
    ):
        return tuple(words)
    # `bun test` is bun's own runner, not the script.
    return (manager, "test") if script == "test" and manager != "bun" else (manager, "run", script)


def _find_runner_argv(script: str) -> tuple[str, ...]:
    """The runner that a script starts after other things, such as a linter; () where none is seen."""
    for part in script.split("&&")[1:] if "||" not in script else ():
        words = part.split()
        if (
            words
            and words[0] in _JAVASCRIPT_RUNNERS
            and all(_PLAIN_SCRIPT_WORD.fullmatch(word) for word in words)
        ):
            return ("npx", "--no-install", *words)
    return ()


def _workspace_test_argv(manager: str, *, berry: bool) -> tuple[str, ...]:
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


def _package_check(files: ProjectFiles, manager: str, package_directory: str) -> tuple[str, Check]:
    package = files.json(f"{package_directory}/package.json")
    full_directory = f"{files.folder}/{package_directory}".lstrip("/")
    return proposed_check_name(manager, full_directory), Check(
        _script_argv(manager, find_test_script(package), package), full_directory
    )


def _find_workspace_members(files: ProjectFiles, package: dict[str, Any]) -> list[str]:
    """The folders of the packages of a workspace."""
    workspaces = package.get("workspaces")
    globs = list_manifest_texts(workspaces.get("packages") if isinstance(workspaces, dict) else workspaces)
    globs += _YAML_LIST_ITEM.findall(_read_pnpm_packages(files.text("pnpm-workspace.yaml")))
    wanted = [glob.strip("./").rstrip("/") for glob in globs if not glob.startswith("!")]
    unwanted = [glob[1:].strip("./").rstrip("/") for glob in globs if glob.startswith("!")]
    directories = files.folders_with("package.json") if wanted else []
    return [d for d in directories if _matches_any_glob(d, wanted) and not _matches_any_glob(d, unwanted)]


def find_left_out_packages(files: ProjectFiles) -> list[str]:
    """The packages of a workspace beyond those that get a check of their own."""
    package = files.json("package.json")
    return [
        member
        for member in _find_workspace_members(files, package)
        if find_test_script(files.json(f"{member}/package.json"))
    ][MAX_CHECKED_PACKAGES:]


def _read_pnpm_packages(text: str) -> str:
    """The list below `packages:` of pnpm-workspace.yaml."""
    _, separator, rest = text.partition("packages:")
    return re.split(r"^\S*:", rest, maxsplit=1, flags=re.MULTILINE)[0] if separator else ""


def _matches_any_glob(directory: str, globs: list[str]) -> bool:
    return any(_matches_glob(directory.split("/"), glob.split("/")) for glob in globs)


def _matches_glob(directory: list[str], glob: list[str]) -> bool:
    if not glob or not directory:
        return not glob and not directory
    if glob[0] == "**":
        return len(glob) == 1 or any(_matches_glob(directory[i:], glob[1:]) for i in range(len(directory)))
    return fnmatchcase(directory[0], glob[0]) and _matches_glob(directory[1:], glob[1:])


def read_package_json(source: ProjectSource) -> Iterator[FactFinding]:
    """All that package.json names."""
    document = parse_manifest_json(source.text)
    name, version = (get_manifest_text(document, key) for key in ("name", "version"))
    if name:
        yield FactFinding("package", name, version, root=source.folder).at(source.line_of("name"))
    manager = _choose_package_manager(source.siblings, document)
    yield from _read_package_scripts(source, get_manifest_table(document, "scripts"), manager)
    yield from _read_package_programs(source, name, document.get("bin"))
    for group in _DEPENDENCY_TABLES:
        dependencies = get_manifest_table(document, group)
        group_line = source.line_of(group) if dependencies else 0
        for dependency, version in dependencies.items():
            line = source.line_of(dependency, group_line)
            yield from _KNOWN_DEPENDENCIES.findings(source, dependency, str(version), line)
            if dependency == "typescript" and source.has("tsconfig.json"):
                argv = ("npx", "tsc", "--noEmit")
                yield command_finding(source, "type_command", "tsc", argv).at(line)


def _read_package_scripts(
    source: ProjectSource, scripts: dict[str, object], manager: str
) -> Iterator[FactFinding]:
    scripts_line = source.line_of("scripts")
    for name, script in scripts.items():
        if isinstance(script, str) and _NPM_TEST_PLACEHOLDER not in script:
            argv = (manager, "test") if name == "test" and manager != "bun" else (manager, "run", name)
            yield from task_findings(source, manager, name, argv, source.line_of(name, scripts_line), script)


def _read_package_programs(source: ProjectSource, name: str, programs: object) -> Iterator[FactFinding]:
    line = source.line_of("bin")
    if isinstance(programs, str) and name:
        yield FactFinding("entry_point", name, programs, root=source.folder).at(line)
    if isinstance(programs, dict):
        for program, path in programs.items():
            program_line = source.line_of(program, line)
            yield FactFinding("entry_point", program, str(path), root=source.folder).at(program_line)


def read_deno_json(source: ProjectSource) -> Iterator[FactFinding]:
    """Tasks of deno; its own test runner needs none."""
    document = parse_manifest_json(_LINE_COMMENT.sub("", source.text))
    if document:
        yield command_finding(source, "test_command", "deno", ("deno", "test"))
    for name in get_manifest_table(document, "tasks"):
        yield from task_findings(source, "deno-task", name, ("deno", "task", name), source.line_of(name))


def _find_commented_json_problem(text: str) -> str:
    return find_json_problem(_LINE_COMMENT.sub("", text))


# ── what a change of a manifest touches ─────────────────────────────────────────────────────────────────────────────

_PACKAGE_JSON_DEPENDENCY_WORDS = (
    "dependencies devDependencies peerDependencies optionalDependencies bundledDependencies bundleDependencies overrides "
    "resolutions packageManager workspaces pnpm"
)
_PACKAGE_JSON_DEPENDENCY_KEYS = tuple(_PACKAGE_JSON_DEPENDENCY_WORDS.split())
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
_PACKAGE_JSON_RUNNERS = (
    "jest",
    "mocha",
    "ava",
    "vitest",
    "nyc",
    "c8",
    "tap",
)  # with settings in package.json


def _read_used_scripts(text: str, script_words: frozenset[str]) -> str:
    """The scripts that are asked for, with those before and after them and those that they ask for in turn."""
    manifest = json.loads(text)
    scripts = {**manifest.get("scripts", {}), **manifest.get("tasks", {})}
    words, used = set(script_words), dict[str, str]()
    while wanted := [name for name in scripts if name not in used and _is_used_script(name, words)]:
        for name in wanted:
            used[name] = json.dumps(scripts[name], ensure_ascii=False)
            words |= set(re.split(r"[\s\"'&|;]+", used[name]))
    return "\n".join(used.values() or map(json.dumps, scripts.values()))


def _is_used_script(name: str, words: set[str]) -> bool:
    plain = re.sub(r"^(?:pre|post)(?=\w)", "", name)
    return not words.isdisjoint({name, plain, f"@{name}", f"npm:{name}", "t" if plain == "test" else name})


def _read_runner_settings(text: str, _: frozenset[str]) -> dict[str, Any]:
    return {name: part for name, part in json.loads(text).items() if name in _PACKAGE_JSON_RUNNERS}


def _read_package_json_dependencies(text: str) -> Any:
    manifest = json.loads(text.strip() or "{}")
    scripts = manifest.get("scripts", {})
    return [
        *(manifest.get(key) for key in _PACKAGE_JSON_DEPENDENCY_KEYS),
        *(scripts.get(name) for name in _INSTALL_SCRIPTS),
    ]


JAVASCRIPT = Ecosystem(
    name="javascript",
    manifests=("package.json",),
    proposal_inputs=("package.json", "pnpm-workspace.yaml", "yarn.lock"),
    is_test=is_javascript_test,
    propose=propose_javascript,
    fact_readers=(
        FactReader("package.json", read_package_json, None, find_json_problem),
        FactReader("deno.json deno.jsonc", read_deno_json, None, _find_commented_json_problem),
        marker_reader("knexfile.js knexfile.ts", "database", "knex"),
        marker_reader("drizzle.config.ts drizzle.config.js", "database", "drizzle"),
        marker_reader("ormconfig.json", "database", "typeorm"),
        marker_reader("schema.prisma", "database", "prisma", mark="datasource"),
    ),
    preferred_runners=(("npm", "pnpm", "yarn", "bun"), ("deno",)),
    lock_files=f"{' '.join(JAVASCRIPT_LOCK_FILES)} deno.lock",
    install_inputs="package.json lerna.json pnpm-workspace.yaml .yarnrc.yml .npmrc .nvmrc",
    installed_entries="node_modules .yarn .pnp.cjs .pnp.loader.mjs .npm",
    manifest_parts={
        "package.json": ManifestParts(
            dependencies=_read_package_json_dependencies, used=_read_used_scripts, settings=_read_runner_settings),
        "deno.json": ManifestParts(used=_read_used_scripts),
    },
    decisive_files=(
        FileNameRule(
            "a package manager takes scripts and settings from it",
            "package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs pnpm-workspace.yaml bunfig.toml deno.json deno.jsonc "
            "lerna.json nx.json turbo.json", folders=".yarn", about="dependencies"),
        FileNameRule(
            "a JavaScript runner executes it",
            "jest.* jest-* jest_* *.jest.* vitest.* vitest-* vite.config.* babel.config.* .babelrc* .mocharc* mocha.* "
            "karma.* playwright.* playwright-* cypress.config.* ava.config.* .swcrc .taprc .nycrc* .c8rc* jasmine.*"),
        FileNameRule(
            LINTER_REASON,
            "tsconfig*.json jsconfig.json eslint.config.* .eslintrc* .eslintignore biome.json* .prettierrc* prettier.config.* "
            ".prettierignore .stylelintrc*", about="linter"),
        FileNameRule(INSTALLER_REASON, "binding.gyp install.js postinstall.* preinstall.*", about="dependencies"),
        FileNameRule(INSTALLED_REASON, "", folders="node_modules", about="dependencies"),
    ),
    test_files="test.js test.mjs test.cjs test.ts tests.js tests.ts *.cy.*",
    program_files={"npm npx pnpm yarn bun": "package.json", "deno": "deno.json deno.jsonc"},
    launchers="npx pnpm yarn bunx npm bun",
    test_runners="jest vitest mocha ava tap",
    test_subcommands="deno bun",
    runner_summaries=(
        RunnerSummaryPattern("jest", rf"^Tests: +(?P<parts>{COUNT_WITH_WORD}(?:, {COUNT_WITH_WORD}){{0,6}}), {COUNT_DIGITS} total$"),
        RunnerSummaryPattern("jest without tests", r"^No tests found, exiting with code 0$"),
        RunnerSummaryPattern("vitest", rf"^ +Tests +(?P<parts>{COUNT_WITH_WORD}(?: \| {COUNT_WITH_WORD}){{0,6}}) \({COUNT_DIGITS}\)$"),
        RunnerSummaryPattern("vitest without tests", r"^(?:No test files found, exiting with code 0| +Tests +no tests)$"),
        RunnerSummaryPattern("mocha passed", rf"^ +(?P<passed>{COUNT_DIGITS}) passing \("),
        RunnerSummaryPattern("mocha failed", rf"^ +(?P<failed>{COUNT_DIGITS}) failing$"),
        RunnerSummaryPattern("playwright", rf"^ +(?P<passed>{COUNT_DIGITS}) passed \("),
        RunnerSummaryPattern("node and tape passed", rf"^(?:#|ℹ) pass +(?P<passed>{COUNT_DIGITS})$"),
        RunnerSummaryPattern("node and tape failed", rf"^(?:#|ℹ) fail +(?P<failed>{COUNT_DIGITS})$"),
        RunnerSummaryPattern("tap", rf"^# \{{ total: {COUNT_DIGITS}, pass: (?P<passed>{COUNT_DIGITS})(?:, fail: (?P<failed>{COUNT_DIGITS}))?"),
        RunnerSummaryPattern("tap asserts", rf"^Asserts: +(?P<passed>{COUNT_DIGITS}) passed +(?P<failed>{COUNT_DIGITS}) failed "),
        RunnerSummaryPattern("tap without tests", r"^1\.\.0(?: #.{0,80})?$"),
        RunnerSummaryPattern("ava", rf"^ +(?P<parts>{COUNT_DIGITS} (?:tests?|known failures?|uncaught exceptions?) \w+)$"),
        RunnerSummaryPattern("bun passed", rf"^ (?P<passed>{COUNT_DIGITS}) pass$"),
        RunnerSummaryPattern("bun failed", rf"^ (?P<failed>{COUNT_DIGITS}) fail$"),
        RunnerSummaryPattern("uvu", rf"^ +Total: +(?P<ran>{COUNT_DIGITS})\n +Passed: +(?P<good>{COUNT_DIGITS})\n +Skipped: +{COUNT_DIGITS}$"),
        RunnerSummaryPattern("deno", rf"^(?:ok|FAILED) \| (?P<passed>{COUNT_DIGITS}) passed(?: \(.{{0,40}}\))? \| (?P<failed>{COUNT_DIGITS}) failed"),
    ),
    toolchain_variables="VOLTA_HOME NVM_DIR",
    network_variables="npm_config_registry NPM_CONFIG_REGISTRY NPM_TOKEN NODE_AUTH_TOKEN YARN_NPM_REGISTRY_SERVER",
    cache_directories={"npm_config_cache": ".npm"},
    offline_variables={"npm_config_offline": "true"},
)  # fmt: skip
