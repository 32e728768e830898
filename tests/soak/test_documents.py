"""The short version of the long runs over broken documents."""

from __future__ import annotations

from tests.soak.documents import examine


def test_broken_documents_get_problems_with_places_and_never_a_traceback() -> None:
    figures = examine(400, seed=7)
    assert figures.misplaced == []
    assert figures.documents == 400
    assert figures.refused > 100, "the mutations break what they should"
