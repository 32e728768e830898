"""One person comments on a node and mentions another, who finds the comment in the inbox and resolves it."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import enter


async def test_a_mentioned_person_finds_resolves_and_answers_a_comment_on_a_node(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    await served.key("root", "admin")
    ada, ben = [await served.key(name, "editor") for name in ("ada", "ben")]
    async with (
        opens("/workflows/letter?panel=comments#node=review", lenient=True) as hers,
        opens("/inbox", lenient=True) as his,
    ):
        await enter(hers, ada)
        await hers.get_by_role("textbox", name="Write a comment").fill("@ben, *who* asks? <script>alert(1)</script>")
        await hers.get_by_role("button", name="Comment", exact=True).click()
        await expect(hers.get_by_role("listitem").filter(has_text="who asks?")).to_be_visible()
        await enter(his, ben)
        await expect(his.get_by_text("1 unread mention").first).to_be_attached()
        await his.get_by_role("link", name="Mentions").click()
        await his.get_by_role("link", name="in workflow").click()
        comment = his.get_by_role("listitem").filter(has_text="who asks?")
        await expect(comment).to_be_visible()
        await expect(comment.get_by_role("button", name="Edit comment")).to_have_count(0)
        await comment.get_by_role("button", name="Resolve").click()
        await expect(comment).to_have_count(0)
        await his.get_by_role("checkbox", name="Show resolved (1)").check()
        await expect(his.get_by_text("Resolved by ben")).to_be_visible()
        reply = his.get_by_role("textbox", name="Write a comment")
        await reply.press_sequentially("Done, @a")
        await expect(his.get_by_role("option", name="ada")).to_be_visible()
        await reply.press("Tab")
        await expect(reply).to_have_value("Done, @ada ")
        await reply.press("Control+Enter")
        await expect(his.get_by_role("listitem").filter(has_text="Done, @ada")).to_be_visible()
