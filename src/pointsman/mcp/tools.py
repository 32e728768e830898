"""Tools of MCP clients: those shown to a caller, their calls, and the audit entries of the calls.

A caller sees the verbs that the role allows, and the saved workflows that it may see and run. A call reports events as
progress; a cancelled call cancels its execution. A call that ends because the connection broke or the server stops
leaves its durable execution running. Only an explicit act of the client ends it: a cancellation, or, in the newer
protocol over HTTP, closing the response it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp import MCPError
from pointsman.auth.verbs import rule_of
from pointsman.authoring.tools import Effect, ProgressListener, Verb, VerbCall, Workbench, error_of, verbs
from pointsman.errors import PointsmanError
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.values import Json, JsonObject, JsonView
from pointsman.workflows.tools import PREFIX, WorkflowTools

Context: TypeAlias = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class McpVerb:
    """A verb of the library as a tool."""

    verb: Verb[Any]

    @property
    def shown(self) -> Tool:
        verb = self.verb
        return Tool(
            name=verb.name,
            description=verb.says,
            input_schema=verb.schema,
            annotations=hints(verb.effect),
        )

    @property
    def changes_library(self) -> bool:
        return self.verb.role == "editor"

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView:
        return await self.verb.call(call, arguments)


@dataclass(frozen=True, slots=True)
class McpWorkflow:
    """A saved workflow as a tool; a call runs it."""

    name: str
    description: str
    parameters: JsonObject
    workflow: str
    changes_library: bool = False

    @property
    def shown(self) -> Tool:
        return Tool(
            name=self.name,
            description=self.description,
            input_schema=self._schema,
            annotations=hints("changes"),
        )

    @property
    def _schema(self) -> JsonObject:
        """Return the schema of the arguments, which is an object: another input becomes its only member."""
        schema = self.parameters
        if schema.get("type", "object") == "object":
            return {"type": "object", **schema}
        return {"type": "object", "properties": {"input": schema}, "required": ["input"], "additionalProperties": False}

    def _input(self, arguments: JsonObject) -> Json:
        return arguments if self.parameters.get("type", "object") == "object" else arguments.get("input")

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView:
        """Run the workflow. Errors of the start, such as an invalid input, are in the answer."""
        try:
            execution = await call.bench.start(self.workflow, self._input(arguments), key=call.key)
            call.began(execution.id)
            return await call.bench.watched(execution, call.listener)
        except PointsmanError as why:
            await call.bench.acting.record_refusal(rule_of(ExecutionVerbs.start), why.code)
            return error_of(why)


def hints(effect: Effect) -> ToolAnnotations:
    """Return annotations that clients may show people before a call."""
    return ToolAnnotations(
        read_only_hint=effect == "reads", destructive_hint=effect == "destroys", open_world_hint=effect != "reads"
    )


def verbs_of(bench: Workbench) -> list[McpVerb]:
    """Return the verbs that the caller's role allows."""
    return [McpVerb(verb) for verb in verbs().values() if bench.caller.has(verb.role)]


async def workflows_of(bench: Workbench, saved: WorkflowTools) -> list[McpWorkflow]:
    """Return the saved workflows that the caller may run. `saved` caches those read before."""
    return [
        McpWorkflow(spec.name, spec.description, spec.parameters, spec.workflow)
        for spec in await bench.workflows.tools(saved)
    ]


async def tool_named(bench: Workbench, saved: WorkflowTools, name: str) -> McpVerb | McpWorkflow | None:
    """Return a tool by name; None if this caller has no such tool."""
    offered = await workflows_of(bench, saved) if name.startswith(PREFIX) else verbs_of(bench)
    return next((tool for tool in offered if tool.shown.name == name), None)


Place: TypeAlias = tuple[str, str]
"""Identity of a call: its connection and its id."""
Waited: TypeAlias = tuple[Workbench, str]
"""The caller, and the execution that the call waits for."""

