"""Two people in two windows work on one gate: each sees the other's change and loses no input."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import enter

ESCALATED = flows.LETTER.replace(
    'message: "Send it?"',
    'message: "Send it?", timeout: 1h, approvers: {users: [ada]}, '
    "escalation: [{approvers: {users: [ben]}, timeout: 1h}]",
)


async def test_a_draft_answer_is_kept_when_another_person_answers_and_their_name_is_shown(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "one"})
    await served.key("root", "admin")
    ada, ben = [await served.key(name, "operator") for name in ("ada", "ben")]
    async with (
        opens(f"/executions/{execution}", lenient=True) as hers,
        opens("/inbox", lenient=True) as his,
        opens("/inbox", lenient=True) as theirs,
    ):
        for page in (hers, theirs):
            await enter(page, ada)
            await page.get_by_label("Comment").fill("Too dry, I think")
        await enter(his, ben)
        await his.get_by_role("button", name="Approve").click()
        await expect(his.get_by_text("Nothing to do.")).to_be_visible()
        for page in (hers, theirs):
            await expect(page.get_by_text("Already answered by ben: Approve.")).to_be_visible()
            await expect(page.get_by_text("Your input was not sent.")).to_be_visible()
            await expect(page.get_by_label("Comment")).to_have_value("Too dry, I think")
            await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        await hers.get_by_role("button", name="Close").click()
        await expect(hers.get_by_label("Comment")).to_have_count(0)
        await theirs.get_by_role("button", name="Next request").click()
        await expect(theirs.get_by_text("Nothing to do.")).to_be_visible()
