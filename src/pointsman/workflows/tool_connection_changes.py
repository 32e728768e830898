"""Changes of tool connections: test one, connect, disconnect, and list them. See `tool_connections` for the rules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final, cast

import msgspec
from pydantic import ValidationError
from typing_extensions import TypedDict

from pointsman.auth.redaction import redactor_for
from pointsman.auth.sealed_entries import delete_sealed, read_for_change, sealed_name, write_sealed
from pointsman.context import AppContext
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.errors import OperatorError
from pointsman.etags import content_etag, etag_of
from pointsman.executors.secrets import masked_failure
from pointsman.redaction import Redaction, hiding
from pointsman.settings import Settings
from pointsman.tools.egress.addresses import AddressRefused, SecretRefused, read_host
from pointsman.tools.http.openapi import BYTES_MAX, OpenApiImport, OpenApiUnreadable
from pointsman.tools.http.tool import PLACE, HttpToolDescription
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import Tool, ToolFailed
from pointsman.values import Instant, JsonObject
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.http_tools import fetched_document, read_document
from pointsman.workflows.tool_connections import (
    KIND,
    NAME,
    AuthType,
    ConnectionAuth,
    ConnectionKind,
    NoSuchToolConnection,
    ToolConnection,
    ToolConnectionInSettings,
    ToolConnectionInvalid,
    allows_command,
    command_refused,
    must_allow,
    read_connection,
    set_by,
    source_of,
)

DESCRIBED_BYTES_MAX: Final = 1_000_000
"""Size of the chosen operations of one document, in the store."""
HEADER_REFUSED: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept"}
)
PARAMETER_CHARS_MAX: Final = 100
TIMEOUT_S_MIN: Final = 1.0
TIMEOUT_S_MAX: Final = 600.0


class ToolConnectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What an admin enters to connect an MCP server or an OpenAPI document."""

    kind: ConnectionKind
    url: str = ""
    command: tuple[str, ...] = ()
    document: str = ""
    """The text of a document; empty: its address is fetched."""
    server: str = ""
    hosts: tuple[str, ...] = ()
    """Empty: the hosts of the chosen operations."""
    tools: tuple[str, ...] = ()
    requires_approval: tuple[str, ...] = ()
    timeout_s: float = 60.0
    auth: AuthType = "none"
    auth_name: str = ""
    secret: str = ""
    """Name of a secret, with the authentication `secret`."""
    key: str | None = None
    """None: the key that it has already."""
    test: bool = True


class OfferedToolView(TypedDict):
    """A tool that a connection offers."""

    name: str
    """As its server or document names it."""
    tool: str
    """Its name in workflows."""
    description: str
    parameters: JsonObject
    method: str
    """Of an operation; empty: a tool of an MCP server."""
    url: str


class SuggestedAuth(TypedDict):
    """The authentication that a document states."""

    type: AuthType
    name: str


class ConnectionFailure(TypedDict):
    """Why a server or document cannot be used."""

    code: str
    message: str
    hint: str


class TriedCall(TypedDict):
    """The answer of a tool that was called in a test."""

    ok: bool
    result: object
    failure: ConnectionFailure | None


class ToolConnectionTest(TypedDict):
    """What a server or a document offers. Nothing was saved."""

    tools: list[OfferedToolView]
    failure: ConnectionFailure | None
    losses: list[str]
    """Operations and parameters of a document that cannot be tools, with the reasons."""
    hosts: list[str]
    """The hosts of the operations."""
    auth: SuggestedAuth | None
    tried: TriedCall | None
    """The answer of the called tool; null: none was called."""


class ConnectedToolsView(TypedDict):
    """Result of connecting."""

    saved: bool
    """False: the test failed, and nothing was changed."""
    test: ToolConnectionTest | None
    """Null: there was no test."""


