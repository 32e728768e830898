"""An admin adds a destination of notices by form, sends a test to it, and deletes it."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman
from pointsman.settings import Settings
from tests.http_server import http_server
from tests.server.conftest import serving_app
from tests.web.conftest import Opens, screenshot


class Inbox:
    """A server that receives notices of the format "json"."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("/hook")
        self.bodies: list[str] = []
        server.expect_request("/hook").respond_with_handler(self.receive)

    def receive(self, request: Request) -> Response:
        self.bodies.append(request.get_data(as_text=True))
        return Response("")


async def test_a_destination_is_added_tested_and_deleted_by_form(opens: Opens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    with http_server() as server:
        inbox = Inbox(server)
        settings = Settings.model_validate({"http": {"networks": ["127.0.0.0/8", "::1/128"], "ports": [server.port]}})
        async with (
            Pointsman("memory:", model="scripted", settings=settings) as app,
            serving_app(app, is_local=True) as served,
            opens() as page,
        ):
            await page.goto(f"{str(served.client.base_url).rstrip('/')}/notifications")
            await page.get_by_role("button", name="Add destination").click()
            dialog = page.get_by_role("dialog")
            await dialog.get_by_label(re.compile("^Name")).fill("alerts")
            await dialog.get_by_label(re.compile("^Webhook address")).fill(inbox.url)
            await dialog.get_by_role("button", name="Send a test").click()
            await expect(dialog.get_by_text("The test message was sent.")).to_be_visible()
            assert len(inbox.bodies) == 1
            await screenshot(page, "destination-add")
            await dialog.get_by_role("button", name="Save", exact=True).click()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.get_by_text("alerts", exact=True).first).to_be_visible()
            await expect(page.get_by_text("/hook")).to_have_count(0)
            await screenshot(page, "destinations")
            await page.get_by_role("button", name="Delete destination alerts").click()
            dialog = page.get_by_role("dialog")
            await dialog.get_by_role("button", name="Delete", exact=True).click()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.get_by_text("alerts", exact=True)).to_have_count(0)
