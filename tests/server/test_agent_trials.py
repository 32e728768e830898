"""Trials of agents, saved and unsaved, which appear in no list."""

from __future__ import annotations

import json
from typing import Any

from pointsman import tool
from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, TALK

SCRIPT = """
rules:
  - {contains: sent to Ada, text: It is on its way.}
  - {contains: Send it, toolCalls: [{name: post_letter, arguments: {to: Ada}}]}
  - {contains: fail, fail: 400}
  - {contains: Hello, text: Good morning.}
"""
WRITER = {"system": "You write letters.", "tools": ["post_letter"]}


@tool(requires_approval=True)
async def post_letter(to: str) -> str:
    """Post a letter."""
    return f"sent to {to}"


def script() -> Any:
    return parse_script(SCRIPT)


async def say(
    served: Served, message: str, *, agent: str = "writer", description: Any = None, expect: int = 202, **more: Any
) -> Any:
    body = {"message": message, "agent": description, **more}
    reply = await served.client.post(f"/api/agents/{agent}/try", json=body)
    assert reply.status_code == expect, reply.text
    said = reply.json()
    if expect == 202:
        await (await served.app.open(said["executionId"])).settled()
    return said


async def keep(served: Served, description: dict[str, Any]) -> None:
    reply = await served.client.post("/api/agents", json={"name": "writer", "agent": description})
    assert reply.status_code == 201, reply.text


async def test_an_agent_is_tried_turn_by_turn_even_after_a_restart(file_store: str) -> None:
    async with serving(file_store, script=script()) as served:
        await keep(served, {"system": "You are kind."})
        first = await say(served, "Hello")
        assert (first["executionId"][:4], first["sessionId"][:4]) == ("try-", "try-")
    async with serving(file_store, script=script()) as served:
        await say(served, "Hello again", sessionId=first["sessionId"])
        talked = (await served.client.get(f"/api/sessions/{first['sessionId']}")).json()
        assert [one["content"] for one in talked["messages"]] == [
            "Hello",
            "Good morning.",
            "Hello again",
            "Good morning.",
        ]


async def test_a_trial_uses_the_unsaved_agent_and_saves_nothing(served: Served) -> None:
    await keep(served, {"system": "You are old."})
    for agent, shown in (("writer", "You are new."), ("fresh", "Nobody saved you.")):
        said = await say(served, "Hello", agent=agent, description={"system": shown})
        ran = f"/api/workflows/executions/{said['executionId']}/workflow"
        document = (await served.client.get(ran)).json()["document"]
        assert document["agents"][agent]["system"] == shown
    (left,) = (await served.client.get("/api/agents")).json()["agents"]
    assert (left["name"], left["revision"]) == ("writer", 1)
    assert all(one.id.startswith("builtin:") for one in await served.app.workflows())


async def test_trials_of_agents_are_not_listed_among_executions_or_conversations(served: Served) -> None:
    await served.save(TALK)
    await keep(served, {"system": "You are kind."})
    trial = (await say(served, "Hello"))["executionId"]
    real = await served.execute("talk", {"message": "Hello"}, sessionId="real")
    listed = (await served.client.get("/api/workflows/executions")).json()["executions"]
    assert [one["executionId"] for one in listed] == [real]
    for query in ("", "?q=Hello"):
        talks = (await served.client.get(f"/api/sessions{query}")).json()["sessions"]
        assert [one["sessionId"] for one in talks] == ["real"]
    every = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    assert {one["executionId"] for one in every} == {real, trial}


async def test_a_tool_that_needs_approval_needs_it_in_a_trial_too() -> None:
    async with serving(script=script()) as served:
        served.app.tools.add(post_letter)
        await keep(served, WRITER)
        said = await say(served, "Send it")
        view = await served.read(said["executionId"])
        assert view["status"] == "waiting"
        busy = await say(served, "Hello", sessionId=said["sessionId"], expect=409)
        assert busy["code"] == "session-busy"
        await served.act(said["executionId"], "respond", {"gateId": view["waiting"][0]["gateId"], "action": "approve"})
        await (await served.app.open(said["executionId"])).settled()
        talked = (await served.client.get(f"/api/sessions/{said['sessionId']}")).json()
        assert talked["messages"][-1]["content"] == "It is on its way."


async def test_a_failed_turn_leaves_the_conversation_unchanged() -> None:
    async with serving(script=script()) as served:
        await keep(served, {"system": "You are kind."})
        first = await say(served, "fail")
        assert (await served.read(first["executionId"]))["status"] == "failed"
        second = await say(served, "Hello", sessionId=first["sessionId"])
        assert second["executionId"] != first["executionId"]
        talked = (await served.client.get(f"/api/sessions/{first['sessionId']}")).json()
        assert [one["content"] for one in talked["messages"]] == ["Hello", "Good morning."]


async def test_an_impossible_trial_is_refused_before_it_starts(served: Served) -> None:
    await keep(served, {"system": "You are kind."})
    unknown = await say(served, "Hello", agent="nobody", expect=404)
    assert unknown["code"] == "no-such-agent"
    unreadable = await say(served, "Hello", description={"tools": 7}, expect=422)
    assert (unreadable["code"], unreadable["problems"][0]["pointer"]) == ("workflow-invalid", "/tools")
    unnamed = await say(served, "Hello", agent="a b", description={"system": "x"}, expect=400)
    assert unnamed["code"] == "agent-invalid"
    mixed = await say(served, "Hello", sessionId="real", expect=422)
    assert mixed["code"] == "input-invalid"
    every = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    assert every == []


async def test_a_trial_is_continued_only_by_its_owner_and_calls_only_visible_workflows(served: Served) -> None:
    await keep(served, {"system": "You are kind."})
    ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
    said = await served.client.post("/api/agents/writer/try", json={"message": "Hello"}, headers=ada)
    await (await served.app.open(said.json()["executionId"])).settled()
    again = {"message": "Hello", "sessionId": said.json()["sessionId"]}
    assert (await served.client.post("/api/agents/writer/try", json=again, headers=bob)).status_code == 403
    failures: list[Any] = []
    for named in ("workflow__secret", "workflow__missing"):
        script = parse_script(json.dumps({"rules": [{"node": "agent", "call": 1, "toolCalls": [{"name": named}]}]}))
        settings = Settings(delays=False)
        async with serving(is_local=False, script=script, settings=settings) as other:
            hers = await other.key("ada", "editor")
            his = await other.key("bob", "editor")
            await other.client.post("/api/workflows", content=CHAIN.replace("id: chain", "id: secret"), headers=hers)
            await other.client.put("/api/workflows/secret/sharing", json={"audience": "private"}, headers=hers)
            calls = {"message": "Hello", "agent": {"tools": [named]}}
            said = await other.client.post("/api/agents/writer/try", json=calls, headers=his)
            assert said.status_code == 202, said.text
            tried = await other.app.open(said.json()["executionId"])
            await tried.settled()
            assert [one.workflow for one in await other.app.executions()] == ["try-writer"]
            failures.append(json.dumps(await tried.view(), default=str).count("tool-not-scripted"))
    assert failures[0] == failures[1], "a hidden tool is one that is not there"
