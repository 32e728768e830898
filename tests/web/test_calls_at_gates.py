"""Tool calls that people approve one by one, in the inbox and in the chat, alone and by vote."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens
from tests.web.typing_in import enter

CASHIER = """\
pointsman: 1
id: cashier
config: {conversational: true}
nodes: [{id: pay, type: agent, name: Cashier, config: {prompt: Pay them, tools: [transfer]}}]
edges: []
"""
BOTH = CASHIER.replace("id: cashier", "id: both").replace(
    "conversational: true", "approval: {approvers: {users: [ada, ben], quorum: 2}}"
)
SCRIPT = """\
rules:
  - call: 1
    toolCalls:
      - {name: transfer, arguments: {to: ann, amount: 5}}
      - {name: transfer, arguments: {to: bob, amount: 7}}
      - {name: transfer, arguments: {to: cyd, amount: 9}}
  - {text: That was it.}
tools: {transfer: {requiresApproval: true, result: paid}}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db", script=parse_script(SCRIPT)) as one:
        for document in (CASHIER, BOTH):
            await one.save(document)
        yield one


async def verdicts(served: Served, execution: str, headers: Any = None) -> list[Any]:
    """Return the decisions about the calls in order: approved or not, and the changed arguments."""
    told = await served.client.get(f"/api/workflows/executions/{execution}/events", headers=headers)
    (reviewed,) = [one for one in told.json()["events"] if one["kind"] == "calls_reviewed"]
    return [(one["approved"], one.get("arguments")) for one in reviewed["verdicts"]]


async def decide(page: Page, call: int, choice: str) -> None:
    group = page.get_by_role("group", name=f"Call {call}: transfer")
    await group.get_by_role("radio", name=choice, exact=True).check()


async def test_a_second_voter_sees_the_first_votes_live_and_adopts_them(opens: Opens, served: Served) -> None:
    execution = await served.execute("both")
    await served.key("root", "admin")
    ada, ben = [await served.key(name, "operator") for name in ("ada", "ben")]
    async with opens("/inbox", lenient=True) as hers, opens("/inbox", lenient=True) as his:
        await enter(his, ben)
        await expect(his.get_by_text("0 of 2 votes")).to_be_visible()
        await his.get_by_label("Comment").fill("Looks right")
        await enter(hers, ada)
        await decide(hers, 2, "Do not run")
        await hers.get_by_role("button", name="Send decisions").click()
        await hers.get_by_role("button", name="Send now").click()
        await expect(hers.get_by_text("Nothing to do.")).to_be_visible()
        await expect(his.get_by_text("1 of 2 votes")).to_be_visible()
        await his.get_by_role("button", name="Use the decisions of ada").click()
        refused = his.get_by_role("group", name="Call 2: transfer").get_by_role("radio", name="Do not run")
        await expect(refused).to_be_checked()
        await expect(his.get_by_label("Comment")).to_have_value("Looks right")
        await his.get_by_role("button", name="Send decisions").click()
        await his.get_by_role("button", name="Send now").click()
        await expect(his.get_by_role("button", name="Send now")).to_have_count(0)
        await expect(his.get_by_text("Nothing to do.")).to_be_visible()
    assert await verdicts(served, execution, ada) == [(True, None), (False, None), (True, None)]
