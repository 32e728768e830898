"""An editor creates a webhook by form; its URL starts the workflow, and its signature is checked."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page, expect

from pointsman.app import Pointsman
from pointsman.triggers.signatures import key_of, sign
from tests.server import flows
from tests.server.conftest import Served, serving_app
from tests.web.conftest import Opens, screenshot

BODY = b'{"goal": "tea"}'


async def call(served: Served, path: str, secret: str, *, id: str = "msg-1") -> int:
    """Call a webhook like another system; return the status of the answer."""
    at = int(time.time())
    headers = {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(key_of(secret), id, at, BODY),
    }
    return (await served.client.post(f"/api/webhooks/{path}", content=BODY, headers=headers)).status_code


async def goals(served: Served) -> list[str]:
    """Return the inputs of the executions that were started."""
    listed = (await served.client.get("/api/workflows/executions")).json()["executions"]
    paths = [f"/api/workflows/executions/{one['executionId']}" for one in listed]
    return [str((await served.client.get(path)).json()["input"]["goal"]) for path in paths]


async def create(page: Page, path: str) -> str:
    """Create a webhook of the letter; return its secret."""
    await page.get_by_role("button", name="Create a webhook").click()
    dialog = page.get_by_role("dialog")
    workflow = dialog.get_by_label(re.compile("^Workflow"))
    await workflow.fill("letter")
    await expect(page.get_by_role("option", name="letter", exact=True)).to_be_visible()
    await workflow.press("Enter")
    await expect(dialog.get_by_label(re.compile("^Path"))).to_have_value("letter")
    await dialog.get_by_label(re.compile("^Path")).fill(path)
    await screenshot(page, "webhooks-create")
    await dialog.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("dialog", name=f"Webhook {path} saved")).to_be_visible()
    return await page.get_by_role("dialog").get_by_text(re.compile("^whsec_")).inner_text()


@asynccontextmanager
async def webhooks_page(opens: Opens, told: tuple[str, ...] = ()) -> AsyncGenerator[tuple[Page, Served]]:
    """Open the page of webhooks of a server that has the letter and can store secrets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSMAN_VAULT_KEYS", base64.b64encode(bytes(32)).decode())
        async with Pointsman("memory:", model="scripted") as app, serving_app(app, is_local=True) as served:
            await served.save(flows.LETTER)
            async with opens(told=told) as page:
                await page.goto(f"{str(served.client.base_url).rstrip('/')}/webhooks")
                yield page, served


async def publish(served: Served, name: str) -> None:
    reply = await served.client.put("/api/workflows/letter/published", json={"name": name})
    assert reply.status_code == 200, reply.text


async def test_a_webhook_created_by_form_starts_the_workflow_until_it_is_deleted(opens: Opens) -> None:
    async with webhooks_page(opens, told=("422",)) as (page, served):
        secret = await create(page, "shop/orders")
        await screenshot(page, "webhooks-created")
        assert await call(served, "shop/orders", "wrong" * 8) == 404
        assert await call(served, "shop/orders", secret) == 202
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="Edit webhook shop/orders").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Add input").click()
        await dialog.get_by_label("Name of input 1").fill("goal")
        await dialog.get_by_label("Expression of input 1").fill("upper(event.goal")
        await dialog.get_by_role("button", name="Save", exact=True).click()
        await expect(dialog.get_by_label("Expression of input 1")).to_be_focused()
        await expect(dialog.get_by_role("alert")).to_contain_text("column")
        await screenshot(page, "webhooks-input-refused")
        await dialog.get_by_label("Expression of input 1").fill("upper(event.goal)")
        await dialog.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        assert await call(served, "shop/orders", secret, id="msg-mapped") == 202
        assert "TEA" in await goals(served)
        await page.get_by_role("button", name="Edit webhook shop/orders").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete webhook").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete webhook").click()
        await expect(page.get_by_role("dialog").get_by_text("WEBHOOK_SHOP_ORDERS was deleted")).to_be_visible()
        await page.get_by_role("button", name="Close").click()
        await expect(page.get_by_text("No webhooks yet.")).to_be_visible()
        assert await served.app.vault.all() == []
        assert await call(served, "shop/orders", secret, id="msg-late") == 404


async def test_a_webhook_of_a_published_workflow_is_in_effect_after_publication(opens: Opens) -> None:
    async with webhooks_page(opens) as (page, served):
        await publish(served, "1.0")
        secret = await create(page, "letters")
        await expect(page.get_by_role("dialog").get_by_text("saved, but not in effect")).to_be_visible()
        await screenshot(page, "webhooks-unpublished")
        assert await call(served, "letters", secret) == 404
        await publish(served, "1.1")
        assert await call(served, "letters", secret) == 202
        await page.reload()
        await page.get_by_role("button", name="Edit webhook letters").click()
        await page.get_by_role("dialog").get_by_label("Condition").fill("event.goal == 'coffee'")
        await page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
        note = page.get_by_role("dialog").get_by_text(re.compile("The change is saved, but not in effect.*“1.1”"))
        await expect(note).to_be_visible()
        await screenshot(page, "webhooks-older-version")
