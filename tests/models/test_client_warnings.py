"""Warnings of providers' clients are warnings of the reply, and not lines on standard error."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.test import TestModel

from pointsman.models import exchange as exchanges
from pointsman.models.client_warnings import gathering_warnings
from pointsman.ports import ModelRequest


@pytest.mark.filterwarnings("default")
async def test_an_ignored_model_setting_is_a_warning_in_every_reply(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def answer(*_: object, **__: object) -> ModelResponse:
        # Like `pydantic_ai.models.bedrock`.
        warnings.warn_explicit("temperature is ignored", UserWarning, "bedrock.py", 1, module="pydantic_ai.direct")
        return ModelResponse([TextPart("fine")])

    monkeypatch.setattr(exchanges, "model_request", answer)
    for _ in range(2):
        reply = await exchanges.exchange(TestModel(), ModelRequest(model="m", messages=()), on_text=None)
        assert (reply.text, reply.warnings) == ("fine", ("temperature is ignored",))
    assert capsys.readouterr().err == ""


@pytest.mark.filterwarnings("default")
async def test_concurrent_calls_collect_their_own_warnings() -> None:
    async def call(text: str) -> list[str]:
        with gathering_warnings() as told:
            await asyncio.sleep(0)
            warnings.warn_explicit(text, UserWarning, "bedrock.py", 1, module="pydantic_ai.direct")
            await asyncio.sleep(0)
        return told

    assert await asyncio.gather(call("one"), call("two")) == [["one"], ["two"]]
    with pytest.warns(UserWarning, match="elsewhere"):
        warnings.warn("elsewhere", UserWarning, stacklevel=1)
