"""The grammars that ship, as data: which words may start which program, with which options and operands.

Every option in here was looked at for what it can make its program do: run code or load settings from elsewhere, write
a file, reach the network, wait for input, or pass without having run anything. Such options are not in here.
**Invariant:** tables only; how an argv is held against them is `judges.grammar`'s.
"""

from functools import cache

from steersman.judges.grammar import Grammar
from steersman.judges.grammars.builds import builds
from steersman.judges.grammars.javascript import javascript
from steersman.judges.grammars.python import python
from steersman.judges.grammars.reading import READING

# name of a set → what it is for; the first is on without being asked for
SETS = {
    "tests": "The usual test and check commands, each with a fixed list of options. On by default.",
    "read": "Looking at files of the tree: find, ls, grep, rg, sed, awk, sort, wc, cat, head, tail.",
    "uv": "`uv run` in front of a Python command; it may install what the lock file names.",
    "poetry": "`poetry run` in front of a Python command.",
    "hatch": "`hatch run` in front of a Python command, or a script of the project; `hatch test`.",
    "tox": "`tox`: what it runs is in the project's own settings.",
    "pnpm": "`pnpm test`, `pnpm run SCRIPT`.",
    "yarn": "`yarn test`, `yarn run SCRIPT`; yarn loads plugins that .yarnrc.yml names.",
    "bun": "`bun test`, `bun run SCRIPT`.",
    "node": "`node --test`.",
    "vitest": "`vitest run`, also through `npx --no-install`: without that npx downloads what it does not find.",
    "jest": "`jest`, also through `npx --no-install`.",
    "tsc": "`tsc --noEmit`, also through `npx --no-install`.",
    "eslint": "`eslint`, also through `npx --no-install`.",
    "go": "`go vet`, `go build`.",
    "cargo": "`cargo check`, `cargo build`, `cargo clippy`, `cargo fmt --check`, `cargo nextest run`.",
    "gradle": "`gradle` and `./gradlew` with the tasks test and check, also after clean.",
    "maven": "`mvn` and `./mvnw` with the phases test and verify, also after clean.",
}


@cache
def shipped(scripts: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> tuple[Grammar, ...]:
    """All of them; `scripts` and `targets` are a project's own names beside `test`."""
    return (*python(scripts), *javascript(scripts), *builds(targets), *READING)