class ToolConnectionView(TypedDict):
    """A connected MCP server or OpenAPI document, without its key; or an MCP server of the settings."""

    name: str
    kind: ConnectionKind
    source: str
    """`app`, or the source of the settings, which have precedence and cannot be changed here."""
    inUse: bool
    """False: the settings name a server of the same name, or do not allow its command."""
    url: str
    command: list[str]
    server: str
    hosts: list[str]
    tools: list[str]
    requiresApproval: list[str]
    timeout: float
    auth: AuthType
    authName: str
    secret: str
    """The secret that is sent; empty: an entered key, or none."""
    changedAt: float
    changedBy: str
    etag: str
    """ETag of the present version, for `If-Match`; empty: it is not changed here."""


class ToolConnectionsView(TypedDict):
    """The connected MCP servers and OpenAPI documents."""

    connections: list[ToolConnectionView]
    commands: list[list[str]]
    """The commands of MCP servers that the settings allow to start; `*` stands for any text."""


async def list_connections(app: AppContext) -> ToolConnectionsView:
    """Return all connections, by name; those of the settings first."""
    settings = app.settings
    own: list[ToolConnectionView] = [
        _view(
            ToolConnection(
                name=name,
                kind="mcp",
                url=server.url,
                command=server.command,
                tools=server.tools,
                requires_approval=server.requires_approval,
                timeout_s=server.timeout.seconds,
            ),
            source=set_by(settings, name),
            in_use=True,
            etag="",
        )
        for name, server in sorted(settings.mcp.items())
    ]
    for entry in await app.store.entries.list(KIND):
        one = read_connection(entry)
        in_use = not set_by(settings, one.name) and (not one.command or allows_command(settings, one.command))
        own.append(_view(one, source="app", in_use=in_use, etag=etag_of(content_etag(entry.value))))
    return {"connections": own, "commands": [[*command] for command in settings.connections.mcp_commands]}


def _view(one: ToolConnection, *, source: str, in_use: bool, etag: str) -> ToolConnectionView:
    auth = one.auth
    return {
        "name": one.name,
        "kind": one.kind,
        "source": source,
        "inUse": in_use,
        "url": one.url,
        "command": [*one.command],
        "server": one.server,
        "hosts": [*one.hosts],
        "tools": [*one.tools],
        "requiresApproval": [*one.requires_approval],
        "timeout": one.timeout_s,
        "auth": auth.type,
        "authName": auth.name,
        "secret": auth.secret if auth.type == "secret" else "",
        "changedAt": one.changed,
        "changedBy": one.by,
        "etag": etag,
    }


async def try_connection(
    app: AppContext, name: str, request: ToolConnectionRequest, *, by: str, call: tuple[str, JsonObject] | None = None
) -> ToolConnectionTest:
    """Ask for the tools of a server or a document, and `call` one of them if it is given: a name and arguments. Nothing
    is saved. A failure of the server or the document is returned.

    Raises `ToolConnectionInvalid`, `ToolConnectionInSettings`.
    """
    if call is None:  # All tools are listed, and none is called.
        wanted = msgspec.structs.replace(request, tools=("*",), hosts=())
    else:
        wanted = msgspec.structs.replace(request, tools=(call[0],))
    _check(app.settings, name, wanted)
    before = await _stored(app, name)
    try:
        connection, imported = await _connection(app, name, wanted, before, by=by)
    except (OpenApiUnreadable, OperatorError) as why:
        return _offers(failure=_failure(Failure(code=why.code, message=str(why), hint=why.hint)))
    key = _key_value(request)
    if connection.kind == "mcp" or call is not None:
        _must_have_key(connection, before, key)
    return await _tested(app, connection, imported, key=key, call=call)


