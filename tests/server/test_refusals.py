"""Refusals of verbs: the answer has the documented code, and nothing has changed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.models.script import read_script
from pointsman.server.problems import STATUS_OF
from pointsman.store.sqlite import SqliteStore
from tests.cli.test_people import EACH, FORM, TWO_OF_THREE
from tests.server.conftest import QUIET, Served, serving
from tests.server.flows import CHAIN, LETTER, TALK

ENDING = "rules:\n  - {contains: bye, text: Farewell., next: END}\n  - {text: Yes.}\n"


async def refused(served: Served, execution: str, verb: str, body: dict[str, Any], **headers: str) -> str:
    """Return the code; the status must match it."""
    address = f"/api/workflows/executions/{execution}/{verb}"
    reply = await served.client.post(address, json=body, headers=headers)
    code = str(reply.json()["code"])
    assert reply.status_code == STATUS_OF[code], reply.text
    return code


async def test_invalid_form_data_and_fields_that_are_not_editable_are_refused(served: Served) -> None:
    await served.save(FORM)
    await served.save(TWO_OF_THREE.replace("      approvers: {users: [ada, ben, cleo], quorum: 2}\n", ""))
    budget, publish = await served.execute("budget"), await served.execute("publish", {"text": "old"})
    wrong = {"gateId": "ask", "action": "approve", "data": {"amount": "much"}}
    assert await refused(served, budget, "respond", wrong) == "answer-invalid"
    edit = {"gateId": "review", "action": "edit", "data": {"secret": 1}}
    assert await refused(served, publish, "respond", edit) == "answer-invalid"
    for execution in (budget, publish):
        assert (await served.read(execution))["status"] == "waiting"


SENDS = """\
pointsman: 1
id: sends
config: {humanInLoop: real_time}
input: {type: object, properties: {letter: {type: string}}}
output: {letter: letter}
nodes:
  - id: review
    type: human
    config: {message: Send it?, show: [letter], editable: [letter], actions: [approve, edit, reject]}
  - {id: done, type: end}
edges:
  - {source: review, target: done, condition: {type: label, label: approve}}
  - {source: review, target: done, condition: {type: label, label: edit}}
