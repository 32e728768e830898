"""Trying a tool: one call of it, with arguments that a person gives, to see what it answers."""

from __future__ import annotations

import os
from typing import ClassVar

from pointsman.auth.redaction import redactor_for
from pointsman.context import AppContext
from pointsman.engine.reports import ToolCall
from pointsman.errors import CallerError
from pointsman.executors.secrets import masked_failure
from pointsman.redaction import hiding
from pointsman.tools.failures import ToolFailed
from pointsman.values import JsonObject


class UnknownTool(CallerError):
    """There is no tool of that name here."""

    code: ClassVar[str] = "no-such-tool"


class ToolNotTried(CallerError):
    """The tool is not called outside of an execution."""

    code: ClassVar[str] = "tool-not-tried"


def unknown_tool(name: str) -> UnknownTool:
    return UnknownTool(f"there is no tool {name!r}", hint="GET /api/tools lists them.")


async def try_tool(app: AppContext, name: str, arguments: JsonObject) -> JsonObject:
    """`{ok, result}` or `{ok, failure}`: what a tool does wrong is an answer too.

    Raises `UnknownTool`; `ToolNotTried` for one that a person must approve, that runs at the client, or that is off.
    """
    await app.tools.prepare([name])
    spec = app.tools.find(name)
    if spec is None:
        raise unknown_tool(name)
    why = (
        f"it is off: {spec.off}"
        if spec.off
        else "somebody must approve each of its calls"
        if spec.requires_approval
        else "it runs at whoever started the execution"
        if spec.side == "client"
        else ""
    )
    if why:
        raise ToolNotTried(f"{name!r} is not tried: {why}", hint="Call it in a workflow.")
    call = ToolCall(id="1", name=name, arguments=arguments)
    await app.settings.refresh()
    redact = redactor_for(app.settings).redaction
    try:
        with hiding(redact):
            result = await app.tools.call(call, key=f"try-{os.urandom(16).hex()}")
        return {"ok": True, "result": redact.json(result), "failure": None}
    except ToolFailed as failed:
        told = masked_failure(failed.failure, redact)
        failure: JsonObject = {"code": told.code, "message": told.message, "hint": told.hint}
        return {"ok": False, "result": None, "failure": failure}
