"""Limits for one caller or one address, and for deeply nested input."""

from __future__ import annotations

import asyncio
import json

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.rate_limiter import LoginThrottle, StreamQuota, TooManyRequests
from pointsman.executions.start import SESSION_CLAIM, start_as
from pointsman.json_meter import DEPTH_MAX, DIGITS_MAX, VALUES_MAX, excess_of
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from pointsman.store.records import ExecutionQuery
from tests.installation import HandClock
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

ADA, BOB = Caller(name="ada", role="operator"), Caller(name="bob", role="operator")


def limited(**access: int) -> Settings:
    return Settings(delays=False, access=AccessSettings.model_validate(access))


async def test_wrong_keys_lock_an_address_out_but_not_its_logged_in_users() -> None:
    async with serving(is_local=False, settings=limited(wrong_keys_per_minute=3)) as served:
        ada, late = await served.key("ada", "viewer"), await served.key("late", "viewer")
        assert (await served.client.get("/api/me", headers=ada)).status_code == 200
        for guess in range(3):
            headers = {"authorization": f"Bearer pm_{guess}"}
            assert (await served.client.get("/api/me", headers=headers)).status_code == 401
        for headers in ({"authorization": "Bearer pm_4"}, late, {"cookie": "__Host-pointsman=guess"}):
            reply = await served.client.get("/api/me", headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (429, "too-many-requests")
            assert 1 <= int(reply.headers["retry-after"]) <= 20
        assert (await served.client.post("/api/login", json={"key": "pm_5"})).status_code == 429
        assert (await served.client.get("/api/me", headers=ada)).status_code == 200
        assert (await served.client.get("/api/me")).status_code == 401, "who shows nothing guesses nothing"


def test_login_attempts_recover_with_time_and_are_counted_per_address() -> None:
    clock = HandClock()
    strangers = LoginThrottle(clock, wrong_per_minute=2)
    strangers.failed("here", "a")
    strangers.failed("here", "b")
    with pytest.raises(TooManyRequests):
        strangers.may_try("here", "c")
    strangers.may_try("there", "c")
    strangers.opened("c")
    strangers.may_try("here", "c")
    clock.at += 30
    strangers.may_try("here", "d")


async def opened(served: Served, address: str, headers: dict[str, str]) -> int:
    async with served.client.stream("GET", address, headers=headers) as reply:
        return reply.status_code


async def test_the_number_of_streams_per_caller_is_limited() -> None:
    async with serving(is_local=False, settings=limited(streams=2)) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "viewer")
        assert (await served.client.post("/api/workflows", content=LETTER, headers=ada)).status_code == 201
        started = await served.client.post(
            "/api/workflows/letter/execute", json={"input": "a day", "wait": True}, headers=ada
        )
        address = f"/api/workflows/executions/{started.json()['executionId']}/stream"
        async with (
            served.client.stream("GET", address, headers=ada) as first,
            served.client.stream("GET", address, headers=bob) as other,
        ):
            async with served.client.stream("GET", address, headers=ada) as second:
                assert (first.status_code, second.status_code, other.status_code) == (200, 200, 200)
                reply = await served.client.get(address, headers=ada)
                assert (reply.status_code, reply.json()["code"]) == (429, "too-many-requests")
                assert int(reply.headers["retry-after"]) > 0
            async with asyncio.timeout(PATIENCE_S):
                while await opened(served, address, ada) != 200:
                    pass  # The server notices the closed connection later.


def test_a_stream_is_released_once() -> None:
    seats = StreamQuota(1)
    leave = seats.take("ada")
    with pytest.raises(TooManyRequests):
        seats.take("ada")
    seats.take("bob")
    leave()
    seats.take("ada")


async def test_starts_per_minute_and_caller_are_limited() -> None:
    async with serving(is_local=False, settings=limited(starts_per_minute=2)) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201
        address = "/api/workflows/chain/execute"
        begun = [await served.client.post(address, json={"input": {}}, headers=ada) for _ in range(3)]
        assert [one.status_code for one in begun] == [202, 202, 429]
        assert 1 <= int(begun[2].headers["retry-after"]) <= 30
        assert len((await served.client.get("/api/workflows/executions", headers=ada)).json()["executions"]) == 2
        assert (await served.client.post(address, json={"input": {}}, headers=bob)).status_code == 202