async def connect_tools(
    app: AppContext, name: str, request: ToolConnectionRequest, *, by: str, match: str | None = None
) -> tuple[ConnectedToolsView, str]:
    """Test a connection and store it, with its key sealed. Return the result and the ETag. Takes effect at once here,
    and within a second elsewhere.

    `match`: see `etags.match_etag`. Raises `ToolConnectionInvalid`, `ToolConnectionInSettings`, `OpenApiUnreadable`,
    `RevisionMoved`, and the errors of `Vault.set`.
    """
    _check(app.settings, name, request)
    what = f"the connection {name!r}"
    entry = await read_for_change(app, KIND, name, match, what)
    before = None if entry is None else read_connection(entry)
    try:
        connection, imported = await _connection(app, name, request, before, by=by)
    except OperatorError as why:
        raise ToolConnectionInvalid(str(why), hint=why.hint) from None
    key = _key_value(request)
    _must_have_key(connection, before, key)
    test = None
    if request.test:
        test = await _tested(app, connection, imported, key=key)
        if test["failure"] is not None:
            return {"saved": False, "test": test}, ""
    value, secret = msgspec.to_builtins(connection), connection.auth.secret
    entered = {} if key is None else {secret: key}
    replaced = [one for one in _key_of(before) if one != secret]
    await write_sealed(app, KIND, name, value, before=entry, entered=entered, replaced=replaced, by=by, what=what)
    await app.tools.reconnect()
    return {"saved": True, "test": test}, etag_of(content_etag(value))


async def disconnect_tools(app: AppContext, name: str, *, match: str | None = None) -> None:
    """Delete a connection and its key. Raises `NoSuchToolConnection`, `RevisionMoved`."""
    what = f"the connection {name[:60]!r}"
    if await _stored(app, name) is None:
        raise NoSuchToolConnection(
            f"no tools are connected as {name[:60]!r}", hint="GET /api/tool-connections lists them."
        )
    await delete_sealed(app, KIND, name, match=match, replaced=lambda entry: _key_of(read_connection(entry)), what=what)
    await app.tools.reconnect()


async def _stored(app: AppContext, name: str) -> ToolConnection | None:
    entry = await app.store.entries.find(KIND, name)
    return None if entry is None else read_connection(entry)


def _key_of(before: ToolConnection | None) -> list[str]:
    """Return the secret with the key that was entered for a connection; none if none was entered."""
    return [before.auth.secret] if before is not None and before.auth.has_key else []


def _secret_for(name: str, request: ToolConnectionRequest, before: ToolConnection | None) -> str:
    """Return the name of the secret that a connection will send: of a stored one, of the key it has, or a new one."""
    if request.auth not in ("bearer", "header", "query"):
        return request.secret
    kept = [] if _key_value(request) is not None else _key_of(before)
    return kept[0] if kept else sealed_name(f"TOOL_KEY_{name}")


def _key_value(request: ToolConnectionRequest) -> str | None:
    """Return the value that is sent for an entered key; None: none was entered."""
    key = (request.key or "").strip()
    if not key or request.auth not in ("bearer", "header", "query"):
        return None
    return f"Bearer {key}" if request.auth == "bearer" else key


def _must_have_key(connection: ToolConnection, before: ToolConnection | None, key: str | None) -> None:
    """Raise `ToolConnectionInvalid` without a key that is needed. A stored key is never sent to another address than
    the one it was entered for."""
    if key is not None or not connection.auth.has_key:
        return
    if before is None or not before.auth.has_key:
        raise ToolConnectionInvalid("the key is missing", hint="Paste the key of the service.", field="key")
    if before.place != connection.place or not {*connection.origins} <= {*before.origins}:
        raise ToolConnectionInvalid(
            "the address or the authentication changed, so the key must be entered again",
            hint="Paste the key.",
            field="key",
        )


