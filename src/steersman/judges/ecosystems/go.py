"""Go: a module is set up by downloading its modules and checked by `go test`."""

import re
from collections.abc import Iterator
from typing import Any

from steersman.contracts.config import Check, SetupStep
from steersman.contracts.planning.context import FactKind
from steersman.judges.ecosystems.ecosystem import (
    COUNT_DIGITS,
    INSTALLED_REASON,
    LINTER_REASON,
    Ecosystem,
    FileNameRule,
    ManifestParts,
    RunnerSummaryPattern,
)
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal, proposed_check_name
from steersman.judges.facts.finding import (
    FactFinding,
    FactReader,
    ProjectSource,
    command_finding,
    marker_reader,
    parse_known_dependencies,
)
from steersman.judges.text import lazy_pattern

_KNOWN_DEPENDENCIES = parse_known_dependencies(
    frameworks="github.com/gin-gonic/gin=gin github.com/labstack/echo=echo github.com/gofiber/fiber=fiber "
    "github.com/go-chi/chi=chi github.com/spf13/cobra=cobra google.golang.org/grpc=grpc "
    "github.com/gorilla/mux=gorilla/mux k8s.io/client-go=client-go sigs.k8s.io/controller-runtime=controller-runtime",
    databases="github.com/lib/pq=postgresql github.com/jackc/pgx=postgresql github.com/go-sql-driver/mysql=mysql "
    "github.com/mattn/go-sqlite3=sqlite github.com/redis/go-redis=redis github.com/go-redis/redis=redis "
    "go.mongodb.org/mongo-driver=mongodb go.etcd.io/etcd/client=etcd",
)
_GO_MODULE_LINE = lazy_pattern(r"module[ \t]{1,20}\"?([^\s\"]{1,200})")
_GO_VERSION_LINE = lazy_pattern(r"go[ \t]{1,20}(\d[\w.]{0,20})")
_GO_REQUIRE_LINE = lazy_pattern(
    r"(?:require)?[ \t]{1,20}([\w.-]{1,80}\.[\w.~/-]{1,200})[ \t]{1,20}(v[\w.+-]{1,80})(.{0,40})"
)
_MAJOR_VERSION_SUFFIX = lazy_pattern(r"/v\d{1,4}$")
_GO_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("go", "test", "./...")),
    ("build_command", ("go", "build", "./...")),
    ("lint_command", ("go", "vet", "./...")),
)
_GO_MODULE_START = lazy_pattern(r"(?m)^[ \t]{0,20}module[ \t]")


