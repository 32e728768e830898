"""One person comments on a node and mentions another, who finds the comment in the inbox and resolves it."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import enter


async def test_a_mentioned_person_finds_a_comment_on_a_node_and_resolves_it(opens: Opens, served: Served) -> None:
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
