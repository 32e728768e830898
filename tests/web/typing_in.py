"""Typing into fields that are code editors."""

from __future__ import annotations

from playwright.async_api import Locator, expect


async def write(field: Locator, text: str) -> None:
    """Puts `text` into a field in place of what it holds, as a person does: clicks, selects all, types.

    `Locator.fill` selects in the page, and a code editor that gets the focus puts its own selection there just then.
    """
    await field.click()
    await expect(field).to_be_focused()
    await field.press("ControlOrMeta+a")
    await field.page.keyboard.insert_text(text)
