"""Client of one MCP server, a local command or a URL: one shared connection, reopened by the next call after it breaks;
and the tools of the server, as `server__tool`.

    tools(), call() ─▶ connected? ─ no ─▶ a new task opens the connection and holds it until close() or a break
                           └─ yes ─▶ send the request, within the timeout of the server

The connection has its own task because the SDK requires the same task to open and close it, while callers come and go.
The operator defines servers in the settings, and admins in the web app.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.json_schema import JsonSchema, JsonSchemaInvalid
from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure, connection_problem, failure_by
from pointsman.errors import OperatorError
from pointsman.extras import ExtraMissing, need
from pointsman.ports import SecretRule, ToolSpec
from pointsman.redaction import NOTHING, Redaction, head, redaction_of
from pointsman.tools.egress.addresses import SecretHosts, check_secrets
from pointsman.tools.mcp.process import MALFORMED, NOT_JSON_RPC, ServerProcess
from pointsman.tools.tool import Origin, Tool, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject, Seconds

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Client
    from mcp.client._transport import Transport
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as OfferedTool
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from pointsman.tools.egress.http_calls import EgressTransport

    Place = tuple[str | int, ...]

NAME = r"^[A-Za-z_][\w-]{0,30}$"


class McpServerDescription(BaseModel):
    """One server."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    command: tuple[str, ...] = ()
    """The program and its arguments; the engine uses its standard input and output."""
    env: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """The environment variables of the program, besides those for finding programs and the home directory.

    Values may be handles: `secret.NAME`.
    """
    url: str = ""
    """Or its address (streamable HTTP)."""
    headers: dict[str, str] = Field(default_factory=dict[str, str], repr=False)
    """Values may be handles."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that may be called."""
    requires_approval: tuple[str, ...] = ()
    """Patterns of tools whose calls a person must approve."""
    timeout: Duration = Duration(Seconds(60.0))
    """Time limit of a connection, and of a call."""

    @model_validator(mode="after")
    def _one_way(self) -> McpServerDescription:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either `command` or `url`")
        return self


def misfit(why: ValidationError) -> str:
    """Return the first validation error and its path."""
    errors = why.errors(include_url=False, include_context=False)
    first = errors[0]
    at, branch = _branch(first)
    if branch:
        errors = [error for error in errors if _branch(error)[0] == at]
        other = {
            _branch(error)[1] for error in errors if error["type"] == "literal_error" and error["loc"][-1] == "type"
        }
        relevant = [error for error in errors if _branch(error)[1] not in other]
        if not relevant:
            value = cast("object", first["input"])
            kind = cast("dict[str, object]", value).get("type") if isinstance(value, dict) else value
            return f"`{_path(at)}` is of the unknown type {head(str(kind), 40)!r}"
        first = relevant[0]
    text = first["msg"]
    path = _path(first["loc"])
    if first["type"] == "missing":
        return f"`{path}` is missing"
    return f"`{path}` {text.removeprefix('Input ')}" if text.startswith("Input ") else f"`{path}`: {text}"


def _branch(error: ErrorDetails) -> tuple[Place, str]:
    """Return the path of a choice between models, and the model; without a choice, an empty model name."""
    for index, part in enumerate(error["loc"]):
        if _is_model(part):
            return error["loc"][:index], str(part)
    return error["loc"], ""


def _is_model(part: str | int) -> bool:
    """Model names begin with a capital, field names do not."""
    return isinstance(part, str) and part[:1].isupper()


def _path(place: Sequence[str | int]) -> str:
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif not _is_model(part):
            path += f".{part}" if path else part
    return path or "result"


T = TypeVar("T")

LISTED_MAX: Final = 1000
"""Maximum number of tools of one server; no model could be shown more."""
PAGES_MAX: Final = 50
EXCERPT: Final = 1000

HANDLE: Final = "secret."
SESSION: Final = "mcp-session-id"
CLOSED: Final = -32000
CLOSED_MESSAGES: Final = ("Connection closed", "SSE stream ")
"""Prefixes of the SDK's messages after an HTTP connection ended. Servers may use the same code for their own errors."""
STATUS_MESSAGE: Final = "Server returned an error response"
PARSE_MESSAGE: Final = "Failed to parse JSON response"
"""The SDK's messages for an HTTP error without a protocol message, and for a body that is not one."""
LINES_SHOWN: Final = 3
"""Number of lines of standard error that the message of a failure contains."""
LOG: Final = logging.getLogger("pointsman.tools")


