"""Memory tools of agents: the node determines which memory a call may reach, never the model alone.

node: scopes [session, user] ─▶ offered: `scope` is one of these ─▶ call ─▶ the same command as of a memory node
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.schemas import Checker
from pointsman.values import Json, JsonObject, NodeId

DEFAULT: Final = ("session",)
"""Default scopes of an agent."""

_BELONGS: Final = {
    "execution": "this task alone",
    "session": "this conversation",
    "user": "the person you work for, in all conversations",
    "workflow": "everybody who uses this workflow",
    "shared": "everybody",
}


def offered(tool: ToolSpec, scopes: Sequence[str]) -> ToolSpec:
    """Return the tool for an agent with these scopes: if there are several, `scope` becomes a parameter."""
    if len(scopes) == 1:
        return tool
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    whose = "; ".join(f"{scope}: {_BELONGS[scope]}" for scope in scopes)
    named: list[Json] = [*scopes]
    scope: JsonObject = {"type": "string", "enum": named, "description": f"Whose memory. {whose}."}
    parameters = {**tool.parameters, "properties": {"scope": scope, **properties}, "required": ["scope", *required]}
    return replace(tool, parameters=parameters)


def memory_command(command: Execute, call: ToolCall, tool: ToolSpec, number: int) -> Execute:
    """Return the equivalent command of a memory node. Raises `ToolFailed` for arguments that do not fit, and for nodes
    other than agents."""
    said = command.input.get("memory")
    if not isinstance(said, dict) or not isinstance(scopes := said.get("scopes"), list):
        message = f"nobody knows whose memory {call.name!r} means here"
        hint = "Memory tools are for nodes of the type agent; others use a memory node."
        raise ToolFailed(Failure(code="memory-no-owner", message=message, hint=hint))
    named = [str(scope) for scope in scopes]
    if wrong := Checker(offered(tool, named).parameters).problems(call.arguments):
        message = f"arguments of {call.name!r}: {wrong}"
        raise ToolFailed(Failure(code="tool-arguments", message=message, hint="Call it again, corrected."))
    given: JsonObject = {
        **call.arguments,
        "scope": call.arguments.get("scope", named[0]),
        "operation": tool.memory,
        "session": said.get("session"),
        "user": said.get("user"),
        "namespace": said.get("namespace"),
    }
    # For the memory, each call is a step of its own: two deliberate writes are two, and a write that a crash or a retry
    # repeats is one.
    step = replace(command.step, node=NodeId(f"{command.step.node} call {number}"))
    return replace(command, step=step, input=given)
