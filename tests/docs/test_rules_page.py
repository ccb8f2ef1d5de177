"""What the page on rules shows is so: its rule passes the check, its conditions compile, its names exist."""

import re
from pathlib import Path

from tests.support.cases import for_each_case

from steersman.adapters.storage.registry_files import FileRegistries
from steersman.judges.planning import cel
from steersman.judges.planning.validate import find_registry_problems

TOP = Path(__file__).resolve().parents[2]
PAGE = (TOP / "docs" / "how-to" / "write-a-rule.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| [^|]+ \| `([^`]+)` \|$", PAGE.split("| you want to say |", 1)[1].split("\n\n", 1)[0], re.MULTILINE
)


def test_the_rule_of_the_page(tmp_path):
    """The example can be put into a project as it stands."""
    folder = tmp_path / ".steersman" / "registry" / "rules"
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    loaded = FileRegistries(tmp_path, tmp_path / "state").load()
    assert (loaded.problems, find_registry_problems(loaded.registry)) == ((), ())
    assert loaded.registry.usable("rule", "rule_payments_need_two") is not None


@for_each_case("when", ROWS)
def test_the_conditions_of_the_page(when):
    """Each condition in the table compiles."""
    assert not isinstance(cel.compile_cel_expression(when), tuple)


def test_the_functions_of_the_page():
    """The page names every function that there is, and the bounds that hold."""
    assert len(ROWS) >= 7
    assert all(f"`{name}`" in PAGE for name in cel.CEL_FUNCTIONS)
    assert (cel.MAX_LOOP_DEPTH, cel.MAX_LOOPS, cel.MAX_SUMS) == (2, 6, 20)