def propose_go(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a module with tests; `./...` covers its packages, not the modules below it."""
    if "go.mod" not in files.paths or not any(_is_own_go_test(files, path) for path in files.paths):
        return None
    steps = (SetupStep(("go", "mod", "download"), files.folder),) if "require" in files.text("go.mod") else ()
    checks = {proposed_check_name("go", files.folder): Check(("go", "test", "./..."), files.folder)}
    return SetupProposal("go", files.folder, (SetupPlan(steps, checks),))


def _is_own_go_test(files: ProjectFiles, path: str) -> bool:
    """A test of this module, not of one below it."""
    if not path.endswith("_test.go"):
        return False
    above = path.split("/")[:-1]
    return not any(f"{'/'.join(above[:n])}/go.mod" in files.paths for n in range(1, len(above) + 1))


def read_go_module(source: ProjectSource) -> Iterator[FactFinding]:
    """A module: its name, its commands, and what it requires directly; a file that names none is none."""
    module_line = next(
        (n for n, line in enumerate(source.lines, 1) if _GO_MODULE_LINE.match(line) is not None), 0
    )
    if not module_line:
        return
    for kind, argv in _GO_COMMANDS:
        yield command_finding(source, kind, "go", argv).at(module_line)
    version = next(
        (match[1] for line in source.lines if (match := _GO_VERSION_LINE.match(line)) is not None), ""
    )
    for number, line in enumerate(source.lines, 1):
        module_match, requirement = _GO_MODULE_LINE.match(line), _GO_REQUIRE_LINE.match(line)
        if module_match is not None:
            yield FactFinding("package", module_match[1], version, root=source.folder).at(number)
        elif requirement is not None and "indirect" not in requirement[3]:
            yield from _KNOWN_DEPENDENCIES.findings(
                source, _MAJOR_VERSION_SUFFIX.sub("", requirement[1]), requirement[2], number
            )


def read_go_program(source: ProjectSource) -> Iterator[FactFinding]:
    """A main package."""
    line = next((n for n, line in enumerate(source.lines, 1) if line.split() == ["package", "main"]), 0)
    if line:
        yield FactFinding("entry_point", source.path, "go run", root=source.folder).at(line)


def _find_go_module_problem(text: str) -> str:
    return "" if _GO_MODULE_START.search(text) else ": it names no module"


# ── what a change of a manifest touches ─────────────────────────────────────────────────────────────────────────────


def _read_go_dependencies(text: str) -> Any:
    lines = (line.strip() for line in _remove_go_comments(text).splitlines())
    return [line for line in lines if line and not re.match(r"(?:module|go)\s", line)]


def _remove_go_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def _find_replaced_paths(text: str) -> list[str]:
    return re.findall(r"=>[ \t]*(\.{1,2}/[^\s]*|/[^\s]*)", _remove_go_comments(text))


def _find_used_paths(text: str) -> list[str]:
    used = re.findall(r"^\s*(?:use\s+)?(\.\.[^\s)]*|/[^\s)]+)\s*$", _remove_go_comments(text), re.MULTILINE)
    return [*_find_replaced_paths(text), *used]


GO = Ecosystem(
    name="go",
    manifests=("go.mod",),
    proposal_inputs=("go.mod", "go.work"),
    propose=propose_go,
    covers_below=False,
    fact_readers=(
        FactReader("go.mod", read_go_module, None, _find_go_module_problem),
        FactReader("main.go", read_go_program),
        marker_reader(".golangci.yml .golangci.yaml .golangci.toml .golangci.json", "lint_command", "golangci-lint", argv=("golangci-lint", "run")),
    ),
    preferred_runners=(("go",),),
    lock_files="go.sum",
    install_inputs="go.mod go.work go.work.sum",
    installed_entries="go.work.sum vendor",
    manifest_parts={
        "go.mod": ManifestParts(dependencies=_read_go_dependencies, used=lambda _text, _words: "", dependency_paths=_find_replaced_paths),
        "go.work": ManifestParts(dependencies=_read_go_dependencies, used=lambda _text, _words: "", dependency_paths=_find_used_paths),
    },
    decisive_files=(
        FileNameRule("go builds with it", "go.mod go.work go.work.sum go.env modules.txt", about="dependencies"),
        FileNameRule(LINTER_REASON, ".golangci.y*ml .golangci.toml staticcheck.conf", about="linter"),
        FileNameRule(INSTALLED_REASON, "", top_folders="vendor", about="dependencies"),
    ),
    test_runners="gotestsum",
    test_subcommands="go",
    runner_summaries=(
        RunnerSummaryPattern("go", r"^--- (?P<one>PASS|FAIL): Test\S{0,300} \("),
        RunnerSummaryPattern("go without tests", r"^(?:ok|\?) .{0,300}\[no (?:tests to run|test files)\]$"),
        RunnerSummaryPattern("gotestsum", rf"^DONE (?:{COUNT_DIGITS} runs, )?(?P<ran>{COUNT_DIGITS}) tests?(?:, (?P<skipped>{COUNT_DIGITS}) skipped)?(?:, {COUNT_DIGITS} (?:failures?|errors?)){{0,2}} in "),
    ),
    toolchain_variables="GOROOT GOTOOLCHAIN",
    network_variables="GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GOSUMDB GOINSECURE",
    cache_directories={"GOCACHE": ".cache/go-build", "GOMODCACHE": "go/pkg/mod"},
)  # fmt: skip
