"""The audit log as it is read: found by who, what and when, and told when its chain is broken."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from playwright.async_api import expect

from pointsman.app.access.audit import Row
from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_deed_is_found_exported_and_its_chain_is_checked(opens: Opens, served: Served, tmp_path: Path) -> None:
    await served.save(flows.CHAIN)
    execution = await served.execute("chain")
    assert (await served.client.delete("/api/workflows/nope")).status_code == 404
    async with opens("/audit") as page:
        await expect(page.get_by_text("The chain is whole: 4 rows.")).to_be_visible()
        await expect(page.get_by_text("refused: unknown-workflow")).to_be_visible()
        await page.get_by_label("What", exact=True).fill(execution)
        await page.get_by_role("button", name="Search", exact=True).click()
        await page.wait_for_url(f"**what={execution}")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await expect(page.locator("tbody tr")).to_contain_text("POST /api/workflows/{id}/execute")
        await page.get_by_role("button", name="Clear").click()
        await expect(page.locator("tbody tr")).to_have_count(3)
        await page.get_by_label("From", exact=True).fill("2001-01-01")
        await page.get_by_label("To", exact=True).fill("2001-12-31")
        await page.get_by_role("button", name="Search", exact=True).click()
        await expect(page.get_by_text("Nothing fits.")).to_be_visible()
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Export as JSONL").click()
        await (await download.value).save_as(tmp_path / "audit.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["row"] for line in lines] == [*range(1, len(lines) + 1)]
    assert lines[0]["deeds"][0]["what"] == "POST /api/workflows"


async def test_a_log_that_was_changed_says_so(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    (entry,) = await served.app.store.entries.list("audit-000000")
    row = msgspec.convert(entry.value, Row, strict=False)
    forged = msgspec.structs.replace(row, deeds=(msgspec.structs.replace(row.deeds[0], who="eve"),))
    await served.app.store.entries.put("audit-000000", entry.key, msgspec.to_builtins(forged))
    async with opens("/audit", language="de") as page:
        await expect(page.get_by_role("alert")).to_contain_text("Die Kette ist gebrochen")
