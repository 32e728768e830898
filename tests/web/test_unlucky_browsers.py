"""Browsers without storage, without shared workers, with a dead worker or a wrong clock: every page works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect

from pointsman.server.pages import PAGES
from pointsman.settings import Settings
from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens
from tests.web.test_accessibility import address, furnished, turn_to

REFUSES: Final = """
const refuse = () => { throw new DOMException("denied", "SecurityError"); };
for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches"])
  Object.defineProperty(window, name, { get: refuse });
window.SharedWorker = class { constructor() { refuse(); } };
delete window.BroadcastChannel;
delete Crypto.prototype.randomUUID;
Object.defineProperty(navigator, "locks", { value: undefined });
Object.defineProperty(navigator, "clipboard", { value: undefined });
"""
"""A browser that forbids cookies, without TLS."""

SILENCED: Final = """
const Real = window.SharedWorker;
window.ports = [];
window.SharedWorker = class {
  constructor(...given) { this.port = new Real(...given).port; window.ports.push(this.port); }
};
"""
"""A worker that stops answering on demand."""

CLOCK: Final = """
const Real = Date;
Date = class extends Real {
  constructor(...given) { if (given.length === 0) super(Real.now() + SHIFT); else super(...given); }
  static now() { return Real.now() + SHIFT; }
};
"""
DAY_MS: Final = 86_400_000

DUE: Final = """\
pointsman: 1
id: due
nodes: [{id: ask, type: human, config: {message: "Send it?", timeout: 2h}}]
"""


async def change(page: Page) -> None:
    await page.wait_for_url("**/workflows/chain")
    await page.get_by_role("tabpanel").get_by_label("Tags").fill("tides")
    await expect(page.get_by_text("1 unsaved change")).to_be_visible()


async def test_a_browser_without_storage_shows_every_page_and_warns_of_losses_on_reload(
    opens: Opens, served: Served
) -> None:
    execution = await furnished(served)
    async with opens("/workflows", before=REFUSES) as page:
        for name in (*sorted(PAGES - {"", "login"}), "chat/letter", "workflows/letter"):
            await turn_to(page, name)
            await expect(page.get_by_text("This page cannot be shown")).to_have_count(0)
        await page.goto(address(served, f"/executions/{execution}"))
        await expect(page.get_by_role("heading", name="Send it?")).to_be_visible()
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()

        await page.goto(address(served, "/workflows/chain"))
        await change(page)
        await expect(
            page.get_by_text("This browser does not allow storage: a reload would discard your changes")
        ).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        dialog = page.get_by_role("dialog", name="Leave without saving?")
        await expect(dialog).to_contain_text("until you reload or close this page")
        await dialog.get_by_role("button", name="Leave").click()
        await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        async with page.expect_event("dialog") as asked:
            await page.close(run_before_unload=True)
        assert (await asked.value).type == "beforeunload"
        await (await asked.value).dismiss()


async def test_a_window_with_a_silent_worker_opens_its_own_stream(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}", before=SILENCED) as page:
        await expect(page.get_by_role("heading", name="Send it?")).to_be_visible()
        await page.wait_for_function("window.ports.length === 1")
        await page.evaluate("window.ports[0].close()")
        await page.evaluate("dispatchEvent(new Event('online'))")
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()


async def test_a_clock_that_is_a_day_ahead_changes_no_displayed_time(opens: Opens, tmp_path: Path) -> None:
    wrong = CLOCK.replace("SHIFT", str(DAY_MS))
    async with (
        serving(f"sqlite:///{tmp_path}/due.db", settings=Settings()) as served,
        opens(before=wrong, zone="Pacific/Kiritimati") as page,
    ):
        await served.save(DUE)
        execution = await served.execute("due")
        await page.goto(address(served, "/executions"))
        row = page.get_by_role("listitem").filter(has_text=execution)
        await expect(row.locator("time")).to_have_text(re.compile("now|second|minute"))
        await page.goto(address(served, f"/executions/{execution}"))
        await expect(page.get_by_title(re.compile(r"^ask: waiting, [\d.]+ (ms|s|min)"))).to_be_visible()
        await page.goto(address(served, "/inbox"))
        await expect(page.get_by_text("in 2 hours").first).to_be_visible()
        await served.act(execution, "respond", {"gateId": "ask", "action": "approve"})
        await page.goto(address(served, "/usage"))
        await expect(page.get_by_role("row", name="Executions of due")).to_be_visible()


async def test_going_back_during_a_navigation_shows_the_page_of_the_address(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    for how in ("leave.click(); history.back()", "history.back(); leave.click()"):
        async with opens("/workflows") as page:
            await page.get_by_role("link", name="chain", exact=True).click()
            await change(page)
            await page.get_by_role("link", name="Inbox").click()
            await expect(page.get_by_role("dialog", name="Leave without saving?")).to_be_visible()
            await page.evaluate(
                f"""() => {{
                  const leave = [...document.querySelectorAll("[role=dialog] button")].find((b) =>
                    b.innerText === "Leave");
                  {how};
                }}"""
            )
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await page.wait_for_url(re.compile("/(workflows|inbox)$"))
            await page.wait_for_function(
                "() => location.pathname.slice(1) === document.querySelector('h1')?.innerText.toLowerCase()"
            )
            await page.get_by_role("link", name="Chat").click()
            await page.wait_for_url("**/chat")
            await page.go_back()
            await page.wait_for_url(re.compile("/(workflows|inbox)$"))
