"""The tool registry of an installation: tools given in code, those of the settings, and built-in ones; and workflows
as tools of agents.

Built-in tools with access to external systems are off until the settings name the systems.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from pointsman.auth.redaction import known_redaction
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, EngineBug
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.extras import install_hint, is_installed
from pointsman.ports import ToolSpec
from pointsman.settings import Settings
from pointsman.store.api import ConfigStore, Workflows
from pointsman.store.records import WorkflowEntry
from pointsman.tools.client_tools import ClientTool
from pointsman.tools.conversion import ToolLike
from pointsman.tools.functions import tool
from pointsman.tools.memory import memory_tools
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import OUTPUT_BYTES_MAX, Origin, Tool, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject, WorkflowId
from pointsman.workflows.builtin import BUILT_IN, TOOLS, shipped
from pointsman.workflows.versions import NONE, all_versions

if TYPE_CHECKING:
    from pointsman.tools.egress.addresses import Address
    from pointsman.tools.egress.http_calls import EgressTransport, Outgoing
    from pointsman.tools.mcp.server import McpServerDescription
    from pointsman.tools.pages import PageSettings
    from pointsman.tools.web_search import SearchSettings


PREFIX: Final = "workflow__"
NAME_CHARS_MAX: Final = 64
"""Model providers accept no longer names of tools, and only letters, digits, `_` and `-`."""
LOG: Final = logging.getLogger("pointsman.tools")
ANYTHING: Final[JsonObject] = {"type": "object"}

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(workflow: str) -> str:
    """Return the tool name of a workflow."""
    return (PREFIX + _OTHER.sub("_", workflow))[:NAME_CHARS_MAX]


def workflows_named(tools: Iterable[str], entries: Iterable[WorkflowEntry]) -> list[WorkflowId]:
    """Return the saved workflows behind tools of these names; other tools are omitted."""
    ids = by_tool_name(entries)
    return [ids[name] for name in tools if name in ids]


def by_tool_name(entries: Iterable[WorkflowEntry]) -> Mapping[str, WorkflowId]:
    """Return tool name -> workflow. If two workflows have the same tool name, the first by id gets it."""
    result: dict[str, WorkflowId] = {}
    for one in sorted(entry.id for entry in entries):
        result.setdefault(tool_name(one), one)
    return result


class WorkflowTools:
    """Source of the registry's tools for saved workflows. Disabled and unreadable workflows are omitted."""

    def __init__(self, workflows: Workflows, entries: ConfigStore) -> None:
        self._workflows = workflows
        self._entries = entries
        self._known: dict[tuple[str, int], Tool | None] = {}
        self.prefix = PREFIX
        self.origin: Origin = "workflow"
        self.lasts = False

    async def listed(self) -> list[Tool]:
        """Return the tool of each workflow, as it runs by id."""
        entries = {entry.id: entry for entry in await self._workflows.list()}
        versions = await all_versions(self._entries)
        tools: dict[tuple[str, int], Tool | None] = {}
        for name, workflow in by_tool_name(entries.values()).items():
            if not entries[workflow].enabled:
                continue
            at = (workflow, versions.get(workflow, NONE).published or entries[workflow].revision)
            tools[at] = self._known[at] if at in self._known else await self._tool(name, f"{at[0]}@{at[1]}")
        self._known = tools
        return [tool for tool in tools.values() if tool is not None]

    async def _tool(self, name: str, reference: str) -> Tool | None:
        saved = await self._workflows.find(reference)
        read = None if saved is None else WorkflowDefinition.from_document(saved.draft.native)[0]
        return None if read is None or read.enabled is False else WorkflowTool(name, read)

    def stand_in(self, name: str) -> Tool | None:
        """Return None: only the store knows the saved workflows."""
        return None

    async def close(self) -> None:
        """Nothing to close."""

    def retire(self) -> None:
        """Nothing to close."""