def _check(settings: Settings, name: str, request: ToolConnectionRequest) -> None:
    """Raise `ToolConnectionInvalid` for parts that cannot be used, `ToolConnectionInSettings`."""
    if NAME.fullmatch(name) is None or name == "workflow":
        hint = "Use 1 to 30 lower-case letters, digits and hyphens, beginning with a letter; not `workflow`."
        raise ToolConnectionInvalid(f"{name[:60]!r} is not a valid name of a connection", hint=hint, field="name")
    if source := set_by(settings, name):
        raise ToolConnectionInSettings(
            f"{source} configures the MCP server {name!r}, and has precedence",
            hint="Remove it there and restart the server, or choose another name.",
        )
    if not request.tools or not all(pattern.strip() for pattern in request.tools):
        raise ToolConnectionInvalid(
            "no tool is chosen", hint="Choose at least one tool, or `*` for all.", field="tools"
        )
    if not TIMEOUT_S_MIN <= request.timeout_s <= TIMEOUT_S_MAX:
        hint = f"Use {TIMEOUT_S_MIN:g} to {TIMEOUT_S_MAX:g} seconds."
        raise ToolConnectionInvalid(f"the time limit is {request.timeout_s:g} s", hint=hint, field="timeoutS")
    _check_auth(request)
    if request.kind == "mcp":
        _check_server(settings, request)
        return
    if bool(request.document) == bool(request.url):
        hint = "Give its address, or its text, and not both."
        raise ToolConnectionInvalid("the document is missing", hint=hint, field="url")
    if request.command:
        raise ToolConnectionInvalid("a document has no command", hint="Remove the command.", field="command")
    if request.url:
        check_address(settings, request.url, field="url")
    if request.server:
        check_address(settings, request.server, field="server")
    for host in request.hosts:
        _check_host(host)


def _check_server(settings: Settings, request: ToolConnectionRequest) -> None:
    if bool(request.url) == bool(request.command):
        hint = "Give its address, or its command, and not both."
        raise ToolConnectionInvalid("the server is missing", hint=hint, field="url")
    if request.document or request.server or request.hosts:
        raise ToolConnectionInvalid("an MCP server has no document and no hosts", hint="Remove them.")
    if request.url:
        check_address(settings, request.url, field="url")
        return
    if not allows_command(settings, request.command):
        raise command_refused(request.command)
    if request.auth != "none":
        raise ToolConnectionInvalid(
            "a command receives no key here", hint="Configure a server that needs one in pointsman.toml: [mcp.NAME]."
        )


def check_address(settings: Settings, address: str, *, field: str = "") -> None:
    """Raise `ToolConnectionInvalid` for an address that is not a web address, or that `[http]` does not allow. `field`:
    the field of the request with the address."""
    import httpx2

    from pointsman.tools.egress.http_calls import admit  # Deferred: it loads an HTTP client.

    try:
        url = httpx2.URL(address)
        if url.fragment or any(sign in address for sign in "{}"):
            hint = "Write https://host/path."
            raise ToolConnectionInvalid("the address has a fragment or a brace", hint=hint, field=field)
        admit(url, settings.http.egress_policy())
    except httpx2.InvalidURL:
        hint = "Write https://host/path."
        raise ToolConnectionInvalid("the address is not a web address", hint=hint, field=field) from None
    except AddressRefused as why:
        raise ToolConnectionInvalid(str(why), hint=why.hint, field=field) from None


def _check_host(host: str) -> None:
    try:
        pattern = read_host(host)
    except ValueError as why:
        raise ToolConnectionInvalid(str(why), hint="For example: api.example.com.", field="hosts") from None
    if pattern is None:
        hint = "Name the hosts, for example *.example.com."
        raise ToolConnectionInvalid("any host is too much", hint=hint, field="hosts")


def _check_auth(request: ToolConnectionRequest) -> None:
    name = request.auth_name
    if request.auth == "query" and request.kind == "mcp":
        raise ToolConnectionInvalid("an MCP server receives no key in the query", hint="Choose a header.", field="auth")
    if request.auth in ("header", "query") and not name:
        hint = "For example: X-API-Key."
        raise ToolConnectionInvalid("the name of the header or parameter is missing", hint=hint, field="authName")
    allowed = name.replace("-", "").replace("_", "").isalnum() and name.isascii() and len(name) <= PARAMETER_CHARS_MAX
    if name and (not allowed or name.lower() in HEADER_REFUSED):
        raise ToolConnectionInvalid(
            f"{name[:60]!r} cannot carry a key", hint="For example: X-API-Key.", field="authName"
        )
    if (request.auth == "secret") != bool(request.secret):
        hint = "Name a secret of the page Secrets."
        raise ToolConnectionInvalid("the secret is missing, or not used", hint=hint, field="secret")


