"""What an MCP server of an installation offers, whatever carries its messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from mcp import MCPError
from pointsman import Pointsman, __version__
from pointsman.auth.callers import Caller
from pointsman.authoring.tools import verbs
from pointsman.authoring.workbench import Workbench
from pointsman.mcp import prompts, resources
from pointsman.mcp.audit import Context, Deeds
from pointsman.mcp.calls import Calls
from pointsman.mcp.changes import Changes
from pointsman.mcp.tools import VerbTool, WorkflowTool, tool_named, verbs_of, workflows_of
from pointsman.values import JsonObject
from pointsman.workflows.workflow_tools import WorkflowTools

Asks: TypeAlias = Callable[[Context], Caller]
"""Who asks."""

INSTRUCTIONS: Final = (
    "Pointsman runs declarative workflows of agents, tools and people. list_workflows shows what is saved; "
    "run_workflow runs one (long ones with wait=false, then get_execution). To make one: read pointsman://guide, "
    "check_workflow until it has no errors, save_workflow. To change one: edit_workflow with operations, then the same "
    "with apply=true."
)


@dataclass(slots=True)
class Face:
    """One server. `asks` knows who is at the other end."""

    app: Pointsman
    asks: Asks
    deeds: Deeds
    calls: Calls = field(default_factory=Calls)
    changes: Changes = field(default_factory=lambda: Changes(InMemorySubscriptionBus()))
    server: Server[Any] = field(init=False)
    _listens: ListenHandler = field(init=False)
    _saved: WorkflowTools = field(init=False)

    def __post_init__(self) -> None:
        self._listens = ListenHandler(self.changes.bus)
        self._saved = WorkflowTools(self.app.store.workflows)
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
        """Clients are told of workflows that others save, for as long as the block is open."""
        await self.changes.look(self.app)
        watch = asyncio.create_task(self.changes.watch(self.app))
        try:
            yield
        finally:
            watch.cancel()
            self.close()

    def close(self) -> None:
        """The server stops: what runs goes on with the next process, and is not cancelled."""
        self.calls.close()
        self._listens.close()

    def bench(self, context: Context) -> Workbench:
        return Workbench(self.app, self.asks(context))

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
        bench = self.bench(context)
        tool = await tool_named(bench, self._saved, params.name)
        if tool is None:
            if params.name in verbs() and verbs()[params.name].effect != "reads":
                await self.deeds.refused(context, bench.caller, params.name, params.arguments or {})
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:100]!r}: tools/list shows those there are")
        result = await self._called(context, bench, tool, params.arguments or {})
        if tool.changes_library and not result.is_error:
            await self.changes.look(self.app)
        return result

    async def _called(
        self, context: Context, bench: Workbench, tool: VerbTool | WorkflowTool, arguments: JsonObject
    ) -> CallToolResult:
        if not tool.is_deed:
            return await self.calls.made(context, bench, tool, arguments)
        async with self.deeds.told(context, bench.caller, tool.shown.name, arguments) as deed:
            result = await self.calls.made(context, bench, tool, arguments)
            deed.answer = cast("JsonObject", result.structured_content or {})
        return result

    async def _list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=await resources.listed(self.bench(context)))

    async def _list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def _read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await resources.read(self.bench(context), str(params.uri))

    async def _list_prompts(self, context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=list(prompts.PROMPTS))

    async def _get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        return await prompts.given(self.bench(context), params.name, params.arguments or {})
