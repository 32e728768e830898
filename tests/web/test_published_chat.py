"""A chat is published by form; visitors talk with it at its link and in a frame of another site."""

from __future__ import annotations

import re

from playwright.async_api import FrameLocator, Page, expect

from tests.http_server import http_server
from tests.server.conftest import serving
from tests.server.test_publications import CHAT
from tests.web.conftest import Opens, screenshot


async def say(at: Page | FrameLocator, text: str) -> None:
    """Send a message and wait until its answer is complete."""
    await at.get_by_label("Message").fill(text)
    await at.get_by_role("button", name="Send").click()
    await expect(at.get_by_text(text, exact=True).first).to_be_visible()
    await expect(at.get_by_label("Message")).to_be_enabled()


async def test_visitors_talk_at_the_link_and_in_a_frame_of_another_site(opens: Opens) -> None:
    with http_server() as site:
        origin = f"http://localhost:{site.port}"
        async with serving() as served:
            server = str(served.client.base_url).rstrip("/")
            await served.save(CHAT)
            async with opens() as page:
                await page.goto(f"{server}/workflows/greet/publish")
                await page.get_by_label("Chat page").check()
                await page.get_by_label("Greeting").fill("Good day.")
                await page.get_by_label("Suggested messages").fill("Who are you?")
                await page.get_by_label("Sites that may contain the pages").fill(origin)
                await page.get_by_role("button", name="Publish", exact=True).click()
                await expect(page.get_by_role("region", name="Links")).to_be_in_viewport()
                link = page.get_by_role("link", name=re.compile("talk"))
                address = await link.get_attribute("href") or ""
                code = await page.get_by_text(re.compile("data-chat")).first.inner_text()
                await screenshot(page, "publish-chat")
            async with opens(size=(600, 800)) as page:
                await page.goto(address)
                await expect(page.get_by_text("Good day.")).to_be_visible()
                await page.get_by_role("button", name="Who are you?").click()
                await say(page, "Is it open today?")
                await screenshot(page, "chat-of-visitors")
                await page.reload()
                await expect(page.get_by_text("Is it open today?", exact=True)).to_be_visible()
                await page.get_by_role("button", name="New conversation").click()
                await expect(page.get_by_text("Is it open today?", exact=True)).to_have_count(0)
            site.expect_request("/").respond_with_data(
                f"<!doctype html><html lang=en><title>Shop</title><h1>Shop</h1>{code}", content_type="text/html"
            )
            async with opens() as page:
                await page.goto(f"{origin}/")
                frame = page.frame_locator("iframe")
                await expect(frame.get_by_text("Good day.")).to_be_visible()
                await say(frame, "Do you sell tea?")
                await screenshot(page, "chat-in-another-site")
