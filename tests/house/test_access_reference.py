"""The table of operations and roles matches the code."""

from __future__ import annotations

from tests.server.matrix import PAGE, page


def test_the_table_of_access_is_of_today() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.server.matrix"
