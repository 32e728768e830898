"""Operations on tools, models and provider keys: list, try, ping."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.auth.policy import sees_tool
from pointsman.executions.lists import found_tools, place_by_origin, server_views, tool_view
from pointsman.operations.key_usage import payers
from pointsman.operations.model_catalogue import list_models, ping_models
from pointsman.paging import page_by
from pointsman.server.context import CurrentCaller, CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import NAMES_MAX, Admin, After, Editor, Limit, Operator, Words
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.errors import Trouble
from pointsman.server.schemas.requests import Answer, Body, JsonValue, sample
from pointsman.values import JsonObject
from pointsman.workflows.tool_trials import try_tool, unknown_tool

router = Operations(tags=["tools"])

Name = Annotated[str, Path(min_length=1, max_length=200, description="The tool's name.")]
CALCULATOR: JsonObject = {
    "name": "calculator",
    "origin": "builtin",
    "description": "Works out a formula.",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    "side": "server",
    "idempotent": True,
    "requiresApproval": False,
    "enabled": True,
    "off": None,
}


class ToolAnswer(Answer):
    """A tool, as models are shown it."""

    model_config = sample(**CALCULATOR)
    name: str
    origin: str
    description: str
    parameters: dict[str, JsonValue] = Field(description="JSON Schema of its arguments.")
    side: Literal["server", "client"]
    idempotent: bool
    requires_approval: bool
    enabled: bool
    off: str | None = Field(description="Why it cannot be called, where it cannot.")


class McpServerAnswer(Answer):
    """An MCP server whose tools are offered here."""

    name: str
    prefix: str = Field(description="How the names of its tools begin.")
    tools: int
    failure: Trouble | None = Field(description="Why it told none when it was last asked.")


class ToolPage(Answer):
    """Tools in the order that was asked for."""

    model_config = sample(
        tools=[CALCULATOR],
        origins={"builtin": 11},
        servers=[{"name": "files", "prefix": "files__", "tools": 3, "failure": None}],
        next=None,
    )
    tools: list[ToolAnswer]
    origins: dict[str, int] = Field(description="How many of those that are found come from where, on all pages.")
    servers: list[McpServerAnswer] = Field(description="All MCP servers, whichever page this is.")
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class TryBody(Body):
    """Arguments to try a tool with."""

    model_config = sample(arguments={"expression": "6 * 7"})
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class TriedAnswer(Answer):
    """What a tool answered, or why it did not."""

    model_config = sample(ok=True, result=42, failure=None)
    ok: bool
    result: JsonValue
    failure: Trouble | None


class NamedModel(Answer):
    """A model that the settings name."""

    name: str
    uses: list[str]
    scripted: bool
    input_usd_per_million: float | None
    output_usd_per_million: float | None
    price_from: Literal["settings", "list"] | None = Field(description="Who says what it costs; null: nobody does.")


class PriceList(Answer):
    """Where prices come from that the settings do not tell."""

    name: str
    version: str
    installed: str | None = Field(description="The day on which it was put here: no price in it is newer.")


class ModelProvider(Answer):
    """Who answers for models. Of keys only the last letters."""

    name: str
    kind: str
    base_url: str | None
    keys: int
    masked: list[str]
    strategy: str = Field(description="In which order its keys are used.")
    interval: float = Field(description="Least seconds between two calls.")
    source: str = Field(description="What has its keys: `settings`, a variable of the environment, its own `client`.")
    missing: str | None


class ModelsAnswer(Answer):
    """The models of the installation."""

    model_config = sample(
        default="scripted",
        forEveryAgent=True,
        models=[
            {
                "name": "scripted",
                "uses": ["default"],
                "scripted": True,
                "inputUsdPerMillion": None,
                "outputUsdPerMillion": None,
                "priceFrom": None,
            }
        ],
        providers=[],
        prices={"name": "genai-prices", "version": "0.2.3", "installed": "2026-11-21"},
    )
    default: str | None
    for_every_agent: bool
    models: list[NamedModel]
    providers: list[ModelProvider]
    prices: PriceList


class PaidToday(Answer):
    """What a key paid for since midnight (UTC)."""

    calls: int
    tokens: int
    cost_usd: float


class MostToday(Answer):
    """What a key may pay for on one day (UTC). Null is unlimited."""

    calls: int | None
    tokens: int | None
    cost_usd: float | None


class PayingKey(Answer):
    """A key, as it stands in the process that answers. Nothing of its value."""

    id: str = Field(description="As usage names it.")
    name: str | None = Field(
        description="The variable or the handle it is read from, or `settings`; null: the provider takes none."
    )
    condition: Literal["free", "pausing", "busy", "cooling", "refused", "spent"] = Field(
        description="Pausing: paced. Busy: as many calls are open as may be. Cooling: it was rate-limited. "
        "Refused: the provider does not take it, or its quota is used up. Spent: it paid for all that it may."
    )
    until: float | None = Field(description="When that ends, where it is known.")
    why: str | None = Field(description="The code of the failure that made it rest.")
    open: int = Field(description="Calls under way, in this process.")
    calls: int = Field(description="Calls since this process began.")
    used_at: float | None
    failed: str | None = Field(description="The code of the last failure of a call with it.")
    failed_at: float | None
    today: PaidToday = Field(description="Of a key with a limit of the day in all processes, else in this one.")
    most_today: MostToday | None


class PayingProvider(Answer):
    """A provider and whose turn it is."""

    name: str
    missing: str | None = Field(description="Why it cannot be asked at all.")
    strategy: Literal["fixed", "rotation"]
    interval: float = Field(description="Least seconds between two calls.")
    key_interval: float = Field(description="Least seconds between two calls with one key.")
    concurrency: int | None = Field(description="Calls that one key may have open at once.")
    calls_max: int | None = Field(description="Calls that one key may pay for in one process.")
    shared: bool = Field(description="Its pace and rests are agreed with other processes.")
    waiting: int = Field(description="Calls that wait for a turn, in this process.")
    keys: list[PayingKey]


class KeysAnswer(Answer):
    """Who pays for models, now."""

    model_config = sample(
        providers=[
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
        at=1_763_700_100.0,
        beginsAnew=1_763_769_600.0,
        shared=True,
    )
    providers: list[PayingProvider]
    at: float = Field(description="By the clock of the server.")
    begins_anew: float = Field(description="When the next day (UTC) begins.")
    shared: bool = Field(description="Other processes may use the store, and count what is under way by themselves.")


class Pinged(Answer):
    """Whether a model answers."""

    name: str
    ok: bool
    scripted: bool = Field(default=False, description="It is the scripted model: no provider was asked.")
    seconds: float | None = None
    failure: JsonValue = None


class PingAnswer(Answer):
    """Whether the models answer."""

    model_config = sample(models=[{"name": "scripted", "ok": True, "scripted": True, "seconds": 0.001}])
    models: list[Pinged]


@router.get("/api/tools", responses=answers(ToolPage), summary="List tools")
async def list_(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    search: Words = "",
    name: Annotated[list[str] | None, Query(max_length=NAMES_MAX, description="Only these.")] = None,
    origin: Annotated[str | None, Query(max_length=20, description="Only those that come from there.")] = None,
    sort: Annotated[Literal["name", "origin"], Query(description="What orders them.")] = "name",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Whatever workflows can use here. With `search` only those with all these words in name or description. Workflows
    that are tools are listed for who may see them."""
    every = await found_tools(desk.app.context, words=search, names=name)
    found = [one for one in every if await sees_tool(desk.app.context, caller, str(one["name"]))]
    origins = Counter(str(one["origin"]) for one in found)
    place = place_by_origin if sort == "origin" else "name"
    page = await page_by(place, (one for one in found if origin in (None, one["origin"])), after=after, limit=limit)
    return JsonReply(
        {
            "tools": [tool_view(desk.app.context, str(one["name"])) for one in page.entries],
            "origins": {**origins},
            "servers": [*server_views(desk.app.context)],
            "next": page.next,
        }
    )


