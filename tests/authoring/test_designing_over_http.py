"""Design with a provider over HTTP, which sends garbage, errors and refusals before a good answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman
from pointsman.authoring.design import design
from pointsman.models.failures import ModelFailed
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.builtin import IDS
from tests.authoring.test_designing import DANGLING, GOOD

KEY = "canary-key-0123456789"


class Designer:
    """Sends its answers in order; a number is a status."""

    def __init__(self, server: HTTPServer, *answers: str | int) -> None:
        self.asked: list[JsonObject] = []
        self._answers: Iterator[str | int] = iter(answers)
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self._answer)
        address = server.url_for("/v1")
        house = {"kind": "openai-compatible", "base_url": address, "keys": [KEY]}
        self.settings = Settings.model_validate({"model": "house:draftsman-1", "providers": {"house": house}})

    def _answer(self, request: Request) -> Response:
        self.asked.append(json.loads(request.data))
        answer = next(self._answers)
        if isinstance(answer, int):
            refused = {"error": {"message": "not now", "type": "refused"}}
            return Response(json.dumps(refused), answer, {"retry-after": "0"}, content_type="application/json")
        message = {"role": "assistant", "content": answer}
        said = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "draftsman-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        }
        return Response(json.dumps(said), content_type="application/json")


def messages(asked: JsonObject) -> list[tuple[str, str]]:
    told: Json = asked["messages"]
    assert isinstance(told, list)
    return [(str(one["role"]), str(one["content"])) for one in told if isinstance(one, dict)]


@pytest.mark.requirement("S1-139", "S4-35")
async def test_a_provider_with_bad_drafts_and_refusals_receives_the_problems(httpserver: HTTPServer) -> None:
    fenced = f"Here you are:\n```json\n{json.dumps(GOOD)}\n```\nEnjoy!"
    designer = Designer(httpserver, "<html>busy</html>", 429, json.dumps(DANGLING), fenced)
    async with Pointsman("memory:", settings=designer.settings) as app:
        made = await design(app.context, "A note about a topic.")
        assert made.ok
        assert made.made is not None
        assert (await app.save(made.made)).draft.id == "note"
    assert [one.ok for one in made.rounds] == [False, False, True], "a refusal is no round"
    assert {one.model for one in made.rounds} == {"draftsman-1"}, "as the provider calls it"
    assert len(designer.asked) == 4
    assert messages(designer.asked[1]) == messages(designer.asked[2]), "after the refusal the same is asked again"
    *_, drafted, complaint = messages(designer.asked[3])
    assert drafted == ("assistant", json.dumps(DANGLING))
    assert complaint[0] == "user"
    assert "'doen'" in complaint[1]


async def test_a_provider_that_only_refuses_ends_the_design_without_leaking_its_key(httpserver: HTTPServer) -> None:
    designer = Designer(httpserver, json.dumps(DANGLING), 401)
    async with Pointsman("memory:", settings=designer.settings) as app:
        with pytest.raises(ModelFailed) as failed:
            await design(app.context, "A note.")
        assert {one.id for one in await app.workflows()} <= {*IDS}
    assert failed.value.failure.code == "model-unauthorized"
    assert KEY not in f"{failed.value} {failed.value.hint}"
