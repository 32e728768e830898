"""MCP servers and OpenAPI documents whose tools an admin adds while the app runs.

    request ─▶ test: its tools ─▶ the key, sealed in the vault ─▶ an entry of the store ─▶ every process in a second

- A server that the settings name has precedence: none of its name can be connected, and one that is stored is not used.
- Addresses obey `[http]` in the settings. The tools of a document call its `hosts` and no others.
- A command starts a program of this machine. It is refused unless `[connections] mcp_commands` in the settings has it;
  each process compares it with its own settings before it starts it.
- A key that was entered for a connection is sent to its addresses only. A stored secret is sent where its own rule
  allows it, and not at all if the rule names workflows or groups: every workflow may call the tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, cast

import msgspec

from pointsman.auth.redaction import known_redaction
from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.errors import CallerError, FieldInvalid, OperatorError
from pointsman.ports import Clock, SecretRule
from pointsman.settings import HANDLE, Settings
from pointsman.store.api import ConfigStore
from pointsman.store.records import ConfigEntry
from pointsman.tools.egress.addresses import AddressRefused, SecretRefused, host_allowed, read_host
from pointsman.tools.http.tool import HttpTool, HttpToolDescription, origin_of
from pointsman.tools.tool import Origin, Tool, ToolFailed, ToolSource
from pointsman.values import Instant, JsonObject, Seconds

if TYPE_CHECKING:
    from pointsman.tools.egress.addresses import Address
    from pointsman.tools.egress.http_calls import EgressTransport, Outgoing

KIND: Final = "tool-connection"
"""Kind of the entries, one for each connection; their keys are its names."""
KNOWN_FOR_S: Final = 1.0
SEPARATOR: Final = "__"
DEFINED: Final = "of the connection on the page Tools"
"""Where the address of a connected server is changed, for hints."""

ConnectionKind: TypeAlias = Literal["mcp", "openapi"]
AuthType: TypeAlias = Literal["none", "bearer", "header", "query", "secret"]


class ToolConnectionInvalid(FieldInvalid):
    """A part of a connection is missing or invalid."""

    code: ClassVar[str] = "tool-connection-invalid"


class ConnectionAuth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the calls of a connection are authenticated."""

    type: AuthType = "none"
    """`bearer`, `header`, `query`: a key that was entered. `secret`: a secret of the vault, the settings or the
    environment, whose value is the whole header."""
    name: str = ""
    """Name of the header (`header`, `secret`) or of the query parameter (`query`)."""
    secret: str = ""
    """Name of the secret that is sent; with an entered key, the secret that holds it."""

    @property
    def has_key(self) -> bool:
        """Whether it needs a key that is entered for the connection."""
        return self.type in ("bearer", "header", "query")

    @property
    def header(self) -> str:
        """The header that is sent; empty: none."""
        return {"none": "", "bearer": "Authorization", "query": ""}.get(self.type, self.name or "Authorization")


