"""A person takes an answer back, gives it again, and finds it among the answered requests."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_an_answer_is_taken_back_then_sent_as_the_page_is_left_and_listed(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens("/inbox") as page:
        await page.get_by_label("Comment").fill("Well done")
        await page.get_by_role("button", name="again").click()
        await expect(page.get_by_text("Nothing to do.")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_label("Comment")).to_have_value("Well done")
        assert (await served.read(execution))["answers"] == []
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("“Approve” is sent in a few seconds.")).to_be_visible()
        await page.reload()
        assert (await served.ended(execution))["answers"][0]["action"] == "approve"
        await page.get_by_role("link", name="Answered").click()
        row = page.get_by_role("row").filter(has_text="Well done")
        await expect(row).to_contain_text("Approve")
        await row.get_by_role("link").click()
        await page.wait_for_url(f"**/executions/{execution}")
