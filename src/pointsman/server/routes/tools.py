"""Tools and models: what there is, what it takes, whether it answers."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from pointsman.app.lists import list_tools, tool_view
from pointsman.app.paging import page_by
from pointsman.app.trying import UnknownTool, try_tool
from pointsman.app.voices import list_models, ping_models
from pointsman.server.desk import Asking, AtDesk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers
from pointsman.server.routes.parameters import Admin, After, Editor, Limit
from pointsman.server.shapes import Answer, Body, JsonValue, sample
from pointsman.server.shown import Trouble
from pointsman.values import JsonObject

router = APIRouter(tags=["tools"])

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


class ToolPage(Answer):
    """Tools by name."""

    model_config = sample(tools=[CALCULATOR], next=None)
    tools: list[ToolAnswer]
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


class ModelAnswer(Answer):
    """A model that the settings name."""

    name: str
    uses: list[str]
    scripted: bool
    input_usd_per_million: float | None
    output_usd_per_million: float | None


class ProviderAnswer(Answer):
    """Who answers for models. Of keys only the last letters."""

    name: str
    kind: str
    base_url: str | None
    keys: int
    masked: list[str]
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
            }
        ],
        providers=[],
    )
    default: str | None
    for_every_agent: bool
    models: list[ModelAnswer]
    providers: list[ProviderAnswer]


class Pinged(Answer):
    """Whether a model answers."""

    name: str
    ok: bool
    seconds: float | None = None
    failure: JsonValue = None


class PingAnswer(Answer):
    """Whether the models answer."""

    model_config = sample(models=[{"name": "scripted", "ok": True, "seconds": 0.001}])
    models: list[Pinged]


@router.get("/api/tools", responses=answers(ToolPage), summary="List tools")
async def list_(
    *,
    desk: AtDesk,
    caller: Asking,
    origin: Annotated[str | None, Query(max_length=20, description="Only those that come from there.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Whatever workflows can use here, by name."""
    found = await list_tools(desk.app, let_go=False)
    page = await page_by("name", (one for one in found if origin in (None, one["origin"])), after=after, limit=limit)
    return JsonReply({"tools": [*page.entries], "next": page.next})


@router.get("/api/tools/{name}", responses=answers(ToolAnswer, "no-such-tool"), summary="Read a tool")
async def read(desk: AtDesk, caller: Asking, name: Name) -> Response:
    """What it does and takes."""
    await desk.app.tools.prepare([name])
    view = tool_view(desk.app, name)
    if view is None:
        raise UnknownTool(f"there is no tool {name!r}", hint="GET /api/tools lists them.")
    return JsonReply(view)


@router.post(
    "/api/tools/{name}/try",
    responses=answers(TriedAnswer, "no-such-tool", "tool-not-tried", body=True),
    summary="Try a tool",
)
async def try_(desk: AtDesk, caller: Editor, name: Name, body: TryBody) -> Response:
    """One call, for real. What the tool does wrong is told in the answer."""
    return JsonReply(await try_tool(desk.app, name, body.arguments))


@router.get("/api/models", responses=answers(ModelsAnswer), summary="List models")
async def models(desk: AtDesk, caller: Asking) -> Response:
    """Which models are named where, what they cost, and who answers for them."""
    return JsonReply(list_models(desk.app))


@router.post("/api/models/ping", responses=answers(PingAnswer), summary="Ask the models")
async def ping(desk: AtDesk, caller: Admin) -> Response:
    """Asks each model that is named for one word. It may cost something."""
    return JsonReply({"models": [*await ping_models(desk.app)]})
