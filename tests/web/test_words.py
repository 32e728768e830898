"""Names in the language of the page: of nodes, events, workflows with the same name, and gates."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.harbour import furnished


async def test_an_execution_shows_names_of_nodes_steps_and_events_and_finds_them_by_name_and_id(
    opens: Opens, served: Served
) -> None:
    harbour = await furnished(served)
    async with opens(f"/executions/{harbour.ended}", language="de") as page:
        timeline = page.get_by_role("list", name="Zeitverlauf")
        await expect(timeline.get_by_role("button", name="Jedes Kapitel [1]")).to_be_visible()
        await page.get_by_role("tab", name="Ereignisse").click()
        events = page.get_by_role("list", name="Ereignisse")
        search = page.get_by_role("searchbox", name="Ereignisse durchsuchen")
        for words in ("Freigabe angefragt", "gate_opened", "n-ask"):
            await search.fill(words)
            await expect(events.get_by_role("button", name="Freigabe angefragt Fragen")).to_be_visible()
        await page.get_by_role("tab", name="Gliederung").click()
        await expect(page.locator(".react-flow__edge").first).to_have_attribute("aria-label", re.compile("Schreiben →"))
