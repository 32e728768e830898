"""An admin connects a model in at most five clicks; a visitor fills in a published form, in a frame of another site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.async_api import expect
from pytest_httpserver import HTTPServer

from pointsman.app import Pointsman
from pointsman.settings import Settings
from tests.http_server import http_server
from tests.server.conftest import Served, serving_app
from tests.server.test_publications import FORM
from tests.web.conftest import Opens, screenshot
from tests.web.test_first_steps import COUNT_CLICKS

CLICKS_MAX: Final = 5
KEY: Final = "sk-canary-0123456789"


@pytest.fixture
def provider() -> Iterator[HTTPServer]:
    message = {"role": "assistant", "content": "OK"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    with http_server() as server:
        answer = server.expect_request("/v1/chat/completions", headers={"authorization": f"Bearer {KEY}"})
        answer.respond_with_json({**reply, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
        yield server


async def test_a_model_is_connected_in_at_most_five_clicks(
    opens: Opens, provider: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    settings = Settings.model_validate({"http": {"networks": ["127.0.0.0/8"], "ports": [provider.port]}})
    async with Pointsman("memory:", settings=settings) as app, serving_app(app, is_local=True) as served:
        address = str(served.client.base_url).rstrip("/")
        async with opens(before=COUNT_CLICKS) as page:
            await page.goto(f"{address}/models")
            await screenshot(page, "models-none")
            await page.get_by_role("button", name="Connect OpenAI-compatible", exact=True).click()
            dialog = page.get_by_role("dialog")
            await expect(dialog.get_by_label("Name")).to_be_focused()
            for text in ("gateway", provider.url_for("/v1"), "sk-wrong-key-000", "m"):
                await page.keyboard.type(text)
                await page.keyboard.press("Tab")
            await dialog.get_by_role("button", name="Test and save").click()
            await expect(dialog.get_by_role("alert")).to_contain_text("Nothing was saved")
            await screenshot(page, "models-refused")
            await dialog.get_by_label("API key").fill(KEY)
            await dialog.get_by_role("button", name="Test and save").click()
            await expect(page.get_by_text("connected", exact=True)).to_be_visible()
            await expect(page.get_by_role("button", name="Change gateway")).to_be_visible()
            assert await page.evaluate("window.clicks") <= CLICKS_MAX
            await screenshot(page, "models-connected")
            assert KEY not in await page.content()
        async with opens(language="de", theme="dark") as page:
            await page.goto(f"{address}/models")
            await expect(page.get_by_text("verbunden", exact=True)).to_be_visible()
            await screenshot(page, "models-de")
            await page.goto(f"{address}/secrets")
            await page.get_by_role("button", name="Zugangsdaten hinzufügen").click()
            await page.get_by_label("Art", exact=True).select_option("oauth2-code")
            await screenshot(page, "credential-de")
        assert (await served.client.get("/api/models")).json()["default"] == "gateway:m"


async def test_a_published_form_runs_on_its_page_and_in_frames_of_chosen_sites_only(
    opens: Opens, served: Served
) -> None:
    await served.save(FORM)
    with http_server() as site:
        origin = site.url_for("").rstrip("/")
        async with opens("/workflows") as page:
            await page.get_by_role("link", name="Publish Greeting").click()
            await page.get_by_label("Text", exact=True).fill("Who are you?")
            await page.get_by_label("Sites that may contain the pages").fill(origin)
            await page.get_by_role("button", name="Publish", exact=True).click()
            link = page.get_by_role("link", name="/form/")
            await expect(link).to_be_visible()
            await screenshot(page, "publish")
            address = str(await link.get_attribute("href"))
        server, _, token = address.partition("/form/")
        async with opens(f"/form/{token}", language="de", theme="dark") as page:
            await page.get_by_label("who").fill("Ann")
            await page.get_by_role("button", name="Senden").click()
            await expect(page.get_by_text("Hello Ann")).to_be_visible()
            await screenshot(page, "published-form")
        script = f'<!doctype html><title>-</title><body><script src="{server}/embed.js" data-form="{token}"></script>'
        site.expect_request("/page").respond_with_data(script, content_type="text/html")
        site.expect_request("/favicon.ico").respond_with_data("")
        async with opens() as page:
            await page.goto(site.url_for("/page"))
            frame = page.frame_locator("iframe")
            await frame.get_by_label("who").fill("Ben")
            await frame.get_by_role("button", name="Send").click()
            await expect(frame.get_by_text("Hello Ben")).to_be_visible()
            await screenshot(page, "published-frame")
