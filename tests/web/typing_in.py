"""Typing: into code editors, and the key that lets somebody in."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect


async def write(field: Locator, text: str) -> None:
    """Puts `text` into a field in place of what it holds, as a person does: clicks, selects all, types.

    `Locator.fill` selects in the page, and a code editor that gets the focus puts its own selection there just then.
    """
    await field.click()
    await expect(field).to_be_focused()
    await field.press("ControlOrMeta+a")
    await field.page.keyboard.insert_text(text)


async def enter(page: Page, key: dict[str, str]) -> None:
    """Log in with the key of this header."""
    await page.get_by_label("Key").fill(key["authorization"].removeprefix("Bearer "))
    await page.get_by_role("button", name="Enter").click()
