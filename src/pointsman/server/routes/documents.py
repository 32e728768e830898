"""Operations on unsaved workflow documents: conversion to another dialect, and dry runs."""

from __future__ import annotations

import msgspec
from fastapi import Response

from pointsman.app import Workflow
from pointsman.auth.policy import must_see_workflow
from pointsman.executions.driving import GivenAnswer
from pointsman.executions.dry_run import dry_view
from pointsman.server.context import CallerSession, CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Id, Operator
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import ConvertBody, DryRunBody
from pointsman.server.schemas.responses import DryRunAnswer
from pointsman.workflows.conversion import ConvertedDocument
from pointsman.workflows.verbs import WorkflowVerbs

router = Operations(prefix="/api/workflows", tags=["workflows"])


@router.post(
    "/convert",
    verb=WorkflowVerbs.convert,
    responses=answers(ConvertedDocument, "workflow-invalid", body=True),
    summary="Convert a document",
)
async def convert(session: CallerSession, body: ConvertBody) -> Response:
    """Written in another dialect, or drawn. Nothing is saved."""
    given = body.document
    text = given if isinstance(given, str) else msgspec.json.encode(given)
    return JsonReply(await session.workflows.convert(Workflow(text, dialect=body.dialect), body.to))


@router.post(
    "/{id}/dry-run",
    responses=answers(
        DryRunAnswer, "unknown-workflow", "workflow-invalid", "input-invalid", "workflow-disabled", body=True
    ),
    summary="Play a workflow without calling anything",
)
async def dry_run(desk: CurrentServer, caller: Operator, id: Id, body: DryRunBody) -> Response:
    """The way it would go, what it would call, and what that would cost. Nothing is called or kept."""
    await must_see_workflow(desk.app.context, caller, id)
    said = [GivenAnswer(one.node, one.action, one.data, by=caller.name, groups=caller.groups) for one in body.answers]
    return JsonReply(dry_view(await desk.app.dry_run(id, body.input, answers=said, caller=caller)))
