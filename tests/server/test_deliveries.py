"""Results of webhook calls: the started executions, or the reason of the refusal."""

from __future__ import annotations

from typing import Any

from tests.server.conftest import Served, serving
from tests.server.test_triggers import ORDERS, SECRET, WITH_SECRET, signed

MATCHED = ORDERS.replace("secret: secret.SHOP,", "secret: secret.SHOP, match: event.order > 0,")


async def call(served: Served, body: bytes, delivery: str, *, secret: str = SECRET) -> int:
    headers = signed(body, delivery, served.app.clock.now(), secret)
    return (await served.client.post("/api/webhooks/shop/orders", content=body, headers=headers)).status_code


async def told(served: Served, *, trigger: str = "call", headers: Any = None, expect: int = 200) -> Any:
    reply = await served.client.get(f"/api/workflows/orders/triggers/{trigger}/deliveries", headers=headers)
    assert reply.status_code == expect, reply.text
    return reply.json()


async def test_the_results_of_webhook_calls_survive_a_restart_without_their_bodies(file_store: str) -> None:
    async with serving(file_store, settings=WITH_SECRET) as served:
        await served.save(MATCHED)
        assert await call(served, b'{"order": 7}', "first") == 202
        assert await call(served, b'{"order": 0}', "second") == 202
        assert await call(served, b'{"order": 8}', "forged", secret="whsec-another-one") == 404
        assert await call(served, b"no json", "fourth") == 400
    async with serving(file_store, settings=WITH_SECRET) as served:
        found = (await told(served))["deliveries"]
        assert [(one["outcome"], one["id"], one["signed"], one["code"]) for one in found] == [
            ("failed", "fourth", True, "body-invalid"),
            ("refused", "", False, "webhook-refused"),
            ("ignored", "second", True, None),
            ("started", "first", True, None),
        ]
        assert found[3]["bytes"] == len(b'{"order": 7}')
        assert (await served.read(found[3]["executionId"]))["input"] == {"order": 7}
        assert not any("body" in one for one in found)


async def test_unsigned_calls_use_a_bounded_part_of_the_log_and_store_no_text(served: Served) -> None:
    await served.save(ORDERS.replace("secret: secret.SHOP,", "secret: whsec-0123456789abcdef,"))
    for number in range(3):
        assert await call(served, b'{"order": 7}', f"good-{number}") == 202
    before = await served.app.store.entries.find("deliveries", "shop/orders")
    for number in range(30):
        assert await call(served, b'{"order": 7}', f"bad-{number}", secret="whsec-another-one") == 404
    assert await served.app.store.entries.find("deliveries", "shop/orders") == before
    outcomes = [one["outcome"] for one in (await told(served))["deliveries"]]
    assert (outcomes.count("refused"), outcomes.count("started")) == (10, 3)
    for number in range(60):
        await call(served, b'{"order": 7}', f"more-{number}")
    found = (await told(served))["deliveries"]
    assert (len(found), found[0]["id"]) == (50, "more-59")


async def test_webhook_calls_are_deleted_with_their_webhook_and_visible_with_its_workflow(served: Served) -> None:
    await served.save(
        ORDERS.replace("id: orders", "id: orders\nallowedGroups: [ops]").replace("secret: secret.SHOP,", "auth: none,")
    )
    assert (await served.client.post("/api/webhooks/shop/orders", json={"order": 7})).status_code == 202
    assert len((await told(served))["deliveries"]) == 1
    assert (await told(served, trigger="other", expect=404))["code"] == "no-such-trigger"
    root, bob = await served.key("root", "admin"), await served.key("bob", "editor")
    await told(served, headers=bob, expect=404)
    await served.client.delete("/api/workflows/orders", headers=root)
    assert await served.app.store.entries.find("deliveries", "shop/orders") is None


async def test_the_next_owner_of_a_webhook_path_does_not_see_earlier_calls(served: Served) -> None:
    document = ORDERS.replace("secret: secret.SHOP,", "secret: whsec-0123456789abcdef,")
    await served.save(document)
    assert await call(served, b'{"order": 7}', "forged", secret="whsec-another-one") == 404
    assert (await served.client.delete("/api/workflows/orders")).is_success
    await served.save(document)
    assert (await told(served))["deliveries"] == []
