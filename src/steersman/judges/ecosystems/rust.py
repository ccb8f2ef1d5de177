"""Rust: a crate is set up by fetching its crates and checked by `cargo test`."""

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import Plan, ProjectFiles, Proposal, check_name

MANIFESTS = ("Cargo.toml",)
READ = ("Cargo.toml",)


def propose_rust(files: ProjectFiles) -> Proposal | None:
    """One proposal for a crate or a workspace; without a lock file in the repository, cargo makes one."""
    if "Cargo.toml" not in files.paths:
        return None
    locked = ("--locked",) if "Cargo.lock" in files.paths else ()
    whole = ("--workspace",) if "workspace" in files.toml("Cargo.toml") else ()
    checks = {check_name("cargo", files.folder): Check(("cargo", "test", *whole), files.folder)}
    fetches = [(SetupStep(("cargo", "fetch", *locked), files.folder),)]
    if locked:
        fetches.append((SetupStep(("cargo", "fetch"), files.folder),))
    return Proposal("rust", files.folder, tuple(Plan(steps, checks) for steps in fetches))