class WorkflowTool:
    """The specification of a workflow as a tool."""

    def __init__(self, name: str, workflow: WorkflowDefinition) -> None:
        self.name = name
        self.limits = ToolLimits()
        called = str(workflow.name or workflow.id)
        self.spec = ToolSpec(
            name=name,
            description=str(workflow.description or f"Run the workflow {str(called)!r}."),
            parameters=workflow.input_schema or ANYTHING,
            idempotent=True,
            workflow=workflow.id,
            bytes_max=OUTPUT_BYTES_MAX,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raise `ToolFailed`: only an execution can run a workflow."""
        message = f"{self.name!r} is a workflow; only an execution or a caller can run it"
        raise ToolFailed(Failure(code=ToolFailed.code, message=message))


class ShippedTool:
    """A built-in workflow as a tool. Its document is read when the tool's specification is first needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits = ToolLimits()

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raise `ToolFailed`: only an execution can run a workflow."""
        return await self._tool.run(arguments, context)

    @cached_property
    def _tool(self) -> WorkflowTool:
        source = shipped(BUILT_IN + self.name)
        if source is None:
            raise EngineBug(f"the tool {self.name!r} is not a built-in workflow")
        return WorkflowTool(self.name, source.definition)


def shipped_among(tools: Iterable[str]) -> list[str]:
    """Return the ids of the built-in workflows among the tools of these names."""
    return [BUILT_IN + name for name in dict.fromkeys(tools) if name in TOOLS]


def registry_for(settings: Settings, tools: Iterable[ToolLike]) -> ToolRegistry:
    """Return the registry. Raises `SettingsInvalid`, `ToolNameTaken`."""
    registry = ToolRegistry(tools)
    if settings.tools or settings.tool_files:
        from pointsman.workflows.http_tools import http_tools  # Deferred: it loads an HTTP client.

        for tool in http_tools(settings):
            registry.add(tool, origin="http")
    for module in settings.tool_modules:
        from pointsman.tools.registry import ToolModuleFailed, add_tools_of

        try:
            add_tools_of(registry, module)
        except ToolModuleFailed as why:
            LOG.warning("%s", why)
            registry.broken_modules.append(why)
    for name, command in settings.commands.items():
        from pointsman.tools.commands import CommandTool  # Import only if needed, as above.

        registry.add(CommandTool(name, command, sandbox=settings.sandbox.box), origin="command")
    redaction = known_redaction(settings)
    for name, server in settings.mcp.items():
        from pointsman.tools.mcp.server import (
            McpServer,  # Import only if needed, as above.
            McpTools,
        )

        open_transport = partial(_mcp_transport, settings, server)
        registry.add_source(
            McpTools(
                McpServer(
                    name,
                    server,
                    open_transport=open_transport,
                    resolved=settings.resolved,
                    rule=settings.rule,
                    known=redaction,
                )
            )
        )
    for name, described in settings.client_tools.items():
        registry.add(ClientTool(name, described), origin="client")
    for tool in builtin_tools(settings):
        registry.add_builtin(tool)
    for name in TOOLS:
        registry.add_builtin(ShippedTool(name))
    return registry


def _mcp_transport(settings: Settings, server: McpServerDescription) -> EgressTransport:
    """Return the transport to an MCP server. The operator chose its address, so internal addresses and any port are
    allowed."""
    from pointsman.tools.egress.addresses import EVERYWHERE  # Loads an HTTP client.
    from pointsman.tools.egress.http_calls import EgressPolicy, EgressTransport

    return EgressTransport(EgressPolicy(networks=EVERYWHERE, ports=None, plain=settings.http.plain))


_ANYTHING: Final[JsonObject] = {"type": "object"}


class OffTool:
    """A tool with access to the outside that the operator has not enabled."""

    def __init__(self, name: str, description: str, *, because: str) -> None:
        """`because`: which setting is missing, and where it belongs."""
        self.name = name
        self.limits = ToolLimits()
        self.spec = ToolSpec(name=name, description=description, parameters=_ANYTHING, off=because)

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Always raise `ToolFailed`."""
        message = f"the tool {self.name!r} is disabled here"
        raise ToolFailed(Failure(code="tool-disabled", message=message, hint=self.spec.off, needs=f"tool:{self.name}"))


@tool(idempotent=True)
async def calculator(expression: str) -> Json:
    """Work out an arithmetic expression, such as `(3 + 4) * 2.5`, `round(10 / 3, 2)` or `max([1, 7, 3])`."""
    try:
        return compile_expression(expression).evaluate(Environment(state={}))
    except AuthorError as why:
        raise ToolFailed(Failure(code="tool-arguments", message=str(why), hint=why.hint)) from why


def builtin_tools(settings: Settings) -> Iterator[Tool]:
    """Yield all built-in tools, including those that are off. Loads only the modules of those that are on."""
    yield calculator
    yield _sql(settings)
    yield _search(settings)
    yield _pages(settings)
    yield CurrentMailTool(settings)
    yield from _files(settings)
    yield from memory_tools()


def _sql(settings: Settings) -> Tool:
    if not settings.sql:
        return OffTool(
            "sql", "Read a database.", because="Configure a database in the settings: [sql.NAME] with its `url`."
        )
    from pointsman.tools.sql.tool import SqlTool

    return SqlTool(settings.sql, resolved=settings.resolved)


def _search(settings: Settings) -> Tool:
    if settings.search is None:
        return OffTool("web_search", "Search the web.", because="Configure a search engine in the settings: [search].")
    from pointsman.tools.web_search import WebSearchTool

    def outgoing(search: SearchSettings) -> Outgoing:
        from pointsman.tools.egress.addresses import EVERYWHERE  # Loads an HTTP client.
        from pointsman.tools.egress.http_calls import EgressPolicy, Outgoing

        # The operator chose this address, so every network is allowed.
        rules = EgressPolicy(networks=EVERYWHERE, ports=None, plain=settings.http.plain)
        return Outgoing(rules, timeout_s=search.timeout.seconds, redirects_max=0)

    return WebSearchTool(settings.search, outgoing=outgoing, resolved=settings.resolved)


def _pages(settings: Settings) -> Tool:
    if not settings.pages.hosts:
        because = 'Allow hosts in the settings: [pages] hosts = ["*.example.org"].'
        return OffTool("fetch_page", "Fetch a page of the web as text.", because=because)
    if not is_installed("tools"):
        return OffTool("fetch_page", "Fetch a page of the web as text.", because=install_hint("tools"))
    from pointsman.tools.pages import FetchPageTool

    def outgoing(pages: PageSettings) -> Outgoing:
        from pointsman.tools.egress.addresses import AddressRefused
        from pointsman.tools.egress.http_calls import Outgoing, resolve

        async def allowed(host: str, port: int) -> list[Address]:
            if not pages.allows(host):
                raise AddressRefused(
                    f"{host!r} is not among the hosts of [pages]",
                    hint="The operator can add it to `hosts` under [pages].",
                )
            return await resolve(host, port)

        return Outgoing(
            settings.http.egress_policy(),
            timeout_s=pages.timeout.seconds,
            body_bytes_max=pages.bytes_max,
            resolve=allowed,
        )

    return FetchPageTool(settings.pages, outgoing=outgoing)


class CurrentMailTool:
    """The tool `send_email` as the settings in effect make it: on or off, with one mail server or another."""

    name = "send_email"
    limits = ToolLimits()

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: tuple[Settings, Tool] | None = None

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        return await self._tool.run(arguments, context)

    @property
    def _tool(self) -> Tool:
        """The tool for the present settings."""
        now = self._settings.current
        if self._made is None or self._made[0] is not now:
            self._made = now, _mail(self._settings)
        return self._made[1]


def _mail(settings: Settings) -> Tool:
    server = settings.outgoing_mail
    if server is None or not settings.current.allow_email_sending:
        because = (
            "Add a mail server and allow it on the page Settings, or in the settings: [mail], allow_email_sending."
        )
        return OffTool("send_email", "Send an e-mail as plain text.", because=because)
    if not is_installed("tools"):
        return OffTool("send_email", "Send an e-mail as plain text.", because=install_hint("tools"))
    from pointsman.tools.mail import SendEmailTool

    return SendEmailTool(server, resolved=settings.resolved, now=lambda: datetime.now(UTC))


def _files(settings: Settings) -> Iterator[Tool]:
    if settings.files is None:
        for name, does in (("read_file", "Read"), ("write_file", "Write"), ("list_files", "List")):
            because = "Set a directory for artifacts in the settings: [files] directory."
            yield OffTool(name, f"{does} files of the execution.", because=because)
        return
    from pointsman.tools.files import FileTool

    yield FileTool("read_file", settings.files)
    yield FileTool("write_file", settings.files)
    yield FileTool("list_files", settings.files)
