"""Properties of every page and dialog: axe finds no violation, nothing scrolls sideways, every target can be hit, and
all texts are in the language of the page. One window visits all pages, so that the app and axe load once.
"""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.async_api import Page, ViewportSize, expect

from pointsman.server.pages import PAGES
from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.harbour import Harbour, furnished
from tests.web.test_accessibility import COLOURS, TALLER, WIDER, address, settled, turn_to, violations
from tests.web.words_shown import ids_on, said_on, wrong_words

DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
SMALL_PHONE: Final[ViewportSize] = {"width": 390, "height": 640}
LISTS: Final = tuple(sorted(PAGES - {"", "login"}))
LONG: Final = "a-workflow-of-the-harbour-whose-name-goes-on-and-on-until-nobody-can-read-it-any-more"
NAMED: Final = flows.CHAIN.replace("id: chain", f"id: {LONG}")
SMALL: Final = """() => [...(document.querySelector('[role=dialog]') ?? document).querySelectorAll(
    "a, button, input, select, textarea, summary, [role=button], [role=tab]")]
  .filter((one) => {
    const box = (one.closest('label') ?? one).getBoundingClientRect();
    if (box.width === 0 || one.closest('.sr-only, .react-flow__node, .react-flow__edges') !== null) return false;
    if (getComputedStyle(one).display === 'inline' || getComputedStyle(one).clipPath === 'inset(50%)') return false;
    return box.width < 23.5 || box.height < 23.5;
  })
  .map((one) => `${one.tagName} ${one.getAttribute('aria-label') ?? one.textContent} ${one.className}`)"""
"""Targets of less than 24 pixels, in the dialog where one is open; links within a text are as high as their line."""

COVERED: Final = """() => [...document.querySelectorAll('[role=dialog] :is(input, select, textarea, p)')]
  .filter((one) => {
    one.scrollIntoView({ block: 'nearest' });
    const box = one.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !one.checkVisibility()) return false;
    const there = document.elementFromPoint(box.left + 3, box.bottom - 3);
    return !(one.contains(there) || there?.contains(one));
  })
  .map((one) => `covered: ${one.outerHTML.slice(0, 120)}`)"""
"""Elements that another element covers, also after scrolling to them."""
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
"""Placeholders that do not fit into their fields."""

OF_THE_STORE: Final = {LONG, "name", "scripted", "local", "notiz", "missed", "Send it?", "Once more"}
"""Words of the store and its documents that are also words of the app, and questions of gates."""
OF_TEMPLATES: Final = {"all", "draft", "open", "research", "vote"}
"""Names of nodes in the pictures of templates that are also words of the app."""
ANSWER: Final = "Scripted answer of "
LOOKS: Final = 60
GONE: Final = ("inbox/nope", "workflows/nope", "executions/nope", "login?why=login-refused")
EDITORS: Final = ("workflows/wf-7001", "workflows/wf-7004")

STEERED: Final = flows.LETTER.replace(
    "id: letter", "id: wf-7005\nname: Steuermann\nconfig: {humanInLoop: real_time}"
).replace('message: "Send it?"', 'message: "Soll er hinaus?", approvers: {users: [local, ben], delegable: true}')

DIALOGS: Final[dict[str, tuple[str, ...]]] = {
    "workflows": (
        "Mit KI beschreiben",
        "Importieren",
        "Neu",
        "Hafenbrief teilen",
        "Hafenbrief exportieren",
        "Hafenbrief starten",
    ),
    "workflows/wf-7001": ("Duplizieren", "Löschen", "Knoten suchen", "Knoten hinzufügen", "Tastenkürzel"),
    "executions/{waits}": ("Eingreifen", "Abzweigen", "Abbrechen", "Weitergeben"),
    "executions/{failed}": ("Löschen",),
    "agents": ("Neuer Agent",),
    "agents/schreiber": ("Löschen",),
    "keys": ("Schlüssel anlegen",),
    "secrets": ("Geheimnis hinzufügen", "HAFEN ersetzen", "HAFEN löschen"),
    "schedules": ("Neuer Zeitplan",),
    "schedules/morgens": ("Ändern", "Löschen"),
    "webhooks": ("Letzte Aufrufe von hafen/ruf", "hafen/ruf testen"),
    "memory/user/ada": ("Merken", "notiz", "Alles löschen"),
}


def things(harbour: Harbour) -> tuple[str, ...]:
    return (
        f"executions/{harbour.fork}",
        f"executions/{harbour.failed}",
        f"executions/compare?a={harbour.ended}&b={harbour.fork}",
        "schedules/morgens",
        "agents/schreiber",
        "tools/current_time",
        "memory/workflow/wf-7001",
        f"chat/wf-7003/{harbour.session}",
        "usage?by=execution",
    )


