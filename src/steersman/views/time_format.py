"""Formats times, durations and amounts for people."""

from datetime import UTC, datetime

TIME_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def format_timestamp(ms: int) -> str:
    """Formats a time in UTC to the second."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def format_duration(ms: int) -> str:
    """Formats a duration in one or two units: `42 s`, `3 min 10 s`, `2 h 5 min`, `4 d`."""
    seconds = max(ms, 0) // 1000
    for n, (size, name) in enumerate(TIME_UNITS):
        if seconds >= size:
            rest = seconds % size // TIME_UNITS[n + 1][0] if n in (1, 2) else 0
            return f"{seconds // size} {name}" + (f" {rest} {TIME_UNITS[n + 1][1]}" if rest else "")
    return f"{max(ms, 0)} ms"


def format_micro_usd(micro_usd: int) -> str:
    """Formats micro-dollars as dollars without rounding."""
    dollars, part = divmod(micro_usd, 1_000_000)
    digits = f"{part:06}".rstrip("0")
    return f"${dollars}.{digits:0<2}"


FIGURE_LABELS = {"micro_usd": "cost", "ms": "working time"}


def format_figure(name: str, value: int) -> str:
    """Formats one figure of a budget with its unit."""
    match name:
        case "micro_usd":
            return format_micro_usd(value)
        case "ms":
            return format_duration(value)
        case _:
            return f"{value:,}".replace(",", " ")
