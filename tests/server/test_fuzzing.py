"""The API against whatever its document allows, and what it does not."""

from __future__ import annotations

from tests.server.fuzzing import fuzzed


def test_no_request_of_five_thousand_is_a_server_error_or_answered_otherwise_than_announced() -> None:
    found = fuzzed(1)
    assert found.held, found.said
    assert found.cases >= 5_000
