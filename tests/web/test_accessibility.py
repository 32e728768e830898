"""Accessibility: axe finds no violation on any page, the keyboard alone leads from the login to a result, and phones
are wide enough.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import AXE, WAITS_MS, Opens

RULES: Final = """{
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
  rules: {'label-content-name-mismatch': {enabled: true}, 'target-size': {enabled: true}},
  resultTypes: ['violations'],
}"""
COLOURS: Final = "{runOnly: {type: 'rule', values: ['color-contrast']}, resultTypes: ['violations']}"
"""The rules whose result depends on the theme."""
SETTLED: Final = """() => {
  const main = document.querySelector('main');
  return main?.innerText.trim().length > 10 && main.querySelector('[role=status] .animate-spin') === null;
}"""
ON_PHONES: Final = (
    "/workflows",
    "/executions",
    "/inbox",
    "/keys",
    "/people",
    "/secrets",
    "/settings",
    "/audit",
    "/usage",
)
WIDER: Final = """() => [document.documentElement, ...document.querySelectorAll('header, main, main > *')]
  .filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline')
  .map((one) => `${one.tagName}.${one.className}: ${one.scrollWidth} > ${one.clientWidth}`)"""
TALLER: Final = """() => {
  const page = document.documentElement;
  return page.scrollHeight > page.clientHeight ? [`the page scrolls under its header: ${page.scrollHeight}`] : [];
}"""
TURN: Final = """(address) => {
  for (const one of document.querySelectorAll('main > *')) one.setAttribute('data-left', '');
  history.pushState(null, '', address);
}"""
"""Mark the page that is left, and follow a link. The pages of two addresses in a row must be different components."""
FOCUSED: Final = """() => {
  const one = document.activeElement;
  const label = one.labels?.[0]?.innerText ?? '';
  return (one.getAttribute('aria-label') || label || one.innerText || one.tagName).trim();
}"""
TABS_MAX: Final = 150


async def furnished(served: Served) -> str:
    """Create an object for every page; return the waiting execution."""
    await served.save(flows.CHAIN)
    await served.save(flows.LETTER)
    await served.execute("chain")
    waits = await served.execute("letter", {"goal": "tides"})
    await served.client.delete("/api/workflows/nope")
    return waits


def address(served: Served, path: str) -> str:
    return str(served.client.base_url).rstrip("/") + path


async def settled(page: Page) -> None:
    await page.wait_for_function(SETTLED)


async def turn_to(page: Page, path: str) -> None:
    """Show another page without loading the app again, and wait until the page before has gone. The router follows
    addresses from its first render on."""
    await expect(page.locator("main")).to_be_visible()
    await page.evaluate(TURN, f"/{path}")
    await expect(page.locator("main > [data-left]")).to_have_count(0)
    await settled(page)


async def violations(page: Page, rules: str = RULES, *, within: str = "html") -> list[str]:
    """Return what axe finds in a part of the page: each fault with its place and reason."""
    if not await page.evaluate("'axe' in window"):
        await page.add_script_tag(path=AXE)
    found: list[Any] = await page.evaluate(f"axe.run({json.dumps(within)}, {rules}).then((said) => said.violations)")
    return [
        f"{one['id']}: {node['target']} {node['html'][:160]} {node['any'][:1] or node['all'][:1]}"
        for one in found
        for node in one["nodes"]
    ]


async def tab_to(page: Page, name: str, *, key: str = "Tab") -> None:
    """Press Tab until the element with this name has the focus."""
    seen: list[str] = []
    for _ in range(TABS_MAX):
        await page.keyboard.press(key)
        seen.append(str(await page.evaluate(FOCUSED)))
        if seen[-1].startswith(name):
            return
    raise AssertionError(f"{name!r} was not reached: {seen}")


@pytest.mark.requirement("S4-48")
async def test_a_result_is_reached_from_the_login_by_keyboard_only(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    key = (await served.key("ada", "admin"))["authorization"].removeprefix("Bearer ")
    async with opens("/workflows", lenient=True) as page:
        await expect(page.get_by_role("heading", name="Sign in", exact=True)).to_be_visible()
        await tab_to(page, "Key")
        await page.keyboard.type(key)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("link", name="letter", exact=True)).to_be_visible()
        await tab_to(page, "letter")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/workflows/letter")
        await expect(page.get_by_role("button", name="Start", exact=True).first).to_be_visible()
        await tab_to(page, "Start")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        goal = page.get_by_role("textbox", name="goal")
        await expect(goal).to_be_visible()
        await tab_to(page, "goal")
        await page.keyboard.type("tides")
        await expect(goal).to_have_value("tides")
        await tab_to(page, "Start")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Send it?", exact=True)).to_be_visible(timeout=WAITS_MS)
        await tab_to(page, "Approve")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible(timeout=WAITS_MS)


async def test_first_key_skips_to_content_dialog_returns_focus_and_motion_can_be_reduced(
    opens: Opens, served: Served
) -> None:
    async with opens("/keys") as page:
        await settled(page)
        await page.keyboard.press("Tab")
        await expect(page.get_by_text("Skip to content", exact=True)).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#page")).to_be_focused()
        await tab_to(page, "Create key")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog").get_by_label("Name")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("button", name="Create key", exact=True)).to_be_focused()
    execution = await furnished(served)
    async with opens(f"/executions/{execution}") as page:
        await page.emulate_media(reduced_motion="reduce")
        await page.reload()
        await settled(page)
        assert await page.evaluate("document.getAnimations().filter((one) => one.playState === 'running').length") == 0
