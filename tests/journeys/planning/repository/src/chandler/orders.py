"""Orders, one line each."""

from chandler.prices import total


def line(name: str, cents: int, pieces: int) -> str:
    """One line of an order."""
    return f"{pieces} × {name}: {total(cents, pieces)} cents"


def main() -> None:
    """Prints an example."""
    print(line("rope", 250, 12))
