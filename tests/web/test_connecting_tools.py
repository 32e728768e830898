"""An admin connects an MCP server and an API by form; their tools can be used at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from pointsman.app import Pointsman
from pointsman.settings import Settings
from tests.http_server import http_server
from tests.server.conftest import serving_app
from tests.tools.mcp.test_mcp import listening
from tests.web.conftest import Opens, screenshot
from tests.workflows.test_tool_connections import CANARY, Api, port_of


@pytest.fixture
def api() -> Iterator[Api]:
    with http_server() as server:
        yield Api(server)


async def test_tools_are_connected_chosen_and_tried_by_form(
    opens: Opens, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    async with listening() as mcp:
        http = {"networks": ["127.0.0.0/8", "::1/128"], "ports": [api.server.port, port_of(mcp)]}
        settings = Settings.model_validate({"http": http})
        async with Pointsman("memory:", settings=settings) as app, serving_app(app, is_local=True) as served:
            address = str(served.client.base_url).rstrip("/")
            async with opens() as page:
                await page.goto(f"{address}/tools")
                await page.get_by_role("button", name="Connect an MCP server").click()
                dialog = page.get_by_role("dialog")
                await dialog.get_by_label("Name").fill("desk")
                await dialog.get_by_label("Address").fill(mcp)
                await dialog.get_by_role("button", name="Test", exact=True).click()
                await dialog.get_by_role("button", name="Choose none").click()
                await dialog.get_by_role("checkbox", name="add", exact=True).check()
                await screenshot(page, "tools-connect-mcp")
                await dialog.get_by_role("button", name="Save", exact=True).click()
                await expect(page.get_by_role("button", name="Change desk")).to_be_visible()
                await expect(page.get_by_role("link", name="desk__add")).to_be_visible()
                await page.get_by_role("button", name="Connect an API").click()
                await dialog.get_by_label("Name").fill("pets")
                await dialog.get_by_label("Address of the OpenAPI document").fill(api.server.url_for("/openapi.json"))
                await dialog.get_by_role("button", name="Read the document").click()
                await expect(dialog.get_by_label("Header")).to_have_value("X-Key")
                await dialog.get_by_label(re.compile("^Key")).fill(CANARY)
                await dialog.get_by_role("checkbox", name="showPet", exact=False).first.check()
                await dialog.get_by_role("button", name="Try showPet").click()
                await dialog.get_by_label(re.compile("^id")).fill("7")
                await dialog.get_by_role("button", name="Run", exact=True).click()
                await expect(dialog.get_by_text("Rex")).to_be_visible()
                await screenshot(page, "tools-connect-api")
                await dialog.get_by_role("button", name="Save", exact=True).click()
                await expect(page.get_by_role("link", name="pets__showPet")).to_be_visible()
                await screenshot(page, "tools-connected")
                assert CANARY not in await page.content()
            async with opens(language="de", theme="dark") as page:
                await page.goto(f"{address}/tools")
                await expect(page.get_by_role("button", name="pets ändern")).to_be_visible()
                await screenshot(page, "tools-connected-de")
                await page.get_by_role("button", name="pets ändern").click()
                await page.get_by_role("button", name="Dokument lesen").click()
                await expect(page.get_by_text("1 von 3 Werkzeugen")).to_be_visible()
                await screenshot(page, "tools-change-de")
            tried = await served.client.post("/api/tools/desk__add/try", json={"arguments": {"a": 1, "b": 2}})
            assert tried.json()["result"] == 3
            tried = await served.client.post("/api/tools/pets__showPet/try", json={"arguments": {"id": 7}})
            assert tried.json()["result"] == {"name": "Rex", "key": "***"}
