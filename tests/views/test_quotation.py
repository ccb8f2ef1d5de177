"""Outside text in reports and diagrams is shown, and obeyed nowhere."""

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.simulated_roundtable import check_facts, checking_run, gate_answer, proposed_run
from tests.support.summaries import report_of, summary_of

from steersman.judges.text import printable_text
from steersman.kernel.build import machine
from steersman.kernel.definition import Events, Origin, State, event, final, otherwise, row, state, table
from steersman.machines.roundtable.context import RoundtableContext
from steersman.machines.roundtable.package import PACKAGE
from steersman.views.markdown import machine_markdown
from steersman.views.mermaid import machine_diagram
from steersman.views.run_summary import CheckStatus, GuardOverride, ReviewFinding
from steersman.views.screen import (
    MAX_INLINE_LENGTH,
    MAX_QUOTED_LENGTH,
    diagram_label,
    diagram_node,
    quote_block,
    quote_inline,
)

MARKUP = [
    "<img src=x onerror=alert(1)>", "<details open ontoggle=alert(1)>", '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))", "[x](JaVaScRiPt&colon;alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)", "![x](http://127.0.0.1:9/?leak=1)",
    "<http://127.0.0.1:9/?leak=1>", "[x]: javascript:alert(1)\n\n[x]",
    '<style>@import "http://127.0.0.1:9/x";</style>', "<link rel=stylesheet href=//127.0.0.1:9/x>",
    '<meta http-equiv=refresh content="0;url=//127.0.0.1:9">', "<iframe src=/></iframe>",
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=alert(1)&gt;">',
    "</textarea><script>alert(1)</script>", "</code></pre><script>alert(1)</script>", "\u2028alert(1)//",
    '"><img src=x onerror=alert(1)>', "`<img src=x onerror=alert(1)>", "``` \n<script>alert(1)</script>",
    "| a | b |\n|---|---|\n| c | d |", "# a heading\n\n- a list\n\n> a quotation\n\n***",
    "*a* **b** _c_ ~~d~~ &lt;b&gt; &#60;i&#62;", "$$\\text{<img src=x onerror=alert(1)>}$$",
    "\\<b\\>\\[x\\]\\(javascript:alert(1)\\)", "@everybody look", "\u202eevorppa\u202c a\u200bpprove",
    "> " * 20_000 + "x", "[" * 20_000,
]  # fmt: skip
OURS = {"h1", "h2", "table", "thead", "tbody", "tr", "th", "td", "p", "pre", "code", "ul", "li"}


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs if name != "style"}

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def rendered(words: str) -> Tags:
    """As a reader of Markdown that lets raw HTML through would show it."""
    return Tags(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(words))


def full_report(text: str) -> str:
    """A report with the text in every place that is not ours."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    tape.send("aborted_by_operator", gate_answer("abort", text="p-x"))
    entries = [e for e, _ in tape.entries]
    plain = summary_of(PACKAGE, tape.snapshot, text, entries, text=lambda _: "")
    seen = replace(
        plain, title=text, detail=text, findings=(ReviewFinding("f1", "open", 1, text),),
        checks=(CheckStatus(text, "failed", (text, text), 1, 0, text),),
        overrides=(GuardOverride(9, text, "a", "b", text),), delivered=f"refs/heads/{text}",
    )  # fmt: skip
    return report_of(PACKAGE, tape.snapshot, seen, entries, lambda ref: text if ref else "")


@for_each_case("text", MARKUP)
def test_a_report_holds_only_our_own_tags(text):
    """No tag, link, image, style or handler comes from outside; the headings are ours; nothing moves a cursor."""
    words = full_report(text)
    seen = rendered(words)
    assert seen.tags <= OURS
    assert seen.attributes == set()
    assert printable_text(words) == words
    headings = [line for line in words.splitlines() if line.startswith("#")]
    assert [line for line in headings if line.startswith("# ")] == headings[:1]
    assert len(words) < 30 * MAX_QUOTED_LENGTH


@for_each_case("text", MARKUP[:16])
def test_a_report_shows_what_was_said(text):
    """The words are there to be read."""
    shown = "".join("".join(rendered(full_report(text)).text).split())
    assert "".join(printable_text(text).split()) in shown


@given(st.text(alphabet="<>[]()!`*_#|\\&;:/-+=~$@ \n\tab1.\u202e"))
def test_any_words_in_a_line(text):
    """Whatever it is, a line of ours stays a line of text."""
    seen = rendered(
        f"# a {quote_inline(text)} b\n\n| {quote_inline(text)} | x |\n|---|---|\n| {quote_inline(text)} | y |\n"
    )
    assert seen.tags <= OURS
    assert "\n" not in quote_inline(text)


@given(st.text(alphabet="<>[]()!`*_#|\\&;:/-+=~$@ \n\tab1.\u202e\r\x0b"))
def test_any_words_in_a_block(text):
    """Whatever it is, a block of ours stays one."""
    lines = quote_block(text)
    assert all(line.startswith("    ") for line in lines)
    assert rendered("\n".join(["## x", "", *lines, "", "## y"])).tags <= {"h2", "pre", "code"}


def test_lengths():
    """A text of many megabytes is cut, and the cut is seen."""
    assert len(quote_inline("x" * 20_000_000)) == MAX_INLINE_LENGTH
    assert len("\n".join(quote_block("x" * 20_000_000))) <= MAX_QUOTED_LENGTH + 4
    assert quote_inline("x" * 2000).endswith("…")


def test_a_report_with_nothing_from_outside_reads_plainly():
    """Ordinary words are not littered with backslashes."""
    assert (
        quote_inline("Fix add(), please: a - b = 3.5, isn't it? https://h")
        == "Fix add\\(\\), please: a - b = 3.5, isn't it? https\\://h"
    )


def test_what_people_decided_is_quoted():
    """A person's own words are outside text, too."""
    tape = proposed_run()
    tape.send("task_followup_received", gate_answer("rework", text="p-x"))
    entries = [e for e, _ in tape.entries]
    summary = summary_of(PACKAGE, tape.snapshot, "t", entries, text=lambda _: "")
    words = report_of(
        PACKAGE, tape.snapshot, summary, entries, lambda ref: "<b>x</b> | y" if ref == "p-x" else ""
    )
    assert "&lt;b&gt;x&lt;/b&gt; \\| y" in words


