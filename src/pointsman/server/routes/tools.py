"""Operations on tools: list, read, try."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import NAMES_MAX, After, Limit, Words
from pointsman.server.schemas.answers import answers, example
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.workflows.tool_verbs import ToolPage, ToolVerbs, ToolView, TriedTool

router = Operations(tags=["tools"])


Name = Annotated[str, Path(min_length=1, max_length=200, description="The tool's name.")]
CALCULATOR: ToolView = {
    "name": "calculator",
    "origin": "builtin",
    "description": "Evaluates an arithmetic expression.",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    "side": "server",
    "idempotent": True,
    "requiresApproval": False,
    "enabled": True,
    "off": None,
}


example(ToolView, CALCULATOR)
example(
    ToolPage,
    {
        "tools": [CALCULATOR],
        "origins": {"builtin": 11},
        "servers": [{"name": "files", "prefix": "files__", "tools": 3, "failure": None}],
        "next": None,
    },
)
example(TriedTool, {"ok": True, "result": 42, "failure": None})


class TryBody(Body):
    """Arguments of a test call."""

    model_config = sample(arguments={"expression": "6 * 7"})
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


@router.get("/api/tools", verb=ToolVerbs.list, responses=answers(ToolPage), summary="List tools")
async def list_(
    *,
    session: CallerSession,
    search: Words = "",
    name: Annotated[list[str] | None, Query(max_length=NAMES_MAX, description="Only these.")] = None,
    origin: Annotated[str | None, Query(max_length=20, description="Only tools of this origin.")] = None,
    sort: Annotated[Literal["name", "origin"], Query(description="Sort key.")] = "name",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """All tools that workflows can use here.

    With `search`, only tools with all these words in name or description. Workflows that are tools are listed for
    callers who may see them.
    """
    page = await session.tools.list(search, names=name, origin=origin, sort=sort, after=after, limit=limit)
    return JsonReply(page)


@router.get(
    "/api/tools/{name}", verb=ToolVerbs.read, responses=answers(ToolView, "no-such-tool"), summary="Read a tool"
)
async def read(session: CallerSession, name: Name) -> Response:
    """Description, parameters and state of one tool."""
    return JsonReply(await session.tools.read(name))


@router.post(
    "/api/tools/{name}/try",
    verb=ToolVerbs.try_tool,
    responses=answers(TriedTool, "no-such-tool", "tool-not-callable", body=True),
    summary="Run a tool",
)
async def try_(session: CallerSession, name: Name, body: TryBody) -> Response:
    """Really call the tool once. The answer contains the error if the tool fails."""
    return JsonReply(await session.tools.try_tool(name, body.arguments))
