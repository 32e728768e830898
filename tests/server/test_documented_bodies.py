"""Bodies that the OpenAPI document allows: none is refused as invalid, and every other refusal is documented.

Refusals that depend on the state of the server (a name is taken, a document has problems, a gate is closed) have their
own codes, which the operation documents.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from tests.patience import PATIENCE_S
from tests.reliability.requests import served
from tests.server import documented_operations

CASES: Final = 4
"""Cases per operation."""
LEFT_OUT: Final = ("/api/settings/keys", "/api/login", "/api/logout", "/executions/import", "POST /api/schedules")
"""The first created key excludes all other callers; imports are not JSON; schedules start executions in the
background."""
JSON: Final = "application/json"
NOT_FITTING: Final = frozenset({"request-invalid", "body-invalid"})


def test_a_body_that_the_api_document_allows_is_refused_only_with_a_documented_reason() -> None:
    wrong: list[str] = []
    schema: Any = schemathesis.openapi.from_dict(documented_operations.DOCUMENT)
    codes = {one.name: codes_of(one) for one in documented_operations.OPERATIONS}
    with served() as (address, known), httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        for found in schema.get_all_operations():
            operation: Any = found.ok()
            name = f"{operation.method.upper()} {operation.path}"
            if JSON not in operation.body or any(part in name for part in LEFT_OUT):
                continue

            @seed(1)
            @settings(
                max_examples=CASES,
                deadline=None,
                database=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
                phases=[Phase.generate],
            )
            @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
            def send(case: Any, name: str = name) -> None:
                if case.media_type != JSON:
                    return
                path = case.operation.path
                parameters: dict[str, Any] = {**(case.path_parameters or {}), **known}
                for parameter, value in parameters.items():
                    path = path.replace(f"{{{parameter}}}", quote(str(value), safe=""))
                body = json.dumps(case.body).encode()
                given_query: dict[str, Any] = case.query or {}
                query = {key: str(value) for key, value in given_query.items()}
                reply = client.request(case.method, path, content=body, params=query, headers={"content-type": JSON})
                if reply.status_code in (400, 422):
                    told = reply.json()
                    code = str(told.get("code") or told["error"]["code"])
                    if code in NOT_FITTING or code not in codes[name]:
                        wrong.append(f"{name}: {code} for {body[:200]!r}")

            send()
    assert wrong == []


def codes_of(operation: documented_operations.Operation) -> set[str]:
    """Return the codes of its refusals in the document."""
    told = [one["description"] for one in operation.said["responses"].values()]
    return {code for text in told for code in re.findall(r"`([a-z-]+)`", text)}


@pytest.mark.parametrize("number", ["3.0", "3"])
def test_a_whole_number_is_an_integer_in_every_notation(number: str) -> None:
    with served() as (address, known), httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        reply = client.post(
            f"/api/workflows/executions/{known['eid']}/fork",
            content=f'{{"at": {number}}}',
            headers={"content-type": JSON},
        )
        assert "int_type" not in reply.text, reply.text
        reply = client.post(
            f"/api/workflows/executions/{known['eid']}/fork", content='{"at": 1.5}', headers={"content-type": JSON}
        )
        assert (reply.status_code, reply.json()["code"]) == (422, "request-invalid")
