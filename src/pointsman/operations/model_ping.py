"""Ping of one model: a one-word request, and its result as people read it."""

from __future__ import annotations

import asyncio
from typing import Final, NotRequired

from typing_extensions import TypedDict

from pointsman.models.failures import ModelFailed, ModelUnusable
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels, is_scripted
from pointsman.ports import ModelReply, ModelRequest

PING_S: Final = 30.0
_PING: Final = "Answer with OK."


class PingFailure(TypedDict):
    """Why a model did not answer."""

    code: str
    message: str
    hint: str


class ModelPing(TypedDict):
    """The result of a one-word request to a model."""

    name: str
    ok: bool
    scripted: NotRequired[bool]
    """True: the scripted model answered; no provider was called."""
    seconds: NotRequired[float]
    model: NotRequired[str]
    """The model as its provider names it."""
    costUsd: NotRequired[float | None]
    failure: NotRequired[PingFailure]


async def ping_model(models: PydanticModels, name: str, *, embeds: bool = False) -> ModelPing:
    """Send a one-word request to a model, without its fallbacks."""
    loop = asyncio.get_running_loop()
    # No other fallback: only this model may answer.
    request = ModelRequest(
        model=name, fallback=(name,), messages=[user_message(_PING)], purpose="ping", timeout_s=PING_S
    )
    began = loop.time()
    try:
        if embeds:
            await models.embed(name, [_PING], query=True)
            reply = ModelReply(model=name.partition(":")[2])
        else:
            reply = await models.ask(request)
    except ModelFailed as why:
        failure: PingFailure = {"code": why.failure.code, "message": why.failure.message, "hint": why.failure.hint}
        return {"name": name, "ok": False, "failure": failure}
    except ModelUnusable as why:
        return {"name": name, "ok": False, "failure": {"code": why.code, "message": str(why), "hint": why.hint}}
    return {
        "name": name,
        "scripted": is_scripted(name),
        "ok": True,
        "seconds": round(loop.time() - began, 3),
        "model": reply.model,
        "costUsd": reply.usage.cost_usd,
    }