# ── diagrams ────────────────────────────────────────────────────────────────────────────────────────────────────────

DRAWN = [
    'x\n  click plan href "javascript:alert(1)"', "---\nconfig:\n  securityLevel: loose\n---",
    "plan --> done : $$\\text{<img src=x onerror=alert(1)>}$$", "Alice->>Bob: <img src=x onerror=alert(1)>",
    "service a(<img src=x onerror=alert(1)>)[x]", "classDef x fill:red}*{background:url(http://127.0.0.1:9)}",
    "plan --> done: ok\n    done --> plan: fake", "end", "[*]", 'a"b', "note right of plan: forged note",
    "\u202edone", "%%{init: {'securityLevel': 'loose'}}%%", "", "state x {", "a\\nb",
]  # fmt: skip
EDGE = re.compile(r"    (\S+) --> (\S+) : ([^\n]+)")


def odd_machine(text: str):
    """A machine whose state, event, guard and label are this text."""
    states = type("S", (State,), {"here": state("Begun.", initial=True), text or "empty": final(text)})
    events = type(
        "E", (Events,), {"begun": event(text, Origin.PERSON), text or "empty": event(text, Origin.PERSON)}
    )
    there, ended = states.all[1], events.all[1]
    return machine(
        "odd",
        text,
        states=states,
        events=events,
        rows=table(
            row(None, events.begun, otherwise, states.here, None, text, text),
            row(states.here, ended, otherwise, there, None, text, text),
        ),
        context=RoundtableContext,
    )


@for_each_case("text", DRAWN)
def test_a_diagram_has_the_states_and_ways_of_the_machine(text):
    """Whatever a name or a label says, no state, way, note, link or setting is added."""
    lines = machine_diagram(odd_machine(text)).splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    direction LR"]
    there = diagram_node(text or "empty")
    assert lines[2].startswith("    here : ")
    assert lines[3].startswith(f"    {there} : ")
    ways = [EDGE.fullmatch(line) for line in lines[4:6]]
    assert [(way[1], way[2]) for way in ways if way] == [("[*]", "here"), ("here", there)]
    assert lines[6:] == [f"    {there} --> [*]"]
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", there)
    for said in (way[3] for way in ways if way):
        assert not set('<>{}[]"`$%;#:\\') & set(said)


@for_each_case("text", MARKUP[:16] + DRAWN[:6])
def test_a_machine_in_tables_holds_only_our_own_tags(text):
    """The same for the tables of a machine."""
    assert rendered(machine_markdown(odd_machine(text))).tags <= OURS | {"code"}


def test_names():
    """An ordinary name is itself; words of the diagram's own language and odd names are spelled."""
    assert (diagram_node("plan"), diagram_node("RULES_EVALUATED")) == ("plan", "RULES_EVALUATED")
    assert diagram_node("end") == "n_65_6e_64"
    assert diagram_label("start_coder (at most 3)") == "start_coder (at most 3)"
    assert diagram_label("<b>") == "(U+003C)b(U+003E)"
    assert diagram_label(" \n") == "(nothing)"
