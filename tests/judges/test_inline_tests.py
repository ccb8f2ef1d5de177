"""Tests that stand in the product's own files."""

import pytest

from steersman.contracts.workspace import FileText
from steersman.judges.changes.review_reasons import has_inline_test_change

MODULE = """pub fn add() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() { assert_eq!(add("}", '{'), 5); /* } */ }

    #[tokio::test]
    async fn waits() { // }
        assert!(true);
    }
}
"""


def changed(path, old, new, **more):
    return has_inline_test_change(path, FileText(path, old), FileText(path, new), **more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("5)", "6)"),
        ("assert!(true)", "return"),
        ("    #[tokio::test]\n", "    #[ignore]\n    #[tokio::test]\n"),
        ("#[cfg(test)]", "#[cfg(never)]"),
        ("use super::*;", "use fake::*;"),
        ("use super::*;", "use super::*;\n    fn add() {}"),
    ],
)
def test_what_was_there_has_to_stay(old, new):
    """A test, what surrounds it and what it is marked with."""
    assert changed("a.rs", MODULE, MODULE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pub fn add() {}", "pub fn add() { 1 }"),
        ("    #[tokio::test]", "    // more\n    #[test]\n    fn more() { let x = 1; }\n\n    #[tokio::test]"),
        ("}\n}\n", "}\n}\n\n#[test]\nfn top() {}\n"),
        ("    #[test]\n", "\n\n        #[test]\n"),
    ],
)  # fmt: skip
def test_more_beside_it_is_welcome(old, new):
    """The product around the tests, a further test, blank lines."""
    assert not changed("a.rs", MODULE, MODULE.replace(old, new))
    assert not changed("a.rs", "fn a() {}", MODULE)


def test_single_tests_and_what_has_no_end():
    """A test outside a module counts, and so does a file that breaks off."""
    assert changed("a.rs", "#[test]\nfn a() { 1 }", "#[test]\nfn a() { 2 }")
    assert changed("a.rs", "#[cfg(test)]\nmod a { old", "#[cfg(test)]\nmod a { new")


def test_a_module_in_a_file_of_its_own_ends_at_once():
    """What follows `mod tests;` is the product."""
    assert not changed(
        "a.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n", "#[cfg(test)]\nmod tests;\nfn b() {}\n"
    )


TEXTS = """#[test]
fn text() {
    let s = r#"
}
#[test]
"#;
    assert_eq!(s.len(), 12);
}
"""
NOT_FORMATTED = """#[test]
  fn odd() {
if true {
}
assert!(odd);
  }
"""


@pytest.mark.parametrize(
    "old", [TEXTS, "#[test]\nfn a() { let c = '{'; }\n", "#[cfg(test)]\nuse x::{\n    a,\n};\n"]
)
def test_the_product_behind_a_test_is_not_the_test(old):
    """A test ends at the brace that closes it, whatever its strings and characters hold."""
    assert not changed("a.rs", old, old + "\npub mod clamp_number;\n")
    assert not changed("a.rs", old + "fn a() {}\n", old + "fn b() { 1 }\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TEXTS, TEXTS.replace("12", "13")),
        (TEXTS, TEXTS.replace('r#"\n}', 'r#"\n{')),
        (TEXTS, f"/*\n{TEXTS}*/\n"),
        (TEXTS, f"#[ignore]\n{TEXTS}"),
        (NOT_FORMATTED, NOT_FORMATTED.replace("assert!(odd)", "return")),
        (MODULE[:-2] + "    fn helps() {}\n}\n", MODULE[:-2] + "    fn helps() { 1 }\n}\n"),
    ],
)
def test_all_of_a_test_counts(old, new):
    """What stands behind a brace in a string, the string, comments around it, attributes, helpers of its module."""
    assert changed("a.rs", old, new)


def test_an_example_of_rust():
    """It stands in a comment and is compiled by the runner."""
    old = "/// ```\n/// assert_eq!(x::add(2, 3), 5);\n/// ```\npub fn add() {}\n"
    assert changed("a.rs", old, old.replace("5", "-1"))
    assert not changed("a.rs", old, old.replace("{}", "{ 1 }"))


def test_examples_of_one_text_stay_together():
    """An example put before another may change what it means; one in a text of its own may not."""
    old = "'''\n>>> add(2, 3)\n5\n'''\n"
    before = "'''\n>>> add = max\n>>> add(2, 3)\n5\n'''\n"
    assert changed("a.py", old, before, examples=True)
    assert not changed("a.py", old, old + "'''\n>>> 1\n1\n'''\n", examples=True)
    assert not changed("a.py", old, before)
    assert changed("a.ex", old.replace(">>>", "iex>"), before.replace(">>>", "iex>"))
