"""Frozen windows, lost connections and restarted servers: missed events arrive, each once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens
from tests.web.line import Line, a_line
from tests.web.test_execution import node
from tests.web.typing_in import PROMPT, write

HURRIED: Final = """
const wait = window.setTimeout;
window.setTimeout = (go, ms, ...given) => wait(go, ms >= 1000 ? ms / 25 : ms, ...given);
"""
"""Long timers, such as those between attempts to reconnect, take a 25th of their time."""


@pytest_asyncio.fixture(loop_scope="session")
async def line(served: Served) -> AsyncGenerator[Line, None]:
    async with a_line() as one:
        one.to = served.client.base_url.port or 0
        yield one


async def waiting_letter(served: Served) -> str:
    await served.save(flows.LETTER)
    return await served.execute("letter", {"goal": "tides"})


async def goes_on(served: Served, execution: str) -> None:
    """Answer the gate and wait for the end."""
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})


async def nothing_is_lost_or_twice(page: Page, served: Served, execution: str) -> None:
    told = (await served.client.get(f"/api/workflows/executions/{execution}/events?limit=1000")).json()["events"]
    await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
    await page.get_by_role("tab", name="Events").click()
    await expect(page.get_by_text(f"{len(told)} events", exact=True)).to_be_visible()
    rows = page.get_by_role("list", name="Events").get_by_role("listitem")
    await expect(rows).to_have_count(len(told))
    places = [row.split()[0] for row in await rows.all_inner_texts()]
    assert places == [f"{one['seq']}.{one['n']}" for one in told]


async def test_a_frozen_window_and_a_restarted_server_lose_and_repeat_no_event(
    opens: Opens, served: Served, tmp_path: Path
) -> None:
    execution = await waiting_letter(served)
    async with opens(f"/executions/{execution}", before=HURRIED) as page:
        await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        inside = await page.context.new_cdp_session(page)
        await inside.send("Page.setWebLifecycleState", {"state": "frozen"})  # pyright: ignore[reportUnknownMemberType] - untyped there
        await goes_on(served, execution)
        await inside.send("Page.setWebLifecycleState", {"state": "active"})  # pyright: ignore[reportUnknownMemberType] - untyped there
        await nothing_is_lost_or_twice(page, served, execution)
    store = f"sqlite:///{tmp_path}/store.db"
    async with a_line() as line, opens(lenient=True, before=HURRIED) as page:
        async with serving(store) as first:
            line.to = first.client.base_url.port or 0
            execution = await waiting_letter(first)
            await page.goto(f"{line.address}/executions/{execution}")
            await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        async with serving(store) as second:
            line.to = second.client.base_url.port or 0
            await goes_on(second, execution)
            await page.evaluate("dispatchEvent(new Event('online'))")
            await nothing_is_lost_or_twice(page, second, execution)


async def change(page: Page, line: Line) -> None:
    await page.goto(f"{line.address}/workflows/chain")
    await node(page, "first").click()
    await write(page.get_by_label(PROMPT), "mine")
    await expect(page.get_by_text("1 unsaved change")).to_be_visible()


async def test_changes_are_kept_and_saved_once_when_the_connection_is_lost_before_or_after_saving(
    opens: Opens, served: Served, line: Line
) -> None:
    await served.save(flows.CHAIN)
    async with opens(lenient=True, before=HURRIED) as page:
        await change(page, line)
        line.cut()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("Connection lost")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        line.mend()
        await page.reload()
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
        await expect(page.get_by_text("unsaved change")).to_have_count(0)
    await served.save(flows.CHAIN)
    async with opens(lenient=True, before=HURRIED) as page:
        await change(page, line)
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_enabled()
        line.hold()
        async with page.expect_request(
            lambda asked: asked.url.endswith("/edit") and '"apply":true' in (asked.post_data or "")
        ):
            await page.get_by_role("button", name="Save", exact=True).click()
        while len((await served.client.get("/api/workflows/chain/versions")).json()["workflows"]) < 4:
            pass
        line.cut()
        line.release()
        await expect(page.get_by_role("alert")).to_contain_text("Connection lost")
        line.mend()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 4")).to_be_visible()
        await expect(page.get_by_text("unsaved change")).to_have_count(0)
        await expect(page.get_by_role("region", name="Changed elsewhere")).to_have_count(0)
    assert len((await served.client.get("/api/workflows/chain/versions")).json()["workflows"]) == 4


async def test_a_page_offers_a_reload_after_the_server_was_upgraded(opens: Opens, served: Served, line: Line) -> None:
    async with opens(lenient=True, before=HURRIED) as page:
        await page.goto(f"{line.address}/executions")
        await expect(page.get_by_role("heading", name="Executions", exact=True)).to_be_visible()
        execution = await waiting_letter(served)
        await expect(page.get_by_role("link", name=execution)).to_be_visible()  # Changes arrive.
        line.cut()
        loaded = (await served.client.get("/")).text
        newer = loaded.replace("/assets/app-", "/assets/app-newer-")
        assert newer != loaded
        await page.route(f"{line.address}/", lambda route: route.fulfill(body=newer, content_type="text/html"))
        line.mend()
        await page.evaluate("dispatchEvent(new Event('online'))")
        await expect(page.get_by_role("status").filter(has_text="was upgraded")).to_be_visible()
        async with page.expect_navigation():
            await page.get_by_role("button", name="Reload the page").click()
