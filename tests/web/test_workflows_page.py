"""The list of workflows: found, narrowed, shared, switched off, deleted together, imported by dropping files."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import AXE, Opens


def document(id: str, name: str, said: str = "") -> str:
    return flows.CHAIN.replace("id: chain\n", f"id: {id}\nname: {name}\n{said}")


async def saved(served: Served) -> list[str]:
    reply = await served.client.get("/api/workflows?builtIn=false&disabled=true")
    return [one["id"] for one in reply.json()["workflows"]]


async def drop(page: Page, files: dict[str, str]) -> None:
    """As from a folder of the desktop."""
    held = await page.evaluate_handle(
        """files => {
            const held = new DataTransfer();
            for (const [name, text] of Object.entries(files)) held.items.add(new File([text], name));
            return held;
        }""",
        files,
    )
    await page.dispatch_event("h1", "dragover", {"dataTransfer": held, "bubbles": True})
    await expect(page.get_by_text("Drop documents to import them")).to_be_visible()
    await page.dispatch_event("h1", "drop", {"dataTransfer": held, "bubbles": True})


@pytest.mark.requirement("S1-145")
async def test_workflows_are_found_by_words_and_tags_that_the_address_keeps(opens: Opens, served: Served) -> None:
    await served.save(document("one", "Tides", "description: When the water comes\ntags: [sea, daily]\n"))
    await served.save(document("two", "Harbour", "tags: [sea]\n"))
    await served.save(document("three", "Letters"))
    await served.execute("two")
    async with opens("/workflows") as page:
        rows = page.locator("main ul").first.locator("> li")
        await expect(rows).to_have_count(3)
        await expect(rows.nth(0)).to_contain_text("Harbour")
        await expect(rows.nth(0).get_by_role("link", name="completed")).to_be_visible()
        await expect(rows.nth(2)).to_contain_text("When the water comes")
        await page.get_by_role("searchbox", name="Search").fill("WATER")
        await page.wait_for_url("**/workflows?q=WATER")
        await expect(rows).to_have_count(1)
        await page.get_by_role("searchbox", name="Search").fill("nothing like it")
        await expect(page.get_by_text("Nothing fits “nothing like it”.")).to_be_visible()
        await page.get_by_role("searchbox", name="Search").fill("")
        await page.get_by_role("button", name="sea", exact=True).click()
        await expect(rows).to_have_count(2)
        await page.get_by_role("button", name="daily", exact=True).click()
        await expect(rows).to_have_count(1)
        await page.reload()
        await expect(page.get_by_role("button", name="daily", exact=True)).to_have_attribute("aria-pressed", "true")
        await expect(rows).to_have_count(1)
        await page.get_by_role("button", name="daily", exact=True).click()
        await page.get_by_role("button", name="sea", exact=True).click()
        await page.get_by_label("Order").select_option("saved")
        await expect(rows.nth(0)).to_contain_text("Letters")


async def test_a_long_list_is_read_page_by_page(opens: Opens, served: Served) -> None:
    for number in range(52):
        await served.save(document(f"w{number:02}", f"Number {number:02}"))
    async with opens("/workflows") as page:
        rows = page.locator("main ul").first.locator("> li")
        await expect(rows).to_have_count(50)
        await page.get_by_role("button", name="Show more").click()
        await expect(rows).to_have_count(52)


async def test_several_are_chosen_named_and_deleted_but_for_what_somebody_changed_meanwhile(
    opens: Opens, served: Served
) -> None:
    for id, name in (("one", "Tides"), ("two", "Harbour"), ("three", "Letters")):
        await served.save(document(id, name))
    async with opens("/workflows", told=("409 (Conflict)",)) as page:
        await page.get_by_label("Select Tides").check()
        await page.get_by_label("Select Harbour").check()
        await expect(page.get_by_text("2 selected")).to_be_visible()
        await page.get_by_role("button", name="Delete").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("Harbour, Tides. Their executions stay.")
        await dialog.get_by_role("button", name="Cancel").click()
        assert await saved(served) == ["one", "three", "two"]
        await page.get_by_role("button", name="Delete").click()
        await expect(dialog).to_contain_text("Harbour, Tides. Their executions stay.")
        await served.save(document("two", "Harbour of another"))
        await dialog.get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("alert")).to_contain_text("'two' is at revision 2")
        await expect(page.get_by_role("link", name="Tides")).to_have_count(0)
        await expect(page.get_by_role("link", name="Harbour of another")).to_be_visible()
        await expect(page.get_by_role("link", name="Letters")).to_be_visible()
    assert await saved(served) == ["three", "two"]


async def test_a_workflow_is_switched_off_and_shared(opens: Opens, served: Served) -> None:
    await served.save(document("one", "Tides"))
    async with opens("/workflows") as page:
        switch = page.get_by_role("switch", name="Tides is switched on")
        await expect(switch).to_have_attribute("aria-checked", "true")
        await switch.click()
        await expect(switch).to_have_attribute("aria-checked", "false")
        await expect(page.get_by_role("button", name="Start Tides")).to_be_disabled()
        await page.get_by_role("button", name="Share Tides").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("radio", name="Groups").check()
        await dialog.get_by_role("textbox", name="Groups").fill("desk, night , desk")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
    assert (await served.client.get("/api/workflows/one")).json()["enabled"] is False
    shared: Any = (await served.client.get("/api/workflows/one/sharing")).json()
    assert (shared["audience"], shared["groups"]) == ("groups", ["desk", "night"])


async def test_what_a_switch_does_not_keep_of_the_text_is_told_with_the_way_back(opens: Opens, served: Served) -> None:
    await served.save('{"pointsman": 1, "id": "said", // why\n "nodes": [{"id": "say", "type": "agent"}]}')
    async with opens("/workflows") as page:
        await page.get_by_role("switch", name="said").click()
        told = page.get_by_role("status").filter(has_text="written anew")
        await expect(told).to_contain_text("comments")
        await expect(page.get_by_role("switch", name="said")).to_have_attribute("aria-checked", "false")
        await told.get_by_role("button", name="Seen").click()
        await expect(told).to_have_count(0)
    old = (await served.client.get("/api/workflows/said@1")).json()["text"]
    assert "// why" in old, "the revision before has them"


async def test_files_that_are_dropped_are_checked_told_about_and_saved(opens: Opens, served: Served) -> None:
    await served.save(document("one", "Tides"))
    files = {
        "known.yaml": document("one", "Tides of today"),
        "fresh.yaml": document("fresh", "Fresh"),
        "wrong.yaml": document("wrong", "Wrong").replace("target: second", "target: secnd"),
        "notes.txt": "- not\n- a workflow",
    }
    async with opens("/workflows") as page:
        await expect(page.get_by_role("button", name="Import")).to_be_visible()
        await drop(page, files)
        dialog = page.get_by_role("dialog")
        rows = dialog.get_by_role("listitem")
        await expect(rows.filter(has_text="known.yaml")).to_contain_text("one exists: this becomes revision 2")
        await expect(rows.filter(has_text="fresh.yaml")).to_contain_text("new: fresh")
        await rows.filter(has_text="wrong.yaml").locator("summary").first.click()
        await expect(rows.filter(has_text="wrong.yaml").first).to_contain_text("secnd")
        await expect(rows.filter(has_text="notes.txt")).to_contain_text("cannot be read as a workflow")
        await dialog.get_by_role("button", name="Save 2").click()
        await expect(rows.filter(has_text="known.yaml")).to_contain_text("Saved: one, revision 2")
        await dialog.get_by_label("Those with errors too, as drafts").check()
        await dialog.get_by_role("button", name="Save one").click()
        await expect(rows.filter(has_text="wrong.yaml").first).to_contain_text("Saved: wrong, revision 1")
        await dialog.get_by_role("button", name="Close").last.click()
        await expect(page.get_by_role("link", name="Tides of today")).to_be_visible()
    assert await saved(served) == ["fresh", "one", "wrong"]


@pytest.mark.parametrize(("theme", "size"), [("light", (1280, 800)), ("dark", (390, 844))])
async def test_nothing_on_it_is_out_of_reach(opens: Opens, served: Served, theme: str, size: tuple[int, int]) -> None:
    await served.save(document("one", "Tides", "description: When the water comes\ntags: [sea, daily]\n"))
    await served.save(document("two", "A name that is much longer than any phone is wide, and goes on"))
    await served.execute("one")
    async with opens("/workflows", theme=theme, size=size, lenient=True) as page:
        await page.get_by_label("Select Tides").check()
        await expect(page.get_by_text("1 selected")).to_be_visible()
        await page.evaluate(AXE.read_text())
        wrong: Any = await page.evaluate(
            "axe.run().then(found => found.violations.map(one => `${one.id}: ${one.nodes[0].html}`))"
        )
        assert wrong == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
