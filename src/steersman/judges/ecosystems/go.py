"""Go: a module is set up by downloading its modules and checked by `go test`."""

from steersman.contracts.config import Check, SetupStep
from steersman.judges.ecosystems.project import ProjectFiles, SetupPlan, SetupProposal, proposed_check_name

GO_MANIFESTS = ("go.mod",)
GO_READ_FILES = ("go.mod", "go.work")


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
