"""The Responses API of OpenAI, tested with the official client."""

from __future__ import annotations

import json
from typing import Any, cast

import openai
import pytest
from openai.types.responses import Response

from tests.server.conftest import Served
from tests.server.flows import LETTER, SHOWN
from tests.server.test_openai import GREETING, GUIDE, LOCATES, TALK, talking


def result(call_id: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


async def ask(client: openai.AsyncOpenAI, *, stream: bool = False, **how: Any) -> Response:
    """Return a response, as a whole or joined from its events."""
    responses: Any = client.responses
    if not stream:
        return cast("Response", await responses.create(**how))
    async with responses.stream(**how) as events:
        return cast("Response", await events.get_final_response())


async def messages_of(served: Served, response: Response) -> list[tuple[str, str]]:
    """Return the messages of its execution."""
    state = (await served.read(response.id.removeprefix("resp_")))["state"]
    return [(one["role"], one["content"]) for one in state["messages"]]


async def test_a_text_is_answered_with_its_usage() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        said = await ask(
            client, model="talk", input="Hello", instructions="Be a pirate.", temperature=0.2, metadata={"for": "ada"}
        )
        assert (said.output_text, said.status, said.model) == (GREETING, "completed", "talk")
        assert (said.instructions, said.metadata, said.error) == ("Be a pirate.", {"for": "ada"}, None)
        assert said.usage is not None
        assert said.usage.total_tokens == said.usage.input_tokens + said.usage.output_tokens > 0
        assert [one.type for one in said.output] == ["reasoning", "message"]
        assert await messages_of(served, said) == [("user", "Hello"), ("assistant", GREETING)], "it has its own prompts"


async def test_a_stream_sends_numbered_events_that_add_up_to_the_response() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        whole = await ask(client, model="talk", input="Hello")
        async with client.responses.stream(model="talk", input="Hello") as stream:
            events = [event async for event in stream]
            final = await stream.get_final_response()
        assert [event.sequence_number for event in events] == [*range(len(events))]
        kinds = [event.type for event in events]
        assert (kinds[:2], kinds[-1]) == (["response.created", "response.in_progress"], "response.completed")
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(deltas) == GREETING == final.output_text
        assert len(deltas) > 1, "it comes as it is said"
        assert [one.type for one in final.output] == [one.type for one in whole.output]
        assert final.usage == whole.usage
        added = [event.item.id for event in events if event.type == "response.output_item.added"]
        done = [event.item.id for event in events if event.type == "response.output_item.done"]
        assert added == done == [one["id"] for one in final.model_dump()["output"]]
        assert len({*added}) == len(added) == 2


async def test_a_response_is_continued_even_after_a_restart_and_can_branch(file_store: str) -> None:
    async with talking(file_store) as (served, client):
        await served.save(TALK)
        first = await ask(client, model="talk", input="Hello")
    async with talking(file_store) as (served, client):
        heard = [("user", "Hello"), ("assistant", GREETING)]
        second = await ask(client, model="talk", input="And now?", previous_response_id=first.id)
        assert (second.output_text, second.previous_response_id) == ("Then we wait.", first.id)
        now = [("user", "And now?"), ("assistant", "Then we wait.")]
        assert await messages_of(served, second) == heard + now
        other = await ask(client, model="talk", input="Hello again", previous_response_id=first.id)
        assert (await messages_of(served, other))[:3] == [*heard, ("user", "Hello again")]
        third = await ask(client, model="talk", input="And now?", previous_response_id=second.id)
        assert await messages_of(served, third) == heard + now + now


async def test_without_a_previous_response_the_items_are_the_conversation() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        first = await ask(client, model="talk", input="Hello")
        items: list[Any] = [{"role": "developer", "content": "Be a pirate."}, {"role": "user", "content": "Hello"}]
        items += [one.model_dump(exclude_none=True) for one in first.output]
        items.append({"role": "user", "content": [{"type": "input_text", "text": "And now?"}]})
        said = await ask(client, model="talk", input=items)
        assert said.output_text == "Then we wait."
        assert (await messages_of(served, said))[:3] == [
            ("user", "Hello"),
            ("assistant", GREETING),
            ("user", "And now?"),
        ]


@pytest.mark.parametrize(
    "named", [{"conversation": "s1"}, {"conversation": {"id": "s1"}}, {"metadata": {"session_id": "s1"}}]
)
async def test_a_named_conversation_is_stored_under_its_name(named: dict[str, Any]) -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        for text in ("Hello", "And now?"):
            said = await ask(client, model="talk", input=text, **named)
            assert said.conversation is not None
            assert said.conversation.id == "s1"
        kept = (await served.app.storage.conversation("s1")).messages
        assert [one["content"] for one in kept if isinstance(one, dict) and one["role"] == "user"] == [
            "Hello",
            "And now?",
        ]
        with pytest.raises(openai.BadRequestError, match="different conversations"):
            await ask(client, model="talk", input="x", previous_response_id=said.id, **named)


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_gate_is_a_question_that_the_next_input_answers_even_after_a_restart(
    file_store: str, by_id: bool
) -> None:
    script = "rules:\n  - {text: Dear Ada}\n"

    def next_to(asked: Response, text: str) -> dict[str, Any]:
        if by_id:
            return {"input": text, "previous_response_id": asked.id}
        told = [one.model_dump(exclude_none=True) for one in asked.output]
        return {"input": [*told, {"role": "user", "content": text}]}

    async with talking(file_store, script=script) as (served, client):
        await served.save(LETTER)
        asked = await ask(client, model="letter", input="tides")
        assert asked.output_text.startswith("Send it?")
        again = await ask(client, model="letter", **next_to(asked, "well"))
        assert "'well' is not a valid answer" in again.output_text
        assert again.id == asked.id
    async with talking(file_store, script=script) as (served, client):
        done = await ask(client, model="letter", **next_to(again, "Approve: fine by me"))
        assert json.loads(done.output_text) == {"letter": "Dear Ada"}
        view = await served.read(done.id.removeprefix("resp_"))
        assert (view["status"], view["answers"][0]["comment"]) == ("completed", "fine by me")
        assert len((await served.client.get("/api/workflows/executions")).json()["executions"]) == 1


async def test_an_answer_without_a_digest_is_refused_after_the_gate_has_changed() -> None:
    async with talking() as (served, client):
        await served.save(SHOWN)
        asked = await ask(client, model="shown", input="Dear Ada")
        execution = f"/api/workflows/executions/{asked.id.removeprefix('resp_')}"
        steered = await served.client.post(f"{execution}/steer", json={"set": {"letter": "Dear Eve"}})
        assert steered.status_code == 200, steered.text
        again = await ask(client, model="shown", input="approve", previous_response_id=asked.id)
        assert again.output_text.startswith("The gate has changed since it was read.")
        assert "Send Dear Eve?" in again.output_text
        digest = (await served.client.get(execution)).json()["waiting"][0]["digest"]
        for wrong in ('{"action": "approve", "digest": "00000000"}', '{"action": "approve", "action": "edit"}'):
            await ask(client, model="shown", input=wrong, previous_response_id=asked.id)
        assert (await served.client.get(execution)).json()["status"] == "waiting"
        said = json.dumps({"action": "approve", "digest": digest[:8]})
        done = await ask(client, model="shown", input=said, previous_response_id=asked.id)
        assert json.loads(done.output_text) == {"letter": "Dear Eve"}


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("approve: fine by me", "fine by me"),
        ("Approve – fine", "fine"),
        ("approve\n\nfine", "fine"),
        ("approve, fine.", "fine."),
        ("approve!", ""),
        ("approve nothing of this", None),
        ("approve it", None),
        ("approved", None),
        ("approve? No.", None),
    ],
)
async def test_a_comment_needs_a_separator_so_that_a_sentence_is_not_an_answer(text: str, comment: str | None) -> None:
    async with talking() as (served, client):
        await served.save(SHOWN)
        asked = await ask(client, model="shown", input="Dear Ada")
        await ask(client, model="shown", input=text, previous_response_id=asked.id)
        view = await served.read(asked.id.removeprefix("resp_"))
        answers = [one["comment"] for one in view["answers"]]
        assert answers == ([] if comment is None else [comment])


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_client_tools_are_items_and_their_outputs_continue_the_turn(
    file_store: str, stream: bool
) -> None:
    async with talking(file_store, script=LOCATES) as (served, client):
        await served.save(GUIDE)
        asked = await ask(client, stream=stream, model="guide", input="Where am I?")
        calls = [one for one in asked.output if one.type == "function_call"]
        assert [(one.name, json.loads(one.arguments)) for one in calls] == [
            ("locate", {"precise": True}),
            ("locate", {"precise": False}),
        ]
        assert not asked.output_text
        with pytest.raises(openai.UnprocessableEntityError, match="each call needs a result"):
            await ask(client, model="guide", input=[result(calls[0].call_id, "Norway")], previous_response_id=asked.id)
    async with talking(file_store, script=LOCATES) as (served, client):
        results: Any = [result(calls[0].call_id, "Norway"), result(calls[1].call_id, '{"city": "Bergen"}')]
        for _ in range(2):
            done = await ask(client, stream=stream, model="guide", input=results, previous_response_id=asked.id)
            assert done.output_text == "In Bergen."
        assert len((await served.client.get("/api/workflows/executions")).json()["executions"]) == 1


