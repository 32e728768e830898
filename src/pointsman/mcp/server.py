"""The content and the messages of an MCP server, independent of the transport."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import msgspec
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ResourcesListChanged, ToolsListChanged
from mcp.types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    GetPromptRequestParams,
    GetPromptResult,
    JSONRPCError,
    JSONRPCNotification,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import MCPError
from pointsman import Pointsman, __version__
from pointsman.auth.callers import Caller
from pointsman.auth.verbs import tool_target
from pointsman.authoring.design import GUIDE
from pointsman.authoring.operations import operations_schema
from pointsman.authoring.tools import Workbench, verbs
from pointsman.definition.model.schema import native_schema
from pointsman.errors import OperatorError, PointsmanError, sentences
from pointsman.json_meter import LESS, DuplicateKey, excess_of, unique_object
from pointsman.mcp.tools import (
    Context,
    PendingToolCalls,
    tool_named,
    verbs_of,
    workflows_of,
)
from pointsman.values import Json, JsonObject
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.offers import withheld
from pointsman.workflows.tools import WorkflowTools


def error_of(data: bytes) -> JSONRPCError | None:
    """Return the error that answers what a client sent; None: it is a message."""
    if excess := excess_of(data):
        return invalid(f"the message {excess}. {LESS}")
    try:
        value = cast("Json", json.loads(data, object_pairs_hook=unique_object))
    except DuplicateKey as why:
        return invalid(f"{why}. Keep one of them.")
    except ValueError:
        text = "this is not JSON. A message is one JSON object, on standard input in one line."
        return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=text))
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        message = None
    if message is not None and not (isinstance(message, JSONRPCNotification) and _has_id(value)):
        return None
    about = value.get("id") if isinstance(value, dict) else None
    if isinstance(about, bool) or not isinstance(about, int | str) or not _is_encodable(about):
        about = None
    return invalid(
        "this is not a JSON-RPC 2.0 message. A request has `method`, and an `id` that is a text or an integer.", about
    )


def invalid(message: str, about: int | str | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=about, error=ErrorData(code=INVALID_REQUEST, message=message))


def _has_id(value: Json) -> bool:
    return isinstance(value, dict) and "id" in value


def _is_encodable(about: int | str) -> bool:
    """Return whether an id can be sent back: a text with a lone surrogate cannot be encoded."""
    return isinstance(about, int) or about.encode(errors="replace").decode() == about


SCHEME: Final = "pointsman://"
WORKFLOWS: Final = f"{SCHEME}workflows/"
TEXT: Final = {"json": "application/json", "yaml": "application/yaml", "jsonc": "application/json"}
FIXED: Final = {
    f"{SCHEME}guide": ("How workflows are written", "text/markdown"),
    f"{SCHEME}schema": ("JSON Schema of workflows", "application/schema+json"),
    f"{SCHEME}operations": ("JSON Schema of operations on workflows", "application/schema+json"),
}
TEMPLATE: Final = ResourceTemplate(
    name="workflow", title="A saved workflow, as its author wrote it", uri_template=f"{WORKFLOWS}{{id}}"
)


async def list_resources(bench: Workbench) -> list[Resource]:
    """Return the fixed resources, then the saved workflows that the caller may see."""
    fixed = [
        Resource(name=uri.removeprefix(SCHEME), title=title, uri=uri, mime_type=kind)
        for uri, (title, kind) in FIXED.items()
    ]
    saved = [
        Resource(name=str(entry["id"]), title=str(entry["name"]), uri=f"{WORKFLOWS}{entry['id']}")
        for entry in (await bench.workflows.list(include_disabled=True))["workflows"]
    ]
    return [*fixed, *saved]


async def read_resource(bench: Workbench, uri: str) -> ReadResourceResult:
    """Read a resource. Raises `MCPError` if it does not exist or the caller may not see it."""
    if uri in FIXED:
        return _resource_text(uri, _fixed_text(uri), FIXED[uri][1])
    if not uri.startswith(WORKFLOWS):
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri[:200]!r}")
    try:
        source = await bench.workflows.source(uri.removeprefix(WORKFLOWS))
    except PointsmanError as why:
        raise MCPError(INVALID_PARAMS, sentences(str(why), why.hint)) from None
    document = await bench.app[DOCUMENTS].here(lambda: source.document, chars=source.chars, of=source.digest)
    return _resource_text(uri, document.text, TEXT[document.format])


def _fixed_text(uri: str) -> str:
    if uri.endswith("guide"):
        return GUIDE
    return msgspec.json.encode(native_schema() if uri.endswith("schema") else operations_schema()).decode()


def _resource_text(uri: str, text: str, kind: str) -> ReadResourceResult:
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type=kind)])


PROMPTS: Final = (
    Prompt(
        name="design_workflow",
        title="Design a workflow",
        description="From words to a saved workflow: drafted, checked, corrected, saved.",
        arguments=[PromptArgument(name="goal", description="What it shall do.", required=True)],
    ),
    Prompt(
        name="change_workflow",
        title="Change a workflow",
        description="By typed operations, shown before they are saved.",
        arguments=[
            PromptArgument(name="workflow", description="Its id.", required=True),
            PromptArgument(name="wish", description="What should change.", required=True),
        ],
    ),
)


async def fill_prompt(bench: Workbench, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """Fill a prompt. Raises `MCPError` for an unknown prompt or a missing argument."""
    prompt = next((one for one in PROMPTS if one.name == name), None)
    if prompt is None:
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name[:100]!r}")
    missing = [argument.name for argument in prompt.arguments or [] if argument.name not in arguments]
    if missing:
        raise MCPError(INVALID_PARAMS, f"the prompt {name!r} needs {', '.join(missing)}")
    if name == "design_workflow":
        text = (
            f"Design a Pointsman workflow: {arguments['goal']}\n\nWrite it, call check_workflow, mend every error, "
            f"and call save_workflow once there is none. Then show its picture.\n\n{GUIDE}"
        )
    else:
        try:
            source = await bench.workflows.source(arguments["workflow"])
            document = await bench.app[DOCUMENTS].here(lambda: source.document, chars=source.chars, of=source.digest)
        except PointsmanError as why:
            raise MCPError(INVALID_PARAMS, sentences(str(why), why.hint)) from None
        text = (
            f"Change the Pointsman workflow {arguments['workflow']!r}: {arguments['wish']}\n\nCall edit_workflow, look "
            "at the problems that are new, and call it again with apply=true once there is no error.\n\n"
            f"It is now:\n\n{document.text}"
        )
    return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(type="text", text=text))])


SESSION: Final = "mcp-session-id"
SESSIONS_MAX: Final = 1000
LOOKED_EVERY_S: Final = 2.0
"""Polling interval for workflows saved by other processes; changes by this server are announced at once."""


class ToolListNotifier:
    """Announces changed tool lists: newer clients listen to the bus; older ones are notified on their open
    connection.
    """

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self.bus = bus
        self._sessions: dict[str, ServerSession] = {}
        self._known: Sequence[object] | None = None

    def note(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember the connection of an older client."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        headers = getattr(context.request, "headers", {})
        self._sessions[str(headers.get(SESSION, ""))] = context.session
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]

    async def look(self, app: Pointsman) -> None:
        """Announce a change if the saved workflows or their offers differ from the last check, whoever changed them."""
        offers = await withheld(app.store.entries, "mcp")
        before, self._known = self._known, (await app.workflows(), offers)
        if before is not None and before != self._known:
            await self._announce_changes()

    async def watch(self, app: Pointsman) -> None:
        """Check periodically until cancelled. If the store is unavailable, check later."""
        while True:
            with suppress(OperatorError):
                await self.look(app)
            await asyncio.sleep(LOOKED_EVERY_S)

    async def _announce_changes(self) -> None:
        """Announce that tools and resources have changed."""
        await self.bus.publish(ToolsListChanged())
        await self.bus.publish(ResourcesListChanged())
        for session in [*self._sessions.values()]:
            with suppress(MCPError, RuntimeError, OSError):  # The client is gone.
                await session.send_tool_list_changed()
                await session.send_resource_list_changed()


Asks: TypeAlias = Callable[[Context], Caller]
"""Returns the caller of a request."""

INSTRUCTIONS: Final = (
    "Pointsman runs declarative workflows of agents, tools and people. list_workflows shows what is saved; "
    "run_workflow runs one (long ones with wait=false, then get_execution). To make one: read pointsman://guide, "
    "check_workflow until it has no errors, save_workflow. To change one: edit_workflow with operations, then the same "
    "with apply=true."
)


@dataclass(slots=True)
class McpEndpoint:
    """One MCP server. `asks` identifies the caller."""

    app: Pointsman
    asks: Asks
    origin: Callable[[Context], str] = lambda _: ""
    """Returns the network address of a caller, for audit entries."""
    calls: PendingToolCalls = field(default_factory=PendingToolCalls)
    changes: ToolListNotifier = field(default_factory=lambda: ToolListNotifier(InMemorySubscriptionBus()))
    server: Server[Any] = field(init=False)
    _listens: ListenHandler = field(init=False)
    _saved: WorkflowTools = field(init=False)

    def __post_init__(self) -> None:
        self._listens = ListenHandler(self.changes.bus)
        self._saved = WorkflowTools(self.app.store.workflows, self.app.store.entries)
        self.server = Server(
            "pointsman",
            version=__version__,
            title="Pointsman",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listens,
        )
        self.server.middleware.append(self._observed)

    @property
    def options(self) -> InitializationOptions:
        return self.server.create_initialization_options(
            NotificationOptions(tools_changed=True, resources_changed=True)
        )

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None, None]:
        """Announce workflows that other processes save, while the block is open."""
        await self.changes.look(self.app)
        watch = asyncio.create_task(self.changes.watch(self.app))
        try:
            yield
        finally:
            watch.cancel()
            self.close()

    def close(self) -> None:
        """Stop the server: running executions continue with the next process and are not cancelled."""
        self.calls.close()
        self._listens.close()

    def bench(self, context: Context, tool: str = "", arguments: JsonObject | None = None) -> Workbench:
        """Return the workbench of the caller, for a call of `tool`."""
        via, target = f"mcp {tool}" if tool else "", tool_target(arguments or {})
        origin = self.origin(context)
        return Workbench(self.app.context, self.asks(context), via=via, target=target, origin=origin)

    async def _observed(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        self.changes.note(ctx)
        if ctx.method == "notifications/cancelled":
            await self.calls.cancelled(ctx)
        return await call_next(ctx)

    async def _list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        bench = self.bench(context)
        offered = [*verbs_of(bench), *await workflows_of(bench, self._saved)]
        return ListToolsResult(tools=[tool.shown for tool in offered])

    async def _call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        bench = self.bench(context, params.name, params.arguments)
        tool = await tool_named(bench, self._saved, params.name)
        if tool is None:
            verb = verbs().get(params.name)
            if verb is not None:
                await bench.acting.record_refusal(verb.rule, "not-allowed")
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}: tools/list lists the tools")
        result = await self.calls.made(context, bench, tool, params.arguments or {})
        if tool.changes_library and not result.is_error:
            await self.changes.look(self.app)
        return result

    async def _list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=await list_resources(self.bench(context)))

    async def _list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def _read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await read_resource(self.bench(context), str(params.uri))

    async def _list_prompts(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=list(PROMPTS))

    async def _get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return await fill_prompt(self.bench(context), params.name, params.arguments or {})
