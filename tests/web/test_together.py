"""Two people at one question, each in a window: what one does the other one sees, and loses nothing by it."""

from __future__ import annotations

from playwright.async_api import expect

from pointsman.engine.reports import TimerFired
from pointsman.values import ExecutionId
from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import enter

ESCALATED = flows.LETTER.replace(
    'message: "Send it?"',
    'message: "Send it?", timeout: 1h, approvers: {users: [ada]}, '
    "escalation: [{approvers: {users: [ben]}, timeout: 1h}]",
)


async def test_what_is_written_stays_where_somebody_else_answers_and_who_it_was_is_said(
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
        await expect(his.get_by_text("Nothing waits for you.")).to_be_visible()
        for page in (hers, theirs):
            await expect(page.get_by_text("ben answered meanwhile: Approve.")).to_be_visible()
            await expect(page.get_by_text("What you wrote here was not sent.")).to_be_visible()
            await expect(page.get_by_label("Comment")).to_have_value("Too dry, I think")
            await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
        await hers.get_by_role("button", name="Close the question").click()
        await expect(hers.get_by_label("Comment")).to_have_count(0)
        await theirs.get_by_role("button", name="The next question").click()
        await expect(theirs.get_by_text("Nothing waits for you.")).to_be_visible()


async def test_a_question_whose_time_is_up_goes_from_one_window_to_another(opens: Opens, served: Served) -> None:
    await served.save(ESCALATED)
    execution = await served.execute("letter", {"goal": "one"})
    await served.key("root", "admin")
    ada, ben = [await served.key(name, "operator") for name in ("ada", "ben")]
    async with opens("/inbox", lenient=True) as hers, opens("/inbox", lenient=True) as his:
        await enter(his, ben)
        await expect(his.get_by_text("Nothing waits for you.")).to_be_visible()
        await enter(hers, ada)
        await hers.get_by_label("Comment").fill("Almost done")
        driver = served.app.runtime.drivers[ExecutionId(execution)]
        (timer,) = [name for name, one in driver.state.timers.items() if one.purpose == "gate"]
        await driver.deliver(TimerFired(timer=timer))
        await expect(hers.get_by_text("It does not wait for you any more")).to_be_visible()
        await expect(hers.get_by_text("It is not you who is asked, but ben.")).to_be_visible()
        await expect(hers.get_by_label("Comment")).to_have_value("Almost done")
        await expect(his.get_by_text("escalated once")).to_be_visible()
        await his.get_by_role("button", name="Approve").click()
        await expect(his.get_by_text("Nothing waits for you.")).to_be_visible()
    told = await served.client.get(f"/api/workflows/executions/{execution}", headers=ben)
    assert [(one["action"], one["by"]) for one in told.json()["answers"]] == [("approve", "ben")]
