"""Calls of models with the real client: key fail-over, retries, fallback models, and error messages."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise

import httpx2
import pytest

from pointsman.models.failures import ModelFailed
from pointsman.models.key_pool import PATIENCE_S, Pacing
from pointsman.models.provider import Provider
from pointsman.models.script import read_script
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject

OK: JsonObject = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "small-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}


def refused(status: int, **headers: str) -> httpx2.Response:
    return httpx2.Response(status, headers=headers, json={"error": {"message": "no"}})


@dataclass(slots=True)
class Service(httpx2.AsyncBaseTransport):
    """Answers by key and number of the call; records the time and key of each call."""

    answer: Callable[[str, int], httpx2.Response | None]
    heard: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    temperatures: list[float | None] = field(default_factory=list[float | None])

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        key = request.headers["authorization"].removeprefix("Bearer ")
        self.temperatures.append(json.loads(request.content).get("temperature"))
        self.heard.append((asyncio.get_running_loop().time(), key))
        return self.answer(key, len(self.heard)) or httpx2.Response(200, json=OK)

    @property
    def keys(self) -> list[str]:
        return [key for _, key in self.heard]


def house(service: Service, *, pacing: Pacing | None = None, retries: int = 1) -> Provider:
    keys = ("first", "second", "third")
    return Provider(
        base_url="http://house.test/v1", keys=keys, http=service, pacing=pacing or Pacing(), retries=retries
    )


def ask(
    service: Service, *, pacing: Pacing | None = None, retries: int = 1, index: int | None = None, times: int = 1
) -> list[ModelReply]:
    """Call in virtual time, one after the other."""

    async def story() -> list[ModelReply]:
        models = PydanticModels(providers={"house": house(service, pacing=pacing, retries=retries)})
        asked = ModelRequest(model="house:small", messages=[user_message("hello")], key_index=index)
        try:
            return [await models.ask(asked) for _ in range(times)]
        finally:
            await models.close()

    return run_virtually(story())


@pytest.mark.requirement("S2-56")
def test_a_rate_limited_call_waits_two_intervals_and_is_retried_once_with_its_key() -> None:
    service = Service(lambda _, asked: refused(429) if asked == 1 else None)
    (reply,) = ask(service, pacing=Pacing(interval_s=0.4), index=1)
    assert (reply.text, reply.key, service.keys) == ("fine", 1, ["second", "second"])
    assert service.heard[1][0] - service.heard[0][0] == pytest.approx(0.8, abs=0.01)


@pytest.mark.requirement("S2-56")
def test_a_call_that_is_limited_again_fails_as_retryable() -> None:
    service = Service(lambda _key, _asked: refused(429))
    with pytest.raises(ModelFailed) as caught:
        ask(service, pacing=Pacing(interval_s=0.4), index=1)
    failure = caught.value.failure
    assert (failure.code, failure.retryable, service.keys) == ("model-rate-limited", True, ["second", "second"])
    assert failure.hint


def test_a_limited_key_rests_as_long_as_the_provider_requests() -> None:
    service = Service(lambda _, asked: refused(429, **{"retry-after": "12"}) if asked == 1 else None)
    ask(service, index=0)
    assert service.heard[1][0] - service.heard[0][0] == pytest.approx(12, abs=0.01)


def test_a_call_without_a_fixed_key_uses_another_key_immediately() -> None:
    service = Service(lambda key, _: refused(429, **{"retry-after": "12"}) if key == "first" else None)
    replies = ask(service, retries=0, times=3)
    assert service.keys == ["first", "second", "third", "second"]
    assert service.heard[1][0] - service.heard[0][0] < 0.01
    assert [reply.key for reply in replies] == [1, 2, 1]


def test_a_limit_over_the_maximum_wait_moves_fixed_calls_to_the_next_key() -> None:
    service = Service(lambda key, _: refused(429, **{"retry-after": "3600"}) if key == "second" else None)
    replies = ask(service, retries=0, index=1, times=2)
    assert service.keys == ["second", "third", "third"]
    assert replies[1].warnings == ("key 1 of 'house' is not available now: key 2 was used",)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_skipped_and_others_are_used(status: int) -> None:
    service = Service(lambda key, _: refused(status) if key == "first" else None)
    replies = ask(service, retries=0, index=0, times=3)
    assert service.keys == ["first", "second", "second", "second"]
    assert [reply.key for reply in replies] == [1, 1, 1]
    assert replies[0].warnings == (
        "the provider refuses key 0 of 'house' (model-unauthorized)",
        "key 0 of 'house' is not available now: key 1 was used",
    )
    assert replies[1].warnings == ("key 0 of 'house' is not available now: key 1 was used",)


def test_every_refused_key_is_tried_only_once() -> None:
    service = Service(lambda _key, _asked: refused(401))
    for _ in range(2):
        with pytest.raises(ModelFailed) as caught:
            ask(service)
        assert (caught.value.failure.code, caught.value.failure.retryable) == ("model-unauthorized", False)
    assert service.keys == ["first", "second", "third"] * 2, "each installation finds out for itself"


@pytest.mark.requirement("S2-57")
def test_a_failing_service_is_reported_by_status_and_retried_only_if_allowed() -> None:
    service = Service(lambda _key, _asked: refused(503))
    with pytest.raises(
        ModelFailed, match=r"^LLM service error: 503 from the model 'small' at http://house.test/v1: no$"
    ) as caught:
        ask(service, retries=0)
    assert caught.value.failure.retryable
    assert caught.value.failure.details is not None
    assert caught.value.failure.details["status"] == 503
    assert len(service.heard) == 1


def test_a_recovering_service_is_called_again_after_a_pause() -> None:
    service = Service(lambda _, asked: refused(500) if asked == 1 else None)
    (reply,) = ask(service, retries=1)
    assert reply.text == "fine"
    assert service.heard[1][0] - service.heard[0][0] == pytest.approx(1.0, abs=0.01)


def test_a_requested_wait_over_the_maximum_fails_immediately() -> None:
    service = Service(lambda _key, _asked: refused(503, **{"retry-after": str(int(PATIENCE_S) + 1)}))
    with pytest.raises(ModelFailed) as caught:
        ask(service, retries=3)
    assert (len(service.heard), caught.value.failure.retry_after_s) == (1, PATIENCE_S + 1)


@pytest.mark.parametrize(("status", "code"), [(400, "model-rejected"), (404, "model-not-found")])
def test_a_failure_independent_of_the_key_is_not_retried(status: int, code: str) -> None:
    service = Service(lambda _key, _asked: refused(status))
    with pytest.raises(ModelFailed) as caught:
        ask(service)
    assert (caught.value.failure.code, len(service.heard)) == (code, 1)


@pytest.mark.requirement("S2-69")
def test_two_hundred_concurrent_calls_over_three_keys_are_all_answered_at_their_rate() -> None:
    service = Service(lambda key, asked: refused(429) if key == "second" and asked % 7 == 0 else None)

    async def story() -> list[ModelReply]:
        models = PydanticModels(providers={"house": house(service, pacing=Pacing(interval_s=0.4), retries=10)})
        asked = [
            ModelRequest(model="house:small", messages=[user_message("hello")], key_index=number % 3, timeout_s=30.0)
            for number in range(200)
        ]
        replies = await asyncio.gather(*map(models.ask, asked))
        await models.close()
        return replies

    replies = run_virtually(story())
    assert [reply.text for reply in replies] == ["fine"] * 200
    times = [at for at, _ in service.heard]
    assert min(after - before for before, after in pairwise(times)) >= 0.4 - 1e-6
    assert len(times) > 200, "some were limited and asked again"


def test_waiting_for_a_key_does_not_count_towards_the_timeout() -> None:
    service = Service(lambda _key, _asked: None)

    async def story() -> None:
        models = PydanticModels(providers={"house": house(service, pacing=Pacing(interval_s=20.0))})
        asked = ModelRequest(model="house:small", messages=[user_message("hello")], timeout_s=1.0)
        replies = await asyncio.gather(*(models.ask(asked) for _ in range(4)))
        assert [reply.text for reply in replies] == ["fine"] * 4
        await models.close()

    run_virtually(story())


async def test_the_next_model_answers_if_one_cannot_and_a_warning_is_added() -> None:
    down = Service(lambda _key, _asked: refused(503))
    models = PydanticModels(providers={"house": house(down, retries=0)}, script=read_script("rules: [{text: here}]"))
    asked = ModelRequest(model="house:small", fallback=("house:large", "scripted"), messages=[user_message("hello")])
    reply = await models.ask(asked)
    assert (reply.text, len(down.heard)) == ("here", 2)
    said = "LLM service error: 503 from the model '{}' at http://house.test/v1: no"
    assert reply.warnings == (
        f"'house:small' did not answer (model-unavailable: {said.format('small')}): 'house:large' was used instead",
        f"'house:large' did not answer (model-unavailable: {said.format('large')}): 'scripted' was used instead",
    )
    await models.close()


async def test_if_no_model_answers_the_last_failure_lists_the_earlier_ones() -> None:
    down = Service(lambda _key, _asked: refused(503))
    models = PydanticModels(providers={"house": house(down, retries=0)}, fallback=("nobody:x",))
    with pytest.raises(ModelFailed, match="nobody") as caught:
        await models.ask(ModelRequest(model="house:small", messages=[user_message("hello")]))
    details = caught.value.failure.details
    assert details is not None
    assert "'house:small' did not answer" in str(details["before"])
    await models.close()


async def test_a_refused_request_is_not_sent_to_another_model() -> None:
    message: JsonObject = {"role": "assistant", "content": None}
    choices: list[Json] = [{"index": 0, "message": message, "finish_reason": "content_filter"}]
    picky = Service(lambda _key, _asked: httpx2.Response(200, json={**OK, "choices": choices}))
    models = PydanticModels(providers={"house": house(picky)}, fallback=("scripted",))
    with pytest.raises(ModelFailed) as caught:
        await models.ask(ModelRequest(model="house:small", messages=[user_message("hello")]))
    assert (caught.value.failure.code, len(picky.heard)) == ("model-refused", 1)
    await models.close()


@pytest.mark.requirement("S1-O13")
async def test_a_request_without_a_model_uses_that_of_its_purpose_or_the_default() -> None:
    models = PydanticModels(default="a:default", purposes={"validation": "b:strict"})
    assert models.names_for(ModelRequest(model="c:own", purpose="validation")) == ("c:own",)
    assert models.names_for(ModelRequest(model="", purpose="validation")) == ("b:strict",)
    assert models.names_for(ModelRequest(model="")) == ("a:default",)
    only = PydanticModels(only="scripted", default="a:default", fallback=("d:other",))
    assert only.names_for(ModelRequest(model="c:own")) == ("scripted",)


async def test_a_request_without_a_temperature_uses_that_of_its_purpose() -> None:
    service = Service(lambda _key, _asked: httpx2.Response(200, json=OK))
    models = PydanticModels(providers={"house": house(service)}, temperatures={"validation": 0.2})
    for temperature, purpose in ((None, "validation"), (0.9, "validation"), (None, "generation"), (0.0, "validation")):
        asked = ModelRequest(
            model="house:small", messages=[user_message("hello")], temperature=temperature, purpose=purpose
        )
        await models.ask(asked)
    assert service.temperatures == [0.2, 0.9, None, 0.0]
    await models.close()


async def test_a_call_is_not_retried_after_its_first_token() -> None:
    choices: list[Json] = [{"index": 0, "delta": {"content": "Once"}}]
    words = json.dumps({**OK, "object": "chat.completion.chunk", "choices": choices}).encode()

    class Breaking(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"data: " + words + b"\n\n"
            raise httpx2.ReadError("the line went dead")

    service = Service(
        lambda _key, _asked: httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Breaking())
    )
    models = PydanticModels(providers={"house": house(service, retries=5)}, fallback=("scripted",))
    heard: list[str] = []
    with pytest.raises(ModelFailed) as caught:
        await models.ask(ModelRequest(model="house:small", messages=[user_message("hello")]), on_text=heard.append)
    assert (heard, len(service.heard)) == (["Once"], 1)
    assert caught.value.failure.retryable
    await models.close()


async def test_a_missing_client_is_reported_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "anthropic"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("pydantic_ai.") and name.endswith(".anthropic")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    models = PydanticModels(providers={"anthropic": Provider(kind="anthropic", keys=("a-key",))})
    with pytest.raises(ModelFailed, match="is not installed") as caught:
        await models.ask(ModelRequest(model="anthropic:claude-sonnet-4-5", messages=[user_message("hello")]))
    assert caught.value.failure.hint == "Install it: pip install 'pointsman[anthropic]'."
    await models.close()


@pytest.mark.requirement("S2-74")
async def test_a_key_repeated_by_the_provider_is_masked_in_failures_and_reprs() -> None:
    canary = "canary-0123456789abcdef"
    said = {"error": {"message": f"Bearer {canary} is wrong", "type": canary}}
    echo = Service(lambda _key, _asked: httpx2.Response(401, json=said, headers={"x-request-id": canary}))
    provider = Provider(base_url="http://house.test/v1", keys=(canary,), headers={"x-key": canary}, http=echo)
    models = PydanticModels(providers={"house": provider})
    with pytest.raises(ModelFailed) as caught:
        await models.ask(ModelRequest(model="house:small", messages=[user_message("hello")]))
    assert echo.keys == [canary]
    error: BaseException | None = caught.value
    shown = [repr(provider), repr(models), str(caught.value), repr(caught.value), repr(caught.value.failure)]
    assert error is not None
    assert error.__cause__ is None
    assert canary not in "".join(shown)
    await models.close()
