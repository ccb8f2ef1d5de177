"""What is said of a text that nobody reads because it is too deep."""

from steersman.judges.planning.depth import (
    MAX_LISTED_NAMES,
    find_executable_names,
    measure_json_depth,
    nesting_depth_message,
)


def test_how_deep_and_where():
    """Brackets inside strings do not count, and behind a string without an end nothing does."""
    assert measure_json_depth("{}") == (1, 1)
    assert measure_json_depth('{"[[[": [\n[], {}]}') == (3, 1)
    assert measure_json_depth("[\n" * 40 + "]" * 40 + "[") == (40, 33)
    assert measure_json_depth('["a]' + "[" * 50) == (1, 1)


def test_names_that_look_like_something_to_execute():
    """Each once with its first line, however it is written; a word in front of no colon is a word."""
    text = '{"\\u0065xec":1,\n exec: 2, "post-exec" : 3,\n"say": "shell", run}\nshell: x'
    assert [(line, said.split("'")[1]) for line, said in find_executable_names(text)] == [
        (1, "exec"),
        (2, "post-exec"),
        (4, "shell"),
    ]
    assert list(find_executable_names("goal: x\n" * 1000 + "a" * 500_000 + '\\"' * 100_000)) == []
    assert len(list(find_executable_names("".join(f"exec_{n}: 1\n" for n in range(100))))) == MAX_LISTED_NAMES


def test_the_sentence_about_a_deep_text():
    """It names the depth and the limit."""
    assert nesting_depth_message(40).startswith("nested 40 levels deep, and 32 are the most")
