"""What words may look like in the grammars that ship, and the short forms the tables are written with.

**Invariant:** no value begins with "-", "@" or "+", leaves the tree, or is a path in `.git` or `.steersman`.
"""

from steersman.judges.grammar import Form, Option, Value

_SEGMENT = r"(?!(?i:\.git|\.steersman|git~1)(?:/|:|\Z))\.?\w[\w.+@,-]*+(?: [\w.+@,-]++)*+"
_PATH = rf"(?:\./)?{_SEGMENT}(?:/{_SEGMENT})*+/?|\.|\./"
_WHOLE = r"(.+)"
# A runner executes the file that it is given, whatever is in it: one that is named has to be called a test.
_TESTS = r"(?!(?!(?i:.*(?:test|spec|check)))[^:\[]*\.py(?:::|\Z))"

PATH = Value(
    name="PATH",
    meaning="a path inside the tree that looks like no secret",
    pattern=_PATH,
    path=_WHOLE,
    opens="loaded",
)
SOURCE = Value(
    name="FILE",
    meaning="a path inside the tree that looks like no secret",
    pattern=_PATH,
    path=_WHOLE,
    opens="shown",
)
NODE = Value(
    name="TEST",
    meaning="a folder or a file of tests inside the tree, or one test of it (`tests/test_a.py::test_b[1]`)",
    pattern=rf"{_TESTS}(?:{_PATH})(?:::\w+)*+(?:\[[\w.+ ,=:/-]*+\])?",
    path=r"([^:\[]+)",
    opens="loaded",
)
WORD = Value(name="NAME", meaning="a plain name", pattern=r"\w[\w.:-]{0,99}")
WORDS = Value(
    name="NAMES", meaning="plain names with commas between", pattern=r"\w[\w.-]*+(?:[,:/]\w[\w.-]*+)*+"
)
EXPRESSION = Value(
    name="EXPRESSION",
    meaning="names joined by and, or, not and brackets",
    pattern=r"[\w(][\w .()\[\]:+,-]{0,499}",
)
TEXT = Value(name="PATTERN", meaning="a text that does not begin with a dash", pattern=r"[^-@+].{0,499}")
GLOB = Value(
    name="GLOB", meaning="a name with * and ? in it", pattern=r"(?!\.\.?\Z)[\w.*?\[][\w.*?\[\],+ -]{0,199}"
)
ASKED = Value(
    name="GLOB",
    meaning="a name with * and ? in it that is not one of secrets",
    pattern=GLOB.pattern,
    opens="named",
)
_GLOBS = r"(?:\./)?(?!(?:.*/)?(?:\.\.|(?i:\.git|\.steersman))(?:/|\Z))[\w.*?][\w.*?/+@,-]{0,399}"
GLOBS = Value(
    name="FILES",
    meaning="paths inside the tree, also with * and ? in them, that look like no secrets",
    pattern=_GLOBS,
    path=r"([^*?]+)",
    opens="loaded",
)
TEST_GLOBS = Value(
    name="TESTS",
    meaning="files of tests inside the tree, also with * and ? in them, with test or spec in a name",
    pattern=rf"(?=(?i:.*(?:test|spec))){_GLOBS}",
    path=GLOBS.path,
    opens="loaded",
)


def number(least: int, most: int) -> Value:
    """A whole number between two."""
    said = f"a number from {least} to {most}"
    return Value(name="N", meaning=said, pattern=r"[0-9]{1,7}", least=least, most=most)


def one_of(*words: str) -> Value:
    """One of these words."""
    return Value(name="|".join(words), meaning=f"one of {', '.join(words)}", words=words)


def flags(names: str, often: int = 1) -> tuple[Option, ...]:
    """Options without a value; `-q/--quiet` is one under two names."""
    return tuple(Option(tuple(part.split("/")), often=often) for part in names.split())


def takes(names: str, value: Value, *forms: Form, often: int = 1) -> Option:
    """An option with a value, written in these ways; `-k/--keyword` is one under two names."""
    return Option(tuple(names.split("/")), value, forms or ("=", " "), often)
