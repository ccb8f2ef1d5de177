"""Prices in whole cents."""


def total(cents: int, pieces: int) -> int:
    """What some pieces cost; ten or more cost a tenth less."""
    full = cents * pieces
    return full - full // 10 if pieces > 10 else full