class McpServer:
    """A client of one MCP server."""

    def __init__(
        self,
        name: str,
        described: McpServerDescription,
        *,
        open_transport: Callable[[], EgressTransport],
        resolved: Callable[[str], str | None],
        rule: Callable[[str], SecretRule] = lambda _: SecretRule(),
        known: Callable[[], Redaction] = lambda: NOTHING,
        defined: str = "",
    ) -> None:
        """`open_transport` makes the transport for an address; `resolved` returns the secret of a handle; `rule`
        returns where a secret may be sent besides this server; `known` masks all secrets of the app; `defined` is the
        place of the description, for hints (default: its section of the settings)."""
        self.name = name
        self.described = described
        self._defined = defined or f"under [mcp.{name}] in the settings"
        self._requests = 0
        """The number of requests in progress."""
        self._retired = False
        self._open_transport = open_transport
        self._resolved = resolved
        self._rule = rule
        self._known = known
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._process: ServerProcess | None = None
        """The process of the newest connection, if the server is started by a command."""
        self._warned = False
        self._ending: set[asyncio.Task[None]] = set()
        """Tasks that close connections."""
        self._given: frozenset[str] = frozenset()
        """The secrets that the server received."""
        self._outputs: dict[str, JsonObject | None] = {}
        """Output schemas of its tools, by tool name; None: the tool has none."""

    @property
    def timeout_s(self) -> float:
        return self.described.timeout.seconds

    async def tools(self, *, needed_by: str = "") -> list[OfferedTool]:
        """Return the tools of the server. `needed_by`: the tool whose call needs the list. Raises `ToolFailed`."""

        async def listed(client: Client) -> list[OfferedTool]:
            tools: list[OfferedTool] = []
            cursor: str | None = None
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                tools += page.tools
                cursor = page.next_cursor
                if not cursor or len(tools) >= LISTED_MAX:
                    break
            return tools[:LISTED_MAX]

        tools = await self._request(listed, f"its tools (for {needed_by!r})" if needed_by else "its tools")
        self._outputs = {tool.name: cast("JsonObject | None", tool.output_schema) for tool in tools}
        return tools

    async def call(self, tool: str, arguments: JsonObject) -> Json:
        """Call a tool and return its result. Raises `ToolFailed`, also for errors that the server reports."""

        async def called(client: Client) -> CallToolResult:
            return await client.call_tool(tool, cast("dict[str, object]", arguments))

        answer = await self._request(called, repr(tool))
        if not answer.is_error:
            await self._check(tool, answer)
        return result_of(f"{self.name}__{tool}", answer)

    async def _check(self, tool: str, answer: CallToolResult) -> None:
        """Validate a result against the output schema of its tool. Raises `ToolFailed`."""
        if tool not in self._outputs:
            await self.tools(needed_by=tool)
        schema = self._outputs.setdefault(tool, None)
        if schema is None:
            return
        try:
            misfits = JsonSchema(cast("Json", schema)).misfits(cast("Json", answer.structured_content), most=1)
            wrong = "".join(f": {misfit.message}" for misfit in misfits)
        except JsonSchemaInvalid as why:
            wrong = f", because {why}"
        if wrong:
            message = (
                f"the MCP server {self.name!r} answered {tool!r} with a result that does not fit its schema{wrong}"
            )
            message = head(self._masked(message), EXCERPT)
            raise ToolFailed(Failure(code="tool-failed", message=message, hint="Correct the server."))

    async def close(self) -> None:
        """Close the connection and end the server's command. A later call opens a new connection."""
        self._drop(self._connection)
        await asyncio.gather(*self._ending)

    def retire(self) -> None:
        """Close the connection after the requests in progress."""
        self._retired = True
        if not self._requests:
            self._drop(self._connection)

    async def _request(self, ask: Callable[[Client], Awaitable[T]], what: str) -> T:
        """Send a request, over a new connection if the present one is broken. A request is never sent twice."""
        self._requests += 1
        try:
            return await self._asked(ask, what)
        finally:
            self._requests -= 1
            if self._retired:
                self.retire()

    async def _asked(self, ask: Callable[[Client], Awaitable[T]], what: str) -> T:
        if self._connection is None:
            # The import takes more than a second and would block the event loop.
            await asyncio.to_thread(self._import_sdk)
        bound, connection = asyncio.timeout(self.timeout_s), None
        try:
            async with bound:
                connection = await self._connected(what)
                return await connection.during(ask(connection.client))
        except TimeoutError as why:
            if not bound.expired():
                raise self._failure_of(why, what, connection) from why
            message = f"the MCP server {self.name!r} did not answer about {what} within {self.timeout_s:g} s"
            hint = f"Correct the server, or raise `timeout` {self._defined}."
            raise self._with_printed("tool-timeout", message, hint, self._process) from why
        except Exception as why:
            raise self._failure_of(_innermost(why), what, connection) from why
        finally:
            self._warn_of_noise()

    def _import_sdk(self) -> None:
        try:
            need("tools", f"The MCP server {self.name!r}")
        except ExtraMissing as why:
            raise ToolFailed(failure_by(why)) from why
        for name in ("mcp", "mcp.client", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.types", "httpx2"):
            import_module(name)

    def _failure_of(self, why: BaseException, what: str, connection: _Connection | None) -> ToolFailed:
        """Return the failure of a call for an exception of the SDK; `connection` is None if it could not be opened."""
        from pydantic import ValidationError

        from mcp import MCPError

        if isinstance(why, ToolFailed):
            return why
        if isinstance(why, ConnectionError) or (connection is not None and connection.is_lost(why)):
            self._drop(connection)
            return self._unreachable(why, connection)
        hint = "Correct the server."
        if isinstance(why, ValidationError):
            message = f"the MCP server {self.name!r} answered {what} with a malformed result: {misfit(why)}"
            return self._failed("tool-failed", message, hint=hint)
        if not isinstance(why, MCPError):
            message = f"the MCP server {self.name!r} could not be asked for {what}: {type(why).__name__}: {why}"
            return self._failed("tool-failed", message)
        if why.data == MALFORMED or (self.described.url and why.message.startswith(PARSE_MESSAGE)):
            message = f"the MCP server {self.name!r} answered {what} with a malformed result: {NOT_JSON_RPC}"
            return self._failed("tool-failed", message, hint=hint)
        message = f"the MCP server {self.name!r} refused {what} with the error {why.code}: {why.message}"
        return self._failed("tool-failed", message, details={"code": why.code})

    def _drop(self, connection: _Connection | None) -> None:
        """Close a connection in the background; the next call opens another."""
        if connection is None:
            return
        if connection is self._connection:
            self._connection = None
        ending = asyncio.create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _connected(self, what: str) -> _Connection:
        async with self._opening:
            connection = self._connection
            if connection is None or connection.is_over:
                self._connection = None
                connection = _Connection(self._client)
                try:
                    await connection.opened()
                except BaseException as raised:
                    self._drop(connection)
                    if not isinstance(raised, Exception):
                        raise
                    why = _innermost(raised)
                    if connection.is_lost(why) or not _is_answer(why):
                        raise self._unreachable(why, connection) from raised
                    raise self._failure_of(why, what, None) from raised
                self._connection = connection
            return connection

    @asynccontextmanager
    async def _client(self, connection: _Connection) -> AsyncGenerator[Client]:
        from mcp.client import Client

        async with AsyncExitStack() as stack:
            transport = self._command(connection) if self.described.command else await self._address(stack, connection)
            client = await stack.enter_async_context(Client(transport, cache=None))
            # The SDK validates without limits, on the event loop: a schema of the server could block this process.
            client.session.validate_tool_result = _unchecked
            yield client

    def _command(self, connection: _Connection) -> Transport:
        process = ServerProcess(self.described.command, self._secrets(self.described.env), self._masked)
        self._process = connection.process = process
        return process.transport()

    async def _address(self, stack: AsyncExitStack, connection: _Connection) -> Transport:
        from mcp.client.streamable_http import streamable_http_client

        http = await stack.enter_async_context(self.http_client())
        http.event_hooks["response"].append(connection.note)
        return streamable_http_client(self.described.url, http_client=http)

    def http_client(self) -> httpx2.AsyncClient:
        """Return a client that sends the headers of this server and refuses to send their secrets to other hosts.
        Raises `ToolFailed` for a secret that is not set."""
        import httpx2

        headers = self._secrets(self.described.headers)
        guards = [*self._guards(headers)]

        async def check(request: httpx2.Request) -> None:
            check_secrets(request, guards, led_on=True)

        return httpx2.AsyncClient(
            transport=self._open_transport(),
            headers=headers,
            timeout=httpx2.Timeout(self.timeout_s),
            trust_env=False,
            event_hooks={"request": [check]},
        )

    def _guards(self, headers: Mapping[str, str]) -> Iterator[SecretHosts]:
        """Yield where each secret may be sent: to the host of this server, since the settings name both together, and
        to the hosts of the secret's own rule."""
        parts = urlsplit(self.described.url)
        for header, value in headers.items():
            if value in self._given:
                name = self.described.headers[header].removeprefix(HANDLE)
                own = f"{parts.scheme}://{parts.netloc}"
                yield SecretHosts(name=name, value=value, hosts=(own, *self._rule(name).hosts))

    def _secrets(self, values: Mapping[str, str]) -> dict[str, str]:
        result: dict[str, str] = {}
        for name, value in values.items():
            try:
                text = self._resolved(value)
            except OperatorError as why:
                raise ToolFailed(failure_by(why)) from why
            if text is None:
                message = f"the secret {value!r} of the MCP server {self.name!r} is not set"
                raise ToolFailed(
                    Failure(
                        code="secret-missing", message=message, hint="Set it, or remove the handle from the settings."
                    )
                )
            result[name] = text
        self._given = frozenset(result[name] for name in values if result[name] != values[name])
        return result

    def _masked(self, text: str) -> str:
        """Return the text with the secrets of this server and all other known secrets masked."""
        return self._known().text(redaction_of(self._given).text(text))

    def _unreachable(self, why: BaseException, connection: _Connection | None) -> ToolFailed:
        process = None if connection is None else connection.process
        reason = "" if connection is None else connection.end_of(why)
        if not reason and isinstance(why, OSError) and why.filename:
            reason = f"{why.strerror}: {why.filename!r}"
        transport = "command" if self.described.command else "url"
        hint = f"Correct `{transport}` {self._defined}, or start the server."
        if not reason and self.described.url:
            import httpx2

            if isinstance(why, httpx2.TransportError):
                reason, check = connection_problem(why)
                hint = f"{check} Its `url` is set {self._defined}."
        message = f"the MCP server {self.name!r} cannot be reached: {reason or str(why) or type(why).__name__}"
        return self._with_printed("mcp-unreachable", message, hint, process)

    def _with_printed(self, code: str, message: str, hint: str, process: ServerProcess | None) -> ToolFailed:
        """Return a failure with the end of standard error and the exit code of a process."""
        details: JsonObject = {}
        if process is not None and (printed := process.stderr.tail()):
            last = " | ".join(printed.splitlines()[-LINES_SHOWN:])
            message = f"{message}; it printed: {last}"
            details["stderr"] = printed
        if process is not None and process.exit_code is not None:
            details["exitCode"] = process.exit_code
        return self._failed(code, message, hint=hint, retryable=True, details=details)

    def _failed(
        self, code: str, message: str, *, hint: str = "", retryable: bool = False, details: JsonObject | None = None
    ) -> ToolFailed:
        """Return a failure with secrets masked; its details contain stray lines of the server's standard output."""
        details = {**(details or {})}
        if self._process is not None and self._process.noise:
            details["stdout"] = self._process.noise
        message = head(self._masked(message), EXCERPT)
        return ToolFailed(Failure(code=code, message=message, hint=hint, retryable=retryable, details=details or None))

    def _warn_of_noise(self) -> None:
        """Log once that the server writes lines that are not messages to its standard output."""
        process = self._process
        if process is None or not process.noise_lines or self._warned:
            return
        self._warned = True
        text = "the MCP server %r wrote %d lines to standard output that are not JSON-RPC messages; the first: %s"
        LOG.warning(text, self.name, process.noise_lines, process.noise)


class _Connection:
    """A connection to an MCP server, held open by its own task."""

    def __init__(self, opening: Callable[[_Connection], AbstractAsyncContextManager[Client]]) -> None:
        self._opening = opening
        self._forgotten = False
        """Whether the server has dropped the session."""
        self._status = 0
        """The last HTTP error status."""
        self.process: ServerProcess | None = None
        self._open = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._task = asyncio.create_task(self._stay_connected())
        self._task.add_done_callback(_retrieve)

    @property
    def is_over(self) -> bool:
        return self._task.done()

    @property
    def client(self) -> Client:
        return self._open.result()

    def is_lost(self, why: BaseException) -> bool:
        """Return whether a request failed because the connection ended, and not because of the server's answer."""
        from mcp import MCPError

        if self.process is not None:
            return bool(self.process.end)
        if self._forgotten or not isinstance(why, MCPError):
            return self._forgotten
        return (why.code == CLOSED and why.message.startswith(CLOSED_MESSAGES)) or why.message == STATUS_MESSAGE

    def end_of(self, why: BaseException) -> str:
        """Return how the connection ended; empty: only the exception describes it."""
        if self.process is not None:
            return self.process.end
        if self._forgotten:
            return "it does not recognize the session"
        return f"it answered with the HTTP status {self._status}" if str(why) == STATUS_MESSAGE else ""

    async def note(self, response: httpx2.Response) -> None:
        """Record the status of an HTTP error, and whether the server has dropped the session."""
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            self._status = response.status_code
        self._forgotten |= response.status_code == HTTPStatus.NOT_FOUND and SESSION in response.request.headers

    async def opened(self) -> None:
        """Wait until the connection is open. Raises the error that prevented it."""
        await asyncio.wait([self._open, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not self._open.done():
            await self._task
            raise ConnectionError("it closed the connection at once")

    async def during(self, pending: Awaitable[T]) -> T:
        """Return the result of a request. Raises `ConnectionError` if the connection breaks first."""
        task = asyncio.ensure_future(pending)
        try:
            await asyncio.wait([task, self._task], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionResetError("the connection broke")
            return task.result()
        finally:
            task.cancel()

    async def close(self) -> None:
        """Close the connection. Never raises."""
        self._end.set()
        if not self._open.done():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _stay_connected(self) -> None:
        async with self._opening(self) as client:
            self._open.set_result(client)
            await self._end.wait()


async def _unchecked(name: str, result: CallToolResult) -> None:
    """Replace the validation of the SDK with none: `McpServer` validates results itself."""


def result_of(name: str, answer: CallToolResult) -> Json:
    """Return the structured content, or else the content parts: text as strings, others as objects. Raises
    `ToolFailed` if the server reports an error."""
    content: list[Json] = [_content(one) for one in answer.content]
    if answer.is_error:
        texts = head(" ".join(part for part in content if isinstance(part, str)), EXCERPT)
        raise ToolFailed(Failure(code="tool-failed", message=f"the tool {name!r} failed: {texts or 'it failed'}"))
    if answer.structured_content is not None:
        structured = cast("Json", answer.structured_content)
        # A server wraps a result that is not an object as {"result": …}: remove the wrapping.
        return structured["result"] if isinstance(structured, dict) and [*structured] == ["result"] else structured
    return content[0] if len(content) == 1 else content


def _content(block: ContentBlock) -> Json:
    block_json = cast("JsonObject", block.model_dump(mode="json", by_alias=True, exclude_none=True))
    return (
        block_json["text"]
        if block_json.get("type") == "text"
        else {key: value for key, value in block_json.items() if key != "_meta"}
    )


def _innermost(why: BaseException) -> BaseException:
    while isinstance(why, BaseExceptionGroup):
        why = cast("BaseExceptionGroup[BaseException]", why).exceptions[0]
    return why


def _is_answer(why: BaseException) -> bool:
    """Return whether the server answered, with an error or a malformed message."""
    from pydantic import ValidationError

    from mcp import MCPError

    return isinstance(why, MCPError | ValidationError | ToolFailed)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Mark the exception of a task as retrieved; the caller that opened the connection has received it."""
    if not task.cancelled():
        task.exception()


SEPARATOR: Final = "__"
NAME_CHARS_MAX: Final = 64
ANYTHING: Final[JsonObject] = {"type": "object"}

_WORD: Final = re.compile(r"[^A-Za-z0-9_-]")


class McpTools:
    """The tools of a server as a source of the registry."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self.prefix = server.name + SEPARATOR
        self.origin: Origin = "mcp"
        self.lasts = True

    async def listed(self) -> list[Tool]:
        """Return the tools that may be called. Raises `ToolFailed`."""
        tools: dict[str, Tool] = {}
        for offered in await self._server.tools():
            if _matches(offered.name, self._server.described.tools):
                name = (self.prefix + _WORD.sub("_", offered.name))[:NAME_CHARS_MAX]
                tools.setdefault(name, self._tool(name, offered.name, offered))
        return [*tools.values()]

    def stand_in(self, name: str) -> Tool | None:
        """Return a tool before the server was listed; None: it may not be called."""
        native = name.removeprefix(self.prefix)
        return self._tool(name, native, None) if _matches(native, self._server.described.tools) else None

    async def close(self) -> None:
        await self._server.close()

    def retire(self) -> None:
        self._server.retire()

    def _tool(self, name: str, native: str, offered: OfferedTool | None) -> Tool:
        annotations = None if offered is None else offered.annotations
        spec = ToolSpec(
            name=name,
            description="" if offered is None else offered.description or "",
            parameters=ANYTHING if offered is None else cast("JsonObject", offered.input_schema),
            idempotent=annotations is not None and bool(annotations.read_only_hint or annotations.idempotent_hint),
            requires_approval=_matches(native, self._server.described.requires_approval),
        )
        return McpTool(self._server, native, spec)


class McpTool:
    """One tool of a server."""

    def __init__(self, server: McpServer, native: str, spec: ToolSpec) -> None:
        self._server = server
        self.native = native
        """As the server names it."""
        self.name = spec.name
        self.spec = spec
        self.limits = ToolLimits()

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Call the tool. Raises `ToolFailed`."""
        return await self._server.call(self.native, arguments)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
