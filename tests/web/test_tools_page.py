"""What can be called: found, read about, and tried."""

from __future__ import annotations

from playwright.async_api import expect

from pointsman.tools.mcp.described import McpServerDescription
from pointsman.tools.mcp.server import McpServer
from pointsman.tools.mcp.source import McpTools
from pointsman.tools.outgoing.door import Door
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_tool_is_found_read_about_and_called_once(opens: Opens, served: Served) -> None:
    async with opens("/workflows") as page:
        await page.get_by_role("button", name="More").click()
        await page.get_by_role("menuitem", name="Tools").click()
        await page.get_by_label("Search tools").fill("calculator")
        table = page.get_by_role("table", name="Built in")
        await expect(table.get_by_role("row")).to_have_count(2)
        await table.get_by_role("link", name="calculator").click()
        await expect(page.get_by_role("heading", name="calculator", exact=True)).to_be_visible()
        takes = page.get_by_role("table", name="What it takes")
        await expect(takes.get_by_role("row", name="expression")).to_contain_text("required")
        await page.get_by_label("expression").fill("6 * 7")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_text("It answered")).to_be_visible()
        await expect(page.get_by_text("42", exact=True)).to_be_visible()


async def test_what_a_tool_does_wrong_is_told_with_what_to_do(opens: Opens, served: Served) -> None:
    async with opens("/tools/calculator") as page:
        await page.get_by_label("expression").fill("6 *")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_text("It failed:")).to_be_visible()


async def test_a_viewer_is_told_why_a_tool_is_not_tried(opens: Opens, served: Served) -> None:
    async with opens("/tools/calculator") as page:
        await page.route(
            "**/api/me",
            lambda route: route.fulfill(json={"name": "v", "role": "viewer", "groups": [], "entrance": "key"}),
        )
        await page.reload()
        await expect(page.get_by_text("It is called by workflows only: it takes the role of an editor")).to_be_visible()
        await expect(page.get_by_role("button", name="Call it")).to_have_count(0)


async def test_a_tool_that_is_not_there_says_so(opens: Opens, served: Served) -> None:
    async with opens("/tools/abacus", lenient=True) as page:
        await expect(page.get_by_role("alert")).to_contain_text("there is no tool 'abacus'")


async def test_an_mcp_server_that_does_not_answer_says_why(opens: Opens, served: Served) -> None:
    gone = McpServer("files", McpServerDescription(command=("/nowhere/server",)), door=_no_door, resolved=str)
    served.app.tools.add_source(McpTools(gone))
    async with opens("/tools") as page:
        row = page.get_by_role("table", name="MCP servers").get_by_role("row", name="files")
        await expect(row).to_contain_text("mcp-unreachable")


def _no_door() -> Door:
    raise AssertionError("a command needs no door")


async def test_why_a_tool_is_off_is_read_out_in_the_language_it_is_said_in(opens: Opens, served: Served) -> None:
    async with opens("/tools/web_search", language="de") as page:
        told = page.get_by_text("Es ist hier abgeschaltet.")
        await expect(told).to_be_visible()
        await expect(told.locator("[lang=en]")).to_contain_text("settings")
