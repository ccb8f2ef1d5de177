"""What projects of every ecosystem have: task runners, CI, containers, owners, documentation, a licence, lock files.

Manifests of other ecosystems are not read. Each is named as unread, so that a plan knows what it cannot know.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from steersman.judges.ecosystems.ecosystem import (
    COUNT_DIGITS,
    COUNT_WITH_WORD,
    INSTALLER_REASON,
    LINTER_REASON,
    RECIPE_REASON,
    Ecosystem,
    FileNameRule,
    ManifestParts,
    RunnerSummaryPattern,
)
from steersman.judges.facts.finding import (
    TASK_NAME_PATTERN,
    FactFinding,
    FactReader,
    ProjectSource,
    classify_task_name,
    command_finding,
    is_anywhere_below,
    is_exactly_in,
    marker_reader,
    task_findings,
)
from steersman.judges.facts.reading import (
    MAX_LINE_WIDTH,
    find_toml_problem,
    get_manifest_table,
    list_manifest_texts,
    list_yaml_members,
    parse_manifest_toml,
)
from steersman.judges.text import lazy_pattern

_MAKE_TARGET = lazy_pattern(r"([A-Za-z0-9][\w./-]{0,80})[ \t]{0,40}:(?!:{0,2}=)")
_JUST_RECIPE = lazy_pattern(r"@?([A-Za-z_][\w-]{0,80})(?:[ \t]+[^:=\n]{0,200})?:(?!=)")
_MARKDOWN_HEADING = lazy_pattern(r"#{1,3}[ \t]{1,5}(\S.{0,300})")
_HEADING_UNDERLINE = lazy_pattern(r"(?:={3,200}|-{3,200})[ \t]{0,20}")
_MAX_OWNER_LINE = 2_000
_MAX_LICENCE_TEXT = 20_000  # characters: what a licence is stands at its beginning
# Words that only this licence has, the more particular ones first.
_LICENCE_PHRASES = {
    "gnu affero general public license": "AGPL-3.0",
    "gnu lesser general public license": "LGPL",
    "gnu general public license version 3": "GPL-3.0",
    "gnu general public license version 2": "GPL-2.0",
    "gnu general public license": "GPL",
    "apache license version 2.0": "Apache-2.0",
    "mozilla public license version 2.0": "MPL-2.0",
    "eclipse public license - v 2.0": "EPL-2.0",
    "boost software license": "BSL-1.0",
    "cc0 1.0 universal": "CC0-1.0",
    "this is free and unencumbered software released into the public domain": "Unlicense",
    "may be used to endorse or promote products derived": "BSD-3-Clause",
    "redistribution and use in source and binary forms": "BSD-2-Clause",
    "permission to use copy modify and/or distribute this software": "ISC",
    "permission is hereby granted free of charge to any person obtaining a copy": "MIT",
}
# Where each service looks: at the top of the project, or in a folder of its own.
_CI_FILES = {
    "gitlab-ci": ".gitlab-ci.yml .gitlab-ci.yaml", "travis-ci": ".travis.yml", "jenkins": "jenkinsfile",
    "azure-pipelines": "azure-pipelines.yml azure-pipelines.yaml", "appveyor": "appveyor.yml .appveyor.yml",
    "bitbucket-pipelines": "bitbucket-pipelines.yml", "drone": ".drone.yml", "cirrus-ci": ".cirrus.yml",
    "woodpecker": ".woodpecker.yml", "semaphore": ".semaphore.yml", "prow": ".prow.yaml",
    "cloud-build": "cloudbuild.yaml cloudbuild.yml", "codebuild": "codebuild.yml buildspec.yml",
}  # fmt: skip
_CI_DIRECTORIES = "circleci buildkite woodpecker semaphore teamcity tekton azure-pipelines"
_DATABASE_FILES = {
    "sqitch": "sqitch.conf", "dbt": "dbt_project.yml", "liquibase": "liquibase.properties", "flyway": "flyway.conf flyway.toml",
}  # fmt: skip
_INFRASTRUCTURE_FILES = {
    "terraform": "*.tf", "helm": "chart.yaml", "kustomize": "kustomization.yaml kustomization.yml", "ansible": "ansible.cfg",
    "pulumi": "pulumi.yaml", "aws-cdk": "cdk.json", "serverless": "serverless.yml serverless.yaml", "fly.io": "fly.toml",
    "skaffold": "skaffold.yaml", "nomad": "nomad.hcl", "vagrant": "vagrantfile", "nix": "flake.nix",
}  # fmt: skip
_UNREAD_MANIFESTS = (
    "cmakelists.txt meson.build configure.ac configure.in *.sln *.slnx *.csproj *.fsproj *.vbproj gemfile gems.rb "
    "*.gemspec composer.json mix.exs package.swift pubspec.yaml *.cabal stack.yaml"
)


def read_configured_checks(source: ProjectSource) -> Iterator[FactFinding]:
    """The checks that a project has given steersman: a plan that leaves them out could never be carried out.

    What the name does not say is a test.
    """
    for name, argv in get_manifest_table(parse_manifest_toml(source.text), "checks").items():
        arguments = list_manifest_texts(argv)
        if arguments and arguments == argv and TASK_NAME_PATTERN.fullmatch(name):
            kind = classify_task_name(name) or "test_command"
            line = source.line_with(name, source.line_with("[checks]"))
            yield command_finding(source, kind, f"check:{name}", tuple(arguments)).at(line)


def read_makefile(source: ProjectSource) -> Iterator[FactFinding]:
    """Targets whose names say what they are for; `check` tests, as is the custom with make."""
    target_names: set[str] = set()
    for number, line in enumerate(source.lines, 1):
        target = _MAKE_TARGET.match(line)
        if target is None or target[1] in target_names:
            continue
        target_names.add(target[1])
        if target[1] == "check":
            yield command_finding(source, "test_command", "make:check", ("make", "check")).at(number)
        yield from task_findings(source, "make", target[1], ("make", target[1]), number)


def read_justfile(source: ProjectSource) -> Iterator[FactFinding]:
    """Recipes."""
    for number, line in enumerate(source.lines, 1):
        recipe = _JUST_RECIPE.match(line[:MAX_LINE_WIDTH])
        if recipe is not None:
            yield from task_findings(source, "just", recipe[1], ("just", recipe[1]), number)


def read_taskfile(source: ProjectSource) -> Iterator[FactFinding]:
    """Tasks of go-task."""
    for name, line in list_yaml_members(source.lines, "tasks"):
        yield from task_findings(source, "task", name, ("task", name), line)


def read_github_workflow(source: ProjectSource) -> Iterator[FactFinding]:
    """A workflow of GitHub Actions, with its jobs."""
    jobs = list_yaml_members(source.lines, "jobs")
    if jobs:
        name, job_names = source.name.rpartition(".")[0], ", ".join(job for job, _ in jobs)
        first, last = jobs[0][1], jobs[-1][1]
        yield FactFinding("ci", f"github-actions:{name}", job_names, first=first, last=last)


def read_codeowners(source: ProjectSource) -> Iterator[FactFinding]:
    """Rules that name an owner: a pattern, and a name with an @ or an address behind it."""
    lines = [(number, line[:_MAX_OWNER_LINE]) for number, line in enumerate(source.lines, 1)]
    rules = [n for n, line in lines if line[:1] not in "#[" and any("@" in word for word in line.split()[1:])]
    if rules:
        yield FactFinding("ownership", "codeowners", f"{len(rules)} rules", first=rules[0], last=rules[-1])


def read_documentation_page(source: ProjectSource) -> Iterator[FactFinding]:
    """A page by its customary name, with its first heading."""
    name = source.name.casefold().partition(".")[0]
    for number, (line, following) in enumerate(pairwise([*source.lines, ""]), 1):
        heading = _MARKDOWN_HEADING.match(line[:400])
        title = heading[1] if heading else line[:400] if _HEADING_UNDERLINE.fullmatch(following) else ""
        if re.search(r"\w", title):
            yield FactFinding("documentation", name, title.strip(), root=source.folder).at(number)
            return
    yield FactFinding("documentation", name, root=source.folder)


def read_licence_file(source: ProjectSource) -> Iterator[FactFinding]:
    """Which licence it is by its words; `unknown` where they are none of a known one."""
    words = re.sub(r"[\s,]+", " ", source.text[:_MAX_LICENCE_TEXT]).casefold()
    name = next((name for phrase, name in _LICENCE_PHRASES.items() if phrase in words), "unknown")
    line = next((n for n, text in enumerate(source.lines, 1) if text.strip()), 0)
    if line:
        yield FactFinding("licence", name, root=source.folder).at(line)


def _unread_ecosystem_problem(_: str) -> str:
    return ": manifests of this kind are not read"


_PAGES = "readme contributing security changelog changes history architecture code_of_conduct support governance agents claude"
_PAGE_NAMES = " ".join(
    f"{n}{e}" for n in _PAGES.split() for e in ("", ".md", ".rst", ".txt", ".adoc", ".markdown")
)
UNREAD_MANIFEST_READER = FactReader(_UNREAD_MANIFESTS, find_problem=_unread_ecosystem_problem)
_AT_TOP = is_exactly_in()
_GENERIC_READERS = (
    FactReader("steersman.toml", read_configured_checks, _AT_TOP, find_toml_problem),
    FactReader("makefile gnumakefile", read_makefile),
    FactReader("justfile .justfile", read_justfile),
    FactReader("taskfile.yml taskfile.yaml", read_taskfile),
    marker_reader(".pre-commit-config.yaml", "lint_command", "pre-commit", argv=("pre-commit", "run", "--all-files"), mark="repos:"),
    FactReader("*.yml *.yaml", read_github_workflow, is_exactly_in(".github/workflows")),
    *(marker_reader(names, "ci", name, where=_AT_TOP) for name, names in _CI_FILES.items()),
    *(marker_reader("*.yml *.yaml *.kts", "ci", name, where=is_exactly_in(f".{name}")) for name in _CI_DIRECTORIES.split()),
    marker_reader("dockerfile containerfile dockerfile.* *.dockerfile", "container", "image:{path}", mark="FROM"),
    marker_reader("docker-compose*.yml docker-compose*.yaml compose.yml compose.yaml", "container", "compose:{path}", mark="services:"),
    marker_reader("devcontainer.json .devcontainer.json", "container", "devcontainer:{path}"),
    FactReader("codeowners", read_codeowners, is_exactly_in(".", ".github", "docs", ".gitlab")),
    marker_reader("owners owners_aliases", "ownership", "owners"),
    marker_reader("maintainers maintainers.md maintainers.txt", "ownership", "maintainers"),
    FactReader(_PAGE_NAMES, read_documentation_page, is_exactly_in(".", ".github", "docs")),
    FactReader("license license.* license-* licence licence.* copying copying.* unlicense unlicense.*", read_licence_file, is_exactly_in(".", "LICENSES", "licenses")),
    *(marker_reader(names, "database", name) for name, names in _DATABASE_FILES.items()),
    *(marker_reader(names, "infrastructure", name) for name, names in _INFRASTRUCTURE_FILES.items()),
    marker_reader("*.sql", "database", "migrations", value="sql", where=is_anywhere_below("migrations", "migration", "migrate")),
)  # fmt: skip


# ── what a change of a manifest touches ─────────────────────────────────────────────────────────────────────────────

_MAKE_RULE = re.compile(r"^(?P<targets>[^\s:=#][^:=#\n]{0,2000}?)\s*::?(?!=)(?P<needs>[^=\n]*)$")
_MAKE_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?[\w.-]+\s*(?:[:?+!]|::)?=")
_RECURSIVE_MAKE = re.compile(r"\$[({]MAKE[)}]|\b(?:make|just)\b")


def _read_make_recipes(text: str, target_words: frozenset[str]) -> str:
    """The recipes of the targets that are asked for and of what these need, and lines such as an include."""
    rules: dict[str, list[str]] = {}
    others: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in ("\t", " ") and current:
            for target in current:
                rules[target].append(line.strip())
        elif (rule := _MAKE_RULE.match(line)) is not None:
            current = rule["targets"].split()
            for target in current:
                rules.setdefault(target, []).append(rule["needs"])
        else:
            current = []
            others += [] if line.startswith("#") or _MAKE_ASSIGNMENT.match(line) else [line]
    return "\n".join((*_collect_used_recipes(rules, target_words), *others))


def _collect_used_recipes(rules: Mapping[str, list[str]], target_words: frozenset[str]) -> list[str]:
    wanted = [target for target in rules if target in target_words] or list(rules)
    used: dict[str, list[str]] = {}
    while wanted:
        target = wanted.pop()
        if target in rules and target not in used:
            needs, *used[target] = rules[target]
            calls = [line for line in used[target] if _RECURSIVE_MAKE.search(line)]
            wanted += " ".join((needs, *calls)).replace(";", " ").split()
            used[target] += [needs] if ";" in needs else []
    return [line for lines in used.values() for line in lines]


def _read_make_assignments(text: str, _: frozenset[str]) -> list[str]:
    return [line for line in text.splitlines() if _MAKE_ASSIGNMENT.match(line)]


GENERIC = Ecosystem(
    name="generic",
    fact_readers=(*_GENERIC_READERS, UNREAD_MANIFEST_READER),
    lock_files="packages.lock.json Gemfile.lock composer.lock mix.lock Package.resolved pubspec.lock Podfile.lock "
    "cabal.project.freeze stack.yaml.lock flake.lock conan.lock .terraform.lock.hcl",
    install_inputs=".tool-versions Gemfile composer.json",
    installed_entries=".bundle .cache",
    manifest_parts={
        "makefile gnumakefile justfile": ManifestParts(
            dependencies=lambda _: "", used=_read_make_recipes, settings=_read_make_assignments),
        ".justfile": ManifestParts(used=_read_make_recipes),
    },
    decisive_files=(
        FileNameRule(INSTALLER_REASON, "extconf.rb", about="dependencies"),
        FileNameRule(
            "a build or CI service executes it",
            ".gitlab-ci.yml jenkinsfile* azure-pipelines*.yml bitbucket-pipelines.yml .travis.yml appveyor.yml .appveyor.yml "
            ".drone.yml .woodpecker* buildspec.yml cloudbuild.yaml", folders=".github .gitlab .circleci .buildkite", about="ci"),
        FileNameRule(
            "a container is built or started from it",
            "dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml .devcontainer.json vagrantfile "
            "procfile* fly.toml *.nix", folders=".devcontainer", about="ci"),
        FileNameRule(
            "git starts programs because of it",
            ".gitattributes .gitmodules .gitconfig lefthook.y*ml .lefthook.y*ml .pre-commit-config.yaml "
            ".pre-commit-hooks.yaml .lintstagedrc*", folders=".git .githooks githooks .husky .lefthook", about="ci"),
        FileNameRule(
            "a shell or an editor executes it",
            ".envrc .env .env.* .bashrc .bash_profile .profile .zshrc .zshenv .vimrc .exrc .gdbinit .pdbrc *.code-workspace "
            ".mise.toml mise.toml .tool-versions .python-version .node-version .nvmrc .ruby-version",
            folders=".vscode .idea .zed .mise", about="ci"),
        FileNameRule(
            "a native library or an archive is loaded as it is",
            "*.so *.so.* *.dylib *.dll *.pyd *.node *.jar *.war *.wasm *.exe *.whl *.egg", about="dependencies"),
        FileNameRule(LINTER_REASON, "phpstan*.neon* psalm.xml* .rubocop.yml .shellcheckrc .yamllint* .markdownlint*", about="linter"),
        FileNameRule(RECIPE_REASON, "makefile gnumakefile *.mk justfile .justfile taskfile*.yml taskfile*.yaml rakefile cmakelists.txt", about="recipe"),
        FileNameRule(
            "another language's test runner reads it",
            "phpunit*.xml* composer.json pest.php gemfile *.gemspec .rspec* mix.exs build.sbt *.csproj *.fsproj *.sln *.slnx "
            "*.props *.targets directory.build.* nuget.config global.json *.runsettings package.swift pubspec.yaml "
            "dart_test.yaml stack.yaml *.cabal"),
        FileNameRule("it says what steersman runs", "steersman.toml .worktreeinclude", folders=".steersman"),
    ),
    test_files="test_*.* test-*.* test.c test.cc test.cpp test.rb test.php test.pl test.lua test.hs tests.c tests.cpp "
    "tests.rb *_test.* *_tests.* *-test.* *_spec.* *-spec.* *.test.* *.spec.* *.tests.* *.steps.* *_steps.* *test.cs *tests.cs "
    "*test.php *tests.swift *test.swift *spec.hs *test.hs *_suite.erl *.t *.snap *.feature *.e2e.* *.approved.* *.verified.*",
    program_files={
        "make gmake": "makefile gnumakefile", "just": "justfile .justfile", "task": "taskfile.yml taskfile.yaml",
        "rake": "rakefile", "composer": "composer.json",
    },
    launchers="env xvfb-run",
    test_runners="rspec phpunit pest ctest",
    test_subcommands="dotnet swift mix flutter dart",
    runner_summaries=(
        RunnerSummaryPattern("pest", rf"^ +Tests: +(?P<parts>{COUNT_WITH_WORD}(?:, {COUNT_WITH_WORD}){{0,6}}) \({COUNT_DIGITS} assertions?\)$"),
        RunnerSummaryPattern("prove", rf"^Files={COUNT_DIGITS}, Tests=(?P<ran>{COUNT_DIGITS}), "),
        RunnerSummaryPattern("rspec", rf"^(?P<ran>{COUNT_DIGITS}) examples?, (?P<failures>{COUNT_DIGITS}) failures?(?:, (?P<skipped>{COUNT_DIGITS}) pending)?(?:, {COUNT_DIGITS} errors? .{{0,60}})?$"),
        RunnerSummaryPattern("minitest", rf"^(?P<ran>{COUNT_DIGITS}) runs, {COUNT_DIGITS} assertions, (?P<failures>{COUNT_DIGITS}) failures, (?P<errors>{COUNT_DIGITS}) errors, (?P<skipped>{COUNT_DIGITS}) skips$"),
        RunnerSummaryPattern("test-unit", rf"^(?P<ran>{COUNT_DIGITS}) tests, {COUNT_DIGITS} assertions, (?P<failures>{COUNT_DIGITS}) failures, (?P<errors>{COUNT_DIGITS}) errors, (?P<skipped>{COUNT_DIGITS}) pendings, (?P<left>{COUNT_DIGITS}) omissions, "),
        RunnerSummaryPattern("phpunit passed", rf"^OK \((?P<passed>{COUNT_DIGITS}) tests?, "),
        RunnerSummaryPattern("phpunit", rf"^Tests: (?P<ran>{COUNT_DIGITS}), Assertions: {COUNT_DIGITS}(?:, (?!Skipped|Incomplete)[A-Z][A-Za-z ]{{0,40}}: {COUNT_DIGITS}){{0,6}}(?:, Skipped: (?P<skipped>{COUNT_DIGITS}))?(?:, Incomplete: (?P<left>{COUNT_DIGITS}))?"),
        RunnerSummaryPattern("phpunit without tests", r"^No tests executed!$"),
        RunnerSummaryPattern("dotnet", rf"^(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>{COUNT_DIGITS}), Passed: +(?P<passed>{COUNT_DIGITS}), "),
        RunnerSummaryPattern("dotnet summary", rf"^Test summary: total: {COUNT_DIGITS}, failed: (?P<failed>{COUNT_DIGITS}), succeeded: (?P<passed>{COUNT_DIGITS}), "),
        RunnerSummaryPattern("dotnet without tests", r"^No test (?:is available in|matches the given) "),
        RunnerSummaryPattern("ctest", rf"^\d+% tests passed, (?P<failures>{COUNT_DIGITS}) tests? failed out of (?P<ran>{COUNT_DIGITS})$"),
        RunnerSummaryPattern("ctest skipped", r"^\s+\d+ - .{1,200} \((?P<not_run>Skipped|Disabled|Not Run)\)"),
        RunnerSummaryPattern("ctest without tests", r"^No tests were found!!!$"),
        RunnerSummaryPattern("xctest", rf"^\s*Executed (?P<ran>{COUNT_DIGITS}) tests?, with (?:(?P<skipped>{COUNT_DIGITS}) tests? skipped and )?{COUNT_DIGITS} failures?", nested=True),
        RunnerSummaryPattern("swift testing", rf"Test run with (?P<ran>{COUNT_DIGITS}) tests?(?: in {COUNT_DIGITS} suites?)? (?:passed|failed) after "),
        RunnerSummaryPattern("mix", rf"^(?:(?P<passed>{COUNT_DIGITS}) (?:doctests?|propert(?:y|ies)), )?(?P<ran>{COUNT_DIGITS}) tests?, (?P<failures>{COUNT_DIGITS}) failures?(?:, (?P<errors>{COUNT_DIGITS}) invalid)?(?:, (?P<left>{COUNT_DIGITS}) excluded)?(?:, (?P<skipped>{COUNT_DIGITS}) skipped)?$"),
        RunnerSummaryPattern("mix without tests", r"^There are no tests to run$"),
        RunnerSummaryPattern("dart", rf"\+(?P<passed>{COUNT_DIGITS})(?: ~{COUNT_DIGITS})?(?: -(?P<failed>{COUNT_DIGITS}))?: (?:All tests passed!|Some tests failed\.|All tests skipped\.)"),
        RunnerSummaryPattern("dart on GitHub", rf"^(?:🎉 |::error::)(?P<parts>{COUNT_DIGITS} tests? passed(?:, {COUNT_WITH_WORD}){{0,3}})\.$"),
        RunnerSummaryPattern("dart without tests", r"^No tests (?:ran\.|were found\.|match )"),
        RunnerSummaryPattern("googletest passed", rf"^\[  PASSED  \] (?P<passed>{COUNT_DIGITS}) tests?\."),
        RunnerSummaryPattern("googletest failed", rf"^\[  FAILED  \] (?P<failed>{COUNT_DIGITS}) tests?, listed below:$"),
        RunnerSummaryPattern("catch2", rf"^All tests passed \({COUNT_DIGITS} assertions? in (?P<passed>{COUNT_DIGITS}) test cases?\)$"),
        RunnerSummaryPattern("catch2 without tests", r"^No tests ran$"),
    ),
    toolchain_variables="ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR DOTNET_ROOT CC CXX PKG_CONFIG_PATH",
)  # fmt: skip
