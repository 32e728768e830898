"""Hostile names are not executed, do not overflow, and do not reverse the texts of the app."""

from __future__ import annotations

import json
import re
from typing import Final

from playwright.async_api import Dialog, Page, expect

from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import WIDER, address, settled, turn_to

MARKUP: Final = "<img src=x onerror=alert(1)><script>alert(2)</script>"
TURNS: Final = "\u202eexe.\u2066 שלום\n$t(editor.save) {{name}}"
LONG: Final = "W" * 10_000
STRANGE: Final = json.dumps(
    {
        "pointsman": 1,
        "id": "strange",
        "name": f"{TURNS}{LONG}",
        "description": LONG[:3_000],
        "tags": [MARKUP, "t" * 300],
        "input": {"type": "object", "properties": {"a": {"type": "string", "title": MARKUP + LONG[:300]}}},
        "nodes": [
            {"id": "say", "type": "agent", "name": MARKUP + LONG, "config": {"prompt": "Say {{a}}"}},
            {
                "id": "ask" * 100,
                "type": "human",
                "name": TURNS,
                "config": {
                    "message": f"{MARKUP}{LONG}\n{MARKUP}",
                    "options": [{"value": "approve", "label": TURNS}, {"value": "reject", "label": "L" * 300}],
                },
            },
        ],
        "edges": [{"source": "say", "target": "ask" * 100}],
        "triggers": [{"id": "call", "type": "webhook", "path": "w" * 60, "auth": "none"}],
    }
)


async def overflowing(page: Page, path: str) -> list[str]:
    await settled(page)
    assert await page.locator("img[src=x]").count() == 0
    return [f"{path} {one}" for one in await page.evaluate(WIDER)]


async def test_strange_names_are_displayed_as_plain_text(opens: Opens, served: Served) -> None:
    await served.save(STRANGE)
    execution = await served.execute("strange", {"a": MARKUP + LONG})
    opened: list[str] = []

    async def refuse(dialog: Dialog) -> None:
        opened.append(dialog.message)
        await dialog.dismiss()

    async with opens("/workflows") as page:
        page.on("dialog", refuse)
        wide: list[str] = []
        for path in ("tools", "audit", "webhooks"):
            await turn_to(page, path)
            wide += await overflowing(page, path)
        await page.set_viewport_size({"width": 390, "height": 844})
        for path in ("workflows", "executions", "inbox", "chat", "usage", f"executions/{execution}"):
            await turn_to(page, path)
            wide += await overflowing(page, path)
        await expect(page.get_by_role("button", name=re.compile("^L{300}"))).to_be_attached()
        await page.goto(address(served, "/workflows/strange"))
        wide += await overflowing(page, "editor")
        assert wide == []
        assert opened == []

        await expect(page.get_by_role("heading", level=1)).to_be_in_viewport(ratio=1)
        await page.get_by_role("button", name="Start", exact=True).first.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("textbox").first).to_be_visible()
        await expect(dialog.get_by_role("button", name="Start", exact=True)).to_be_visible()
        await expect(dialog.get_by_role("button", name="Close")).to_be_in_viewport(ratio=1)
        await page.keyboard.press("Escape")
        await expect(dialog).to_have_count(0)
        await page.get_by_role("button", name="Delete", exact=True).click()
        asked = dialog.get_by_role("heading", level=2)
        await expect(asked).to_have_text(
            re.compile(r"^Delete \u2068exe\. שלום \$t\(editor.save\) {{name}}W+…W+\u2069\?$")
        )
        await expect(dialog.get_by_role("button", name="Delete", exact=True)).to_be_in_viewport(ratio=1)
