"""Rust: a crate is set up by fetching its crates and checked by `cargo test`."""

import tomllib
from collections.abc import Iterator
from typing import Any

from steersman.contracts.config import Check, SetupStep
from steersman.contracts.planning.context import FactKind
from steersman.judges.config.toml_lines import find_nearest_toml_line, find_toml_lines
from steersman.judges.ecosystems.ecosystem import (
    COUNT_DIGITS,
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
from steersman.judges.facts.reading import (
    find_toml_problem,
    get_manifest_table,
    get_manifest_text,
    parse_manifest_toml,
)

_KNOWN_DEPENDENCIES = parse_known_dependencies(
    frameworks="tokio axum actix-web=actix rocket warp clap tauri bevy leptos tonic hyper diesel",
    databases="sqlx=sql postgres=postgresql tokio-postgres=postgresql rusqlite=sqlite redis mongodb",
)
_CARGO_COMMANDS: tuple[tuple[FactKind, tuple[str, ...]], ...] = (
    ("test_command", ("cargo", "test")),
    ("build_command", ("cargo", "build")),
)


def propose_rust(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a crate or a workspace; without a lock file in the repository, cargo makes one."""
    if "Cargo.toml" not in files.paths:
        return None
    locked = ("--locked",) if "Cargo.lock" in files.paths else ()
    option = ("--workspace",) if "workspace" in files.toml("Cargo.toml") else ()
    checks = {proposed_check_name("cargo", files.folder): Check(("cargo", "test", *option), files.folder)}
    fetches = [(SetupStep(("cargo", "fetch", *locked), files.folder),)]
    if locked:
        fetches.append((SetupStep(("cargo", "fetch"), files.folder),))
    return SetupProposal("rust", files.folder, tuple(SetupPlan(steps, checks) for steps in fetches))


def read_cargo_manifest(source: ProjectSource) -> Iterator[FactFinding]:
    """A crate, or a workspace of crates."""
    document = parse_manifest_toml(source.text)
    lines = find_toml_lines(source.text) if document else {}
    package = get_manifest_table(document, "package")

    def find_line(*path: str) -> int:
        return find_nearest_toml_line(lines, path) or 0

    for kind, argv in _CARGO_COMMANDS:
        yield command_finding(source, kind, "cargo", argv).at(find_line("workspace") or find_line("package"))
    name, version = (get_manifest_text(package, key) for key in ("name", "version"))
    if name:
        yield FactFinding("package", name, version, root=source.folder).at(find_line("package", "name"))
    programs = document.get("bin")
    for program in programs if isinstance(programs, list) else []:
        name = get_manifest_text(program, "name") if isinstance(program, dict) else ""
        if name:
            path = get_manifest_text(program, "path")
            yield FactFinding("entry_point", name, path, root=source.folder).at(find_line("bin"))
    for group in (("dependencies",), ("dev-dependencies",), ("workspace", "dependencies")):
        for name, requirement in get_manifest_table(document, *group).items():
            version = (
                get_manifest_text(requirement, "version")
                if isinstance(requirement, dict)
                else str(requirement)
            )
            yield from _KNOWN_DEPENDENCIES.findings(source, name, version, find_line(*group, name))


# ── what a change of a manifest touches ─────────────────────────────────────────────────────────────────────────────


def _read_cargo_targets(text: str, _: frozenset[str]) -> dict[str, Any]:
    manifest = tomllib.loads(text)
    package, library = manifest.get("package", {}), manifest.get("lib", {})
    targets = {key: manifest.get(key) for key in ("test", "bench", "bin", "example")}
    targets |= {key: library.get(key) for key in ("doctest", "harness", "path")}
    targets |= {"of lib": library.get("test"), "build": package.get("build")}
    return {key: value for key, value in targets.items() if value is not None}


def _read_cargo_dependencies(text: str) -> Any:
    return list(_find_cargo_dependency_tables(tomllib.loads(text)))


def _find_cargo_dependency_tables(table: Any, name: str = "") -> Any:
    if isinstance(table, dict):
        for key, value in table.items():
            if key.endswith("dependencies") or key in ("patch", "replace"):
                yield f"{name}.{key}", value
            elif key in ("target", "workspace") or name.startswith(".target"):
                yield from _find_cargo_dependency_tables(value, f"{name}.{key}")


def _find_cargo_dependency_paths(text: str) -> list[str]:
    paths = []
    for _, table in _find_cargo_dependency_tables(tomllib.loads(text)):
        for value in table.values() if isinstance(table, dict) else ():
            inner = [value, *(value.values() if isinstance(value, dict) else ())]
            paths += [
                spec["path"] for spec in inner if isinstance(spec, dict) and isinstance(spec.get("path"), str)
            ]
    return paths


RUST = Ecosystem(
    name="rust",
    manifests=("Cargo.toml",),
    proposal_inputs=("Cargo.toml",),
    propose=propose_rust,
    fact_readers=(
        FactReader("cargo.toml", read_cargo_manifest, None, find_toml_problem),
        marker_reader("rustfmt.toml .rustfmt.toml", "format_command", "cargo-fmt", argv=("cargo", "fmt", "--check")),
        marker_reader("clippy.toml .clippy.toml", "lint_command", "clippy", argv=("cargo", "clippy")),
        marker_reader("diesel.toml", "database", "diesel"),
    ),
    preferred_runners=(("cargo",),),
    lock_files="Cargo.lock",
    install_inputs="Cargo.toml rust-toolchain*",
    manifest_parts={
        "cargo.toml": ManifestParts(
            dependencies=_read_cargo_dependencies, used=lambda _text, _words: "", settings=_read_cargo_targets,
            dependency_paths=_find_cargo_dependency_paths),
    },
    decisive_files=(
        FileNameRule("cargo builds with it", "cargo.toml build.rs rust-toolchain rust-toolchain.toml nextest.toml", folders=".cargo"),
        FileNameRule(LINTER_REASON, "rustfmt.toml .rustfmt.toml clippy.toml .clippy.toml deny.toml", about="linter"),
    ),
    test_files="test.rs tests.rs",
    test_subcommands="cargo",
    runner_summaries=(
        RunnerSummaryPattern("cargo", rf"^test result: \w+\. (?P<passed>{COUNT_DIGITS}) passed; (?P<failed>{COUNT_DIGITS}) failed; "),
        RunnerSummaryPattern("nextest", rf"^ +Summary \[.{{0,20}}\] +(?:{COUNT_DIGITS}/)?(?P<ran>{COUNT_DIGITS}) tests? run: (?P<good>{COUNT_DIGITS}) passed"),
    ),
    toolchain_variables="RUSTUP_HOME RUSTUP_TOOLCHAIN",
    network_variables="CARGO_NET_GIT_FETCH_WITH_CLI CARGO_REGISTRY_TOKEN",
    cache_directories={"CARGO_HOME": ".cargo"},
    offline_variables={"CARGO_NET_OFFLINE": "true"},
)  # fmt: skip
