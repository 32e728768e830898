"""Tool calls that people approve one by one: over HTTP, by vote, and in clients that only know messages."""

from __future__ import annotations

from typing import Any

import pytest

from pointsman.engine.digests import digest_of_call
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import serving

CASHIER = """\
pointsman: 1
id: cashier
config: {conversational: true, approval: {approvers: {users: [ada, ben], quorum: 2}}}
nodes: [{id: pay, type: agent, config: {prompt: Pay them, tools: [transfer]}}]
edges: []
"""
SCRIPT = parse_script("""\
rules:
  - call: 1
    toolCalls: [{name: transfer, arguments: {to: ann}}, {name: transfer, arguments: {to: bob}}]
  - {text: That was it.}
tools: {transfer: {requiresApproval: true, result: paid}}
""")
DECIDED = {"2": False, "3": {"to": "cyd"}}


@pytest.mark.requirement("S1-94")
async def test_votes_on_single_tool_calls_are_kept_over_a_restart(file_store: str) -> None:
    async with serving(file_store, script=SCRIPT) as served:
        await served.save(CASHIER)
        execution = await served.execute("cashier", "Pay")
        root = await served.key("root", "admin")
        ada, ben = [await served.key(name, "operator") for name in ("ada", "ben")]
        path = f"/api/workflows/executions/{execution}"
        (gate,) = (await served.client.get(path, headers=ada)).json()["waiting"]
        assert gate["shown"] == {
            "2": {"tool": "transfer", "arguments": {"to": "ann"}},
            "3": {"tool": "transfer", "arguments": {"to": "bob"}},
        }

        async def says(who: dict[str, str], data: Any) -> Any:
            body = {"gateId": gate["gateId"], "action": "edit", "data": data, "comment": "Ann has hers"}
            return await served.client.post(f"{path}/respond", json=body, headers=who)

        for wrong in ({}, {"9": True}, {"2": "yes"}, None):
            assert (await says(ada, wrong)).json()["code"] == "answer-invalid"
        voted = (await says(ada, DECIDED)).json()
        assert voted["waiting"][0]["votes"] == [
            {"by": "ada", "action": "edit", "comment": "Ann has hers", "data": DECIDED}
        ]
        assert (await says(ben, {"2": False})).json()["code"] == "votes-differ"
    async with serving(file_store, script=SCRIPT) as served:
        assert (await says(ben, DECIDED)).status_code == 200
        async with served.client.stream("GET", f"{path}/stream", headers=root) as ends:
            assert [line async for line in ends.aiter_lines()]
        told = (await served.client.get(path, headers=root)).json()
        assert (told["status"], told["output"], told["usage"]["toolCalls"]) == ("completed", "That was it.", 2)
        events = (await served.client.get(f"{path}/events", headers=root)).json()["events"]
        (reviewed,) = [one["verdicts"] for one in events if one["kind"] == "calls_reviewed"]
        assert reviewed == [
            {
                "number": 2,
                "approved": False,
                "reason": "Ann has hers",
                "of": digest_of_call("transfer", {"to": "ann"}),
                "tool": "transfer",
            },
            {
                "number": 3,
                "approved": True,
                "arguments": {"to": "cyd"},
                "of": digest_of_call("transfer", {"to": "bob"}),
                "tool": "transfer",
            },
        ]


async def test_a_chat_client_reads_how_to_decide_single_tool_calls() -> None:
    async with serving(script=SCRIPT) as served:
        await served.save(CASHIER.replace(", approval: {approvers: {users: [ada, ben], quorum: 2}}", ""))

        async def says(*messages: dict[str, str]) -> dict[str, str]:
            body = {"model": "cashier", "messages": messages}
            reply = await served.client.post("/v1/chat/completions", json=body)
            return dict(reply.json()["choices"][0]["message"])

        asks = {"role": "user", "content": "Pay"}
        asked = await says(asks)
        assert '`{"action": "edit", "data": {"2": true, "3": true}}`' in asked["content"]
        decides = {"role": "user", "content": '{"action": "edit", "data": {"2": false, "3": true}}'}
        assert "That was it." in (await says(asks, asked, decides))["content"]
