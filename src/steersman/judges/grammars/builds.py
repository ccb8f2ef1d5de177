"""Go, Rust, make, Gradle and Maven. Left out, for instance: `-exec`, `-toolexec`, `-overlay`, `-o`, `-c`, `-C`, profiles;
`--config`, `--manifest-path`, `--target-dir`, `--no-run`, `+toolchain`; `-f`, `--eval`, `-n`, `-t`, `-i`, VAR=…; `-I`, `-b`,
`-P`, `-D` but for `-Dtest=`, `-x`, `-s`, `-fn`. A package of Go is named from the tree: another one's tests prove nothing."""

import re

import msgspec

from steersman.judges.grammar import Grammar, Option, Value
from steersman.judges.grammars.values import TEXT, WORD, WORDS, flags, number, one_of, takes

_PACKAGE = Value(
    name="PACKAGE",
    meaning="a package of the tree: `./...`, `./name`, `.`",
    pattern=r"\.|(?:\./)(?:\.\.\.|(?:\w[\w.+@-]*/)*(?:\w[\w.+@-]*|\.\.\.))/?",
    path=r"(.+?)/?(?:\.\.\.)?\Z",
)
_DURATION = Value(
    name="DURATION",
    meaning="a time of at most an hour, such as 90s, 10m or 1m30s",
    pattern=r"1h|60m|[1-5]?[0-9]m[1-5]?[0-9]s|[1-9]m|[1-5][0-9]m|[1-9][0-9]{0,2}s|[12][0-9]{3}s|3[0-5][0-9]{2}s|3600s",
)
_TAGS = takes("-tags", WORDS)
_GO_TEST: tuple[Option, ...] = (
    *flags("-v -race -short -failfast -json -cover -trimpath"),
    takes("-run", TEXT),
    takes("-count", number(1, 100)),
    takes("-parallel", number(1, 16)),
    takes("-p", number(1, 16)),
    takes("-shuffle", one_of("on", "off")),
    takes("-timeout", _DURATION),
    takes("-mod", one_of("readonly", "vendor")),
    _TAGS,
)  # fmt: skip
_CARGO: tuple[Option, ...] = (
    *flags("--workspace --all --all-features --no-default-features --lib --bins --tests --examples --all-targets"),
    *flags("--release --locked --offline --frozen -q/--quiet"),
    *flags("-v/--verbose", often=2),
    takes("-p/--package", WORD, often=10),
    takes("-F/--features", WORDS, often=5),
    takes("--test", WORD, often=10),
    takes("--bin", WORD, often=10),
    takes("-j/--jobs", number(1, 16), "=", " ", ""),
)  # fmt: skip
_TEST_BINARY: tuple[Option, ...] = (
    *flags("--nocapture --show-output --include-ignored --exact"),
    takes("--test-threads", number(1, 16)),
)
_LINTS: tuple[Option, ...] = (
    takes("-D", WORD, " ", "", often=10),
    takes("-W", WORD, " ", "", often=10),
)

