"""Random requests that the API document allows, and some that it does not. `make fuzz` sends many more, also with
ids that do not exist, which `test_hostile.py` sends here."""

from __future__ import annotations

from tests.server.fuzzing import fuzzed


def test_no_request_is_a_server_error_or_answered_otherwise_than_announced() -> None:
    found = fuzzed(1, coverage=False, unknown=False)
    assert found.held, found.said
    assert found.cases >= 150