WAITED_MAX: Final = 10_000
SESSION: Final = "mcp-session-id"
NOTES: Final = {
    "step_started": "started",
    "step_passed": "passed",
    "step_succeeded": "done",
    "step_failed": "failed",
    "retry_scheduled": "tries again",
    "gate_opened": "asks a person",
}
"""Kinds of events reported as progress, with their text."""


class OfferedTool(Protocol):
    """A tool that can be called."""

    @property
    def shown(self) -> Tool: ...

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView: ...


@dataclass(slots=True)
class PendingToolCalls:
    """The calls of one server that wait for an execution.

    The newer protocol over HTTP has no connections, and clients choose request ids independently. An id does not
    identify a
    call there, so each call keeps its own execution.
    """

    _waited: dict[Place, Waited] = field(default_factory=dict[Place, Waited])
    """By the identity that a client's cancellation names."""
    _closing: bool = False
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def close(self) -> None:
        """From now on cancel nothing."""
        self._closing = True

    async def made(
        self, context: Context, bench: Workbench, tool: OfferedTool, arguments: JsonObject
    ) -> CallToolResult:
        place = None if _ends_by_leaving(context) else _call_scope(context, str(context.request_id))
        waited: Waited | None = None

        def began(execution: str) -> None:
            nonlocal waited
            waited = bench, execution
            if place is not None:
                self._waited[place] = waited
                while len(self._waited) > WAITED_MAX:
                    del self._waited[next(iter(self._waited))]

        try:
            async with progress(context) as listener:
                answer = await tool.call(VerbCall(bench=bench, listener=listener, began=began), arguments)
        except asyncio.CancelledError:
            if place is None and not self._closing:
                self._end(waited)
            raise
        if place is not None:
            self._waited.pop(place, None)
        return result_of(answer)

    async def cancelled(self, context: Context) -> None:
        """Handle a cancellation: cancel the call's execution, in whichever order the two messages arrive."""
        request_id = (context.params or {}).get("requestId")
        if request_id is not None and not _ends_by_leaving(context):
            self._end(self._waited.pop(_call_scope(context, str(request_id)), None))

    def _end(self, waited: Waited | None) -> None:
        if waited is not None:
            task = asyncio.create_task(_cancel(*waited))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _cancel(bench: Workbench, execution: str) -> None:
    with suppress(PointsmanError):  # It ended meanwhile.
        await bench.cancel(execution, "the call was cancelled")


def _call_scope(context: Context, request: str) -> Place:
    headers = getattr(context.request, "headers", {})
    return str(headers.get(SESSION, "")), request


def _ends_by_leaving(context: Context) -> bool:
    """Return whether closing the response is the only way to cancel: over HTTP in the newer protocol."""
    return context.request is not None and context.protocol_version in MODERN_PROTOCOL_VERSIONS


@asynccontextmanager
async def progress(context: Context) -> AsyncGenerator[ProgressListener, None]:
    """Report events as progress to a client that asked for it, in order, without delaying the execution."""
    notes: asyncio.Queue[str | None] = asyncio.Queue()

    def listener(event: JsonObject) -> None:
        note = NOTES.get(str(event.get("kind")))
        if note is not None:
            notes.put_nowait(f"{event.get('node', event.get('step', ''))} {note}".strip())

    async def tell() -> None:
        number = 0
        while (message := await notes.get()) is not None:
            number += 1
            with suppress(MCPError):  # The client is gone.
                await context.session.report_progress(number, None, message)

    follower = asyncio.create_task(tell())
    try:
        yield listener
        notes.put_nowait(None)
        await follower
    finally:
        follower.cancel()


def result_of(answer: JsonView) -> CallToolResult:
    """Return an answer as structured data, and as the same text for clients that show only text."""
    text = msgspec.json.encode(answer).decode()
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content={**answer}, is_error="error" in answer
    )
