"""Owners and sharing of workflows, executions, gates and sessions."""

from __future__ import annotations

from typing import Any

import pytest

from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, TALK, secret_of

Headers = dict[str, str]

CALLS = """\
pointsman: 1
id: outer
nodes:
  - {id: call, type: workflow, config: {workflow: chain}}
"""
ASKS_BOB = LETTER.replace('message: "Send it?"', 'message: "Send it?", approvers: {users: [bob]}')


async def save(served: Served, document: str, headers: Headers) -> int:
    return (await served.client.post("/api/workflows", content=document, headers=headers)).status_code


async def share(served: Served, workflow: str, headers: Headers, **body: Any) -> int:
    reply = await served.client.put(f"/api/workflows/{workflow}/sharing", json=body, headers=headers)
    return reply.status_code


async def start(served: Served, workflow: str, headers: Headers, **body: Any) -> Any:
    body = {"input": {}, "wait": True, **body}
    return await served.client.post(f"/api/workflows/{workflow}/execute", json=body, headers=headers)


async def status(served: Served, address: str, headers: Headers) -> int:
    return (await served.client.get(address, headers=headers)).status_code


async def listed(served: Served, headers: Headers) -> tuple[list[str], int, int]:
    """Return what a caller sees: the ids of workflows, the numbers of executions and gates."""
    workflows = (await served.client.get("/api/workflows?builtIn=false", headers=headers)).json()["workflows"]
    executions = (await served.client.get("/api/workflows/executions", headers=headers)).json()["executions"]
    gates = (await served.client.get("/api/inbox", headers=headers)).json()["gates"]
    return [one["id"] for one in workflows], len(executions), len(gates)


@pytest.mark.requirement("S4-54")
async def test_an_owner_shares_a_workflow_and_the_sharing_survives_a_restart(file_store: str) -> None:
    async with serving(file_store, is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor", "desk")
        eve, root = await served.key("eve", "editor"), await served.key("root", "admin")
        assert await save(served, CHAIN, ada) == 201
        assert (await start(served, "chain", ada)).status_code == 200
        everyones = (["chain"], 1, 0)
        assert [await listed(served, one) for one in (ada, bob, eve, root)] == [everyones] * 4
        assert await share(served, "chain", bob, audience="private") == 403, "only who owns it shares it"
        assert await share(served, "chain", ada, audience="private") == 200
    nothing: tuple[list[str], int, int] = ([], 0, 0)
    async with serving(file_store, is_local=False) as served:
        assert [await listed(served, one) for one in (ada, bob, eve, root)] == [everyones, nothing, nothing, everyones]
        for address in ("/api/workflows/chain", "/api/workflows/chain@1", "/api/workflows/chain/sharing"):
            assert [await status(served, address, one) for one in (ada, bob, root)] == [200, 404, 200], address
        assert (await start(served, "chain", bob)).status_code == 404
        assert await save(served, CHAIN.replace("two", "mine"), bob) == 409
        assert await share(served, "chain", ada, audience="groups", groups=["desk"]) == 200
        assert [await listed(served, one) for one in (bob, eve)] == [everyones, nothing]
        assert await share(served, "chain", root, audience="private", owner="eve") == 200
        assert [(await listed(served, one))[0] for one in (ada, bob, eve)] == [[], [], ["chain"]]
        assert (await listed(served, ada))[1] == 1, "who began an execution sees it all the same"


async def test_sharing_does_not_widen_the_groups_of_the_document() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        assert await save(served, secret_of("desk"), ada) == 201
        assert await share(served, "secret", ada, audience="groups", groups=["day"]) == 200
        assert await status(served, "/api/workflows/secret", bob) == 404
        assert await status(served, "/api/workflows/secret", ada) == 200


@pytest.mark.parametrize(
    "body", [{"audience": "groups"}, {"audience": "everyone", "groups": ["a"]}, {"audience": "world"}, {}]
)
async def test_an_invalid_sharing_is_refused(served: Served, body: dict[str, Any]) -> None:
    await served.save(CHAIN)
    assert await share(served, "chain", {}, **body) == 422
    assert (await served.client.get("/api/workflows/chain/sharing")).json()["audience"] == "everyone"


async def test_a_new_workflow_can_be_private() -> None:
    settings = Settings(delays=False, access=AccessSettings(new_workflows="private"))
    async with serving(is_local=False, settings=settings) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert await save(served, CHAIN.replace("target: second", "target: nowhere"), bob) == 422
        assert await save(served, CHAIN, ada) == 201, "what was not saved is nobody's"
        assert await status(served, "/api/workflows/chain", bob) == 404
        assert (await served.client.delete("/api/workflows/chain", headers=bob)).status_code == 404
        assert (await served.client.delete("/api/workflows/chain", headers=ada)).status_code == 204
        assert await save(served, CHAIN, bob) == 409, "its id is not free: its executions are still there"


async def test_users_of_a_shared_workflow_may_change_but_not_delete_it() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert await save(served, CHAIN, ada) == 201
        assert await save(served, CHAIN.replace("two", "zwei"), bob) == 201
        assert (await served.client.delete("/api/workflows/chain", headers=bob)).status_code == 403
        assert (await served.client.get("/api/workflows/chain/sharing", headers=bob)).json()["owner"] == "ada"


async def test_a_private_workflow_cannot_be_called_from_another_users_workflow() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert await save(served, CHAIN, ada) == 201
        assert await share(served, "chain", ada, audience="private") == 200
        assert await save(served, CALLS, bob) == 422
        assert await save(served, CALLS, ada) == 201
        assert await status(served, "/api/workflows/outer", bob) == 200


async def test_a_workflow_is_a_tool_only_for_callers_who_see_it() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        root = await served.key("root", "admin")
        assert await save(served, CHAIN, ada) == 201

        async def known(headers: Headers) -> tuple[bool, int, int]:
            """Return the status of listing, reading and trying."""
            page = (await served.client.get("/api/tools?limit=200&origin=workflow", headers=headers)).json()["tools"]
            tried = await served.client.post("/api/tools/workflow__chain/try", json={"arguments": {}}, headers=headers)
            read = await status(served, "/api/tools/workflow__chain", headers)
            return "workflow__chain" in [one["name"] for one in page], read, tried.status_code

        assert [await known(one) for one in (ada, bob, root)] == [(True, 200, 200)] * 3
        assert await share(served, "chain", ada, audience="private") == 200
        assert [await known(one) for one in (ada, bob, root)] == [(True, 200, 200), (False, 404, 404), (True, 200, 200)]
        assert await status(served, "/api/tools/calculator", bob) == 200


async def test_an_unknown_schedule_does_not_suggest_hidden_schedules() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        assert await save(served, CHAIN, ada) == 201
        assert await share(served, "chain", ada, audience="private") == 200
        plan = {"workflow": "chain", "every": 3600, "id": "nightly"}
        assert (await served.client.post("/api/schedules", json=plan, headers=ada)).status_code == 201
        for method, path in (
            ("GET", "morning"),
            ("DELETE", "morning"),
            ("GET", "morning/times"),
            ("POST", "morning/run"),
        ):
            reply = await served.client.request(method, f"/api/schedules/{path}", headers=bob)
            assert (reply.status_code, reply.json()["code"]) == (404, "no-such-schedule"), path
            assert "nightly" not in reply.text
        assert await status(served, "/api/schedules/nightly", bob) == 404
        assert await status(served, "/api/schedules/nightly", ada) == 200


async def test_a_session_belongs_to_its_starter() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "operator"), await served.key("bob", "operator")
        root = await served.key("root", "admin")
        assert await save(served, TALK, root) == 201
        mine = await start(served, "talk", ada, input="I am Ada", sessionId="s1")
        assert mine.status_code == 200, mine.text
        execution = mine.json()["executionId"]
        taken = await start(served, "talk", bob, input="What did I say?", sessionId="s1")
        assert (taken.status_code, taken.json()["code"]) == (403, "not-allowed")
        said = {"message": "Go on", "wait": True}
        address = f"/api/workflows/executions/{execution}"
        for headers, expected in ((bob, 404), (ada, 200), (root, 200)):
            reply = await served.client.post(f"{address}/messages", json=said, headers=headers)
            assert reply.status_code == expected, reply.text
        again = await start(served, "talk", ada, input="Still mine", sessionId="s1")
        assert again.status_code == 200, "an admin who said something did not take it over"
        for place in ("", "/events", "/state", "/stream"):
            assert await status(served, address + place, bob) == 404, "what is said in a conversation is its speaker's"
        assert [await status(served, "/session/s1", one) for one in (ada, bob, root)] == [200, 404, 200]
        assert [(await listed(served, one))[1] for one in (ada, bob, root)] == [4, 0, 4]


