"""Events, schedules and webhooks over HTTP."""

from __future__ import annotations

import json

import pytest

from pointsman.settings import Settings
from pointsman.triggers.signatures import key_of, sign
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, WAITS

SECRET = "whsec-0123456789abcdef"
ORDERS = """\
pointsman: 1
id: orders
input: {type: object}
output: {number: order}
triggers:
  - {id: call, type: webhook, path: shop/orders, secret: secret.SHOP, inputs: {order: event.order}}
nodes:
  - {id: done, type: end}
"""
WITH_SECRET = Settings(delays=False, secrets={"SHOP": SECRET})


def signed(body: bytes, delivery: str, now: float, secret: str = SECRET) -> dict[str, str]:
    at = int(now)
    return {
        "content-type": "application/json",
        "webhook-id": delivery,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(key_of(secret), delivery, at, body),
    }


async def test_an_event_reaches_its_waiters_once_per_key(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(WAITS)
        execution = await served.execute("waits")
    async with serving(file_store) as served:
        key = {"idempotency-key": "k1"}
        told = await served.client.post("/api/events", json={"name": "knock", "data": {"by": "ada"}}, headers=key)
        assert told.json()["delivered"] == [execution]
        again = await served.client.post("/api/events", json={"name": "knock", "data": {"by": "ada"}}, headers=key)
        assert (again.json()["delivered"], again.json()["key"]) == ([], told.json()["key"])
        nobody = await served.client.post("/api/events", json={"name": "ring"})
        assert (nobody.json()["delivered"], nobody.json()["started"]) == ([], [])


async def test_a_schedule_is_created_read_paused_and_deleted(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        body = {"workflow": "chain", "cron": "0 8 * * *", "timezone": "Europe/Berlin", "id": "morning"}
        made = await served.client.post("/api/schedules", json=body)
        assert (made.status_code, made.headers["location"]) == (201, "/api/schedules/morning")
        again = await served.client.post("/api/schedules", json=body)
        assert (again.status_code, again.json()["code"]) == (409, "schedule-exists")
    async with serving(file_store) as served:
        assert (await served.client.get("/api/schedules/morning")).json()["when"] == "0 8 * * * (Europe/Berlin)"
        times = (await served.client.get("/api/schedules/morning/times?count=3")).json()["times"]
        assert len(times) == 3
        assert times == sorted(times)
        paused = (await served.client.post("/api/schedules/morning/pause")).json()
        assert (paused["paused"], paused["next"]) == (True, None)
        assert (await served.client.post("/api/schedules/morning/resume")).json()["next"] is not None
        assert (await served.client.delete("/api/schedules/morning")).status_code == 204
        assert (await served.client.get("/api/schedules/morning")).json()["code"] == "no-such-schedule"


async def test_the_schedule_of_a_document_is_paused_and_not_deleted(served: Served) -> None:
    own = "triggers: [{id: nightly, type: schedule, cron: '0 3 * * *'}]"
    await served.save(CHAIN.replace("output: {said: b}", f"output: {{said: b}}\n{own}"))
    assert [one["id"] for one in (await served.client.get("/api/schedules")).json()["schedules"]] == ["chain/nightly"]
    assert (await served.client.post("/api/schedules/chain/nightly/pause")).json()["paused"]
    refused = await served.client.delete("/api/schedules/chain%2Fnightly")
    assert (refused.status_code, refused.json()["code"]) == (422, "schedule-invalid")


@pytest.mark.parametrize(
    "wrong",
    [
        {"cron": "0 8 * * *", "every": 5},
        {},
        {"cron": "every day"},
        {"every": -1},
        {"at": 1},
        {"cron": "0 8 * * *", "timezone": "Mars/Base"},
        {"every": 60, "missed": "some"},
        {"every": 60, "id": "a/b"},
        {"every": "60"},
    ],
    ids=str,
)
async def test_an_invalid_schedule_is_refused(served: Served, wrong: dict[str, object]) -> None:
    await served.save(CHAIN)
    reply = await served.client.post("/api/schedules", json={"workflow": "chain", **wrong})
    assert reply.status_code in (400, 422), reply.text
    assert (await served.client.get("/api/schedules")).json()["schedules"] == []


async def test_a_signed_call_starts_a_workflow_once_and_unsigned_calls_are_not_found() -> None:
    async with serving(settings=WITH_SECRET, is_local=False) as served:
        editor = await served.key("ada", "editor")
        assert (await served.client.post("/api/workflows", content=ORDERS, headers=editor)).status_code == 201
        body = json.dumps({"order": 12}).encode()
        now = served.app.clock.now()
        address = "/api/webhooks/shop/orders"
        taken = await served.client.post(address, content=body, headers=signed(body, "msg_1", now))
        assert (taken.status_code, taken.json()) == (202, {"delivery": "msg_1", "accepted": True})
        again = await served.client.post(address, content=body, headers=signed(body, "msg_1", now))
        assert again.status_code == 202
        ran = (await served.client.get("/api/workflows/executions", headers=await served.key("root", "admin"))).json()
        assert len(ran["executions"]) == 1
        refused = [
            await served.client.post(address, content=body),
            await served.client.post(address, content=body + b" ", headers=signed(body, "msg_2", now)),
            await served.client.post(address, content=body, headers=signed(body, "msg_3", now - 900)),
            await served.client.post(address, content=body, headers=signed(body, "msg_4", now, secret="x" * 20)),
            await served.client.post("/api/webhooks/nobody", content=body, headers=signed(body, "msg_5", now)),
        ]
        assert {(one.status_code, one.json()["code"], one.json()["detail"]) for one in refused} == {
            (404, "webhook-refused", "no webhook accepts this call")
        }
        listed = (await served.client.get("/api/webhooks", headers=editor)).json()["webhooks"]
        assert [(one["address"], one["workflowId"], one["signed"]) for one in listed] == [(address, "orders", True)]
        assert SECRET not in json.dumps(listed)


async def test_a_changed_schedule_keeps_its_history(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        body = {"workflow": "chain", "cron": "0 8 * * *", "timezone": "Europe/Berlin"}
        await served.client.post("/api/schedules", json={**body, "id": "morning"})
        ran = (await served.client.post("/api/schedules/morning/run")).json()
        assert ran["outcome"] == "started"
        before = await served.client.get("/api/schedules/morning")
        assert (before.json()["cron"], before.json()["every"], before.json()["at"]) == ("0 8 * * *", None, None)
        changed = {"workflow": "chain", "every": 900, "input": {"said": "x"}, "overlap": "queue"}
        mark = {"if-match": before.headers["etag"]}
        told = await served.client.put("/api/schedules/morning", json=changed, headers=mark)
        assert (told.status_code, told.json()["when"], told.json()["overlap"]) == (200, "every 900 s", "queue")
        assert told.headers["etag"] != before.headers["etag"]
        again = await served.client.put("/api/schedules/morning", json=changed, headers=mark)
        assert (again.status_code, again.json()["code"]) == (409, "revision-moved")
    async with serving(file_store) as served:
        kept = (await served.client.get("/api/schedules/morning")).json()
        assert (kept["every"], kept["cron"], kept["input"]) == (900, None, {"said": "x"})
        assert [one["executionId"] for one in kept["results"]] == [ran["executionId"]]


async def test_a_run_between_read_and_change_of_a_schedule_is_not_a_conflict(served: Served) -> None:
    await served.save(CHAIN)
    await served.client.post("/api/schedules", json={"workflow": "chain", "every": 60})
    mark = (await served.client.get("/api/schedules/chain")).headers["etag"]
    await served.client.post("/api/schedules/chain/run")
    told = await served.client.put(
        "/api/schedules/chain", json={"workflow": "chain", "every": 120}, headers={"if-match": mark}
    )
    assert told.status_code == 200


async def test_the_schedule_of_a_document_is_changed_only_in_the_document(served: Served) -> None:
    own = "triggers: [{id: nightly, type: schedule, cron: '0 3 * * *'}]"
    await served.save(CHAIN.replace("output: {said: b}", f"output: {{said: b}}\n{own}"))
    told = await served.client.put("/api/schedules/chain%2Fnightly", json={"workflow": "chain", "every": 60})
    assert (told.status_code, told.json()["code"], told.json()["hint"]) == (
        422,
        "schedule-invalid",
        "Change the document of the workflow.",
    )


async def test_a_schedule_is_previewed_before_it_is_saved(served: Served) -> None:
    told = await served.client.post("/api/schedules/times?count=2", json={"cron": "0 8 * * 1", "timezone": "UTC"})
    first, second = told.json()["times"]
    assert (second - first, first % 86_400) == (7 * 86_400, 8 * 3600)
    once = await served.client.post("/api/schedules/times", json={"at": 4_000_000_000})
    assert once.json()["times"] == [4_000_000_000]
    wrong = await served.client.post("/api/schedules/times", json={"cron": "61 * * * *"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "cron-invalid")
    assert (await served.client.get("/api/schedules")).json()["schedules"] == []


async def test_a_webhook_is_tested_with_its_own_secret() -> None:
    async with serving(settings=WITH_SECRET) as served:
        await served.save(ORDERS)
        told = await served.client.post("/api/workflows/orders/triggers/call/try", json={"data": {"order": 12}})
        assert (told.status_code, told.json()["accepted"]) == (200, True)
        started = await served.read(told.json()["started"])
        assert (started["workflowId"], started["input"]) == ("orders", {"order": 12})
        unknown = await served.client.post("/api/workflows/orders/triggers/ring/try", json={})
        assert (unknown.status_code, unknown.json()["code"]) == (404, "no-such-trigger")


async def test_a_test_of_a_webhook_reports_a_missing_secret(served: Served) -> None:
    await served.save(ORDERS)
    told = await served.client.post("/api/workflows/orders/triggers/call/try", json={"data": {}})
    assert (told.status_code, told.json()["code"]) == (503, "secret-missing")


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "content-type", "x-hub-signature-256"])
@pytest.mark.parametrize("place", [0, 99], ids=["before", "after"])
async def test_a_call_with_a_header_twice_is_not_read_in_two_ways(header: str, place: int) -> None:
    """A proxy may read the first or the last of the two."""
    async with serving(settings=WITH_SECRET, is_local=False) as served:
        editor = await served.key("ada", "editor")
        assert (await served.client.post("/api/workflows", content=ORDERS, headers=editor)).status_code == 201
        body = json.dumps({"order": 12}).encode()
        good = [*signed(body, "msg_1", served.app.clock.now()).items()]
        good.insert(place, (header, "application/x-www-form-urlencoded" if header == "content-type" else "7"))
        reply = await served.client.post("/api/webhooks/shop/orders", content=body, headers=good)
        expected = {"content-type": 400, "x-hub-signature-256": 202}.get(header, 404)
        assert reply.status_code == expected, reply.text


async def test_strangers_learn_nothing_from_a_webhook_whose_secret_cannot_be_used() -> None:
    async with serving(is_local=False) as served:
        editor = await served.key("ada", "editor")
        assert (await served.client.post("/api/workflows", content=ORDERS, headers=editor)).status_code == 201
        known = await served.client.post("/api/webhooks/shop/orders", content=b"{}")
        unknown = await served.client.post("/api/webhooks/nothing", content=b"{}")
        assert (known.status_code, known.text) == (404, unknown.text)
        calls = (await served.client.get("/api/workflows/orders/triggers/call/deliveries", headers=editor)).json()
        assert [(one["code"], "'SHOP'" in one["why"]) for one in calls["deliveries"]] == [("secret-missing", True)]
