"""Two people look at one workflow: each sees the other, and the node that the other has selected."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_canvas import box
from tests.web.typing_in import enter


async def test_two_people_on_a_workflow_see_each_other_until_one_leaves(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    await served.key("root", "admin")
    ada, ben = [await served.key(name, "editor") for name in ("ada", "ben")]
    async with opens("/workflows/letter", lenient=True) as his:
        async with opens("/workflows/letter", lenient=True) as hers:
            await enter(hers, ada)
            await box(hers, "review").click()
            await expect(hers.get_by_role("region", name="Node")).to_be_visible()
            await enter(his, ben)
            await expect(his.get_by_role("listitem").filter(has_text="ada is looking at review")).to_be_visible()
            await expect(hers.get_by_role("listitem").filter(has_text="ben is here")).to_be_visible()
        await expect(his.get_by_role("list", name="Also here")).to_have_count(0)
