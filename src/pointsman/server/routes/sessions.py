"""Conversations: what was said, and forgetting it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from pointsman.app.access.seeing import must_own_session
from pointsman.app.conversing import conversation_view
from pointsman.server.desk import Asking, AtDesk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers
from pointsman.server.routes.parameters import Admin
from pointsman.server.samples import EXECUTION_ID
from pointsman.server.shapes import Answer, JsonValue, sample
from pointsman.server.shown import ENTRY, ExecutionEntry

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

Session = Annotated[str, Path(min_length=1, max_length=500, description="The session's id.")]


class SessionAnswer(Answer):
    """A conversation: what was said in it, and its turns."""

    model_config = sample(
        sessionId="s1",
        closed=False,
        messages=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning."}],
        executions=[ENTRY],
        openTurn=None,
    )
    session_id: str
    closed: bool
    messages: list[JsonValue] = Field(description="Oldest first.")
    executions: list[ExecutionEntry] = Field(description="Its turns, newest first; at most 200.")
    open_turn: str | None = Field(description="The turn that is under way, or waits for somebody.")


class DeletedAnswer(Answer):
    """What is gone."""

    model_config = sample(deleted=[EXECUTION_ID])
    deleted: list[str]


@router.get("/{id}", responses=answers(SessionAnswer, "unknown-session"), summary="Read a conversation")
async def read(desk: AtDesk, caller: Asking, id: Session) -> Response:
    """For whoever began it, and for admins."""
    await must_own_session(desk.app, caller, id)
    return JsonReply(await conversation_view(desk.app, id))


@router.delete(
    "/{id}",
    responses=answers(DeletedAnswer, "unknown-session", "execution-unfinished"),
    summary="Delete a conversation",
)
async def delete(desk: AtDesk, caller: Admin, id: Session) -> Response:
    """For good: what was said, its executions, and what it remembered. All its executions must have ended."""
    return JsonReply({"deleted": [*await desk.app.storage.delete_session(id)]})
