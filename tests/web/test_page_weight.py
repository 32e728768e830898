"""Requests and bytes of a first visit: each bound is a figure that was reached, and is only ever lowered."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.async_api import Browser, Request, expect

from tests.server.conftest import Served
from tests.web.test_accessibility import address
from tests.web.test_layout import EXAMPLES

BOUNDS: Final = {
    "/": (".line-clamp-2", 17, 225),
    "/workflows/research-workflow": (".react-flow__node", 21, 410),
}
"""Address -> the content that loads last, requests, and kB as the server compresses them, with headers."""


@pytest.mark.parametrize("path", BOUNDS)
async def test_a_first_visit_sends_few_requests_and_loads_few_bytes(
    browser: Browser, served: Served, path: str
) -> None:
    await served.save((EXAMPLES / "research" / "research.json").read_text("utf-8"))
    content, requests_max, kb_max = BOUNDS[path]
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale="en")
    page = await context.new_page()
    finished: list[Request] = []
    page.on("requestfinished", lambda one: finished.append(one))
    async with page.expect_request_finished(lambda one: one.url.endswith("/api/mentions")):
        await page.goto(address(served, path))
    await expect(page.locator(content).first).to_be_visible()
    sizes = [await one.sizes() for one in finished]
    kb = sum(one["responseBodySize"] + one["responseHeadersSize"] for one in sizes) / 1000
    await context.close()
    assert len(finished) <= requests_max, "\n".join(one.url for one in finished)
    assert kb <= kb_max
