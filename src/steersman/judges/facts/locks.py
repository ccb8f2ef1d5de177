"""Lock files: exact versions of what a project depends on, known by their names."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource

LOCK_FILE_NAMES = (
    "uv.lock poetry.lock pipfile.lock pdm.lock pylock.toml package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml "
    "bun.lock bun.lockb deno.lock go.sum cargo.lock gradle.lockfile packages.lock.json gemfile.lock composer.lock mix.lock "
    "package.resolved pubspec.lock podfile.lock cabal.project.freeze stack.yaml.lock flake.lock conan.lock .terraform.lock.hcl"
)


def read_lock_file(source: ProjectSource) -> Iterator[FactFinding]:
    """It is there."""
    yield FactFinding("lock_file", source.name, root=source.folder)


LOCK_FILE_READERS = (FactReader(LOCK_FILE_NAMES, read_lock_file),)
