"""Any address shows a page of the app, which reports what does not exist and links to the lists."""

from __future__ import annotations

import re
from typing import Final

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import WIDER, address, settled, turn_to

ODD: Final = ("%2F", "%00", "a" * 3_000, "%E2%80%AE%F0%9F%98%80", "%22%27%3Cb%3E")
LISTS: Final = ("workflows", "executions", "agents", "tools", "schedules")
UNDERSTOOD: Final = (
    ("workflows?q={}&tag=%7B%22a%22%3A1%7D&sort=constructor", "Workflows"),
    ("workflows?tag=1&q=" + "a" * 5_000, "Workflows"),
    ("executions?status=[]&since=never&order=up&q=[1]&workflow=7", "Executions"),
    ("executions/compare?a=[1]&b={}", "Compare two executions"),
    ("audit?since=never&until=9999999999&who={}", "Audit log"),
    ("usage?range=own&since=2026-99-99&until=zzz&by=__proto__", "Usage"),
)


async def test_odd_paths_and_queries_show_an_error_page_with_a_link(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows", lenient=True, size=(390, 844)) as page:
        main = page.get_by_role("main")
        for odd in ODD:
            await page.goto(address(served, f"/inbox/{odd}"))
            await settled(page)
            for name in LISTS:
                await turn_to(page, f"{name}/{odd}")
                await expect(main.get_by_role("alert")).to_have_text(re.compile("there is no|Not found"))
                await expect(main.get_by_role("alert")).not_to_contain_text("/api/")
                await expect(main.get_by_role("button", name="Try again")).to_have_count(0)
                await expect(main.get_by_role("link").first).to_have_attribute("href", f"/{name}")
                assert await page.evaluate(WIDER) == []
        for path in ("chat/" + "a" * 3_000, "memory/user/" + "a" * 3_000, "inbox/%2F", "memory/nope/nope", "nope/%00"):
            await turn_to(page, path)
            await expect(page.get_by_role("heading", name="This page cannot be shown")).to_have_count(0)
            assert await page.evaluate(WIDER) == [], path
        for path, title in UNDERSTOOD:
            await turn_to(page, "inbox")
            await turn_to(page, path)
            await expect(main.get_by_role("heading", level=1, name=title, exact=True)).to_be_visible()
            await expect(main.get_by_role("alert")).to_have_count(0)
