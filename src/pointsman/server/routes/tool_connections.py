"""Operations on tool connections: list, test, connect and disconnect MCP servers and OpenAPI documents."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field

from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import IfMatch, Match
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.values import JsonObject
from pointsman.workflows.tool_connection_changes import (
    TIMEOUT_S_MAX,
    TIMEOUT_S_MIN,
    ConnectedToolsView,
    ToolConnectionRequest,
    ToolConnectionsView,
    ToolConnectionTest,
)
from pointsman.workflows.tool_connections import AuthType, ConnectionKind
from pointsman.workflows.tool_verbs import ToolVerbs

router = Operations(tags=["tools"])

ConnectionName = Annotated[
    str, Path(min_length=1, max_length=30, description="Name of the connection; its tools begin with `NAME__`.")
]
ADDRESS_CHARS_MAX: Final = 2_000
DOCUMENT_CHARS_MAX: Final = 5_000_000
Patterns = Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=1000)]
Texts = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=100)]
ADDRESS: Final = "https://mcp.example.com/mcp"


class ToolConnectionBody(Body):
    """An MCP server, or an OpenAPI document."""

    model_config = sample(kind="mcp", url=ADDRESS, tools=["search_*"], auth="bearer", key="tk-0badcafe0badcafe")
    kind: ConnectionKind
    url: str = Field(default="", max_length=ADDRESS_CHARS_MAX, description="Address of the server or the document.")
    command: Texts = Field(
        default_factory=list, description="Program and arguments of an MCP server, if the settings allow it."
    )
    document: str = Field(
        default="",
        max_length=DOCUMENT_CHARS_MAX,
        description="The text of a document, JSON or YAML, in place of `url`.",
    )
    server: str = Field(
        default="", max_length=ADDRESS_CHARS_MAX, description="Address of the API; empty: as the document states."
    )
    hosts: Texts = Field(
        default_factory=list,
        description="Hosts that operations may call: `api.example.com`. Empty: those of the chosen operations.",
    )
    tools: Patterns = Field(default_factory=list, description="Patterns of the tools that may be called; `*`: all.")
    requires_approval: Patterns = Field(
        default_factory=list, description="Patterns of the tools whose calls a person must approve."
    )
    timeout_s: float = Field(
        default=60.0, ge=TIMEOUT_S_MIN, le=TIMEOUT_S_MAX, description="Time limit of a call, in seconds."
    )
    auth: AuthType = Field(
        default="none",
        description="`bearer`: a token; `header`, `query`: a key in that header or parameter; `secret`: a stored secret"
        " or credential, which is the whole header.",
    )
    auth_name: str = Field(default="", max_length=100, description="Name of the header or parameter.")
    secret: str = Field(default="", max_length=100, description="Name of the secret, with the authentication `secret`.")
    key: str | None = Field(
        default=None, max_length=10_000, description="The token or key, never shown again. Absent: the stored one."
    )

    def request(self, *, test: bool) -> ToolConnectionRequest:
        """Return the request of the domain."""
        return ToolConnectionRequest(
            kind=self.kind,
            url=self.url.strip(),
            command=tuple(self.command),
            document=self.document,
            server=self.server.strip(),
            hosts=tuple(self.hosts),
            tools=tuple(self.tools),
            requires_approval=tuple(self.requires_approval),
            timeout_s=self.timeout_s,
            auth=self.auth,
            auth_name=self.auth_name.strip(),
            secret=self.secret.strip(),
            key=self.key,
            test=test,
        )


class ConnectToolsBody(ToolConnectionBody):
    """An MCP server, or an OpenAPI document, and whether to test it first."""

    test: bool = Field(default=True, description="Ask for the tools first, and save only if that succeeds.")


class CallBody(Body):
    """A call of one of the tools."""

    tool: str = Field(min_length=1, max_length=200, description="The tool, as its server or document names it.")
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class TryToolConnectionBody(ToolConnectionBody):
    """An MCP server or an OpenAPI document, and a call of one of its tools."""

    call: CallBody | None = Field(default=None, description="Call this tool; absent: only list the tools.")


TEST: Final[ToolConnectionTest] = {
    "tools": [
        {
            "name": "search_pages",
            "tool": "wiki__search_pages",
            "description": "Searches the wiki.",
            "parameters": {"type": "object", "properties": {"words": {"type": "string"}}},
            "method": "",
            "url": "",
        }
    ],
    "failure": None,
    "losses": [],
    "hosts": [],
    "auth": None,
    "tried": None,
}
example(ToolConnectionTest, TEST)
example(ConnectedToolsView, {"saved": True, "test": TEST})
example(
    ToolConnectionsView,
    {
        "connections": [
            {
                "name": "wiki",
                "kind": "mcp",
                "source": "app",
                "inUse": True,
                "url": ADDRESS,
                "command": [],
                "server": "",
                "hosts": [],
                "tools": ["search_*"],
                "requiresApproval": [],
                "timeout": 60.0,
                "auth": "bearer",
                "authName": "",
                "secret": "",
                "changedAt": 1_763_700_000.0,
                "changedBy": "ada",
                "etag": '"0b1f6c0ad1e2c3d4"',
            }
        ],
        "commands": [],
    },
)


@router.get(
    "/api/tool-connections",
    verb=ToolVerbs.connections,
    responses=answers(ToolConnectionsView),
    summary="List tool connections",
)
async def list_connections(session: CallerSession) -> Response:
    """The connected MCP servers and OpenAPI documents, and the MCP servers of the settings, without keys."""
    return JsonReply(await session.tools.connections())


@router.post(
    "/api/tool-connections/{name}/test",
    verb=ToolVerbs.try_connection,
    responses=answers(ToolConnectionTest, "tool-connection-invalid", "tool-connection-in-settings", body=True),
    summary="Test a tool connection",
)
async def try_connection(session: CallerSession, name: ConnectionName, body: TryToolConnectionBody) -> Response:
    """List the tools that a server or a document offers, and call one of them, which is a real call.

    Nothing is saved. The answer contains the failure if the server or the document cannot be used.
    """
    call: tuple[str, JsonObject] | None = None if body.call is None else (body.call.tool, body.call.arguments)
    return JsonReply(await session.tools.try_connection(name, body.request(test=True), call=call))


@router.put(
    "/api/tool-connections/{name}",
    verb=ToolVerbs.connect,
    responses=answers(
        ConnectedToolsView,
        "tool-connection-invalid",
        "tool-connection-in-settings",
        "openapi-unreadable",
        "revision-moved",
        "vault-locked",
        body=True,
    ),
    summary="Connect tools",
)
async def connect_tools(
    session: CallerSession, name: ConnectionName, body: ConnectToolsBody, match: Match = None
) -> Response:
    """Test an MCP server or an OpenAPI document, then store it, with its key encrypted.

    Workflows may use its tools at once, in every process. An MCP server of the settings cannot be replaced. `saved` is
    false, and nothing is changed, if the test failed.
    """
    result, etag = await session.tools.connect(name, body.request(test=body.test), match=match)
    return JsonReply(result, headers={"etag": etag} if etag else {})


@router.delete(
    "/api/tool-connections/{name}",
    verb=ToolVerbs.disconnect,
    status_code=204,
    responses=refusals("no-such-tool-connection", "revision-moved"),
    summary="Disconnect tools",
)
async def disconnect_tools(session: CallerSession, name: ConnectionName, if_match: IfMatch = None) -> Response:
    """Delete a connection and its key. Steps that call its tools fail from now on."""
    await session.tools.disconnect(name, match=if_match)
    return Response(status_code=204)
