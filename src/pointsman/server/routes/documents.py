"""Operations on unsaved workflow documents: conversion to another dialect, and dry runs."""

from __future__ import annotations

import msgspec
from fastapi import Response

from pointsman.app import Workflow
from pointsman.executions.driving import GivenAnswer
from pointsman.executions.dry_run import dry_view
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Id
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
    """Return the document in another dialect, or as a diagram. Nothing is saved."""
    given = body.document
    text = given if isinstance(given, str) else msgspec.json.encode(given)
    return JsonReply(await session.workflows.convert(Workflow(text, dialect=body.dialect), body.to))


@router.post(
    "/{id}/dry-run",
    verb=ExecutionVerbs.dry_run,
    responses=answers(
        DryRunAnswer, "unknown-workflow", "workflow-invalid", "input-invalid", "workflow-disabled", body=True
    ),
    summary="Estimate an execution",
)
async def dry_run(session: CallerSession, id: Id, body: DryRunBody) -> Response:
    """Return the path that an execution would take, its calls and its cost. Nothing is called or stored."""
    given = [GivenAnswer(one.node, one.action, one.data) for one in body.answers]
    return JsonReply(dry_view(await session.executions.dry_run(id, body.input, answers=given)))
