from chandler.prices import total


def test_a_single_piece():
    assert total(250, 1) == 250


def test_a_dozen_is_cheaper():
    assert total(100, 12) == 1080
