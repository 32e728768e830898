"""Operations on relatives of executions (origin, forks, children) and on the calls of their steps."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response
from pydantic import Field

from pointsman.executions.lists import Relations
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Eid
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, JsonValue, sample
from pointsman.server.schemas.responses import Usage
from pointsman.server.schemas.views import example

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


class ToolCallAnswer(Answer):
    """A call of a tool, as a model wanted it."""

    tool: str
    arguments: JsonValue
    done: bool = Field(description="False: it was not told what came of it, yet.")


class CallAnswer(Answer):
    """A call of a model, with the calls of tools that it made; or of a tool alone, with `result` or `error`."""

    attempt: int
    number: int = Field(description="In its attempt.")
    kind: Literal["model", "tool"]
    model: str | None = None
    text: str | None = None
    usage: Usage | None = None
    calls: list[ToolCallAnswer] = Field(default_factory=list[ToolCallAnswer])


class CallsAnswer(Answer):
    """What a step asked, in order."""

    model_config = sample(
        calls=[
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
    )
    calls: list[CallAnswer]


@router.get(
    "/family",
    verb=ExecutionVerbs.relations,
    responses=answers(Relations, "unknown-execution"),
    summary="Read the relatives of an execution",
)
async def family(session: CallerSession, eid: Eid) -> Response:
    """What called it, what it called, and its forks: as far as the caller may see them."""
    return JsonReply(await session.executions.relations(eid))


@router.get(
    "/calls",
    verb=ExecutionVerbs.calls,
    responses=answers(CallsAnswer, "unknown-execution"),
    summary="Read the calls of a step",
)
async def calls(
    session: CallerSession,
    eid: Eid,
    step: Annotated[str, Query(min_length=1, max_length=500, description="As events name it.")],
) -> Response:
    """What it asked of models and tools, and what it was told: while it works, and afterwards."""
    return JsonReply({"calls": [*await session.executions.calls(eid, step)]})