async def test_errors_have_the_openai_format_and_a_failed_request_is_not_repeated() -> None:
    async with talking(script="rules:\n  - {fail: {status: 400, message: broken}}\n") as (served, client):
        await served.save(TALK)
        with pytest.raises(openai.NotFoundError, match="nope"):
            await ask(client, model="nope", input="Hello")
        wrong: list[Any] = [
            [],
            [{"role": "assistant", "content": "Hello"}],
            [{"type": "item_reference", "id": "msg_1"}],
            [result("x~1", "Norway")],
            [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}],
            [{"type": 7}],
        ]
        for items in wrong:
            with pytest.raises(openai.BadRequestError) as invalid:
                await ask(client, model="talk", input=items)
            assert invalid.value.code == "messages-invalid"
        for previous in ("chatcmpl-1", "resp_../x"):
            with pytest.raises(openai.BadRequestError, match="made no response"):
                await ask(client, model="talk", input="Hello", previous_response_id=previous)
        with pytest.raises(openai.NotFoundError) as unknown:
            await ask(client, model="talk", input="Hello", previous_response_id="resp_exec-none")
        assert unknown.value.code == "unknown-execution"
        with pytest.raises(openai.APIStatusError) as failed:
            await ask(client, model="talk", input="Hello")
        assert (failed.value.status_code, failed.value.code) == (502, "answer-failed")
        events = [event async for event in await client.responses.create(model="talk", input="Hello", stream=True)]
        last = events[-1]
        assert last.type == "response.failed"
        assert last.response.error is not None
        assert "broken" in last.response.error.message
        with pytest.raises(openai.BadRequestError, match="is failed"):
            await ask(client, model="talk", input="Hello", previous_response_id=last.response.id)
        ran = (await served.client.get("/api/workflows/executions")).json()["executions"]
        assert [one["status"] for one in ran] == ["failed", "failed"]


