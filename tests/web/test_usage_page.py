"""What executions cost: a chart of days with a table that says the same, and the way to the executions."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_usage_is_looked_at_by_node_taken_along_as_a_file_and_led_on_from(
    opens: Opens, served: Served, tmp_path: Path
) -> None:
    await served.save(flows.CHAIN)
    for _ in range(3):
        await served.execute("chain")
    async with opens("/usage") as page:
        row = page.get_by_role("row", name="Executions of chain")
        await expect(row.get_by_role("cell").nth(4)).to_have_text("6")
        await page.get_by_text("steps", exact=True).first.click()
        await expect(page.get_by_role("img", name="steps per day")).to_be_visible()
        await page.get_by_text("node", exact=True).click()
        await page.wait_for_url("**by=node**")
        await expect(page.get_by_role("row", name="first")).to_contain_text("50%")
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Download as CSV").click()
        await (await download.value).save_as(tmp_path / "usage.csv")
        await page.reload()
        await expect(page.get_by_role("row", name="second")).to_be_visible()
        await page.get_by_text("workflow", exact=True).click()
        await page.get_by_role("link", name="Executions of chain").click()
        await page.wait_for_url("**/executions?workflow=chain")
    head, *rows = (tmp_path / "usage.csv").read_text().splitlines()
    assert head.startswith("node,steps,")
    assert sorted(row.split(",")[:2] for row in rows) == [["first", "3"], ["second", "3"]]


async def test_a_time_without_anything_says_so(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/usage?range=own&since=2001-01-01&until=2001-02-01") as page:
        await expect(page.get_by_text("Nothing has ended in this time.")).to_be_visible()
        await page.get_by_text("7 days", exact=True).click()
        await expect(page.get_by_role("row", name="Executions of chain")).to_be_visible()


BOUNDED = flows.CHAIN.replace("\nnodes:", "\nconfig: {limits: {modelCalls: 2, tokens: 1000000}}\nnodes:", 1)


async def test_a_number_leads_to_the_executions_behind_it_and_budgets_say_how_near_they_came(
    opens: Opens, served: Served
) -> None:
    await served.save(BOUNDED)
    execution = await served.execute("chain")
    async with opens("/usage?by=model") as page:
        await expect(page.get_by_text("2 calls were answered by the script, which costs nothing.")).to_be_visible()
        await expect(page.get_by_text("without a known price")).to_have_count(0)
        await page.get_by_role("button", name="Executions of scripted").click()
        await page.wait_for_url("**by=execution**")
        only = page.get_by_role("list", name="Only these")
        await expect(only).to_have_text("model: scripted")
        await expect(page.get_by_role("table", name="Usage").get_by_role("link", name=execution)).to_be_visible()
        await only.get_by_role("button").click()
        await expect(only).to_have_count(0)
        budgets = page.get_by_role("table", name="Budgets")
        calls = budgets.get_by_role("row").filter(has_text="model calls")
        await expect(calls).to_contain_text("2, 0 left")
        await expect(calls).to_contain_text("1 reached it")
        await expect(budgets.get_by_role("row").filter(has_text="tokens")).to_contain_text("far from it")
        await calls.get_by_role("link", name="2, 0 left").click()
        await page.wait_for_url(f"**/executions/{execution}")


async def test_without_budgets_the_page_says_how_to_give_one(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/usage") as page:
        await expect(page.get_by_text("No workflow has a budget.")).to_be_visible()