async def _connection(
    app: AppContext, name: str, request: ToolConnectionRequest, before: ToolConnection | None, *, by: str
) -> tuple[ToolConnection, OpenApiImport | None]:
    """Return the record of a request, and the operations of its document. Raises `ToolConnectionInvalid`,
    `OpenApiUnreadable`, and the errors of fetching the document."""
    own = _secret_for(name, request, before)
    connection = ToolConnection(
        name=name,
        kind=request.kind,
        url=request.url,
        command=request.command,
        tools=request.tools,
        requires_approval=request.requires_approval,
        timeout_s=request.timeout_s,
        auth=ConnectionAuth(type=request.auth, name=request.auth_name, secret=own),
        server=request.server,
        hosts=request.hosts,
        changed=Instant(app.clock.now()),
        by=by,
    )
    imported = None
    if request.kind == "openapi":
        imported = await _imported(app, request, by=by)
        described = _chosen(imported, request.tools)
        connection = msgspec.structs.replace(connection, described=described)
        connection = msgspec.structs.replace(connection, hosts=request.hosts or connection.origins)
        _check_described(app.settings, connection)
    if request.auth == "secret":
        await _check_secret(app.settings, connection)
    return connection, imported


async def _check_secret(settings: Settings, connection: ToolConnection) -> None:
    name = connection.auth.secret
    await settings.refresh(at_once=True)
    if settings.secret(name) is None:
        hint = "Create it on the page Secrets."
        raise ToolConnectionInvalid(f"there is no secret {name[:100]!r}", hint=hint, field="secret")
    try:
        must_allow(name, settings.rule(name), connection.origins)
    except SecretRefused as why:
        raise ToolConnectionInvalid(str(why), hint=why.hint, field="secret") from None


async def _imported(app: AppContext, request: ToolConnectionRequest, *, by: str) -> OpenApiImport:
    data = request.document.encode() if request.document else await fetched_document(app.settings, request.url)
    if len(data) > BYTES_MAX:
        raise OpenApiUnreadable(f"the document has more than {BYTES_MAX} bytes", hint="Reduce it.")
    return await app[DOCUMENTS].run(read_document, data, request.url, request.server, by=by, chars=len(data))


