"""Operations on tools, models and provider keys: list, try, ping."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.operations.model_catalogue import ModelCatalogue, ModelPings
from pointsman.operations.provider_keys import ModelKeys
from pointsman.operations.verbs import OperationVerbs
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


example(
    ModelCatalogue,
    {
        "default": "scripted",
        "forEveryAgent": True,
        "models": [
            {
                "name": "scripted",
                "uses": ["default"],
                "scripted": True,
                "inputUsdPerMillion": None,
                "outputUsdPerMillion": None,
                "priceFrom": None,
            }
        ],
        "providers": [],
        "prices": {"name": "genai-prices", "version": "0.2.3", "installed": "2026-11-21"},
    },
)
example(
    ModelKeys,
    {
        "providers": [
            {
                "name": "groq",
                "missing": None,
                "strategy": "rotation",
                "interval": 0.4,
                "keyInterval": 0.0,
                "concurrency": 4,
                "callsMax": None,
                "shared": False,
                "waiting": 0,
                "keys": [
                    {
                        "id": "groq/0",
                        "name": "env:GROQ_KEY_1",
                        "condition": "cooling",
                        "until": 1_763_700_130.0,
                        "why": "model-rate-limited",
                        "open": 0,
                        "calls": 12,
                        "usedAt": 1_763_700_098.0,
                        "failed": "model-rate-limited",
                        "failedAt": 1_763_700_100.0,
                        "today": {"calls": 120, "tokens": 81_000, "costUsd": 0.4},
                        "mostToday": {"calls": None, "tokens": None, "costUsd": 5.0},
                    }
                ],
            }
        ],
        "at": 1_763_700_100.0,
        "beginsAnew": 1_763_769_600.0,
        "shared": True,
    },
)
example(
    ModelPings,
    {
        "models": [
            {"name": "scripted", "ok": True, "scripted": True, "seconds": 0.001, "model": "scripted", "costUsd": None}
        ]
    },
)


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
    responses=answers(TriedTool, "no-such-tool", "tool-not-tried", body=True),
    summary="Run a tool",
)
async def try_(session: CallerSession, name: Name, body: TryBody) -> Response:
    """Really call the tool once. The answer contains the error if the tool fails."""
    return JsonReply(await session.tools.try_tool(name, body.arguments))


@router.get("/api/models", verb=OperationVerbs.models, responses=answers(ModelCatalogue), summary="List models")
async def models(session: CallerSession) -> Response:
    """Return the models, the places that name them, their prices, and their providers."""
    return JsonReply(await session.operations.models())


@router.get("/api/models/keys", verb=OperationVerbs.model_keys, responses=answers(ModelKeys), summary="List model keys")
async def keys(session: CallerSession) -> Response:
    """The keys of each provider, by name, with their state:

    free, resting, or at their daily limit. Calls in progress are those of the process that answers.
    """
    return JsonReply(await session.operations.model_keys())


@router.post(
    "/api/models/ping", verb=OperationVerbs.ping_models, responses=answers(ModelPings), summary="Ping the models"
)
async def ping(session: CallerSession) -> Response:
    """Send a one-word request to each named model. The provider may charge for it."""
    return JsonReply(await session.operations.ping_models())