class ToolConnection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of a connection, without its key."""

    name: str
    kind: ConnectionKind
    url: str = ""
    """Address of the MCP server, or of the document."""
    command: tuple[str, ...] = ()
    """The program of an MCP server and its arguments, instead of an address."""
    tools: tuple[str, ...] = ()
    """Patterns of the tools that may be called."""
    requires_approval: tuple[str, ...] = ()
    """Patterns of the tools whose calls a person must approve."""
    timeout_s: float = 60.0
    auth: ConnectionAuth = ConnectionAuth()
    server: str = ""
    """Address of the API, if it was entered; empty: as the document states."""
    hosts: tuple[str, ...] = ()
    """Hosts that the tools of a document may call."""
    described: dict[str, JsonObject] = {}
    """Name -> description of the chosen operations of a document."""
    changed: Instant = Instant(0.0)
    by: str = ""

    @property
    def prefix(self) -> str:
        return self.name + SEPARATOR

    @property
    def origins(self) -> tuple[str, ...]:
        """Scheme, host and port of every address that its tools call."""
        if self.kind == "mcp":
            return (origin_of(self.url),) if self.url else ()
        return tuple(sorted({origin_of(str(one["url"])) for one in self.described.values()}))

    @property
    def place(self) -> tuple[object, ...]:
        """How an entered key is sent. `origins` are where."""
        return self.kind, self.auth.type, self.auth.name


def read_connection(entry: ConfigEntry) -> ToolConnection:
    return msgspec.convert(entry.value, ToolConnection)


def set_by(settings: Settings, name: str) -> str:
    """Return the source of the settings that name an MCP server of this name; empty: they name none."""
    return settings.sources.get("mcp", "pointsman.toml") if name in settings.mcp else ""


def allows_command(settings: Settings, command: Sequence[str]) -> bool:
    """Return whether the settings let admins start this program: argument by argument, with as many arguments."""
    return any(
        len(allowed) == len(command) and all(map(fnmatchcase, command, allowed))
        for allowed in settings.connections.mcp_commands
    )


def command_refused(command: Sequence[str]) -> ToolConnectionInvalid:
    return ToolConnectionInvalid(
        f"the settings do not allow to start {' '.join(command)[:200]!r}",
        hint="The operator can allow it in pointsman.toml and restart the server: [connections] mcp_commands.",
        field="command",
    )


class ConnectionSecrets:
    """The secret of one connection, for its calls."""

    def __init__(self, settings: Settings, connection: ToolConnection, *, key: str | None = None) -> None:
        """`key`: the value of the entered key; None: it is looked up when it is sent."""
        self._settings = settings
        self._connection = connection
        self._key = key

    async def refresh(self) -> None:
        await self._settings.refresh()

    def secret(self, name: str) -> str | None:
        """Return the secret. Raises `SecretRefused` if its rule does not allow an address of the connection."""
        if self._key is not None:
            return self._key
        if self._connection.auth.type == "secret":
            must_allow(name, self._settings.rule(name), self._connection.origins)
        return self._settings.secret(name)

    def rule(self, name: str) -> SecretRule:
        """Return no further hosts: the addresses of the connection are enough."""
        return SecretRule()

    def resolved(self, handle: str) -> str | None:
        """Return the value of a handle."""
        return self.secret(handle.removeprefix(HANDLE)) if handle.startswith(HANDLE) else handle or None


def must_allow(name: str, rule: SecretRule, origins: Sequence[str]) -> None:
    """Raise `SecretRefused` unless a secret may be sent to all these addresses, whatever workflow calls."""
    import httpx2  # Deferred: it takes long to load.

    if rule.workflows or rule.groups:
        raise SecretRefused(
            f"the secret {name!r} is for some workflows only, and every workflow may call these tools",
            hint="Enter the key for this connection instead.",
        )
    for origin in origins:
        if not host_allowed(httpx2.URL(origin), rule.hosts):
            raise SecretRefused(
                f"the secret {name!r} must not be sent to {origin}",
                hint=f"Add {origin!r} to the hosts of the secret on the page Secrets.",
            )


class ConnectedTools:
    """The tools of a document as a source of the registry."""

    origin: Origin = "http"
    lasts = True

    def __init__(self, settings: Settings, connection: ToolConnection, *, key: str | None = None) -> None:
        self.prefix = connection.prefix
        secrets = ConnectionSecrets(settings, connection, key=key)
        outgoing = partial(_outgoing, settings, connection)
        self._tools: dict[str, Tool] = {
            name: HttpTool(name, HttpToolDescription.model_validate(described), outgoing=outgoing, secrets=secrets)
            for name, described in _authorized(connection).items()
        }

    async def listed(self) -> Sequence[Tool]:
        """Return all tools, without a request."""
        return [*self._tools.values()]

    def stand_in(self, name: str) -> Tool | None:
        return self._tools.get(name)

    async def close(self) -> None:
        """Nothing to close: each call has its own connection."""

    def retire(self) -> None:
        """Nothing to close, as above."""


def _authorized(connection: ToolConnection) -> dict[str, JsonObject]:
    """Return the descriptions by the names of the tools, with the placeholder of the key in each."""
    auth, found = connection.auth, dict[str, JsonObject]()
    for name, described in connection.described.items():
        part, key = ("query", auth.name) if auth.type == "query" else ("headers", auth.header)
        approval = any(fnmatchcase(name, pattern) for pattern in connection.requires_approval)
        one: JsonObject = {**described, "requires_approval": approval}
        if key:
            one[part] = {**cast("JsonObject", described.get(part, {})), key: f"{{{HANDLE}{auth.secret}}}"}
        found[connection.prefix + name] = one
    return found


def _outgoing(settings: Settings, connection: ToolConnection) -> Outgoing:
    """Return a client that calls the hosts of a connection only, also after a redirect."""
    from pointsman.tools.egress.http_calls import Outgoing, resolve  # Deferred: they load an HTTP client.

    patterns = [read_host(host) for host in connection.hosts]

    async def allowed(host: str, port: int) -> list[Address]:
        if not any(one is not None and one.takes(one.scheme, host, port) for one in patterns):
            raise AddressRefused(
                f"{host!r} is not among the allowed hosts of the connection {connection.name!r}",
                hint="An admin can add it on the page Tools.",
            )
        return await resolve(host, port)

    http = settings.http
    return Outgoing(
        http.egress_policy(), timeout_s=connection.timeout_s, body_bytes_max=http.body_bytes_max, resolve=allowed
    )


class RefusedCommand:
    """A server whose command this process must not start, as a source of the registry."""

    origin: Origin = "mcp"
    lasts = True

    def __init__(self, connection: ToolConnection) -> None:
        self.prefix = connection.prefix
        self._command = connection.command

    async def listed(self) -> Sequence[Tool]:
        """Raise `ToolFailed`."""
        why = command_refused(self._command)
        raise ToolFailed(Failure(code="mcp-command-refused", message=str(why), hint=why.hint))

    def stand_in(self, name: str) -> Tool | None:
        return None

    async def close(self) -> None:
        """Nothing was opened."""

    def retire(self) -> None:
        """Nothing was opened."""


def source_of(settings: Settings, connection: ToolConnection, *, key: str | None = None) -> ToolSource:
    """Return the tools of a connection. `key`: as in `ConnectionSecrets`."""
    if connection.kind == "openapi":
        return ConnectedTools(settings, connection, key=key)
    if connection.command and not allows_command(settings, connection.command):
        return RefusedCommand(connection)
    from pointsman.tools.mcp.server import McpServer, McpServerDescription, McpTools

    auth, secrets = connection.auth, ConnectionSecrets(settings, connection, key=key)
    described = McpServerDescription(
        command=connection.command,
        url=connection.url,
        headers={auth.header: f"{HANDLE}{auth.secret}"} if auth.header else {},
        tools=connection.tools,
        requires_approval=connection.requires_approval,
        timeout=Duration(Seconds(connection.timeout_s)),
    )
    server = McpServer(
        connection.name,
        described,
        open_transport=partial(_transport, settings),
        resolved=secrets.resolved,
        rule=secrets.rule,
        known=known_redaction(settings),
        defined=DEFINED,
    )
    return McpTools(server)


def _transport(settings: Settings) -> EgressTransport:
    """Return the transport to an address that was entered, which obeys `[http]`."""
    from pointsman.tools.egress.http_calls import EgressTransport  # Deferred: it loads an HTTP client.

    return EgressTransport(settings.http.egress_policy())


class StoredToolConnections:
    """The connections of one store, for the registry. They are read again at most once a second."""

    def __init__(self, entries: ConfigStore, settings: Settings, clock: Clock) -> None:
        self._entries = entries
        self._settings = settings
        self._clock = clock
        self._read_at = float("-inf")
        self._open: Mapping[str, tuple[ToolConnection, ToolSource]] = {}
        self.version = 0
        self.sources: Sequence[ToolSource] = ()

    @property
    def is_fresh(self) -> bool:
        """Return whether the entries were read within the last second."""
        return self._read_at <= self._clock.now() < self._read_at + KNOWN_FOR_S

    async def refresh(self) -> None:
        """Read the entries, unless they are fresh. A changed connection gets a new source; the old one is closed after
        its calls."""
        if self.is_fresh:
            return
        now = self._clock.now()
        stored = [read_connection(entry) for entry in await self._entries.list(KIND)]
        records = {one.name: one for one in stored if not set_by(self._settings, one.name)}
        self._read_at = now
        if records == {name: record for name, (record, _) in self._open.items()}:
            return
        await self._settings.refresh(at_once=True)  # The key of a new one was stored before it.
        before, after = self._open, dict[str, tuple[ToolConnection, ToolSource]]()
        for name, record in records.items():
            is_same = name in before and before[name][0] == record
            after[name] = before[name] if is_same else (record, self._source(record))
        self._open, self.sources = after, tuple(source for _, source in after.values())
        self.version += 1
        for _, source in before.values():
            if source not in self.sources:
                source.retire()

    def _source(self, record: ToolConnection) -> ToolSource:
        """Return the tools with the key of this version of a connection: when another version replaces it, its key is
        deleted, and it is used here for up to a second."""
        key: str | None = None
        if record.auth.has_key:
            with suppress(OperatorError):  # The vault cannot be opened: a call reports it.
                key = self._settings.secret(record.auth.secret)
        return source_of(self._settings, record, key=key)

    def changed(self) -> None:
        """Read the entries at the next `refresh`, because this process changed them."""
        self._read_at = float("-inf")


class ToolConnectionInSettings(CallerError):
    """The settings name an MCP server of this name, and have precedence."""

    code: ClassVar[str] = "tool-connection-in-settings"


class NoSuchToolConnection(CallerError):
    """No connection has this name."""

    code: ClassVar[str] = "no-such-tool-connection"


NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,29}")
"""Without underscores: the prefix of no connection begins that of another one."""
