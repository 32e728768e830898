"""Lists of executions and tools for people and programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.executions.usage_rollup import UsageRollup
from pointsman.executions.views import ExecutionStatus, need_text, status_shown
from pointsman.searching import says
from pointsman.store.records import TRIAL, ExecutionQuery, Summary
from pointsman.values import Json, JsonObject, WorkflowId

STOPPED: Final = "stopped"
ORIGINS: Final = ("function", "workflow", "http", "mcp", "command", "plugin", "client", "scripted", "builtin")
"""Origins of tools, in the order in which lists show them."""


class ExecutionEntry(TypedDict):
    """An execution in a list."""

    executionId: str
    workflowId: str
    revision: int | None
    status: ExecutionStatus
    waitingFor: list[str]
    """What workers must have to perform the steps that wait for a worker."""
    startedAt: float
    updatedAt: float
    parent: str | None
    sessionId: str | None
    scripted: bool
    """Whether the scripted model answers in it, so that what its agents say is made up."""


async def list_executions(
    app: AppContext,
    *,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    trials: bool = False,
    limit: int = 50,
) -> list[ExecutionEntry]:
    """Return matching executions, newest first; with `trials`, partial runs too."""
    query = ExecutionQuery(
        statuses=stored_statuses(statuses),
        workflow=None if workflow is None else WorkflowId(workflow),
        session=session,
        trials=trials,
        limit=limit,
    )
    fitting: list[Summary] = []
    while len(fitting) < limit:
        found = await app.store.executions.list(query)
        fitting += [one for one in found if is_shown_as(one, statuses)]
        if len(found) < query.limit:
            break
        query = replace(query, before=(found[-1].started, found[-1].execution))
    return [summary_view(summary) for summary in fitting[:limit]]


def stored_statuses(shown: Collection[str]) -> frozenset[str]:
    """Return the stored statuses of executions that are shown with these statuses."""
    return frozenset("running" if status == STOPPED else status for status in shown)


def is_shown_as(one: Summary, statuses: Collection[str]) -> bool:
    """Return whether an execution is shown with one of these statuses; with no statuses, always."""
    return not statuses or status_shown(one.status, one.worker) in statuses


async def found_executions(
    app: AppContext,
    words: str,
    *,
    sees: Callable[[Summary], Awaitable[bool]] | None = None,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    since: float | None = None,
    until: float | None = None,
    trials: bool = False,
    limit: int = 50,
) -> list[ExecutionEntry]:
    """Return the matching executions that `sees` admits and whose inputs, outputs or errors contain all these words.

    Of the best matches, the newest come first. Running executions are found once they end or stand still.
    """

    async def fits(one: Summary) -> bool:
        narrowed = is_shown_as(one, statuses) and workflow in (None, one.workflow)
        narrowed = narrowed and (since is None or one.started >= since) and (until is None or one.started < until)
        narrowed = narrowed and (trials or not one.execution.startswith(TRIAL))
        return narrowed and session in (None, one.session) and (sees is None or await sees(one))

    return [summary_view(one) for one in await UsageRollup(app).search(words, sees=fits, limit=limit)]


def summary_view(summary: Summary) -> ExecutionEntry:
    return {
        "executionId": summary.execution,
        "workflowId": summary.workflow,
        "revision": summary.revision or None,
        "status": status_shown(summary.status, summary.worker),
        "waitingFor": [need_text(need) for need in summary.needs],
        "startedAt": summary.started,
        "updatedAt": summary.updated,
        "parent": summary.parent,
        "sessionId": summary.session,
        "scripted": summary.scripted,
    }


async def list_tools(app: AppContext, *, let_go: bool = True) -> list[JsonObject]:
    """Return every tool that workflows can use here, as models see it. Asks the MCP servers, and disconnects them
    afterwards unless executions may be using them (`let_go`)."""
    try:
        await app.tools.prepare_all()
    finally:
        if let_go:
            await app.tools.close()
    return _tool_views(app, app.tools.names())


async def found_tools(app: AppContext, *, words: str = "", names: Collection[str] | None = None) -> list[JsonObject]:
    """Return name and origin of the tools whose name or description contains all these words; `names`: only these, and
    only their servers are asked. `tool_view` returns the details."""
    if names is None:
        await app.tools.prepare_all()
        known: Iterable[str] = app.tools.names()
    else:
        await app.tools.prepare(names)
        known = sorted({*names})
    return [
        {"name": name, "origin": origin}
        for name in known
        if (origin := app.tools.origin(name)) is not None and _says(app, words, name)
    ]


def _says(app: AppContext, words: str, name: str) -> bool:
    spec = app.tools.find(name) if words.strip() else None
    return spec is None or says(words, name, spec.description)


async def names_of_workflows(app: AppContext, words: str) -> Callable[[str], Json]:
    """Return a lookup of each saved workflow's names in all languages, for a search; they are read only if there are
    words to search for."""
    found: dict[str, Json] = {}
    if words.strip():
        found = {one.id: [one.name, *(one.names or {}).values()] for one in await app.store.workflows.list()}
    return lambda reference: found.get(reference.partition("@")[0])


def place_by_origin(tool: JsonObject) -> str:
    """Return the sort key of a tool: the caller's own tools first, built-in tools last."""
    origin = str(tool["origin"])
    return f"{ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS):02} {tool['name']}"


def _tool_views(app: AppContext, names: Iterable[str]) -> list[JsonObject]:
    views = (tool_view(app, name) for name in names)
    return [view for view in views if view is not None]


def tool_view(app: AppContext, name: str) -> JsonObject | None:
    """Return a tool as models see it, with what people should know of it; None: it does not exist."""
    spec = app.tools.find(name)
    if spec is None:
        return None
    return {
        "name": name,
        "origin": app.tools.origin(name),
        "description": spec.description,
        "parameters": spec.parameters,
        "side": spec.side,
        "idempotent": spec.idempotent,
        "requiresApproval": spec.requires_approval,
        "enabled": not spec.off,
        "off": spec.off or None,
    }


def server_views(app: AppContext, *, with_stderr: bool = False) -> list[JsonObject]:
    """Return the MCP servers, each with the number of its tools or the failure of its last listing. `with_stderr`:
    include the end of what its command printed, which is for the operator only."""
    names = app.tools.names()
    return [
        {
            "name": prefix.removesuffix("__"),
            "prefix": prefix,
            "tools": sum(name.startswith(prefix) for name in names),
            "failure": None
            if failure is None
            else {
                "code": failure.code,
                "message": failure.message,
                "hint": failure.hint,
                **({"stderr": (failure.details or {}).get("stderr")} if with_stderr else {}),
            },
        }
        for prefix, failure in app.tools.servers().items()
    ]