def _chosen(imported: OpenApiImport, patterns: Sequence[str]) -> dict[str, JsonObject]:
    """Return the chosen operations without the keys of their document, which the connection replaces. Raises
    `ToolConnectionInvalid`."""
    found: dict[str, JsonObject] = {
        name: {**described, "query": _keyless(described, "query"), "headers": _keyless(described, "headers")}
        for name, described in imported.tools.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    if not found:
        raise ToolConnectionInvalid(
            "the document has none of the chosen operations", hint="Choose others.", field="tools"
        )
    return found


def _keyless(described: JsonObject, part: str) -> JsonObject:
    members = described.get(part)
    return {key: value for key, value in cast("JsonObject", members or {}).items() if not _has_key(value)}


def _has_key(value: object) -> bool:
    return isinstance(value, str) and any(secret for secret, _ in PLACE.findall(value))


def _check_described(settings: Settings, connection: ToolConnection) -> None:
    """Raise `ToolConnectionInvalid` for operations that cannot be stored, or whose host is not allowed."""
    size = len(msgspec.json.encode(connection.described))
    if size > DESCRIBED_BYTES_MAX:
        message = f"the chosen operations have {size} bytes; the maximum is {DESCRIBED_BYTES_MAX}"
        raise ToolConnectionInvalid(message, hint="Choose fewer operations.")
    for name, described in connection.described.items():
        try:
            HttpToolDescription.model_validate(described)
        except ValidationError as why:
            wrong = why.errors(include_url=False)[0]["msg"]
            raise ToolConnectionInvalid(f"the operation {name!r}: {wrong}", hint="Do not choose it.") from None
        if any(_has_key(part) for part in (described.get("url"), described.get("body"))):
            raise ToolConnectionInvalid(f"the operation {name!r} names a secret", hint="Do not choose it.")
    import httpx2

    from pointsman.tools.egress.addresses import host_allowed  # Beside its argument, which loads an HTTP client.

    for origin in connection.origins:
        check_address(settings, origin)
        if not host_allowed(httpx2.URL(origin), connection.hosts):
            raise ToolConnectionInvalid(
                f"operations call {origin}, which is not among the allowed hosts",
                hint="Add it, or choose others.",
                field="hosts",
            )


async def _tested(
    app: AppContext,
    connection: ToolConnection,
    imported: OpenApiImport | None,
    *,
    key: str | None,
    call: tuple[str, JsonObject] | None = None,
) -> ToolConnectionTest:
    await app.settings.refresh(at_once=True)
    redact = redactor_for(app.settings).redaction
    source = source_of(app.settings, connection, key=key)
    registry = ToolRegistry(plugins=False)
    registry.add_source(source)
    try:
        with hiding(redact):
            tools = await source.listed()
            tried = None if call is None else await _tried(registry, _call_of(tools, connection, call), redact)
    except ToolFailed as why:
        return _offers(failure=_failure(masked_failure(why.failure, redact)))
    finally:
        await registry.close()
    return _offers(
        tools=[_offered(tool, connection) for tool in tools],
        losses=[] if imported is None else imported.losses[:100],
        hosts=[*connection.origins] if connection.kind == "openapi" else [],
        auth=None if imported is None else suggested_auth(imported),
        tried=tried,
    )


def _offers(
    *,
    tools: list[OfferedToolView] | None = None,
    failure: ConnectionFailure | None = None,
    losses: list[str] | None = None,
    hosts: list[str] | None = None,
    auth: SuggestedAuth | None = None,
    tried: TriedCall | None = None,
) -> ToolConnectionTest:
    return {
        "tools": tools or [],
        "failure": failure,
        "losses": losses or [],
        "hosts": hosts or [],
        "auth": auth,
        "tried": tried,
    }


def _offered(tool: Tool, connection: ToolConnection) -> OfferedToolView:
    native = _native(tool, connection)
    described = connection.described.get(native, {})
    return {
        "name": native,
        "tool": tool.name,
        "description": tool.spec.description,
        "parameters": tool.spec.parameters,
        "method": str(described.get("method", "")),
        "url": str(described.get("url", "")),
    }


def _native(tool: Tool, connection: ToolConnection) -> str:
    """Return the name of a tool at its server, or in its document."""
    return str(getattr(tool, "native", tool.name.removeprefix(connection.prefix)))


def _call_of(tools: Sequence[Tool], connection: ToolConnection, call: tuple[str, JsonObject]) -> ToolCall:
    name, arguments = call
    tool = next((one.name for one in tools if _native(one, connection) == name), connection.prefix + name)
    return ToolCall(id="1", name=tool, arguments=arguments)


async def _tried(registry: ToolRegistry, call: ToolCall, redact: Redaction) -> TriedCall:
    try:
        result = await registry.call(call, key=f"try-{os.urandom(16).hex()}")
    except ToolFailed as why:
        return {"ok": False, "result": None, "failure": _failure(masked_failure(why.failure, redact))}
    return {"ok": True, "result": redact.json(result), "failure": None}


def _failure(failure: Failure) -> ConnectionFailure:
    return {"code": failure.code, "message": failure.message, "hint": failure.hint}


def suggested_auth(imported: OpenApiImport) -> SuggestedAuth | None:
    """Return how most operations of a document send a key; None: none does."""
    for described in imported.tools.values():
        for part in ("headers", "query"):
            for name, value in cast("JsonObject", described.get(part) or {}).items():
                if not _has_key(value):
                    continue
                if part == "query":
                    return {"type": "query", "name": name}
                is_bearer = name == "Authorization" and str(value).startswith("Bearer ")
                is_basic = name == "Authorization" and str(value).startswith("Basic ")
                return {"type": "bearer" if is_bearer else "secret" if is_basic else "header", "name": name}
    return None
