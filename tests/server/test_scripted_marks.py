"""Every interface of the server marks what the scripted model answers."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from pointsman.settings import Settings
from tests.mcp.conftest import at_prompt, call
from tests.server.conftest import serving
from tests.server.test_openai import TALK, talking, user

SAYS = "pointsman: 1\nid: says\nnodes:\n  - {id: n, type: agent, config: {prompt: Hi.}}\n"
SETS = "pointsman: 1\nid: sets\nnodes:\n  - {id: t, type: transform, config: {set: {x: '1'}}}\n"
FIXED = """\
pointsman: 1
id: talk
input: {type: object, required: [text], properties: {text: {type: string}}}
nodes:
  - {id: t, type: transform, config: {set: {x: "'fixed'"}}}
output: x
"""
ASKS = """\
pointsman: 1
id: asks
nodes:
  - {id: n, type: agent, config: {prompt: Hi.}}
  - {id: g, type: human, config: {message: Go on?}}
edges: [{source: n, target: g}]
"""


@pytest.mark.parametrize(("document", "scripted"), [(SAYS, True), (SETS, False)])
async def test_the_api_marks_starts_executions_and_lists(document: str, scripted: bool) -> None:
    codes = ["scripted-answers"] if scripted else []
    async with serving() as served:
        name = await served.save(document)
        started = (await served.client.post(f"/api/workflows/{name}/execute", json={"input": {}})).json()
        assert (started["scripted"], [one["code"] for one in started["warnings"]]) == (scripted, codes)
        view = await served.ended(started["executionId"])
        assert (view["scripted"], [one["code"] for one in view["warnings"]]) == (scripted, codes)
        listed = (await served.client.get("/api/workflows/executions")).json()["executions"]
        assert [one["scripted"] for one in listed] == [scripted]


async def test_the_inbox_marks_gates() -> None:
    async with serving() as served:
        await served.execute(await served.save(ASKS))
        gates = (await served.client.get("/api/inbox")).json()["gates"]
        assert [one["scripted"] for one in gates] == [True]


async def test_chat_completions_and_responses_are_marked() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        whole = await client.chat.completions.create(model="talk", messages=[user("Hello")])
        assert whole.system_fingerprint == "scripted"
        assert whole.model_dump()["scripted"] is True
        stream = await client.chat.completions.create(model="talk", messages=[user("Hello")], stream=True)
        assert {chunk.system_fingerprint async for chunk in stream} == {"scripted"}
        response = await client.responses.create(model="talk", input="Hello")
        assert response.model_dump()["scripted"] is True


async def test_a_dialogue_without_the_scripted_model_has_no_mark() -> None:
    async with talking() as (served, client):
        await served.save(FIXED)
        whole = await client.chat.completions.create(model="talk", messages=[user("Hello")])
        assert "scripted" not in whole.model_dump(exclude_unset=True)


async def test_the_pipeline_marks_its_output_with_a_header() -> None:
    settings = Settings.model_validate({"delays": False, "pipeline": "says"})
    async with serving(settings=settings) as served:
        await served.save(SAYS.replace("id: says\n", "id: says\ninput: {type: object}\n"))
        reply = await served.client.post("/run", json={"goal": "tides"})
        assert reply.status_code == 200, reply.text
        assert reply.headers["pointsman-scripted"] == "true"


async def test_results_of_mcp_tools_are_marked(tmp_path: Path) -> None:
    async with at_prompt(f"sqlite:///{tmp_path}/store.db") as client:
        await call(client, "save_workflow", document=SAYS)
        told = await call(client, "workflow__says")
        assert told["scripted"] is True


async def test_a_model_that_cannot_be_called_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interface answers with the scripted model instead."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    real = "{system: You are brief., model: 'anthropic:claude-sonnet-4-5'}"
    async with serving(model=None) as served:
        await served.save(TALK.replace('{system: "You are brief."}', real))
        client = openai.AsyncOpenAI(
            base_url=f"{str(served.client.base_url).rstrip('/')}/v1", api_key="any", max_retries=0
        )
        async with client:
            with pytest.raises(openai.APIStatusError, match="ANTHROPIC_API_KEY") as refused:
                await client.chat.completions.create(model="talk", messages=[user("Hello")])
            assert refused.value.code == "model-unusable"
        reply = await served.client.post("/api/workflows/talk/execute", json={"input": {"message": "Hello"}})
        assert (reply.status_code, reply.json()["code"]) == (503, "model-unusable")
        assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []
