"""Schedules: made with their next times in view, paused, run by hand, changed, and deleted."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens

NIGHTLY = flows.CHAIN.replace(
    "output: {said: b}", "output: {said: b}\ntriggers: [{id: nightly, type: schedule, cron: '0 3 * * *'}]"
)


async def test_a_schedule_is_made_with_its_next_times_in_view(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/schedules", lenient=True) as page:  # A browser tells of every question that is refused.
        await expect(page.get_by_text("Nothing starts by itself yet.")).to_be_visible()
        await page.get_by_role("button", name="New schedule").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Workflow").click()
        await dialog.get_by_role("listbox").get_by_role("option", name="letter").click()
        await dialog.get_by_label("Name").fill("morning")
        await dialog.get_by_label("Cron").fill("61 8 * * *")
        await expect(dialog.get_by_label("Cron")).to_have_attribute("aria-invalid", "true")
        await dialog.get_by_label("Cron").fill("30 7 * * 1-5")
        await expect(dialog.get_by_text("at 07:30 from Monday to Friday")).to_be_visible()
        await dialog.get_by_label("Time zone").fill("Europe/Berlin")
        times = dialog.get_by_role("table", name="The next times")
        await expect(times.get_by_role("columnheader", name="Europe/Berlin")).to_be_visible()
        await expect(times.get_by_role("row")).to_have_count(6)
        await dialog.get_by_label("While one still runs").select_option("queue")
        await dialog.get_by_label("goal").fill("tides")
        await dialog.get_by_role("button", name="Save the schedule").click()
        await page.wait_for_url("**/schedules/morning")
        await expect(page.get_by_text("at 07:30 from Monday to Friday")).to_be_visible()
    kept = (await served.client.get("/api/schedules/morning")).json()
    assert (kept["workflowId"], kept["cron"], kept["timezone"], kept["overlap"], kept["input"]) == (
        "letter",
        "30 7 * * 1-5",
        "Europe/Berlin",
        "queue",
        {"goal": "tides"},
    )


async def test_a_schedule_is_paused_run_by_hand_changed_and_deleted(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    body = {"workflow": "letter", "every": 5400, "id": "often", "input": {"goal": "maps"}}
    assert (await served.client.post("/api/schedules", json=body)).status_code == 201
    async with opens("/schedules") as page:
        await page.get_by_role("button", name="Pause often").click()
        await expect(page.get_by_role("button", name="Resume often")).to_be_visible()
        assert (await served.client.get("/api/schedules/often")).json()["paused"]
        await page.get_by_role("link", name="often").click()
        await page.get_by_role("button", name="Run now").click()
        await expect(page.get_by_role("table", name="What became of it").get_by_text("started")).to_be_visible()
        await page.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("spinbutton", name="Every")).to_have_value("90")
        await dialog.get_by_label("Unit").select_option("hours")
        await dialog.get_by_role("spinbutton", name="Every").fill("2")
        await dialog.get_by_role("button", name="Save the schedule").click()
        await expect(page.get_by_text("every 2 hours")).to_be_visible()
        kept = (await served.client.get("/api/schedules/often")).json()
        assert (kept["every"], kept["paused"], len(kept["results"])) == (7200, True, 1)
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await page.wait_for_url(re.compile("/schedules$"))
    assert (await served.client.get("/api/schedules")).json()["schedules"] == []


async def test_what_somebody_else_changed_meanwhile_is_not_written_over(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    body = {"workflow": "letter", "every": 5400, "id": "often", "input": {"goal": "maps"}}
    await served.client.post("/api/schedules", json=body)
    async with opens("/schedules/often", lenient=True) as page:
        await page.get_by_role("button", name="Edit").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("spinbutton", name="Every").fill("5")
        other = {"workflow": "letter", "every": 60, "input": {"goal": "maps"}}
        assert (await served.client.put("/api/schedules/often", json=other)).status_code == 200
        await dialog.get_by_role("button", name="Save the schedule").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("was changed since it was read")
    assert (await served.client.get("/api/schedules/often")).json()["every"] == 60


async def test_the_schedule_of_a_document_is_shown_as_its_and_not_edited(opens: Opens, served: Served) -> None:
    await served.save(NIGHTLY)
    async with opens("/schedules", language="de", size=(390, 844)) as page:
        await page.get_by_role("link", name="chain / nightly").click()
        await expect(page.get_by_text("jeden Tag um 03:00")).to_be_visible()
        await expect(page.get_by_text("Auslöser nightly")).to_be_visible()
        await expect(page.get_by_role("button", name="Bearbeiten")).to_have_count(0)
        await expect(page.get_by_role("button", name="Anhalten")).to_be_visible()


async def test_many_schedules_are_shown_page_by_page(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    for number in range(51):
        body = {"workflow": "letter", "every": 86400, "id": f"daily-{number:02}", "input": {"goal": "tides"}}
        assert (await served.client.post("/api/schedules", json=body)).status_code == 201
    async with opens("/schedules") as page:
        await expect(page.get_by_role("button", name="Pause daily-49")).to_be_visible()
        await expect(page.get_by_role("button", name="Pause daily-50")).to_have_count(0)
        await page.get_by_role("button", name="Show more", exact=True).click()
        await page.get_by_role("button", name="Pause daily-50").click()
        await expect(page.get_by_role("button", name="Resume daily-50")).to_be_visible()
        await expect(page.get_by_role("button", name="Show more", exact=True)).to_have_count(0)
