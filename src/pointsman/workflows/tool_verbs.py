"""Verbs of tools: list, read, try; and the lists of tools and MCP servers."""

from __future__ import annotations

import builtins
import os
from collections import Counter
from collections.abc import Collection, Iterable
from typing import ClassVar, Final, Literal, NotRequired

from typing_extensions import TypedDict

from pointsman.auth.policy import sees_tool
from pointsman.auth.redaction import redactor_for
from pointsman.auth.verbs import Verbs, verb
from pointsman.context import AppContext
from pointsman.engine.reports import ToolCall
from pointsman.errors import CallerError
from pointsman.executors.secrets import masked_failure
from pointsman.paging import has_words, page_by
from pointsman.redaction import hiding
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from pointsman.workflows.tool_connection_changes import (
    ConnectedToolsView,
    ToolConnectionRequest,
    ToolConnectionsView,
    ToolConnectionTest,
    connect_tools,
    disconnect_tools,
    list_connections,
    try_connection,
)

ORIGINS: Final = ("function", "workflow", "http", "mcp", "command", "plugin", "client", "scripted", "builtin")
"""Origins of tools, in the order in which lists show them."""


class UnknownTool(CallerError):
    """No tool has this name."""

    code: ClassVar[str] = "no-such-tool"


class ToolNotCallable(CallerError):
    """The tool cannot be called outside of an execution."""

    code: ClassVar[str] = "tool-not-callable"


def unknown_tool(name: str) -> UnknownTool:
    return UnknownTool(f"there is no tool {name!r}", hint="GET /api/tools lists them.")


class ToolView(TypedDict):
    """A tool as models see it."""

    name: str
    origin: str
    description: str
    parameters: JsonObject
    """JSON Schema of its arguments."""
    side: Literal["server", "client"]
    idempotent: bool
    requiresApproval: bool
    enabled: bool
    off: str | None
    """Why it cannot be called; null: it can."""


class ToolFailure(TypedDict):
    """Why a tool did not answer."""

    code: str
    message: str
    hint: str
    stderr: NotRequired[Json]
    """The end of what the command of an MCP server printed; for the operator only."""


class McpServerView(TypedDict):
    """An MCP server whose tools are offered here."""

    name: str
    prefix: str
    """How the names of its tools begin."""
    tools: int
    failure: ToolFailure | None
    """Why the last request for its tools failed."""


class ToolPage(TypedDict):
    """Tools in the requested order."""

    tools: list[ToolView]
    origins: dict[str, int]
    """The number of matching tools by origin, on all pages."""
    servers: list[McpServerView]
    """All MCP servers, on every page."""
    next: str | None
    """The `after` of the next page; null: this was the last."""


class TriedTool(TypedDict):
    """The answer of a tool, or why it did not answer."""

    ok: bool
    result: Json
    failure: ToolFailure | None


class NamedTool(TypedDict):
    """A tool in a search."""

    name: str
    origin: str


class ToolVerbs(Verbs):
    """Actions of a caller on tools. A tool that is a workflow is visible to callers who may see the workflow."""

    @verb("viewer", "see tools", audit=False)
    async def list(
        self,
        words: str = "",
        *,
        names: Collection[str] | None = None,
        origin: str | None = None,
        sort: Literal["name", "origin"] = "name",
        after: str | None = None,
        limit: int,
    ) -> ToolPage:
        """Return a page of the tools that workflows can use here, see `found_tools`. `origin`: only those."""
        every = await found_tools(self.app, words=words, names=names)
        views = [one for one in every if await sees_tool(self.app, self.caller, one["name"])]
        origins = Counter(view["origin"] for view in views)
        place = _place_by_origin if sort == "origin" else "name"
        page = await page_by(
            place, (view for view in views if origin in (None, view["origin"])), after=after, limit=limit
        )
        return {
            "tools": _tool_views(self.app, (entry["name"] for entry in page.entries)),
            "origins": {**origins},
            "servers": server_views(self.app),
            "next": page.next,
        }

    @verb("admin", "inspect tools", audit=False)
    async def inspect(self) -> tuple[builtins.list[ToolView], builtins.list[McpServerView]]:
        """Return all tools, and the MCP servers with the output of their commands, for people at the machine."""
        return await list_tools(self.app), server_views(self.app, with_stderr=True)

    @verb("viewer", "see tools", audit=False)
    async def read(self, name: str) -> ToolView:
        """Return a tool. Raises `UnknownTool`."""
        await self.app.tools.prepare([name])
        view = tool_view(self.app, name) if await sees_tool(self.app, self.caller, name) else None
        if view is None:
            raise unknown_tool(name)
        return view

    @verb("editor", "write workflows", target=("name",))
    async def try_tool(self, name: str, arguments: JsonObject) -> TriedTool:
        """Call a tool once with a person's arguments, outside of an execution; it has its real effects.

        Raises `UnknownTool`, and `ToolNotCallable` for a tool that needs approval, runs at the client, or is off.
        """
        await self.app.tools.prepare([name])
        if not await sees_tool(self.app, self.caller, name):
            raise unknown_tool(name)
        return await try_tool(self.app, name, arguments)

    @verb("admin", "connect tools", audit=False)
    async def connections(self) -> ToolConnectionsView:
        """Return the connected MCP servers and OpenAPI documents. See `list_connections`."""
        return await list_connections(self.app)

    @verb("admin", "connect tools", target=("name",))
    async def try_connection(
        self, name: str, request: ToolConnectionRequest, *, call: tuple[str, JsonObject] | None = None
    ) -> ToolConnectionTest:
        """Ask a server or a document for its tools, and call one of them. Saves nothing. See `try_connection`."""
        return await try_connection(self.app, name, request, by=self.caller.name, call=call)

    @verb("admin", "connect tools", target=("name",))
    async def connect(
        self, name: str, request: ToolConnectionRequest, *, match: str | None = None
    ) -> tuple[ConnectedToolsView, str]:
        """Test a server or a document and store it, with its key sealed. See `connect_tools`."""
        return await connect_tools(self.app, name, request, by=self.caller.name, match=match)

    @verb("admin", "connect tools", target=("name",))
    async def disconnect(self, name: str, *, match: str | None = None) -> None:
        """Delete a connection and its key. See `disconnect_tools`."""
        await disconnect_tools(self.app, name, match=match)


