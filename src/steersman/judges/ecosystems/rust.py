"""Rust: a crate is set up by fetching its crates and checked by `cargo test`."""

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal, proposed_check_name

RUST_MANIFESTS = ("Cargo.toml",)
RUST_READ_FILES = ("Cargo.toml",)


def propose_rust(files: ProjectFiles) -> SetupProposal | None:
    """One proposal for a crate or a workspace; without a lock file in the repository, cargo makes one."""
    if "Cargo.toml" not in files.paths:
        return None
    locked = ("--locked",) if "Cargo.lock" in files.paths else ()
    workspace_option = ("--workspace",) if "workspace" in files.toml("Cargo.toml") else ()
    checks = {
        proposed_check_name("cargo", files.folder): Check(("cargo", "test", *workspace_option), files.folder)
    }
    fetches = [(SetupStep(("cargo", "fetch", *locked), files.folder),)]
    if locked:
        fetches.append((SetupStep(("cargo", "fetch"), files.folder),))
    return SetupProposal("rust", files.folder, tuple(SetupPlan(steps, checks) for steps in fetches))