_GO = (
    Grammar(
        name="go test",
        set="tests",
        about="Packages of the tree.",
        starts=(("go", "test"),),
        options=_GO_TEST,
        rest=_PACKAGE,
    ),
    Grammar(
        name="go vet",
        set="go",
        about="Packages of the tree.",
        starts=(("go", "vet"),),
        options=(_TAGS,),
        rest=_PACKAGE,
        proves="check",
    ),
    Grammar(
        name="go build",
        set="go",
        about="Whether packages of the tree build.",
        starts=(("go", "build"),),
        options=(*flags("-v -race -trimpath"), _TAGS, takes("-o", one_of("/dev/null"))),
        rest=_PACKAGE,
        proves="check",
    ),
)
_RUST = (
    Grammar(
        name="cargo test",
        set="tests",
        about="The crate's tests, or those with a name in them.",
        starts=(("cargo", "test"),),
        options=(*_CARGO, *flags("--doc --no-fail-fast")),
        rest=WORD,
        tail=_TEST_BINARY,
    ),
    Grammar(
        name="cargo check",
        set="cargo",
        about="Whether it compiles.",
        starts=(("cargo", "check"),),
        options=_CARGO,
        proves="check",
    ),
    Grammar(
        name="cargo build",
        set="cargo",
        about="Whether it builds.",
        starts=(("cargo", "build"),),
        options=_CARGO,
        proves="check",
    ),
    Grammar(
        name="cargo fmt --check",
        set="cargo",
        about="Whether it is formatted; nothing is written.",
        starts=(("cargo", "fmt"),),
        options=(*flags("--check --all -q/--quiet"), takes("-p/--package", WORD, often=10)),
        needs=("--check",),
        tail=flags("--check"),
        proves="check",
    ),
    Grammar(
        name="cargo nextest run",
        set="cargo",
        about="The crate's tests, or those with a name in them.",
        starts=(("cargo", "nextest", "run"),),
        options=(*_CARGO, *flags("--no-fail-fast --no-capture/--nocapture")),
        rest=WORD,
    ),
    Grammar(
        name="cargo clippy",
        set="cargo",
        about="Lints; nothing is fixed.",
        starts=(("cargo", "clippy"),),
        options=_CARGO,
        tail=_LINTS,
        proves="check",
    ),
)
_MODULE = r"(?::?[\w-]+:)*"
_CLEAN = Value(name="clean", meaning="the task clean", pattern=rf"{_MODULE}clean")


def builds(targets: tuple[str, ...]) -> tuple[Grammar, ...]:
    """The grammars of this page; make, gradle and maven take the project's own targets too."""
    return (
        *_GO,
        *_RUST,
        _make(targets),
        *_cleaned(_gradle(targets), _CLEAN),
        *_cleaned(_maven(targets), one_of("clean")),
    )


def _cleaned(build: Grammar, clean: Value) -> tuple[Grammar, Grammar]:
    """A build, and the same after what was built before has been removed."""
    return build, msgspec.structs.replace(build, name=f"{build.name} clean", first=(clean, *build.first))


def _make(targets: tuple[str, ...]) -> Grammar:
    return Grammar(
        name="make",
        set="tests",
        about="One target: `test`, or one that the project names.",
        starts=(("make",),),
        options=(
            *flags("-s/--silent -k/--keep-going --no-print-directory"),
            takes("-j/--jobs", number(1, 16), "=", " ", ""),
        ),
        first=(one_of("test", *targets),),
    )


def _gradle(targets: tuple[str, ...]) -> Grammar:
    names = ("test", "check", *targets)
    task = Value(
        name="TASK",
        meaning=f"a task: {', '.join(names)}",
        pattern=rf"{_MODULE}(?:{'|'.join(map(re.escape, names))})",
    )
    return Grammar(
        name="gradle",
        set="gradle",
        about="The tasks test and check, of the whole build or a part, and those that the project names.",
        starts=(("./gradlew",), ("gradle",)),
        options=(
            *flags("--offline --no-daemon -q/--quiet -i/--info --stacktrace --continue --no-build-cache"),
            takes("--console", one_of("plain"), "="),
            takes("--tests", Value(name="NAME", meaning="a test's name, also with *", pattern=r"[\w*][\w.*$]{0,199}"), " ", often=10),
        ),
        first=(task,),
        rest=task,
        most=10,
    )  # fmt: skip


def _maven(targets: tuple[str, ...]) -> Grammar:
    return Grammar(
        name="mvn",
        set="maven",
        about="The phases test and verify, and those that the project names.",
        starts=(("mvn",), ("./mvnw",)),
        options=(
            *flags("-q/--quiet -B/--batch-mode -o/--offline -ntp/--no-transfer-progress -am/--also-make"),
            takes("-pl/--projects", WORDS, " "),
            takes(
                "-Dtest", Value(name="TESTS", meaning="tests by name", pattern=r"[\w*][\w.#*+,$]{0,199}"), "="
            ),
        ),
        first=(one_of("test", "verify", *targets),),
    )
