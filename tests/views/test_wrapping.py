"""Long lines of a screen on a narrow terminal."""

from tests.support.cases import for_each_case

from steersman.views.wrapping import wrap_screen_text


@for_each_case(
    ("line", "lines"),
    [
        ("short", ["short"]),
        ("one two three four five six seven eight", ["one two three four five", "six seven eight"]),
        ("│ one two three four five six seven", ["│ one two three four", "│ five six seven"]),
        ("  │ one two three four five six seven", ["  │ one two three four", "  │ five six seven"]),
        ("• one two three four five six seven", ["• one two three four", "  five six seven"]),
        ("    one two three four five six seven", ["    one two three four", "    five six seven"]),
        ("one `two three four five six` seven", ["one", "`two three four five six`", "seven"]),
        ("averylongwordthatcannotbebrokenanywhere", ["averylongwordthatcannotbebrokenanywhere"]),
    ],
)  # fmt: skip
def test_words_stay_whole_behind_their_gutter(line, lines):
    """A line breaks between words; the next one begins below its text, and outside text keeps its bar."""
    assert wrap_screen_text(line, 24, "steersman") == lines


@for_each_case(
    "line", ['    steersman followup 261119-abcdef "…"', "  git -C /repo diff main steersman/261119-abcdef"]
)
def test_a_command_stays_in_one_piece(line):
    """What a person copies has no line break of ours in it."""
    assert wrap_screen_text(line, 24, "steersman") == [line]
