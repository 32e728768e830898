"""Dialogs speak the language of the page too: each that a page opens, with all that is said in it."""

from __future__ import annotations

from typing import Final

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.harbour import furnished
from tests.web.test_accessibility import address, settled
from tests.web.test_words import strange

STEERED: Final = flows.LETTER.replace(
    "id: letter", "id: wf-7005\nname: Steuermann\nconfig: {humanInLoop: real_time}"
).replace('message: "Send it?"', 'message: "Soll er hinaus?", approvers: {users: [local, ben], delegable: true}')

DIALOGS: Final[dict[str, tuple[str, ...]]] = {
    "workflows": (
        "Beschreiben, was Sie brauchen",
        "Importieren",
        "Neu",
        "Hafenbrief teilen",
        "Hafenbrief exportieren",
        "Hafenbrief starten",
    ),
    "workflows/wf-7001": ("Klonen", "Löschen", "Knoten suchen", "Knoten hinzufügen", "Tasten"),
    "executions/{waits}": ("Lenken", "Abzweigen", "Abbrechen", "Weitergeben"),
    "executions/{failed}": ("Löschen",),
    "agents": ("Neuer Agent",),
    "agents/schreiber": ("Löschen",),
    "keys": ("Schlüssel anlegen",),
    "secrets": ("Geheimnis hinzufügen", "HAFEN ersetzen", "HAFEN löschen"),
    "schedules": ("Neuer Zeitplan",),
    "schedules/morgens": ("Ändern", "Löschen"),
    "webhooks": ("Bisherige Aufrufe von hafen/ruf", "Ausprobieren: hafen/ruf"),
    "memory/user/ada": ("Etwas merken", "notiz", "Alles vergessen"),
}


async def test_every_dialog_speaks_german(opens: Opens, served: Served) -> None:
    harbour = await furnished(served)
    await served.save(STEERED)
    waits = await served.execute("wf-7005", {"goal": "Ebbe"})
    found: dict[str, list[str]] = {}
    async with opens("/workflows", language="de", lenient=True) as page:
        for path, names in DIALOGS.items():
            await page.goto(address(served, "/" + path.format(waits=waits, failed=harbour.failed)))
            await settled(page)
            for name in names:
                await page.get_by_role("main").get_by_role("button", name=name, exact=True).first.click()
                dialog = page.get_by_role("dialog")
                await expect(dialog.get_by_role("heading").first).to_be_visible()
                await expect(dialog.locator("[data-loading]")).to_have_count(0)
                found[f"{path}: {name}"] = await strange(page)
                await page.keyboard.press("Escape")
                await expect(dialog).to_have_count(0)
    assert {name: words for name, words in found.items() if words} == {}
