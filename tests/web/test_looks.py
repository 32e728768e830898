"""What holds for the looks of every page and dialog: nothing scrolls sideways, every target can be hit, and what is cut
says all of itself."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.async_api import Page, expect

from pointsman.server.pages import PAGES
from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import WIDER, address, furnished, settled, violations

LONG: Final = "a-workflow-of-the-harbour-whose-name-goes-on-and-on-until-nobody-can-read-it-any-more"
NAMED: Final = flows.CHAIN.replace("id: chain", f"id: {LONG}")
SMALL: Final = """() => [...document.querySelectorAll(
    "a, button, input, select, textarea, summary, [role=button], [role=tab]")]
  .filter((one) => {
    const box = (one.closest('label') ?? one).getBoundingClientRect();
    if (box.width === 0 || one.closest('.sr-only, .react-flow__node, .react-flow__edges') !== null) return false;
    if (getComputedStyle(one).display === 'inline' || getComputedStyle(one).clipPath === 'inset(50%)') return false;
    return box.width < 23.5 || box.height < 23.5;
  })
  .map((one) => `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent} ${one.className}`)"""
"""Targets of less than 24 pixels; links within a text are as high as their line."""

COVERED: Final = """() => [...document.querySelectorAll('[role=dialog] :is(input, select, textarea, p)')]
  .filter((one) => {
    one.scrollIntoView({ block: 'nearest' });
    const box = one.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !one.checkVisibility()) return false;
    const there = document.elementFromPoint(box.left + 3, box.bottom - 3);
    return !(one.contains(there) || there?.contains(one));
  })
  .map((one) => `covered: ${one.outerHTML.slice(0, 120)}`)"""
"""What something else lies on, also once it was brought into view."""
AT_THE_CROSS: Final = """() => document.activeElement.closest('[role=dialog]') === null
    ? ['the focus is not in it']
    : document.activeElement.matches('h2 ~ button, div:has(> h2) ~ button') ? ['it begins at its cross'] : []"""

CUT_HINTS: Final = """() => [...document.querySelectorAll('input[placeholder]')]
  .filter((one) => {
    const style = getComputedStyle(one);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = style.font;
    const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return one.checkVisibility() && one.clientWidth > 2 && pen.measureText(one.placeholder).width > room + 1;
  })
  .map((one) => one.placeholder)"""
"""What a field says before it is filled in, and does not fit into it."""

DIALOGS: Final = (
    ("workflows", "New"),
    ("workflows", "Import"),
    ("workflows", "Share chain"),
    ("workflows", "Export chain"),
    ("workflows", "Start letter"),
    ("keys", "Make a key"),
    ("secrets", "Add a secret"),
    ("schedules", "New schedule"),
    ("agents", "New agent"),
    ("workflows/letter", "Clone"),
    ("workflows/letter", "Delete"),
    ("webhooks", "Try it: orders"),
    ("webhooks", "Past calls of orders"),
    ("executions/{execution}", "Steer"),
    ("executions/{execution}", "Fork"),
    ("executions/{execution}", "Cancel"),
    ("executions/{execution}", "Pass on"),
)

STEERED: Final = (
    flows.LETTER.replace("id: letter", "id: steered\nconfig: {humanInLoop: real_time}")
    .replace('message: "Send it?"', 'message: "Send it?", approvers: {users: [local, ben], delegable: true}')
    .replace("nodes:", "triggers: [{id: call, type: webhook, path: orders}]\nnodes:")
)


async def names_of(served: Served) -> tuple[str, ...]:
    execution = await furnished(served)
    await served.save(NAMED)
    await served.execute(LONG)
    return (*sorted(PAGES - {"", "login"}), "workflows/letter", f"executions/{execution}", "chat/letter", "inbox/nope")


@pytest.mark.requirement("S4-48")
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)], ids=["desk", "phone"])
async def test_no_page_scrolls_sideways_and_every_target_can_be_hit(
    opens: Opens, served: Served, size: tuple[int, int]
) -> None:
    found: dict[str, list[str]] = {}
    names = await names_of(served)
    async with opens("/workflows", size=size) as page:
        for name in names:
            await page.goto(address(served, f"/{name}"))
            await settled(page)
            found[name] = [*await page.evaluate(WIDER), *await page.evaluate(SMALL)]
    assert {name: told for name, told in found.items() if told} == {}


@pytest.mark.parametrize("language", ["en", "de"])
async def test_what_an_empty_field_says_fits_into_it(opens: Opens, served: Served, language: str) -> None:
    await furnished(served)
    found: dict[str, list[str]] = {}
    async with opens("/workflows", language=language) as page:
        for name in (
            "agents",
            "executions",
            "memory",
            "people",
            "settings",
            "tools",
            "usage",
            "workflows",
            "chat/letter",
        ):
            await page.goto(address(served, f"/{name}"))
            await settled(page)
            found[name] = await page.evaluate(CUT_HINTS)
    assert {name: told for name, told in found.items() if told} == {}


async def open_dialog(page: Page, served: Served, path: str, button: str) -> None:
    await page.goto(address(served, f"/{path}"))
    await settled(page)
    await page.get_by_role("button", name=button, exact=True).first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.requirement("S4-48")
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_dialogs_show_what_they_offer_within_the_window_and_axe_finds_nothing(
    opens: Opens, served: Served, theme: str
) -> None:
    await furnished(served)
    await served.save(STEERED)
    execution = await served.execute("steered", {"goal": "tides"})
    found: dict[str, list[str]] = {}
    async with opens("/workflows", theme=theme, size=(390, 640), lenient=True) as page:
        for path, button in DIALOGS:
            await open_dialog(page, served, path.format(execution=execution), button)
            dialog = page.get_by_role("dialog")
            last = dialog.get_by_role("button", name=re.compile(r"\S")).last
            await expect(last).to_be_visible()
            await expect(last).to_be_in_viewport(ratio=1)
            found[f"{path} {button}"] = [
                *await page.evaluate(AT_THE_CROSS),
                *await page.evaluate(COVERED),
                *await page.evaluate(SMALL),
                *await violations(page),
            ]
    assert {name: told for name, told in found.items() if told} == {}


async def test_what_is_cut_says_all_of_itself_to_who_points_at_it(opens: Opens, served: Served) -> None:
    await served.save(NAMED)
    async with opens("/workflows") as page:
        cut = page.get_by_role("main").locator(".truncate").get_by_text(LONG, exact=True)
        await expect(cut).not_to_have_attribute("title", re.compile(r"."))
        await cut.hover()
        await expect(cut).to_have_attribute("title", LONG)
        await page.get_by_role("heading", name="Workflows", exact=True).hover()
        await cut.evaluate("(one) => { one.textContent = 'short' }")
        await page.get_by_text("short", exact=True).hover()
        await expect(page.get_by_text("short", exact=True)).not_to_have_attribute("title", re.compile(r"."))
