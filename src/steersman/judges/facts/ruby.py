"""Ruby projects: Gemfile, gemspec, Rakefile, RSpec, RuboCop."""

from collections.abc import Iterator

from steersman.judges.facts.finding import FactFinding, FactReader, ProjectSource, command_finding
from steersman.judges.facts.stacks import dependency_findings
from steersman.judges.facts.tasks import task_findings
from steersman.judges.patterns import lazy_pattern

_GEMFILE_GEM = lazy_pattern(
    r"""\s{0,40}gem[ (]{1,3}["']([\w-]{1,100})["'](?:\s{0,5},\s{0,5}["']([^"']{0,60})["'])?"""
)
_GEMSPEC_DEPENDENCY = lazy_pattern(
    r"""\s{0,40}\w{1,40}\.add_(?:runtime_|development_)?dependency[ (]{1,3}["']([\w-]{1,100})["']"""
)
_GEMSPEC_NAME = lazy_pattern(
    r"""\s{0,40}(?:\w{1,40}\.name\s{0,20}=\s{0,20}|Gem::Specification\.new[ (]{1,3})["']([\w-]{1,100})["']"""
)
_RAKE_TASK = lazy_pattern(
    r"""\s{0,40}(?:task|Rake::TestTask\.new|RSpec::Core::RakeTask\.new)[ (]{1,3}:?["']?(\w{1,60})"""
)
_BARE_TEST_TASK = lazy_pattern(
    r"\s{0,40}(?:Rake::TestTask\.new|Minitest::TestTask\.create)(?:\s{0,5}do\b|\s{0,5}\{|\s{0,5}(?:#.*)?$)"
)
_MAX_RUBY_LINE = 400


def _bundler_argv(source: ProjectSource, *argv: str) -> tuple[str, ...]:
    return ("bundle", "exec", *argv) if source.has("Gemfile") else argv


def read_gemfile(source: ProjectSource) -> Iterator[FactFinding]:
    """Gems."""
    for number, line in enumerate(source.lines, 1):
        gem = _GEMFILE_GEM.match(line[:_MAX_RUBY_LINE])
        if gem is not None:
            yield from dependency_findings(source, "ruby", gem[1], gem[2] or "", number)


def read_gemspec(source: ProjectSource) -> Iterator[FactFinding]:
    """A gem of the project's own."""
    for number, line in enumerate(source.lines, 1):
        name, needs = (
            _GEMSPEC_NAME.match(line[:_MAX_RUBY_LINE]),
            _GEMSPEC_DEPENDENCY.match(line[:_MAX_RUBY_LINE]),
        )
        if name is not None:
            yield FactFinding("package", name[1], root=source.folder).at(number)
        if needs is not None:
            yield from dependency_findings(source, "ruby", needs[1], "", number)


def read_rakefile(source: ProjectSource) -> Iterator[FactFinding]:
    """Tasks whose names say what they are for."""
    for number, line in enumerate(source.lines, 1):
        match = _RAKE_TASK.match(line[:_MAX_RUBY_LINE])
        name = (
            "test" if _BARE_TEST_TASK.match(line[:_MAX_RUBY_LINE]) else match[1] if match is not None else ""
        )
        yield from task_findings(source, "rake", name, _bundler_argv(source, "rake", name), number)


def read_rspec_config(source: ProjectSource) -> Iterator[FactFinding]:
    """RSpec has a file of its own."""
    argv = _bundler_argv(source, "rspec")
    yield command_finding(source, "test_command", "rspec", argv)


def read_rubocop_config(source: ProjectSource) -> Iterator[FactFinding]:
    """RuboCop too."""
    argv = _bundler_argv(source, "rubocop")
    yield command_finding(source, "lint_command", "rubocop", argv)


RUBY_READERS = (
    FactReader("gemfile gems.rb", read_gemfile),
    FactReader("*.gemspec", read_gemspec),
    FactReader("rakefile", read_rakefile),
    FactReader(".rspec", read_rspec_config),
    FactReader(".rubocop.yml", read_rubocop_config),
)
