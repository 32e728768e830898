"""Random requests that the OpenAPI document allows, and some that it does not. `make fuzz` sends many more, also to the
pipeline, which takes seconds, with ids that do not exist, which `test_hostile.py` sends here, and the examples of the
document, which the access matrix sends.
"""

from __future__ import annotations

from tests.server.fuzzing import fuzzed


def test_random_requests_cause_no_server_error_and_no_undocumented_answer() -> None:
    found = fuzzed(1, phases="fuzzing", unknown=False, slow=False)
    assert found.held, found.said
    assert found.cases >= 150
