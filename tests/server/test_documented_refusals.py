"""Every documented refusal is reached, operation by operation; `test_conflicts` reaches those that depend on the
state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from tests.server.conftest import Served, serving
from tests.server.documented_operations import JSON, LONG, OPERATIONS, Operation
from tests.server.test_conflicts import ABSENT

LOGIN: Final = "POST /api/login"
"""Its limit of attempts depends on the minute: it has its own test."""
FORMS: Final = ("GET /api/published/", "POST /api/published/")
"""What they refuse depends on the publication, which must exist: `test_publications` tests them."""
LOGIN_OF_CREDENTIAL: Final = "PUT /api/secrets/{name}/authorization"
"""It checks the state of the login first: `test_credentials` deletes a credential during its login."""


async def status_of(served: Served, operation: Operation, **how: Any) -> int:
    """Return the status of an answer without waiting for its end."""
    address = how.pop("address", operation.address())
    how.setdefault("params", operation.needed())
    async with served.client.stream(operation.method, address, **how) as reply:
        return reply.status_code


def announcing(status: int) -> list[Operation]:
    return [one for one in OPERATIONS if status in one.refusals]


def sent(operation: Operation) -> dict[str, Any]:
    content, media = operation.body()
    return {"content": content, "headers": {"content-type": media}} if media else {}


async def reached(served: Served, status: int, wrong: Callable[[Operation], dict[str, Any]]) -> list[str]:
    """Return the operations that answer with another status to a request that is invalid in one way."""
    missed: list[str] = []
    for operation in announcing(status):
        got = await status_of(served, operation, **wrong(operation))
        if got != status:
            missed.append(f"{operation.name}: {got}")
    return missed


def test_every_documented_status_has_a_test_here() -> None:
    of_connections = {408, 414, 431}  # `test_connections` tests these: they occur before routing.
    assert {status for one in OPERATIONS for status in one.refusals} == of_connections | {
        *(400, 401, 403, 404, 409, 413, 415, 422, 429),
        410,  # `test_answer_links` tests it: a link must expire.
    }
    assert all(of_connections < one.refusals for one in OPERATIONS)


async def test_a_request_without_a_key_is_refused_as_documented() -> None:
    async with serving(is_local=False) as served:
        missed = await reached(served, 401, sent)
        assert [one for one in missed if not one.startswith(FORMS)] == []


async def test_a_request_for_another_host_is_refused_as_documented(served: Served) -> None:
    assert await reached(served, 403, lambda one: {"headers": {"host": "evil.example"}}) == []


async def test_a_request_over_the_rate_limit_is_refused_as_documented() -> None:
    slow = Settings(
        delays=False,
        access=AccessSettings(requests_per_s=0.000_001, burst=1, wrong_keys_per_minute=1, webhook_calls_per_minute=1),
    )
    async with serving(is_local=False, settings=slow) as served:
        ada = await served.key("ada", "admin")
        assert (await served.client.get("/api/me", headers=ada)).status_code == 200
        assert (await served.client.post("/api/webhooks/none")).status_code == 404
        guesses = [await served.client.post("/api/login", json={"key": f"pm_{number}"}) for number in range(3)]
        assert 429 in [reply.status_code for reply in guesses]

        def often(operation: Operation) -> dict[str, Any]:
            how = sent(operation)
            return {**how, "headers": {**how.get("headers", {}), **ada}}

        missed = await reached(served, 429, often)
        assert [one for one in missed if not one.startswith((LOGIN, *FORMS))] == []


async def test_a_too_large_body_is_refused_as_documented() -> None:
    async with serving(body_bytes_max=1_000) as served:
        assert await reached(served, 413, lambda one: {"content": b" " * 2_000}) == []


async def test_an_invalid_host_header_is_refused_as_documented(served: Served) -> None:
    assert await reached(served, 400, lambda one: {**sent(one), "headers": {"host": "localhost@evil.example"}}) == []


async def test_a_too_deep_body_is_refused_as_documented(served: Served) -> None:
    def deep(operation: Operation) -> dict[str, Any]:
        return {"content": b"[" * 300, "headers": {"content-type": JSON}}

    missed = [one for one in await reached(served, 400, deep) if not one.startswith("GET")]
    assert missed == ["POST /api/webhooks/{path}: 404"], "whose body is not read before its signature is checked"


async def test_a_body_of_another_media_type_is_refused_as_documented(served: Served) -> None:
    def other(operation: Operation) -> dict[str, Any]:
        return {"content": operation.body()[0], "headers": {"content-type": "text/x-unheard-of"}}

    assert await reached(served, 415, other) == []


async def test_invalid_parameters_and_bodies_are_refused_as_documented(served: Served) -> None:
    def none(operation: Operation) -> dict[str, Any]:
        if operation.parameters("path"):
            return {"address": operation.address(LONG), **sent(operation)}
        for one in operation.parameters("query"):
            kinds = {part.get("type") for part in (one["schema"], *one["schema"].get("anyOf", ()))}
            return {"params": {one["name"]: LONG if kinds & {"string", "boolean"} else "-1"}, **sent(operation)}
        if operation.parameters("header"):
            return {"headers": {operation.parameters("header")[0]["name"]: LONG}}
        return {"content": b"[]", "headers": {"content-type": operation.body()[1]}}

    assert await reached(served, 422, none) == []


async def test_missing_objects_are_not_found_as_documented(served: Served) -> None:
    missed = await reached(served, 404, sent)
    elsewhere = {*ABSENT, LOGIN_OF_CREDENTIAL}
    assert [one for one in missed if one.rpartition(":")[0] not in elsewhere] == []