@router.get("/api/tools/{name}", responses=answers(ToolAnswer, "no-such-tool"), summary="Read a tool")
async def read(desk: CurrentServer, caller: CurrentCaller, name: Name) -> Response:
    """What it does and takes."""
    await desk.app.tools.prepare([name])
    view = tool_view(desk.app.context, name) if await sees_tool(desk.app.context, caller, name) else None
    if view is None:
        raise unknown_tool(name)
    return JsonReply(view)


@router.post(
    "/api/tools/{name}/try",
    responses=answers(TriedAnswer, "no-such-tool", "tool-not-tried", body=True),
    summary="Try a tool",
)
async def try_(desk: CurrentServer, caller: Editor, name: Name, body: TryBody) -> Response:
    """One call, for real. What the tool does wrong is told in the answer."""
    await desk.app.tools.prepare([name])
    if not await sees_tool(desk.app.context, caller, name):
        raise unknown_tool(name)
    return JsonReply(await try_tool(desk.app.context, name, body.arguments))


@router.get("/api/models", responses=answers(ModelsAnswer), summary="List models")
async def models(desk: CurrentServer, caller: CurrentCaller) -> Response:
    """Which models are named where, what they cost, and who answers for them."""
    return JsonReply(list_models(desk.app.context))


@router.get("/api/models/keys", responses=answers(KeysAnswer), summary="How keys of models stand")
async def keys(desk: CurrentServer, caller: Operator) -> Response:
    """Which keys are free, rest, or have paid for enough today; by their names. What is under way is that of the
    process that answers.
    """
    return JsonReply(await payers(desk.app.context))


@router.post("/api/models/ping", responses=answers(PingAnswer), summary="Ask the models")
async def ping(desk: CurrentServer, caller: Admin) -> Response:
    """Asks each model that is named for one word. It may cost something."""
    return JsonReply({"models": [*await ping_models(desk.app.context)]})
