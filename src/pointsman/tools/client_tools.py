"""Client tools: described in the settings, run by the API caller that started the execution, which returns the result.

[client_tools.locate]
description = "Where the user is."
parameters = {type = "object", properties = {precise = {type = "boolean"}}}
timeout = "5m"
"""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.http.tool import AnObject
from pointsman.tools.tool import OUTPUT_BYTES_MAX, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject


class ClientToolDescription(BaseModel):
    """One tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    description: str = ""
    parameters: AnObject = Field(default_factory=lambda: {"type": "object"})
    """JSON Schema of the arguments."""
    timeout: Duration | None = None
    """Time that the caller has for the call."""
    bytes_max: int = Field(default=OUTPUT_BYTES_MAX, ge=1)
    """Maximum size of the result as JSON."""
    requires_approval: bool = False


class ClientTool:
    """A client tool as models see it. The engine never runs it."""

    def __init__(self, name: str, described: ClientToolDescription) -> None:
        self.name = name
        self.limits = ToolLimits()
        self.spec = ToolSpec(
            name=name,
            description=described.description,
            parameters=cast("JsonObject", described.parameters),
            side="client",
            requires_approval=described.requires_approval,
            timeout_s=None if described.timeout is None else described.timeout.seconds,
            bytes_max=described.bytes_max,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Always raise `ToolFailed`: only the caller can run the tool."""
        message = f"{self.name!r} runs at the caller, but no caller is connected to this call"
        raise ToolFailed(Failure(code="client-failed", message=message))
