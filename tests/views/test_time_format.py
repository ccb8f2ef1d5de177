"""Moments, spans and amounts in words."""

from tests.support.cases import for_each_case

from steersman.views.time_format import format_duration, format_figure, format_micro_usd, format_timestamp


@for_each_case(
    ("ms", "words"),
    [
        (-5, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (61_000, "1 min 1 s"),
        (120_000, "2 min"),
        (3_600_000, "1 h"),
        (3_660_000, "1 h 1 min"),
        (4 * 86_400_000 + 3_600_000, "4 d"),
    ],
)
def test_spans_use_the_unit_people_would(ms, words):
    """One unit, two where one would be coarse."""
    assert format_duration(ms) == words


@for_each_case(
    ("micro", "words"), [(0, "$0.00"), (5, "$0.000005"), (1_500_000, "$1.50"), (12_000_000, "$12.00")]
)
def test_money_is_never_rounded_away(micro, words):
    """Every micro-dollar is seen."""
    assert format_micro_usd(micro) == words


def test_amounts_carry_their_unit():
    """Time as time, money as money, counts in groups of three."""
    assert (
        format_figure("ms", 90_000),
        format_figure("micro_usd", 250_000),
        format_figure("tokens", 3_000_000),
    ) == ("1 min 30 s", "$0.25", "3 000 000")
    assert format_timestamp(0) == "1970-01-01 00:00:00"
