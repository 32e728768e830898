"""Every page speaks one language, and calls things by their names in it."""

from __future__ import annotations

import re
from typing import Final

from playwright.async_api import Page, expect

from pointsman.server.pages import PAGES
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.harbour import Harbour, furnished
from tests.web.test_accessibility import address, settled
from tests.web.words_shown import ids_on, said_on, wrong_words

OF_THE_STORE: Final = {"name", "scripted", "local", "notiz", "missed", "Send it?", "Once more"}
"""What the store or its documents hold that is also a word of the app, and what was asked as it was asked."""
ANSWER: Final = "Scripted answer of "
LOOKS: Final = 60
LISTS: Final = tuple(sorted(PAGES - {"", "login"}))
GONE: Final = ("inbox/nope", "workflows/nope", "executions/nope", "login?why=login-refused")
EDITORS: Final = ("workflows/wf-7001", "workflows/wf-7004")


async def strange(page: Page) -> list[str]:
    """What is wrong once the page says nothing more: names may come after what they name."""
    found: list[str] = []
    before: list[str] = []
    for _ in range(LOOKS):
        said = sorted(await said_on(page))
        wrong = [one for one in wrong_words(said, "de") if one not in OF_THE_STORE and not one.startswith(ANSWER)]
        found = wrong + await ids_on(page)
        if said == before and not found:
            break
        before = said
        await page.wait_for_timeout(100)
    return found


async def walked(page: Page, served: Served, paths: tuple[str, ...]) -> dict[str, list[str]]:
    """What is wrong on each page, and in each of its tabs."""
    found: dict[str, list[str]] = {}
    for path in paths:
        await page.goto(address(served, f"/{path}"))
        await settled(page)
        found[path] = await strange(page)
        tabs = page.get_by_role("tab")
        for nth in range(await tabs.count()):
            await tabs.nth(nth).click()
            await expect(tabs.nth(nth)).to_have_attribute("aria-selected", "true")
            await settled(page)
            found[f"{path} {nth}"] = await strange(page)
    return {name: words for name, words in found.items() if words}


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


async def test_every_page_speaks_german_and_calls_things_by_their_names(opens: Opens, served: Served) -> None:
    harbour = await furnished(served)
    async with opens("/workflows", language="de", lenient=True) as page:
        assert await walked(page, served, (*LISTS, *GONE, *things(harbour), *EDITORS)) == {}


async def test_words_of_another_language_would_be_found(opens: Opens, served: Served) -> None:
    await furnished(served)
    async with opens("/workflows") as page:
        await expect(page.get_by_role("link", name="Harbour letter", exact=True)).to_be_visible()
        await settled(page)
        assert {"Workflows", "Import"} <= set(wrong_words(await said_on(page), "de"))


async def test_an_execution_calls_nodes_steps_and_events_by_names_and_finds_them_by_both(
    opens: Opens, served: Served
) -> None:
    harbour = await furnished(served)
    async with opens(f"/executions/{harbour.ended}", language="de") as page:
        timeline = page.get_by_role("list", name="Zeitverlauf")
        await expect(timeline.get_by_role("button", name="Jedes Kapitel [1]")).to_be_visible()
        await page.get_by_role("tab", name="Ereignisse").click()
        events = page.get_by_role("list", name="Ereignisse")
        search = page.get_by_role("searchbox", name="Ereignisse durchsuchen")
        for words in ("Eine Person wird gefragt", "gate_opened", "n-ask"):
            await search.fill(words)
            await expect(events.get_by_role("button", name="Eine Person wird gefragt Fragen")).to_be_visible()
        await page.get_by_role("tab", name="Gliederung").click()
        await expect(page.locator(".react-flow__edge").first).to_have_attribute("aria-label", re.compile("Schreiben →"))


async def test_workflows_of_one_name_are_told_apart_in_the_chat(opens: Opens, served: Served) -> None:
    for id in ("a", "b"):
        await served.save(f"pointsman: 1\nid: talk-{id}\nname: Pilot\nconfig: {{conversational: true}}\n"
                          "nodes: [{id: speak, type: agent, config: {prompt: Be brief.}}]\n")  # fmt: skip
    async with opens("/chat") as page:
        for id in ("talk-a", "talk-b"):
            await expect(page.get_by_role("link", name=f"Pilot {id}")).to_be_visible()
        ours = page.get_by_role("link", name="AgentForge")
        await expect(ours.get_by_text("comes with Pointsman")).to_be_visible()
        await page.get_by_role("link", name="Pilot talk-b").click()
        await expect(page.get_by_role("heading", name="Pilot", level=1)).to_be_visible()
        await expect(page.get_by_text("talk-b", exact=True)).to_be_visible()


async def test_a_workflow_that_comes_along_asks_in_the_language_of_the_page(opens: Opens, served: Served) -> None:
    async with opens("/workflows", language="de") as page:
        await page.get_by_role("button", name="Verteilen und zusammenfassen starten", exact=True).click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_label("Für jeden Eintrag")).to_be_visible()
        await expect(dialog.get_by_text("Was mit einem Eintrag zu tun ist. {item} steht für ihn.")).to_be_visible()