"""


@pytest.mark.parametrize("hand", ["fork", "steer"])
async def test_an_answer_to_what_a_gate_does_not_show_any_more_is_a_conflict(served: Served, hand: str) -> None:
    await served.save(SENDS)
    execution = await served.execute("sends", {"letter": "old"})
    (seen,) = (await served.read(execution))["waiting"]
    assert (seen["shown"], seen["values"]) == ({"letter": "old"}, {"letter": "old"})
    (entry,) = (await served.client.get("/api/inbox")).json()["gates"]
    assert entry["digest"] == seen["digest"]
    if hand == "fork":
        made = await served.act(execution, "fork", {"at": 1, "set": {"letter": "new"}}, expect=202)
        execution = made["executionId"]
    else:
        await served.act(execution, "steer", {"set": {"letter": "new"}})
    answer = {"gateId": "review", "action": "approve", "digest": seen["digest"]}
    assert await refused(served, execution, "respond", answer) == "gate-changed"
    empty = await served.client.post(f"/api/workflows/executions/{execution}/respond", json={**answer, "digest": ""})
    assert empty.status_code == 422, "an empty digest is no permission to approve unseen data"
    (now,) = (await served.read(execution))["waiting"]
    assert (now["shown"], now["values"]) == ({"letter": "new"}, {"letter": "new"})
    listed = (await served.client.get("/api/inbox")).json()["gates"]
    assert now["digest"] in [one["digest"] for one in listed]
    for wrong in ({"reprt": "x"}, None, {}):
        edit = {"gateId": "review", "action": "edit", "data": wrong, "digest": now["digest"]}
        assert await refused(served, execution, "respond", edit) == "answer-invalid"
    assert await refused(served, execution, "respond", {**answer, "actoin": "approve"}) == "request-invalid"
    done = await served.act(execution, "respond", {**answer, "digest": now["digest"]})
    assert (done["output"], done["answers"][0]["digest"]) == ({"letter": "new"}, now["digest"])


async def test_a_vote_for_different_data_is_refused_with_the_reason() -> None:
    async with serving(is_local=False) as served:
        ada, ben = await served.key("ada", "editor"), await served.key("ben", "operator")
        assert (await served.client.post("/api/workflows", content=TWO_OF_THREE, headers=ada)).status_code == 201
        body = {"input": {"text": "old"}, "wait": True}
        started = (await served.client.post("/api/workflows/publish/execute", json=body, headers=ada)).json()
        address = f"/api/workflows/executions/{started['executionId']}/respond"
        mine = {"gateId": "review", "action": "edit", "data": {"text": "new"}}
        assert (await served.client.post(address, json=mine, headers=ada)).status_code == 200
        other = {**mine, "data": {"text": "else"}}
        assert await refused(served, started["executionId"], "respond", other, **ben) == "votes-differ"
        assert (await served.client.post(address, json=mine, headers=ben)).json()["output"] == {"text": "new"}


async def test_an_answer_to_two_gates_of_one_name_is_refused_as_ambiguous(served: Served) -> None:
    await served.save(TWO_OF_THREE.replace("approvers: {users: [ada, ben, cleo], quorum: 2}", "show: [text]"))
    await served.save(EACH)
    execution = await served.execute("many", {"texts": ["a", "b"]})
    answer = {"gateId": "gate-review", "action": "approve"}
    assert await refused(served, execution, "respond", answer) == "gate-ambiguous"
    assert await refused(served, execution, "delegate", {"gateId": "gate-review", "to": "ben"}) == "gate-ambiguous"
    assert len((await served.client.get("/api/inbox")).json()["gates"]) == 2


async def test_an_ended_conversation_accepts_no_messages(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/talk.db", script=read_script(ENDING)) as served:
        await served.save(TALK.replace('prompt: "You are brief."', ""))
        execution = await served.execute("talk", {"message": "bye"}, sessionId="s")
        assert await refused(served, execution, "messages", {"message": "One more?"}) == "session-closed"
    async with serving(f"sqlite:///{tmp_path}/talk.db", script=read_script(ENDING)) as served:
        body = {"input": {"message": "Again"}, "sessionId": "s"}
        reply = await served.client.post("/api/workflows/talk/execute", json=body)
        assert (reply.status_code, reply.json()["code"]) == (409, "session-closed")


async def test_a_workflow_with_a_concurrency_limit_of_one_refuses_a_second_start(served: Served) -> None:
    await served.save(LETTER + "concurrency: {max: 1, policy: skip}\n")
    first = await served.execute("letter", {"goal": "tides"})
    reply = await served.client.post("/api/workflows/letter/execute", json={"input": {"goal": "tides"}})
    assert (reply.status_code, reply.json()["code"]) == (409, "concurrency-limit-reached")
    assert reply.json()["detail"].startswith("'letter' has reached its limit")
    assert first not in reply.text, "who may start it need not see what others began"
    assert "`GET /api/workflows/executions` shows running ones" in reply.json()["hint"]


async def test_a_process_resumes_only_executions_of_its_own_script(file_store: str) -> None:
    begun: list[str] = []
    for said in ("one", "two"):
        script = read_script(f"rules:\n  - {{text: {said}}}\n")
        async with Pointsman(file_store, settings=QUIET, model="scripted", script=script) as app:
            execution = await app.start(Workflow.parse(LETTER), {"goal": "tides"})
            await execution.settled()
            begun.append(execution.id)
    async with serving(file_store) as served:
        first = await served.act(begun[0], "respond", {"gateId": "review", "action": "approve"})
        assert first["output"] == {"letter": "one"}
        answer = {"gateId": "review", "action": "approve"}
        assert await refused(served, begun[1], "respond", answer) == "script-differs"
        assert (await served.read(begun[1]))["status"] == "waiting"


async def test_a_full_store_refuses_writes_and_allows_reads(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        done = await served.execute("chain")
        writing = cast("SqliteStore", served.app.store).journal._writer._connection  # pyright: ignore[reportPrivateUsage] - the fault comes from inside
        writing.execute("PRAGMA max_page_count = 1").fetchall()  # Exactly the present number of pages.
        large = {"text": Random(1).randbytes(500_000).hex()}  # It does not compress.
        reply = await served.client.post("/api/workflows/chain/execute", json={"input": large})
        assert (reply.status_code, reply.json()["code"]) == (507, "store-full"), reply.text
        assert (await served.read(done))["status"] == "completed"
        writing.execute("PRAGMA max_page_count = 1000000").fetchall()
        assert await served.execute("chain", large)


@pytest.mark.parametrize("verb", ["replay", "move", "delegate", "respond", "steer"])
async def test_verbs_on_missing_objects_are_not_found(served: Served, verb: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "move": {"to": "chain"},
        "delegate": {"gateId": "a", "to": "ben"},
        "respond": {"gateId": "a", "action": "b"},
    }
    assert await refused(served, "exec-none", verb, bodies.get(verb, {})) == "unknown-execution"
