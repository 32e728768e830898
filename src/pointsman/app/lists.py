"""Lists for people and programs: executions and tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from pointsman.app.installation import Pointsman
from pointsman.app.observing.history import History
from pointsman.journal.records import ExecutionQuery, Summary
from pointsman.values import JsonObject, WorkflowId


async def list_executions(
    app: Pointsman,
    *,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    limit: int = 50,
) -> list[JsonObject]:
    """Executions that fit, newest first."""
    query = ExecutionQuery(
        statuses=frozenset(statuses),
        workflow=None if workflow is None else WorkflowId(workflow),
        session=session,
        limit=limit,
    )
    return [summary_view(summary) for summary in await app.executions(query)]


async def found_executions(
    app: Pointsman,
    words: str,
    *,
    sees: Callable[[Summary], Awaitable[bool]] | None = None,
    statuses: Collection[str] = (),
    workflow: str | None = None,
    session: str | None = None,
    limit: int = 50,
) -> list[JsonObject]:
    """Those of the executions that fit, and that somebody sees, whose inputs, outputs or errors have all these words.

    Of the best the newest first. What runs or waits is found once it has ended.
    """

    async def fits(one: Summary) -> bool:
        narrowed = (not statuses or one.status in statuses) and workflow in (None, one.workflow)
        return narrowed and session in (None, one.session) and (sees is None or await sees(one))

    return [summary_view(one) for one in await History(app).search(words, sees=fits, limit=limit)]


def summary_view(summary: Summary) -> JsonObject:
    return {
        "executionId": summary.execution,
        "workflowId": summary.workflow,
        "revision": summary.revision or None,
        "status": summary.status,
        "startedAt": summary.started,
        "updatedAt": summary.updated,
        "parent": summary.parent,
        "sessionId": summary.session,
    }


async def list_tools(app: Pointsman, *, let_go: bool = True) -> list[JsonObject]:
    """Every tool that workflows can use here, with what models are shown of it. Asks the MCP servers, and lets go of
    them afterwards, unless executions may be using them."""
    try:
        await app.tools.prepare_all()
    finally:
        if let_go:
            await app.tools.close()
    views = (tool_view(app, name) for name in app.tools.names())
    return [view for view in views if view is not None]


def tool_view(app: Pointsman, name: str) -> JsonObject | None:
    """What models are shown of a tool, and what people should know of it; None: there is none."""
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