@pytest.mark.parametrize("path", ["/api/workflows/chain/execute", "/api/login", "/v1/chat/completions", "/mcp"])
async def test_too_deeply_nested_json_is_refused_before_it_is_parsed(path: str) -> None:
    async with serving() as served:
        await served.save(CHAIN)
        for depth in (DEPTH_MAX, 900, 10_000):
            reply = await served.client.post(
                path,
                content='{"input": ' + '{"a":[' * (depth // 2) + "]}" * (depth // 2) + "}",
                headers={"content-type": "application/json", "accept": "application/json, text/event-stream"},
            )
            told = reply.json()
            code, why = (
                (told["error"]["code"], told["error"]["message"])
                if path.startswith("/v1")
                else (told["code"], told["detail"])
            )
            assert (reply.status_code, code) == (400, "body-invalid"), (depth, reply.text[:200])
            assert "levels deep" in why
        assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_a_too_deeply_nested_form_or_document_is_refused() -> None:
    async with serving() as served:
        await served.save(CHAIN)
        deep = '{"a":' + "[" * 900 + "]" * 900 + "}"
        files = {"file": ("a.txt", b"a", "text/plain")}
        reply = await served.client.post("/api/workflows/chain/execute/files", data={"input": deep}, files=files)
        assert (reply.status_code, reply.json()["code"]) == (422, "input-invalid")
        for document in (deep, deep.replace('"', ""), "\n".join(" " * n + "a:" for n in range(900))):
            reply = await served.client.post("/api/workflows", content=document)
            assert (reply.status_code, reply.json()["code"]) == (422, "workflow-invalid")


@pytest.mark.parametrize(
    ("body", "deep"),
    [
        (json.dumps(["[" * 1000, '"[' * 500, "\\[" * 500]), False),
        (json.dumps([[]] * 5000), False),
        ("[" * DEPTH_MAX + "]" * DEPTH_MAX, False),
        ("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1), True),
        ('["\\\\", ' + '{"\\"":[' * 150 + "]}" * 150 + "]", True),
        ("]" * 300 + "[" * 300, False),
        ("", False),
    ],
    ids=["in texts", "wide", "as deep as may be", "deeper", "after escapes", "no JSON", "empty"],
)
def test_only_brackets_outside_of_strings_count_as_nesting(body: str, deep: bool) -> None:
    for encoding in ("utf-8", "utf-16", "utf-32"):
        assert ("levels deep" in excess_of(body.encode(encoding))) is deep, encoding


@pytest.mark.parametrize(
    ("body", "excess"),
    [
        ("[" + "1," * VALUES_MAX + "1]", "values"),
        ("[" + "1," * (VALUES_MAX - 1) + "1]", ""),
        ("1" * (DIGITS_MAX + 1), "digits"),
        ("[-" + "1" * DIGITS_MAX + ", 0." + "1" * DIGITS_MAX + "]", ""),
        ('{"a": [0.' + "1" * (DIGITS_MAX + 1) + "]}", "digits"),
        ('"' + "1" * 1_000_000 + '"', ""),
        (r'["\\"' + ", 1" * 90 + "1" * DIGITS_MAX + "]", "digits"),
        (r'["\"' + "1" * 300_000 + '", "' + "1" * 1_000 + '"]', ""),
    ],
)
def test_values_and_digits_of_json_are_limited(body: str, excess: str) -> None:
    assert excess in excess_of(body.encode())
    assert bool(excess) == bool(excess_of(body.encode()))


@pytest.mark.parametrize("many", ["[" + "1," * VALUES_MAX + "1]", '{"n": ' + "9" * 4_000 + "}"])
async def test_costly_json_is_refused_in_any_body(many: str) -> None:
    """4 000 digits in each of 10 000 numbers kept a server busy for 84 s."""
    async with serving() as served:
        await served.save(CHAIN)
        files = {"file": ("a.txt", b"a", "text/plain")}
        form = await served.client.post("/api/workflows/chain/execute/files", data={"input": many}, files=files)
        assert (form.status_code, form.json()["code"]) == (422, "input-invalid")
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        for path in ("/api/workflows/chain/execute", "/mcp", "/v1/chat/completions"):
            reply = await served.client.post(path, content='{"input": ' + many + "}", headers=headers)
            assert (reply.status_code, "body-invalid" in reply.text) == (400, True), path


@pytest.mark.parametrize(
    "media_type", ["application/json, text/plain", "application/json,", "application/json; charset=utf-16"]
)
async def test_costly_json_for_mcp_is_refused_whatever_type_the_body_claims(media_type: str) -> None:
    """The SDK reads types as JSON that the API does not: 6 MB of brackets kept the server busy for 1.3 s."""
    async with serving() as served:
        for costly in ("[" + "1," * VALUES_MAX + "1]", "[" * 1_000 + "]" * 1_000, "9" * 4_000):
            headers = {"content-type": media_type, "accept": "application/json, text/event-stream"}
            reply = await served.client.post("/mcp", content=f'{{"params": {costly}}}', headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (400, "body-invalid"), reply.text[:200]


@pytest.mark.requirement("S1-105")
async def test_one_of_two_concurrent_session_starts_succeeds(file_store: str) -> None:
    async with Pointsman(file_store, model="scripted") as here, Pointsman(file_store, model="scripted") as there:
        await here.save(Workflow.parse(CHAIN))
        for number in range(8):
            session = f"talk-{number}"
            both = await asyncio.gather(
                start_as(here.context, ADA, "chain", {}, session=session),
                start_as(there.context, BOB, "chain", {}, session=session),
                return_exceptions=True,
            )
            assert sum(isinstance(one, NotAllowed) for one in both) == 1, both
            owners = {one.owner for one in await here.executions(ExecutionQuery(session=session))}
            assert len(owners) == 1
        assert await here.store.entries.list(SESSION_CLAIM) == [], "claims are given back"


async def test_a_session_claim_left_by_a_crash_expires_after_a_minute() -> None:
    clock = HandClock()
    async with Pointsman("memory:", model="scripted", clock=clock) as app:
        await app.save(Workflow.parse(CHAIN))
        await app.store.entries.put(SESSION_CLAIM, "talk", {"by": "bob", "until": clock.now() + 60})
        with pytest.raises(NotAllowed, match="being started"):
            await start_as(app.context, ADA, "chain", {}, session="talk")
        clock.at += 61
        await start_as(app.context, ADA, "chain", {}, session="talk")
        with pytest.raises(NotAllowed):
            await start_as(app.context, BOB, "chain", {}, session="talk")
        await start_as(app.context, ADA, "chain", {}, session="talk")
