"""The API against whatever its document allows, and what it does not. `make fuzz` sends many more requests."""

from __future__ import annotations

from tests.server.fuzzing import fuzzed


def test_no_request_is_a_server_error_or_answered_otherwise_than_announced() -> None:
    found = fuzzed(1, coverage=False)
    assert found.held, found.said
    assert found.cases >= 300
