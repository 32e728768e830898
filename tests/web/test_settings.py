"""An admin enters a mail server by form, sends a test message, and changes settings without a restart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pointsman.app import Pointsman
from pointsman.settings import Settings
from tests.server.conftest import serving_app
from tests.tools.mail.server import PASSWORD, mail_server
from tests.web.conftest import Opens, screenshot


async def enter_server(page: Page, port: int) -> None:
    await page.get_by_role("button", name="Enter a mail server").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label(re.compile("^Server")).fill("127.0.0.1")
    await dialog.get_by_label(re.compile("^Port")).fill(str(port))
    await dialog.get_by_label(re.compile("^User")).fill("desk")
    await dialog.get_by_label(re.compile("^Password")).fill(PASSWORD)
    await dialog.get_by_label(re.compile("^Sender")).fill("Desk <desk@example.org>")
    await dialog.get_by_label("Recipient of a test message").fill("ada@example.org")


async def test_a_mail_server_is_entered_and_tested_and_settings_take_effect_at_once(
    opens: Opens, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
    async with mail_server(tmp_path, tls="starttls", login=True) as mail:
        monkeypatch.setenv("SSL_CERT_FILE", mail.certificates)
        settings = Settings.model_validate({"http": {"networks": ["127.0.0.0/8"], "ports": [mail.port]}})
        async with (
            Pointsman("memory:", model="scripted", settings=settings) as app,
            serving_app(app, is_local=True) as served,
            opens(told=("422",)) as page,
        ):
            await page.goto(f"{str(served.client.base_url).rstrip('/')}/settings")
            await enter_server(page, 22)
            dialog = page.get_by_role("dialog")
            await dialog.get_by_role("button", name="Save", exact=True).click()
            await expect(dialog.get_by_label(re.compile("^Port"))).to_be_focused()
            await expect(dialog.get_by_role("alert")).to_contain_text("port 22")
            await screenshot(page, "settings-mail-refused")
            await dialog.get_by_label(re.compile("^Port")).fill(str(mail.port))
            await dialog.get_by_role("button", name="Send a test message").click()
            await expect(dialog.get_by_text("The server accepted the message.")).to_be_visible()
            assert [str(one["Subject"]) for one in mail.taken] == ["Pointsman: test message"]
            await dialog.get_by_role("button", name="Save", exact=True).click()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            await expect(page.get_by_text(f"127.0.0.1:{mail.port}").first).to_be_visible()
            await page.get_by_role("button", name="Edit language").click()
            await page.get_by_role("dialog").get_by_label(re.compile("^Language")).fill("de")
            await page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
            await expect(page.get_by_role("dialog")).to_have_count(0)
            assert app.settings.current.language == "de"
            await page.get_by_label("Only changeable here").check()
            await screenshot(page, "settings-changed")
            await page.get_by_role("button", name="Delete mail server").click()
            await page.get_by_role("dialog").get_by_role("button", name="Delete mail server").click()
            await expect(page.get_by_text("No mail server.")).to_be_visible()
            assert app.settings.current.mail is None
