"""Trial of a tool: one call with a person's arguments, outside of an execution."""

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
    """No tool has this name."""

    code: ClassVar[str] = "no-such-tool"


class ToolNotTried(CallerError):
    """The tool cannot be called outside of an execution."""

    code: ClassVar[str] = "tool-not-tried"


def unknown_tool(name: str) -> UnknownTool:
    return UnknownTool(f"there is no tool {name!r}", hint="GET /api/tools lists them.")


async def try_tool(app: AppContext, name: str, arguments: JsonObject) -> JsonObject:
    """Call a tool and return `{ok, result, failure}`. A failure of the tool is returned, not raised.

    Raises `UnknownTool`, and `ToolNotTried` for a tool that needs approval, runs at the client, or is off.
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
