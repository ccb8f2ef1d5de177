"""Ruby projects: Gemfile, gemspec, Rakefile, RSpec, RuboCop."""

from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.planning.facts.finding import Finding, Reader, Source, command
from steersman.judges.planning.facts.stacks import depends
from steersman.judges.planning.facts.tasks import task

_GEM = later(r"""\s{0,40}gem[ (]{1,3}["']([\w-]{1,100})["'](?:\s{0,5},\s{0,5}["']([^"']{0,60})["'])?""")
_NEEDS = later(
    r"""\s{0,40}\w{1,40}\.add_(?:runtime_|development_)?dependency[ (]{1,3}["']([\w-]{1,100})["']"""
)
_NAME = later(
    r"""\s{0,40}(?:\w{1,40}\.name\s{0,20}=\s{0,20}|Gem::Specification\.new[ (]{1,3})["']([\w-]{1,100})["']"""
)
_TASK = later(
    r"""\s{0,40}(?:task|Rake::TestTask\.new|RSpec::Core::RakeTask\.new)[ (]{1,3}:?["']?(\w{1,60})"""
)
_BARE_TEST = later(
    r"\s{0,40}(?:Rake::TestTask\.new|Minitest::TestTask\.create)(?:\s{0,5}do\b|\s{0,5}\{|\s{0,5}(?:#.*)?$)"
)
_LONGEST = 400


def _bundled(source: Source, *argv: str) -> tuple[str, ...]:
    return ("bundle", "exec", *argv) if source.has("Gemfile") else argv


def gemfile(source: Source) -> Iterator[Finding]:
    """Gems."""
    for number, line in enumerate(source.lines, 1):
        gem = _GEM.match(line[:_LONGEST])
        if gem is not None:
            yield from depends(source, "ruby", gem[1], gem[2] or "", number)


def gemspec(source: Source) -> Iterator[Finding]:
    """A gem of the project's own."""
    for number, line in enumerate(source.lines, 1):
        name, needs = _NAME.match(line[:_LONGEST]), _NEEDS.match(line[:_LONGEST])
        if name is not None:
            yield Finding("package", name[1], root=source.folder).at(number)
        if needs is not None:
            yield from depends(source, "ruby", needs[1], "", number)


def rakefile(source: Source) -> Iterator[Finding]:
    """Tasks whose names say what they are for."""
    for number, line in enumerate(source.lines, 1):
        found = _TASK.match(line[:_LONGEST])
        name = "test" if _BARE_TEST.match(line[:_LONGEST]) else found[1] if found is not None else ""
        yield from task(source, "rake", name, _bundled(source, "rake", name), number)


def rspec(source: Source) -> Iterator[Finding]:
    """RSpec has a file of its own."""
    argv = _bundled(source, "rspec")
    yield command(source, "test_command", "rspec", argv)


def rubocop(source: Source) -> Iterator[Finding]:
    """RuboCop too."""
    argv = _bundled(source, "rubocop")
    yield command(source, "lint_command", "rubocop", argv)


READERS = (
    Reader("gemfile gems.rb", gemfile),
    Reader("*.gemspec", gemspec),
    Reader("rakefile", rakefile),
    Reader(".rspec", rspec),
    Reader(".rubocop.yml", rubocop),
)