async def try_tool(app: AppContext, name: str, arguments: JsonObject) -> TriedTool:
    """Call a tool. A failure of the tool is returned, not raised.

    Raises `UnknownTool`, and `ToolNotCallable` for a tool that needs approval, runs at the client, or is off.
    """
    await app.tools.prepare([name])
    spec = app.tools.find(name)
    if spec is None:
        raise unknown_tool(name)
    why = (
        f"it is disabled: {spec.off}"
        if spec.off
        else "a person must approve each of its calls"
        if spec.requires_approval
        else "it runs at the client that started the execution"
        if spec.side == "client"
        else ""
    )
    if why:
        raise ToolNotCallable(f"{name!r} cannot be run on its own: {why}", hint="Call it in a workflow.")
    call = ToolCall(id="1", name=name, arguments=arguments)
    await app.settings.refresh()
    redact = redactor_for(app.settings).redaction
    try:
        with hiding(redact):
            result = await app.tools.call(call, key=f"try-{os.urandom(16).hex()}")
        return {"ok": True, "result": redact.json(result), "failure": None}
    except ToolFailed as failed:
        masked = masked_failure(failed.failure, redact)
        failure: ToolFailure = {"code": masked.code, "message": masked.message, "hint": masked.hint}
        return {"ok": False, "result": None, "failure": failure}


async def list_tools(app: AppContext, *, let_go: bool = True) -> list[ToolView]:
    """Return every tool that workflows can use here, as models see it. Asks the MCP servers, and disconnects them
    afterwards unless executions may be using them (`let_go`)."""
    try:
        await app.tools.prepare_all()
    finally:
        if let_go:
            await app.tools.close()
    return _tool_views(app, app.tools.names())


async def found_tools(app: AppContext, *, words: str = "", names: Collection[str] | None = None) -> list[NamedTool]:
    """Return name and origin of the tools whose name or description contains all these words; `names`: only these, and
    only their servers are asked. `tool_view` returns the details."""
    if names is None:
        await app.tools.prepare_all()
        tool_names: Iterable[str] = app.tools.names()
    else:
        await app.tools.prepare(names)
        tool_names = sorted({*names})
    return [
        {"name": name, "origin": origin}
        for name in tool_names
        if (origin := app.tools.origin(name)) is not None and _has_words(app, words, name)
    ]


def _has_words(app: AppContext, words: str, name: str) -> bool:
    spec = app.tools.find(name) if words.strip() else None
    return spec is None or has_words(words, name, spec.description)


def _place_by_origin(tool: NamedTool) -> str:
    """Return the sort key of a tool: the caller's own tools first, built-in tools last."""
    origin = tool["origin"]
    return f"{ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS):02} {tool['name']}"


def _tool_views(app: AppContext, names: Iterable[str]) -> list[ToolView]:
    views = (tool_view(app, name) for name in names)
    return [view for view in views if view is not None]


def tool_view(app: AppContext, name: str) -> ToolView | None:
    """Return a tool as models see it, with what people should know of it; None: it does not exist."""
    spec, origin = app.tools.find(name), app.tools.origin(name)
    if spec is None or origin is None:
        return None
    return {
        "name": name,
        "origin": origin,
        "description": spec.description,
        "parameters": spec.parameters,
        "side": spec.side,
        "idempotent": spec.idempotent,
        "requiresApproval": spec.requires_approval,
        "enabled": not spec.off,
        "off": spec.off or None,
    }


def server_views(app: AppContext, *, with_stderr: bool = False) -> list[McpServerView]:
    """Return the MCP servers, each with the number of its tools or the failure of its last listing. `with_stderr`:
    include the end of what its command printed, which is for the operator only."""
    names = app.tools.names()
    servers: list[McpServerView] = []
    for prefix, failure in app.tools.servers().items():
        why: ToolFailure | None = None
        if failure is not None:
            why = {"code": failure.code, "message": failure.message, "hint": failure.hint}
            if with_stderr:
                why["stderr"] = (failure.details or {}).get("stderr")
        tools = sum(name.startswith(prefix) for name in names)
        servers.append({"name": prefix.removesuffix("__"), "prefix": prefix, "tools": tools, "failure": why})
    return servers
