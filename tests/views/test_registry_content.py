"""A registry on a terminal and as a page."""

from pathlib import Path

from docs.registry_page import render_registry_page

from steersman.adapters.storage.registry_files import FileRegistries
from steersman.judges.planning.registry import PinDrift, Registry, compare_registries
from steersman.views.planning.content import (
    render_pin_drift,
    render_registry_changes,
    render_registry_item,
    render_registry_list,
    render_rule_variables,
)

BUILT_IN = FileRegistries(Path("nowhere"), Path("nowhere")).built_in().registry


def test_one_line_each():
    """A list has a head and one line for each piece of content, whatever its title holds."""
    items = list(BUILT_IN.held["rule"].values())
    assert len(render_registry_list(items)) == len(items) + 1
    assert len(render_rule_variables()) > 40


def test_everything_is_shown():
    """Each kind says its own fields, each on one line."""
    for (kind, id_), entry in BUILT_IN.entries.items():
        lines = render_registry_item(BUILT_IN.held[kind][id_], entry)
        assert lines[0].startswith(f"{kind} {id_} ")
        assert not any("\n" in line for line in lines)
    assert "way back: none is known" in render_registry_item(
        BUILT_IN.held["command"]["cmd_lint"], BUILT_IN.entries["command", "cmd_lint"]
    )


def test_changes():
    """What came, went and changed has its own sign."""
    empty = Registry(())
    assert render_registry_changes(compare_registries(empty, BUILT_IN))[0].startswith(
        "+ agent agent_architect 1.0.0"
    )
    assert render_registry_changes(compare_registries(BUILT_IN, empty))[0].startswith(
        "- agent agent_architect 1.0.0"
    )
    assert render_registry_changes(()) == []


def test_drift():
    """A drifted pin says what was pinned and what holds; without the kept content it says so."""
    lines = render_pin_drift([PinDrift("command", "cmd_x", "missing", "1.0.0#abc", "", (), kept=False)])
    assert lines == [
        "command cmd_x is missing: pinned 1.0.0#abc, now nothing",
        "    what was pinned is not kept here, so that the fields cannot be compared",
    ]


def test_page():
    """The page has everything that is built in, and nothing of it as markup."""
    page = render_registry_page(BUILT_IN, "<!-- notice -->")
    for _, id_ in BUILT_IN.entries:
        assert f"`{id_}`" in page
    assert page.startswith("<!-- notice -->\n\n# Registry\n")
