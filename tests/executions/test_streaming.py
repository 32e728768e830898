"""Streamed text from a provider to subscribers, and streams that are abandoned or break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.models.slow_provider import END, Provider, chunk, provider, words
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.integration

"""Nothing here takes long; a hanging test is ended."""


class RecordedStream:
    """An app with a provider, and the received deltas."""

    def __init__(self, app: Pointsman) -> None:
        self.app = app
        self.deltas: list[JsonObject] = []
        self._more = asyncio.Event()
        app.watch(self._see)

    def _see(self, seen: JsonObject) -> None:
        if seen["kind"] == "delta":
            self.deltas.append(cast("JsonObject", seen["delta"]))
            self._more.set()

    async def heard(self, text: str) -> None:
        """Return when that text was received since the last discarded text."""
        while self.text != text:
            self._more.clear()
            await self._more.wait()

    @property
    def text(self) -> str:
        found = ""
        for delta in self.deltas:
            found = "" if delta["kind"] == "discarded" else found + str(delta.get("text", ""))
        return found

    async def start(self, **node: Json) -> Execution:
        document: JsonObject = {
            "pointsman": 1,
            "id": "w",
            "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Speak.", "model": "own:m"}, **node}],
            "edges": [],
        }
        return await self.app.start(Workflow.of(document), {})


@asynccontextmanager
async def watched(own: Provider, tmp_path: Path) -> AsyncGenerator[RecordedStream]:
    settings = Settings.model_validate(
        {
            "store": f"sqlite:///{tmp_path / 'store.db'}",
            "providers": {"own": {"base_url": own.address, "retries": 0}},
        }
    )
    async with asyncio.timeout(PATIENCE_S), Pointsman(settings=settings) as app:
        yield RecordedStream(app)


async def test_text_is_streamed_as_it_arrives_and_not_stored(tmp_path: Path) -> None:
    async with provider(words("Once", " upon")) as own, watched(own, tmp_path) as seen:
        execution = await seen.start()
        await seen.heard("Once upon")
        assert execution.status == "running"
        own.go_on.set()
        assert await execution.output() == "Once upon and so on"
        rows = [event async for event in execution.journal(follow=False)]
    assert not any("delta" in str(row["kind"]) for row in rows)
    assert not own.left.is_set()


async def test_a_cancel_during_a_stream_closes_the_connection(tmp_path: Path) -> None:
    async with provider(words("Once")) as own, watched(own, tmp_path) as seen:
        execution = await seen.start()
        await seen.heard("Once")
        await execution.cancel()
        await own.left.wait()
        assert await execution.settled() == "cancelled"


async def test_a_stream_over_its_timeout_is_closed_and_fails_as_a_timeout(tmp_path: Path) -> None:
    async with provider(words("Once")) as own, watched(own, tmp_path) as seen:
        execution = await seen.start(execution={"timeout": "300ms"})
        await seen.heard("Once")
        await own.left.wait()
        assert await execution.settled() == "failed"
        (error,) = cast("list[JsonObject]", (await execution.view())["errors"])
        assert error["code"] == "timeout"


async def test_a_pause_lets_a_started_answer_finish(tmp_path: Path) -> None:
    async with provider(words("Once")) as own, watched(own, tmp_path) as seen:
        execution = await seen.start()
        await seen.heard("Once")
        await execution.pause()
        own.go_on.set()
        assert await execution.settled() in ("completed", "paused")
        await execution.resume()
        assert await execution.output() == "Once and so on"
        assert not own.left.is_set()


async def test_closing_the_app_closes_the_connection_and_the_next_app_repeats_the_call(tmp_path: Path) -> None:
    async with provider(words("Once"), [*words("Twice"), *END]) as own:
        async with watched(own, tmp_path) as seen:
            execution = await seen.start()
            await seen.heard("Once")
        await own.left.wait()
        async with watched(own, tmp_path) as again:
            assert await (await again.app.open(execution.id)).output() == "Twice"
    assert len(own.asked) == 2


async def test_a_broken_stream_is_withdrawn_and_retried_by_the_step(tmp_path: Path) -> None:
    broken, whole = words("Once upon"), [*words("There was"), *END]
    async with provider(broken, whole, holds=False) as own, watched(own, tmp_path) as seen:
        execution = await seen.start(execution={"retries": 1, "retryDelay": "1ms"})
        assert await execution.output() == "There was"
        assert [delta["kind"] for delta in seen.deltas] == ["text", "discarded", "text"]
        assert seen.text == "There was"
        rows = [event async for event in execution.journal(follow=False)]
    (failed,) = [row for row in rows if row["kind"] == "step_failed"]
    assert cast("JsonObject", failed["failure"])["code"] == "model-answer-unreadable"


async def test_a_broken_stream_without_retries_is_a_failure_with_a_hint(tmp_path: Path) -> None:
    async with provider(words("Once"), holds=False) as own, watched(own, tmp_path) as seen:
        execution = await seen.start()
        assert await execution.settled() == "failed"
        (error,) = cast("list[JsonObject]", (await execution.view())["errors"])
    assert (error["code"], len(own.asked)) == ("model-answer-unreadable", 1)
    assert error["hint"]


@pytest.mark.parametrize("shown", [True, False])
async def test_reasoning_is_streamed_separately_unless_disabled(shown: bool, tmp_path: Path) -> None:
    thinking = [chunk({"role": "assistant", "reasoning_content": "Let me see."}), *words("Four."), *END]
    async with provider(thinking) as own, watched(own, tmp_path) as seen:
        config: JsonObject = {"prompt": "2+2?", "model": "own:m", "thinking": {"level": "LOW", "thoughts": shown}}
        execution = await seen.start(config=config)
        assert await execution.output() == "Four."
    kinds = [(delta["kind"], delta["text"]) for delta in seen.deltas]
    assert kinds == [("thought", "Let me see.")] * shown + [("text", "Four.")]


async def test_images_and_cached_tokens_are_sent_and_counted(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "total_tokens": 105,
        "prompt_tokens_details": {"cached_tokens": 80},
    }
    last = b'data: {"id":"1","object":"chat.completion.chunk","created":0,"model":"m","choices":[],"usage":%s}\n\n'
    stream = [*words("A cat."), END[0], last % str(usage).replace("'", '"').encode(), END[1]]
    async with provider(stream) as own, watched(own, tmp_path) as seen:
        config: JsonObject = {"prompt": "What is it?", "model": "own:m", "inputFiles": ["picture"]}
        document: JsonObject = {
            "pointsman": 1,
            "id": "w",
            "input": {"type": "object", "properties": {"picture": {"type": "string"}}},
            "nodes": [{"id": "say", "type": "agent", "config": config}],
            "edges": [],
        }
        execution = await seen.app.start(Workflow.of(document), {"picture": "data:image/png;base64,iVBORw0="})
        assert await execution.output() == "A cat."
        view = await execution.view()
    (message,) = cast("list[JsonObject]", own.asked[0]["messages"])
    assert message["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
    ]
    told = cast("JsonObject", view["usage"])
    assert (told["inputTokens"], told["cacheReadTokens"], told["cacheWriteTokens"]) == (100, 80, 0)
