"""Typing into code editors, and the login with a key."""

from __future__ import annotations

import re
from typing import Final

from playwright.async_api import Locator, Page, expect

PROMPT: Final = re.compile("^Prompt")
"""Label of the prompt of a node; other fields have the word in their labels."""


async def write(field: Locator, text: str) -> None:
    """Replace the content of a field as a person does: click, select all, type.

    `Locator.fill` selects in the page, and a code editor that gets the focus sets its own selection at that moment.
    """
    await field.click()
    await expect(field).to_be_focused()
    await field.press("ControlOrMeta+a")
    await field.page.keyboard.insert_text(text)


async def enter(page: Page, key: dict[str, str]) -> None:
    """Log in with the key of this header."""
    await page.get_by_label("Key").fill(key["authorization"].removeprefix("Bearer "))
    await page.get_by_role("button", name="Sign in").click()