async def test_a_session_without_executions_is_visible_only_to_admins() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "operator"), await served.key("root", "admin")
        assert await save(served, TALK, root) == 201
        execution = (await start(served, "talk", ada, input="I am Ada", sessionId="s1")).json()["executionId"]
        gone = await served.client.delete(f"/api/workflows/executions/{execution}", headers=root)
        assert gone.status_code == 204
        bob = await served.key("bob", "operator")
        assert (await start(served, "talk", bob, input="What did I say?", sessionId="s1")).status_code == 403
        assert (await start(served, "talk", root, input="Go on", sessionId="s1")).status_code == 200


async def test_a_named_approver_sees_and_answers_the_gate() -> None:
    async with serving(is_local=False) as served:
        ada, bob, eve = [await served.key(name, "operator") for name in ("ada", "bob", "eve")]
        root = await served.key("root", "admin")
        assert await save(served, ASKS_BOB, root) == 201
        assert await share(served, "letter", root, audience="private", owner="ada") == 200
        execution = (await start(served, "letter", ada, input={"goal": "tides"})).json()["executionId"]
        assert [(await listed(served, one))[2] for one in (bob, eve)] == [1, 0]
        address = f"/api/workflows/executions/{execution}"
        assert [await status(served, address, one) for one in (ada, bob, eve)] == [200, 200, 404]
        answer = {"gateId": "review", "action": "approve"}
        refused = await served.client.post(f"{address}/respond", json=answer, headers=eve)
        assert refused.status_code == 404
        for verb in ("fork", "cancel", "retry", "steer", "pause"):
            more = await served.client.post(f"{address}/{verb}", json={}, headers=bob)
            assert (more.status_code, more.json()["code"]) == (403, "not-allowed"), "he is asked, and no more"
        assert await status(served, f"{address}/export", bob) == 403
        answered = await served.client.post(f"{address}/respond", json=answer, headers=bob)
        assert answered.json()["status"] == "completed"
        assert await status(served, address, bob) == 404, "he is asked no more"
