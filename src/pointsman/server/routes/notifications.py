"""Operations on notifications: configured addresses, and delivery status of notices."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query, Response

from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Limit
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.views import example
from pointsman.triggers.notifications import NoticePage, NoticeState, NoticeView, notice_view
from pointsman.triggers.verbs import NotificationVerbs

router = Operations(prefix="/api/notifications", tags=["notifications"])

NOTICE: Final[NoticeView] = {
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


example(NoticeView, NOTICE)
example(
    NoticePage,
    {
        "addresses": [
            {
                "name": "desk",
                "url": "https://chat.example/…",
                "events": ["gate", "failed"],
                "workflows": ["*"],
                "signed": True,
            }
        ],
        "notices": [NOTICE],
        "next": None,
    },
)


@router.get("", verb=NotificationVerbs.list, responses=answers(NoticePage), summary="List notifications")
async def list_(
    *,
    session: CallerSession,
    state: Annotated[NoticeState | None, Query(description="Only those.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The configured addresses, and the delivery status of each notice. Sent notices are deleted after some time."""
    return JsonReply(await session.notifications.list(state=state, after=after, limit=limit))


@router.post(
    "/{id:path}/retry",
    verb=NotificationVerbs.retry,
    responses=answers(NoticeView, "no-such-notice"),
    summary="Send a notice again",
)
async def retry(
    session: CallerSession,
    id: Annotated[str, Path(min_length=1, max_length=500, description="The notice's id.")],
) -> Response:
    """From the first attempt on. The leader of the store sends it."""
    return JsonReply(notice_view(await session.notifications.retry(id)))
