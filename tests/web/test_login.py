"""With keys configured, the app asks for one, and keeps only a cookie that no script can read."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_key_logs_in_and_logout_ends_access(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    key = (await served.key("ada", "editor"))["authorization"].removeprefix("Bearer ")
    async with opens("/workflows", lenient=True) as page:
        await expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
        await page.get_by_label("Key").fill("pm_wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.get_by_label("Key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        kept = await page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
        assert key not in kept
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
