"""From the mail to the answer: people without an account answer a gate in the browser."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from pointsman.app import Workflow
from pointsman.settings import Settings
from pointsman.triggers.notifications import Notifier
from tests.server.conftest import Served, serving
from tests.tools.mail.server import MailServer, mail_server
from tests.web.conftest import AXE, Opens, screenshot

ASK = """\
pointsman: 1
id: letter
output: {letter: letter, note: nodes.review.data.note, by: nodes.review.by}
nodes:
  - id: review
    type: human
    config:
      message: {en: "Send this letter?", de: "Diesen Brief abschicken?"}
      show: [letter]
      form: {type: object, required: [note], properties: {note: {type: string, title: Note}}}
      approvers: {users: [ada], byLink: true}
      options: [{value: approve}, {value: reject}]
"""
LETTER = "Dear Ben, <script>document.title = 'broken'</script> see you."


@pytest_asyncio.fixture(loop_scope="session")
async def mail(tmp_path: Path) -> AsyncGenerator[MailServer]:
    async with mail_server(tmp_path, tls="starttls") as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path, mail: MailServer) -> AsyncGenerator[Served]:
    recipient = {"name": "ada", "address": "ada@example.org", "language": "de"}
    settings = Settings.model_validate(
        {
            "delays": False,
            "server": {"url": "https://desk.example.org"},
            "mail": {
                "host": "127.0.0.1",
                "port": mail.port,
                "certificates": mail.certificates,
                "sender": "Pointsman <pointsman@example.org>",
            },
            "notifications": {"people": {"format": "mail", "recipients": [recipient], "answer_links": True}},
        }
    )
    async with serving(f"sqlite:///{tmp_path}/store.db", settings=settings) as one:
        await one.desk.keys.make("root", "admin")  # The server requires a key from now on.
        yield one


async def mailed_link(served: Served, mail: MailServer) -> tuple[str, str]:
    """Start the workflow; return its execution, and path and fragment of the link that was mailed."""
    app = served.app
    notifier = Notifier(app.context)
    await notifier.round(app.context.clock.now())
    await app.save(Workflow.parse(ASK))
    execution = await app.start("letter", {"letter": LETTER})
    await execution.settled()
    await notifier.round(app.context.clock.now())
    part = mail.taken[-1].get_body(("plain",))
    assert part is not None
    found = re.search(r"https://desk\.example\.org(/answer#\S+)", str(part.get_content()))
    assert found is not None
    return execution.id, found[1]


JOURNEY = {
    "en": ("Send this letter?", "Approve", "Your answer has been recorded.", "this question was answered already"),
    "de": ("Diesen Brief abschicken?", "Freigeben", "Ihre Antwort ist gespeichert.", "nicht mehr offen"),
}


@pytest.mark.parametrize("language", JOURNEY)
async def test_a_recipient_answers_from_the_mail_without_an_account(
    opens: Opens, served: Served, mail: MailServer, language: str
) -> None:
    question, approve, done, closed = JOURNEY[language]
    execution, link = await mailed_link(served, mail)
    async with opens(link, language=language) as page:
        await expect(page.get_by_role("heading", name=question)).to_be_visible()
        await expect(page.get_by_text(LETTER)).to_be_visible()
        assert "broken" not in await page.title()
        await page.get_by_label("Note").fill("fine")
        await screenshot(page, f"answer-link/{language}")
        await page.get_by_role("button", name=approve).click()
        await expect(page.get_by_text(done)).to_be_visible()
    async with opens(link, language=language, lenient=True) as page:
        await expect(page.get_by_role("alert")).to_contain_text(closed)
        await expect(page.get_by_role("button", name=approve)).to_have_count(0)
    found = await (await served.app.open(execution)).view()
    assert found["output"] == {"letter": LETTER, "note": "fine", "by": "ada"}


async def test_the_page_is_usable_with_assistive_technology_and_leads_nowhere_else(
    opens: Opens, served: Served, mail: MailServer
) -> None:
    _, link = await mailed_link(served, mail)
    async with opens(link, lenient=True) as page:
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()
        await page.add_script_tag(path=AXE)
        report = await page.evaluate("axe.run()")
        assert [one["id"] for one in report["violations"]] == []
        assert await page.get_by_role("navigation").count() == 0
        assert await page.get_by_role("link").count() == 0
