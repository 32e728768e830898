"""Operations on notifications: configured addresses, and delivery status of notices."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.paging import page_by
from pointsman.server.context import CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Admin, After, Limit
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, sample
from pointsman.triggers.notifications.board import addresses_view, letters_view
from pointsman.triggers.notifications.outbox import Outbox
from pointsman.triggers.notifications.views import letter_view
from pointsman.values import JsonObject

router = Operations(prefix="/api/notifications", tags=["notifications"])

State = Literal["pending", "sent", "dead"]
NOTICE: JsonObject = {
    "id": "desk/exec-06f0c2k8-gate-review",
    "to": "desk",
    "event": "workflow.human.required",
    "executionId": EXECUTION_ID,
    "state": "dead",
    "at": 1_763_700_000.0,
    "attempts": 8,
    "due": None,
    "error": "answered 500",
}


class AddressAnswer(Answer):
    """An address that the settings name. Its secret is never told."""

    name: str
    url: str = Field(description="Scheme and host: the rest is often a secret.")
    events: list[str]
    workflows: list[str]
    signed: bool


class NoticeAnswer(Answer):
    """One notice to one address."""

    model_config = sample(**NOTICE)
    id: str
    to: str
    event: str
    execution_id: str
    state: State = Field(description="`dead`: it was given up, and is not tried again by itself.")
    at: float
    attempts: int
    due: float | None = Field(description="When it is tried next.")
    error: str | None = Field(description="Why it was not taken the last time.")


class NoticePage(Answer):
    """The addresses, and the notices by id."""

    model_config = sample(
        addresses=[
            {
                "name": "desk",
                "url": "https://chat.example/…",
                "events": ["gate", "failed"],
                "workflows": ["*"],
                "signed": True,
            }
        ],
        notices=[NOTICE],
        next=None,
    )
    addresses: list[AddressAnswer]
    notices: list[NoticeAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


@router.get("", responses=answers(NoticePage), summary="List notifications")
async def list_(
    *,
    desk: CurrentServer,
    caller: Admin,
    state: Annotated[State | None, Query(description="Only those.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Who is told of what, and what became of each notice. Those that were sent are forgotten after some days."""
    page = await page_by("id", await letters_view(desk.app.context, state=state), after=after, limit=limit)
    addresses = addresses_view(desk.app.settings)
    return JsonReply({"addresses": [*addresses], "notices": [*page.entries], "next": page.next})


@router.post("/{id:path}/retry", responses=answers(NoticeAnswer, "no-such-notice"), summary="Send a notice again")
async def retry(
    desk: CurrentServer,
    caller: Admin,
    id: Annotated[str, Path(min_length=1, max_length=500, description="The notice's id.")],
) -> Response:
    """From the first attempt on. Whoever keeps the store sends it."""
    return JsonReply(letter_view(await Outbox(desk.app.context).try_again(id)))
