"""One MCP server: a connection that is kept for as long as this process and its loop live, and made anew when it broke.

    tools(), call() ─▶ connected? ─ no ─▶ a task of its own opens the connection, and holds it until close() or a break
                           └─ yes ─▶ ask, within the time of the server

The task is there because whoever opens a connection of the SDK must also close it, and callers come and go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeVar, cast
from urllib.parse import urlsplit

from pointsman.definition.json_schema import JsonSchema, SchemaWrong
from pointsman.engine.failures import Failure, failure_by
from pointsman.errors import OperatorError
from pointsman.ports import SecretRule
from pointsman.redaction import NOTHING, Redaction, head, redaction_of
from pointsman.tools.egress.secret_hosts import SecretHosts, check_secrets
from pointsman.tools.failures import ToolFailed
from pointsman.tools.mcp.config import McpServerDescription
from pointsman.tools.mcp.process import MALFORMED, NOT_JSON_RPC, ServerProcess
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Client
    from mcp.client._transport import Transport
    from mcp.types import CallToolResult, ContentBlock, Tool
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from pointsman.tools.egress.transport import Door

    Place = tuple[str | int, ...]


def misfit(why: ValidationError) -> str:
    """Return the first thing that is wrong, and where."""
    errors = why.errors(include_url=False, include_context=False)
    first = errors[0]
    at, branch = _branch(first)
    if branch:
        errors = [one for one in errors if _branch(one)[0] == at]
        other = {_branch(one)[1] for one in errors if one["type"] == "literal_error" and one["loc"][-1] == "type"}
        meant = [one for one in errors if _branch(one)[1] not in other]
        if not meant:
            given = cast("object", first["input"])
            kind = cast("dict[str, object]", given).get("type") if isinstance(given, dict) else given
            return f"`{_path(at)}` is of the unknown type {str(kind)[:40]!r}"
        first = meant[0]
    text = first["msg"]
    path = _path(first["loc"])
    if first["type"] == "missing":
        return f"`{path}` is missing"
    return f"`{path}` {text.removeprefix('Input ')}" if text.startswith("Input ") else f"`{path}`: {text}"


def _branch(error: ErrorDetails) -> tuple[Place, str]:
    """Return where a choice between several models was made, and the model; without a choice, an empty name."""
    for index, part in enumerate(error["loc"]):
        if _is_model(part):
            return error["loc"][:index], str(part)
    return error["loc"], ""


def _is_model(part: str | int) -> bool:
    """Names of models begin with capitals, names of fields do not."""
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
"""Tools of one server; more could be shown to no model."""
PAGES_MAX: Final = 50
EXCERPT: Final = 1000

HANDLE: Final = "secret."
SESSION: Final = "mcp-session-id"
CLOSED: Final = -32000
CLOSED_MESSAGES: Final = ("Connection closed", "SSE stream ")
"""How the messages of the SDK begin when an HTTP connection ended. Servers may use the same code for their errors."""
STATUS_MESSAGE: Final = "Server returned an error response"
PARSE_MESSAGE: Final = "Failed to parse JSON response"
"""What the SDK reports of an HTTP error without a message of the protocol, and of a body that is not one."""
LINES_SHOWN: Final = 3
"""Lines of standard error in the message of a failure."""
LOG: Final = logging.getLogger("pointsman.tools")


class McpServer:
    """A server of this installation."""

    def __init__(
        self,
        name: str,
        described: McpServerDescription,
        *,
        door: Callable[[], Door],
        resolved: Callable[[str], str | None],
        rule: Callable[[str], SecretRule] = lambda _: SecretRule(),
        known: Callable[[], Redaction] = lambda: NOTHING,
    ) -> None:
        """`door` makes the transport of an address; `resolved` returns the secret of a handle, `rule` where the secret
        of a name may be sent beside the address of this server; `known` masks every secret of the installation."""
        self.name = name
        self.described = described
        self._door = door
        self._resolved = resolved
        self._rule = rule
        self._known = known
        self._connection: _Connection | None = None
        self._opening = asyncio.Lock()
        self._process: ServerProcess | None = None
        """The process of the newest connection, if a command starts it."""
        self._warned = False
        self._ending: set[asyncio.Task[None]] = set()
        """Connections that are being closed."""
        self._given: frozenset[str] = frozenset()
        """The secrets that it was given."""
        self._outputs: dict[str, JsonObject | None] = {}
        """What it says of the results of its tools, by their names."""

    @property
    def timeout_s(self) -> float:
        return self.described.timeout.seconds

    async def tools(self, *, needed_by: str = "") -> list[Tool]:
        """Return what it offers. `needed_by`: the tool whose call needs the list. Raises `ToolFailed`."""

        async def listed(client: Client) -> list[Tool]:
            found: list[Tool] = []
            cursor: str | None = None
            for _ in range(PAGES_MAX):
                page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                found += page.tools
                cursor = page.next_cursor
                if not cursor or len(found) >= LISTED_MAX:
                    break
            return found[:LISTED_MAX]

        tools = await self._asked(listed, f"its tools (for {needed_by!r})" if needed_by else "its tools")
        self._outputs = {tool.name: cast("JsonObject | None", tool.output_schema) for tool in tools}
        return tools

    async def call(self, tool: str, arguments: JsonObject) -> Json:
        """What a tool answers. Raises `ToolFailed`: also for what the server says went wrong."""

        async def called(client: Client) -> CallToolResult:
            return await client.call_tool(tool, cast("dict[str, object]", arguments))

        answer = await self._asked(called, repr(tool))
        if not answer.is_error:
            await self._check(tool, answer)
        return result_of(f"{self.name}__{tool}", answer)

    async def _check(self, tool: str, answer: CallToolResult) -> None:
        """Hold a result against the schema that the server gives for it. Raises `ToolFailed`."""
        if tool not in self._outputs:
            await self.tools(needed_by=tool)
        schema = self._outputs.setdefault(tool, None)
        if schema is None:
            return
        try:
            misfits = JsonSchema(cast("Json", schema)).misfits(cast("Json", answer.structured_content), most=1)
            wrong = "".join(f": {one.message}" for one in misfits)
        except SchemaWrong as why:
            wrong = f", because {why}"
        if wrong:
            message = (
                f"the MCP server {self.name!r} answered {tool!r} with a result that does not fit its schema{wrong}"
            )
            message = head(self._masked(message), EXCERPT)
            raise ToolFailed(Failure(code="tool-failed", message=message, hint="Correct the server."))

    async def close(self) -> None:
        """End the connection; a command ends with it. Another call opens it again."""
        self._drop(self._connection)
        await asyncio.gather(*self._ending)

    async def _asked(self, ask: Callable[[Client], Awaitable[T]], what: str) -> T:
        """Ask, over a new connection where the kept one is broken. What was sent once is not sent twice."""
        if self._connection is None:
            # It takes more than a second, and the event loop must go on.
            await asyncio.to_thread(_import_sdk)
        bound, connection = asyncio.timeout(self.timeout_s), None
        try:
            async with bound:
                connection = await self._connected(what)
                return await connection.during(ask(connection.client))
        except TimeoutError as why:
            if not bound.expired():
                raise self._failure_of(why, what, connection) from why
            message = f"the MCP server {self.name!r} did not answer about {what} within {self.timeout_s:g} s"
            hint = f"Correct the server, or raise `timeout` under [mcp.{self.name}] in the settings."
            raise self._with_printed("tool-timeout", message, hint, self._process) from why
        except Exception as why:
            raise self._failure_of(_innermost(why), what, connection) from why
        finally:
            self._warn_of_noise()

    def _failure_of(self, why: BaseException, what: str, connection: _Connection | None) -> ToolFailed:
        """Return the failure of a call by what the SDK raised; `connection` is None if it could not be opened."""
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
        """End a connection without waiting for its end; the next call opens another."""
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
            # The SDK validates without bounds, on the event loop: a server's schema could stop this process.
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
        """Return a client that sends the headers of this server, and their secrets to no other host. Raises
        `ToolFailed` for a secret that is not set."""
        import httpx2

        headers = self._secrets(self.described.headers)
        guards = [*self._guards(headers)]

        async def check(request: httpx2.Request) -> None:
            check_secrets(request, guards, led_on=True)

        return httpx2.AsyncClient(
            transport=self._door(),
            headers=headers,
            timeout=httpx2.Timeout(self.timeout_s),
            trust_env=False,
            event_hooks={"request": [check]},
        )

    def _guards(self, headers: Mapping[str, str]) -> Iterator[SecretHosts]:
        """The settings name the secrets beside the address, so they may go there; elsewhere only as their own rules
        say."""
        parts = urlsplit(self.described.url)
        for header, value in headers.items():
            if value in self._given:
                name = self.described.headers[header].removeprefix(HANDLE)
                own = f"{parts.scheme}://{parts.netloc}"
                yield SecretHosts(name=name, value=value, hosts=(own, *self._rule(name).hosts))

    def _secrets(self, values: Mapping[str, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, value in values.items():
            try:
                said = self._resolved(value)
            except OperatorError as why:
                raise ToolFailed(failure_by(why)) from why
            if said is None:
                message = f"the secret {value!r} of the MCP server {self.name!r} is not set"
                raise ToolFailed(Failure(code="secret-missing", message=message, hint="Set it, or take it out."))
            found[name] = said
        self._given = frozenset(found[name] for name in values if found[name] != values[name])
        return found

    def _masked(self, text: str) -> str:
        """Return the text without the secrets that the server was given, and every other that is known."""
        return self._known().text(redaction_of(self._given).text(text))

    def _unreachable(self, why: BaseException, connection: _Connection | None) -> ToolFailed:
        process = None if connection is None else connection.process
        reason = "" if connection is None else connection.end_of(why)
        if not reason and isinstance(why, OSError) and why.filename:
            reason = f"{why.strerror}: {why.filename!r}"
        reason = reason or str(why) or type(why).__name__
        message = f"the MCP server {self.name!r} cannot be reached: {reason}"
        how = "command" if self.described.command else "url"
        hint = f"Correct `{how}` under [mcp.{self.name}] in the settings, or start the server."
        return self._with_printed("mcp-unreachable", message, hint, process)

    def _with_printed(self, code: str, message: str, hint: str, process: ServerProcess | None) -> ToolFailed:
        """Return a failure that shows the end of standard error and the exit code of a process."""
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
        """Return a failure without the secrets that the server was given, with what it printed besides messages."""
        details = {**(details or {})}
        if self._process is not None and self._process.noise:
            details["stdout"] = self._process.noise
        message = head(self._masked(message), EXCERPT)
        return ToolFailed(Failure(code=code, message=message, hint=hint, retryable=retryable, details=details or None))

    def _warn_of_noise(self) -> None:
        """Log once that the server writes other lines than messages to its standard output."""
        process = self._process
        if process is None or not process.noise_lines or self._warned:
            return
        self._warned = True
        text = "the MCP server %r wrote %d lines to standard output that are not JSON-RPC messages; the first: %s"
        LOG.warning(text, self.name, process.noise_lines, process.noise)


class _Connection:
    """A connection held by a task."""

    def __init__(self, opening: Callable[[_Connection], AbstractAsyncContextManager[Client]]) -> None:
        self._opening = opening
        self._forgotten = False
        """Whether the server no longer knows the session."""
        self._status = 0
        """The last HTTP status that refused a request."""
        self.process: ServerProcess | None = None
        self._open = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._task = asyncio.create_task(self._hold())
        self._task.add_done_callback(_retrieve)

    @property
    def is_over(self) -> bool:
        return self._task.done()

    @property
    def client(self) -> Client:
        return self._open.result()

    def is_lost(self, why: BaseException) -> bool:
        """Whether a request failed because the connection has ended, and not by an answer of the server."""
        from mcp import MCPError

        if self.process is not None:
            return bool(self.process.end)
        if self._forgotten or not isinstance(why, MCPError):
            return self._forgotten
        return (why.code == CLOSED and why.message.startswith(CLOSED_MESSAGES)) or why.message == STATUS_MESSAGE

    def end_of(self, why: BaseException) -> str:
        """Return how the connection ended; empty: only the exception says so."""
        if self.process is not None:
            return self.process.end
        if self._forgotten:
            return "it no longer knows the session"
        return f"it answered with the HTTP status {self._status}" if str(why) == STATUS_MESSAGE else ""

    async def note(self, response: httpx2.Response) -> None:
        """Note which status a server at an address refuses a request with, and whether it refuses the session."""
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            self._status = response.status_code
        self._forgotten |= response.status_code == HTTPStatus.NOT_FOUND and SESSION in response.request.headers

    async def opened(self) -> None:
        """Raises what went wrong."""
        await asyncio.wait([self._open, self._task], return_when=asyncio.FIRST_COMPLETED)
        if not self._open.done():
            await self._task
            raise ConnectionError("it ended at once")

    async def during(self, asking: Awaitable[T]) -> T:
        """What is asked, for as long as the connection holds. Raises `ConnectionError` where it broke."""
        asked = asyncio.ensure_future(asking)
        try:
            await asyncio.wait([asked, self._task], return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise ConnectionResetError("the connection broke")
            return asked.result()
        finally:
            asked.cancel()

    async def close(self) -> None:
        """End it. Never raises: it is over either way."""
        self._end.set()
        if not self._open.done():
            self._task.cancel()
        await asyncio.wait([self._task])

    async def _hold(self) -> None:
        async with self._opening(self) as client:
            self._open.set_result(client)
            await self._end.wait()


async def _unchecked(name: str, result: CallToolResult) -> None:
    """In place of the validation of the SDK: `McpServer` validates."""


def result_of(name: str, answer: CallToolResult) -> Json:
    """Structured content where there is some, else its parts: texts as texts, others as objects."""
    content: list[Json] = [_content(one) for one in answer.content]
    if answer.is_error:
        said = head(" ".join(one for one in content if isinstance(one, str)), EXCERPT)
        raise ToolFailed(Failure(code="tool-failed", message=f"the tool {name!r} says: {said or 'it failed'}"))
    if answer.structured_content is not None:
        structured = cast("Json", answer.structured_content)
        # A server wraps what is no object: nobody asked for the wrapping.
        return structured["result"] if isinstance(structured, dict) and [*structured] == ["result"] else structured
    return content[0] if len(content) == 1 else content


def _content(block: ContentBlock) -> Json:
    said = cast("JsonObject", block.model_dump(mode="json", by_alias=True, exclude_none=True))
    return said["text"] if said.get("type") == "text" else {key: one for key, one in said.items() if key != "_meta"}


def _innermost(why: BaseException) -> BaseException:
    while isinstance(why, BaseExceptionGroup):
        why = cast("BaseExceptionGroup[BaseException]", why).exceptions[0]
    return why


def _is_answer(why: BaseException) -> bool:
    """Whether the server answered: with an error, or with something malformed."""
    from pydantic import ValidationError

    from mcp import MCPError

    return isinstance(why, MCPError | ValidationError | ToolFailed)


def _retrieve(task: asyncio.Task[None]) -> None:
    """Mark the exception of a task as retrieved: whoever opened the connection gets it, or the connection is over."""
    if not task.cancelled():
        task.exception()


def _import_sdk() -> None:
    for name in ("mcp", "mcp.client", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.types", "httpx2"):
        import_module(name)
