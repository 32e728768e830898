"""Operations on the history of executions: timeline, replay, migration, relatives, calls of steps."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.executions.fork_migrate_replay import MigrationView, ReplayView, replay_view
from pointsman.executions.lists import Relations
from pointsman.executions.timeline import StepCallView, TimelineView
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.control import changed
from pointsman.server.routes.parameters import Eid
from pointsman.server.schemas.answers import EXECUTION_ID, answers, example
from pointsman.server.schemas.requests import Body, sample

router = Operations(prefix="/api/workflows/executions/{eid}", tags=["executions"])


example(
    Relations,
    {
        "parents": [],
        "children": [],
        "forks": [
            {
                "executionId": EXECUTION_ID,
                "workflowId": "letter",
                "revision": 3,
                "status": "completed",
                "waitingFor": [],
                "startedAt": 1_763_700_100.0,
                "startedBy": "ada",
                "updatedAt": 1_763_700_104.0,
                "parent": None,
                "sessionId": None,
                "scripted": False,
                "origin": "exec-06f0c2k8s3v7q9y1m4t5w6x8z1",
                "row": 12,
                "before": None,
            }
        ],
        "origin": None,
        "complete": True,
    },
)


class StepCalls(TypedDict):
    """The calls of a step, in order."""

    calls: list[StepCallView]


example(
    StepCalls,
    {
        "calls": [
            {
                "attempt": 1,
                "number": 1,
                "kind": "model",
                "model": "scripted",
                "text": "Let me see.",
                "usage": {
                    "inputTokens": 210,
                    "outputTokens": 12,
                    "cacheReadTokens": 0,
                    "cacheWriteTokens": 0,
                    "costUsd": None,
                    "modelCalls": 1,
                    "toolCalls": 0,
                },
                "calls": [{"tool": "clock", "arguments": {"zone": "UTC"}, "done": True, "result": {"time": "12:00"}}],
            }
        ]
    },
)


@router.get(
    "/family",
    verb=ExecutionVerbs.relations,
    responses=answers(Relations, "unknown-execution"),
    summary="Read related executions",
)
async def lineage(session: CallerSession, eid: Eid) -> Response:
    """The execution that called it, its sub-workflows, and its forks, if the caller may see them."""
    return JsonReply(await session.executions.relations(eid))


@router.get(
    "/calls",
    verb=ExecutionVerbs.calls,
    responses=answers(StepCalls, "unknown-execution"),
    summary="Read the calls of a step",
)
async def calls(
    session: CallerSession,
    eid: Eid,
    step: Annotated[str, Query(min_length=1, max_length=500, description="The name of the step, as in events.")],
) -> Response:
    """The requests of a step to models and tools, and their answers, while it runs and afterwards."""
    calls: StepCalls = {"calls": await session.executions.calls(eid, step)}
    return JsonReply(calls)


Reference = Annotated[str, Field(min_length=1, max_length=300, description="`id`, `id@revision` or `id@version`.")]


class MoveBody(Body):
    """Another definition to continue with."""

    model_config = sample(to="letter@3", checkOnly=True)
    to: Reference
    check_only: bool = Field(default=False, description="Only return the parts that do not fit.")


example(
    MigrationView,
    {
        "executionId": EXECUTION_ID,
        "fits": False,
        "moved": False,
        "problems": [{"code": "node-gone", "where": "review", "message": "there is no node 'review'"}],
    },
)


class ReplayBody(Body):
    """The definition to replay with."""

    model_config = sample(against="letter@3")
    against: Reference | None = Field(
        default=None, description="Absent: the definition with which each row was decided."
    )


example(
    ReplayView,
    {
        "executionId": EXECUTION_ID,
        "same": True,
        "rows": 12,
        "status": "completed",
        "differences": [],
        "withoutReport": [],
        "untold": [],
    },
)
example(
    TimelineView,
    {
        "executionId": EXECUTION_ID,
        "workflowId": "letter",
        "status": "completed",
        "model": None,
        "startedAt": 1_763_700_000.0,
        "durationMs": 4012.0,
        "spans": [
            {
                "step": "write",
                "node": "write",
                "name": "Write",
                "scope": [],
                "visit": 1,
                "kind": "work",
                "attempt": 1,
                "startMs": 3.0,
                "endMs": 3804.5,
                "status": "done",
            }
        ],
        "nodes": [
            {
                "node": "write",
                "name": "Write",
                "model": "openai:gpt-5",
                "keyIndex": None,
                "modelsUsed": ["openai:gpt-5"],
                "keysUsed": [0],
                "steps": 1,
                "retries": 0,
                "cached": 0,
                "status": "done",
                "seconds": 3.8015,
                "modelCalls": 1,
                "toolCalls": 0,
                "inputTokens": 812,
                "outputTokens": 240,
                "cacheReadTokens": 0,
                "costUsd": 0.0021,
            }
        ],
    },
)


@router.get(
    "/timeline",
    verb=ExecutionVerbs.timeline,
    responses=answers(TimelineView, "unknown-execution"),
    summary="Read the timeline",
)
async def timeline(session: CallerSession, eid: Eid) -> Response:
    """Work, waits and failures by time; tokens, calls and cost by node."""
    return JsonReply(await session.executions.timeline(eid))


@router.post(
    "/replay",
    verb=ExecutionVerbs.replay,
    responses=answers(
        ReplayView, "unknown-execution", "unknown-workflow", "workflow-disabled", "workflow-invalid", 503, body=True
    ),
    summary="Replay an execution",
)
async def replay(session: CallerSession, eid: Eid, body: ReplayBody | None = None) -> Response:
    """Decide each row of the journal again and compare it with the stored row.

    Calls no model and no tool, and changes nothing.
    """
    against = None if body is None else body.against
    return JsonReply(replay_view(await session.executions.replay(eid, against=against)))


@router.post(
    "/move",
    verb=ExecutionVerbs.migrate,
    responses=changed(
        "migration-refused",
        "unknown-workflow",
        "workflow-disabled",
        "workflow-invalid",
        view=MigrationView,
    ),
    summary="Migrate an execution",
)
async def migrate(session: CallerSession, eid: Eid, body: MoveBody) -> Response:
    """Continue a paused, interrupted, failed or waiting execution with another definition.

    Nothing changes unless everything in progress has a place in the new definition.
    """
    return JsonReply(await session.executions.migrate(eid, body.to, check_only=body.check_only))
