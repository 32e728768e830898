"""Webhooks, who is told outside, and models: shown, and tried."""

from __future__ import annotations

from playwright.async_api import expect

from pointsman.app.notifications.notices import Notice
from pointsman.app.notifications.outbox import Letter, Outbox
from pointsman.values import JsonObject
from tests.server.conftest import Served
from tests.web.conftest import Opens

ORDERS = """\
pointsman: 1
id: orders
input: {type: object}
output: {number: order}
triggers:
  - {id: call, type: webhook, path: shop/orders, match: event.order > 0, inputs: {order: event.order}}
nodes:
  - {id: done, type: end}
"""


async def test_a_webhook_is_shown_with_its_address_and_tried(opens: Opens, served: Served) -> None:
    async with opens("/webhooks") as page:
        await expect(page.get_by_text("No workflow has a webhook.")).to_be_visible()
        await served.save(ORDERS)
        await page.reload()
        address = f"{str(served.client.base_url).rstrip('/')}/api/webhooks/shop/orders"
        await expect(page.get_by_text(address)).to_be_visible()
        await page.get_by_role("button", name="Try it: shop/orders").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("What is sent (JSON)").fill('{"order": 0}')
        await dialog.get_by_role("button", name="Call it").click()
        await expect(dialog.get_by_text("Nothing happened")).to_be_visible()
        await dialog.get_by_label("What is sent (JSON)").fill('{"order": 7}')
        await dialog.get_by_role("button", name="Call it").click()
        await dialog.get_by_role("link", name="Open the execution").click()
        await page.wait_for_url("**/executions/*")
        execution = page.url.rpartition("/")[2]
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
    assert (await served.read(execution))["input"] == {"order": 7}


async def test_what_came_of_the_calls_of_a_webhook_is_shown(opens: Opens, served: Served) -> None:
    await served.save(ORDERS)
    async with opens("/webhooks") as page:
        await page.get_by_role("button", name="Past calls of shop/orders").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_text("Nobody has called it")).to_be_visible()
        for order in (0, 7):
            await served.client.post("/api/webhooks/shop/orders", json={"order": order})
        await served.client.post(
            "/api/webhooks/shop/orders", content=b"?", headers={"content-type": "application/json"}
        )
        await dialog.get_by_role("button", name="Look again").click()
        rows = dialog.get_by_role("table", name="Past calls").get_by_role("row")
        await expect(rows).to_have_count(4)
        await expect(rows.nth(1)).to_contain_text("the body is not JSON")
        await expect(rows.nth(3)).to_contain_text("ignored")
        await rows.nth(2).get_by_role("link", name="Open the execution").click()
        await page.wait_for_url("**/executions/*")
        execution = page.url.rpartition("/")[2]
    assert (await served.read(execution))["input"] == {"order": 7}


async def test_a_notice_that_was_given_up_is_sent_again(opens: Opens, served: Served) -> None:
    outbox = Outbox(served.app)
    body: JsonObject = {"event": "workflow.failed", "executionId": "exec-1"}
    kept = await outbox.put(Notice("exec-1/failed", "failed", "letter", body), "desk", 1_000.0)
    assert kept is not None
    dead = Letter(to="desk", body=kept.letter.body, at=1_000.0, state="dead", attempts=8, error="answered 500")
    await outbox.change(kept, dead)
    async with opens("/notifications") as page:
        await expect(page.get_by_text("Nobody is told anything.")).to_be_visible()
        row = page.get_by_role("table", name="Outbox").get_by_role("row", name="workflow.failed")
        await expect(row).to_contain_text("answered 500")
        await row.get_by_role("button", name="Send again: workflow.failed to desk").click()
        await expect(row.get_by_text("to be sent")).to_be_visible()
        await page.get_by_label("State").select_option("given up")
        await expect(page.get_by_text("There is nothing in the outbox.")).to_be_visible()
    (letter,) = await outbox.list()
    assert (letter.letter.state, letter.letter.attempts) == ("pending", 0)


async def test_models_say_that_they_are_scripted_and_whether_they_answer(opens: Opens, served: Served) -> None:
    async with opens("/models") as page:
        await expect(page.get_by_text("No real model is configured")).to_be_visible()
        await expect(page.get_by_text("No provider is configured.")).to_be_visible()
        await page.get_by_role("button", name="Ask them").click()
        await expect(page.get_by_role("row", name="scripted").get_by_text("answered in")).to_be_visible()


async def test_one_of_many_webhooks_and_schedules_is_found_without_loading_all(opens: Opens, served: Served) -> None:
    for number in range(60):
        await served.save(ORDERS.replace("orders", f"orders-{number:02}"))
        await served.app.schedule(f"orders-{number:02}", id=f"daily-{number:02}", cron="0 7 * * *")
    for path, name, last in (("/webhooks", "Webhooks", "shop/orders-59"), ("/schedules", "Schedules", "daily-59")):
        async with opens(path) as page:
            rows = page.get_by_role("table", name=name).get_by_role("row")
            await expect(rows).to_have_count(51)
            search = page.get_by_role("searchbox", name=f"Search {name.lower()}")
            await search.fill("59")
            await expect(rows).to_have_count(2)
            await expect(rows.nth(1)).to_contain_text(last)
            await search.fill("nothing like it")
            await expect(page.get_by_text("“nothing like it”")).to_be_visible()
            await search.fill("")
            await expect(rows).to_have_count(51)
            await page.get_by_role("button", name="Show more").click()
            await expect(rows).to_have_count(61)


async def test_a_few_webhooks_are_seen_at_once_and_need_no_search(opens: Opens, served: Served) -> None:
    await served.save(ORDERS)
    async with opens("/webhooks") as page:
        await expect(page.get_by_role("button", name="Try it: shop/orders")).to_be_visible()
        await expect(page.get_by_role("searchbox")).to_have_count(0)