async def strange(page: Page) -> list[str]:
    """Return wrong words and ids once the page has stopped changing: names may load later."""
    found: list[str] = []
    before: list[str] = []
    for _ in range(LOOKS):
        said = sorted(await said_on(page))
        wrong = [
            one
            for one in wrong_words(said, "de")
            if one not in OF_THE_STORE | (OF_TEMPLATES if "/templates" in page.url else set())
            and not one.startswith(ANSWER)
        ]
        found = wrong + await ids_on(page)
        if said == before and not found:
            break
        before = said
        await page.wait_for_timeout(100)
    return found


async def in_both_themes(page: Page, within: str = "html") -> list[str]:
    """Return what axe finds in a part of the page, in light colours and in dark ones."""
    found = await violations(page, within=within)
    await page.emulate_media(color_scheme="dark")
    found += [f"dark: {one}" for one in await violations(page, COLOURS, within=within)]
    await page.emulate_media(color_scheme="light")
    return found


async def choose_first(page: Page) -> None:
    """Select the first entry, so that its actions are visible."""
    await page.get_by_role("checkbox", name=re.compile("^Select ")).nth(1).check()
    await expect(page.get_by_text("1 selected")).to_be_visible()


def report(found: dict[str, list[str]]) -> str:
    """Return one line for each fault."""
    return "\n".join(f"{place}: {fault}" for place, faults in found.items() for fault in faults)


async def layout_faults(page: Page) -> list[str]:
    """Return what scrolls, is small, cut or hard to read on a desktop, and what is too wide or small on a phone."""
    found = [
        *await page.evaluate(TALLER),
        *await page.evaluate(WIDER),
        *await page.evaluate(SMALL),
        *await page.evaluate(CUT_HINTS),
        *await in_both_themes(page),
    ]
    await page.set_viewport_size(PHONE)
    found += [f"phone: {one}" for one in [*await page.evaluate(WIDER), *await page.evaluate(SMALL)]]
    await page.set_viewport_size(DESK)
    return found


@pytest.mark.requirement("S4-48")
async def test_every_page_is_accessible_and_speaks_german(opens: Opens, served: Served) -> None:
    harbour = await furnished(served)
    await served.save(NAMED)
    await served.execute(LONG)
    found: dict[str, list[str]] = {}
    async with opens("/workflows", language="de", lenient=True) as page:
        for path in (*LISTS, *GONE, *things(harbour), *EDITORS):
            await turn_to(page, path)
            found[path] = [*await strange(page), *await layout_faults(page)]
            tabs = page.get_by_role("tab")
            for nth in range(await tabs.count()):
                await tabs.nth(nth).click()
                await expect(tabs.nth(nth)).to_have_attribute("aria-selected", "true")
                await settled(page)
                found[f"{path} {nth}"] = await strange(page)
        # Prove that the check finds wrong words.
        await turn_to(page, "workflows")
        await page.get_by_role("button", name="Sprache").click()
        await expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
        await settled(page)
        assert {"Workflows", "Import"} <= set(wrong_words(await said_on(page), "de"))
        for name in ("executions", "workflows"):
            await turn_to(page, name)
            await choose_first(page)
            found[f"{name} with one chosen"] = await layout_faults(page)
    assert report(found) == ""


async def looked_at(page: Page) -> list[str]:
    """Return the faults of the open dialog: its words, its position, and what is covered or too small on a small
    phone."""
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading").first).to_be_visible()
    await expect(dialog.locator("[data-loading]")).to_have_count(0)
    found = [*await strange(page), *await page.evaluate(AT_THE_CROSS)]
    await page.set_viewport_size(SMALL_PHONE)
    last = dialog.get_by_role("button", name=re.compile(r"\S")).last
    await expect(last).to_be_in_viewport(ratio=1)
    found += [*await page.evaluate(COVERED), *await page.evaluate(SMALL), *await in_both_themes(page, "[role=dialog]")]
    await page.set_viewport_size(DESK)
    return found


@pytest.mark.requirement("S4-48")
async def test_every_dialog_speaks_german_and_fits_the_window(opens: Opens, served: Served) -> None:
    harbour = await furnished(served)
    await served.save(STEERED)
    waits = await served.execute("wf-7005", {"goal": "Ebbe"})
    found: dict[str, list[str]] = {}
    async with opens("/usage", language="de", lenient=True) as page:
        for path, names in DIALOGS.items():
            await turn_to(page, path.format(waits=waits, failed=harbour.failed))
            for name in names:
                await page.get_by_role("main").get_by_role("button", name=name, exact=True).first.click()
                found[f"{path}: {name}"] = await looked_at(page)
                await page.keyboard.press("Escape")
                await expect(page.get_by_role("dialog")).to_have_count(0)
        await served.key("root", "admin")
        await page.goto(address(served, "/login?why=login-refused"))
        await expect(page.get_by_role("alert")).to_be_visible()
        found["login"] = await in_both_themes(page)
    assert report(found) == ""
