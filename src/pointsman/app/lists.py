"""Lists for people and programs: executions, tools, models."""

from __future__ import annotations

from collections.abc import Collection

from pointsman.app.installation import Pointsman
from pointsman.journal.records import ExecutionQuery, Summary
from pointsman.values import Json, JsonObject, WorkflowId


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


def list_tools(app: Pointsman) -> list[JsonObject]:
    """Every tool that workflows can use here, with what models are shown of it."""
    found: list[JsonObject] = []
    for name in app.tools.names():
        spec = app.tools.find(name)
        if spec is not None:
            found.append(
                {
                    "name": name,
                    "origin": app.tools.origin(name),
                    "description": spec.description,
                    "parameters": spec.parameters,
                    "side": spec.side,
                    "idempotent": spec.idempotent,
                    "requiresApproval": spec.requires_approval,
                }
            )
    return found


def list_models(app: Pointsman) -> JsonObject:
    """Which model answers agents that name none, and which providers are configured. Keys are counted, not shown."""
    settings = app.settings
    providers: list[Json] = [
        {"name": name, "baseUrl": one.base_url, "keys": len(one.keys), "source": "settings"}
        for name, one in settings.providers.items()
    ]
    for name, variable in settings.providers_by_key().items():
        providers.append({"name": name, "baseUrl": None, "keys": 1, "source": variable})
    answers = app.model or settings.model or ("scripted" if not settings.has_provider() else None)
    return {"default": answers, "forEveryAgent": app.model or answers == "scripted", "providers": providers}