UNREADABLE = (
    r'"instructions": "\ud800"',
    r'"instructions": "\ud800", "stream": true',
    r'"metadata": {"\ud800": "x"}',
    r'"metadata": {"x": "\ud800"}',
    r'"metadata": {"x": 7}',
    r'"previous_response_id": "\ud800"',
    r'"conversation": "\ud800"',
    r'"input": "\ud800"',
    r'"input": 7',
    r'"input": [{"role": "user", "content": 7}]',
    r'"input": [{"type": ["x"]}]',
)


async def test_unsupported_input_is_refused_before_anything_runs() -> None:
    async with talking() as (served, _):
        await served.save(TALK)
        headers = {"content-type": "application/json"}
        for more in UNREADABLE:
            body = f'{{"model": "talk", "input": "Hello", {more}}}'
            reply = await served.client.post("/v1/responses", content=body, headers=headers)
            assert reply.status_code in (400, 422), more
            assert reply.json()["error"]["type"] == "invalid_request_error"
        assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_a_response_of_another_user_cannot_be_continued_and_the_refusal_is_audited() -> None:
    async with talking(is_local=False) as (served, client):
        admin = await served.key("root", "admin")
        assert (await served.client.post("/api/workflows", content=TALK, headers=admin)).status_code == 201
        root, bob, eve = (
            client.with_options(api_key=key["authorization"].removeprefix("Bearer "))
            for key in (admin, await served.key("bob", "operator"), await served.key("eve", "viewer"))
        )
        first = await ask(root, model="talk", input="Hello")
        with pytest.raises(openai.NotFoundError):
            await ask(bob, model="talk", input="And now?", previous_response_id=first.id)
        with pytest.raises(openai.PermissionDeniedError):
            await ask(eve, model="talk", input="Hello")
        with pytest.raises(openai.AuthenticationError):
            await ask(client, model="talk", input="Hello")
        entries = (await served.client.get("/api/audit", headers=admin)).json()["entries"]
        assert [(one["who"], one["what"], one["refused"]) for one in entries[:3]] == [
            ("", "failed login", "not-signed-in"),
            ("eve", "POST /v1/responses", "not-allowed"),
            ("bob", "POST /v1/responses", "unknown-execution"),
        ]
