"""Operations on comments: of workflows and executions, and mentions of the caller."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query, Response
from pydantic import Field, model_validator

from pointsman.comments.comments import TEXT_CHARS_MAX, SubjectKind
from pointsman.comments.verbs import CommentList, CommentVerbs, CommentView, MentionList, MentionView, PresentList
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, sample

router = Operations(prefix="/api", tags=["comments"])

Cid = Annotated[str, Path(min_length=1, max_length=100, description="The comment's id.")]
COMMENT: Final[CommentView] = {
    "id": "000644b1d3f6a400-9f2c41d07be3",
    "workflow": "triage-support",
    "execution": None,
    "place": "classify",
    "by": "ada",
    "text": "@ben is this prompt *too long*?",
    "mentions": ["ben"],
    "at": 1_763_700_000.0,
    "editedAt": None,
    "resolvedBy": None,
}
MENTION: Final[MentionView] = {**COMMENT, "unread": True}
example(CommentView, COMMENT)
example(CommentList, {"comments": [COMMENT]})
example(MentionList, {"mentions": [MENTION], "unread": 1})
example(PresentList, {"people": [{"name": "ada", "place": "classify", "at": 1_763_700_000.0}]})


class PresenceBody(Body):
    """What the caller looks at."""

    model_config = sample(kind="workflow", subject="triage-support", place="classify")
    kind: SubjectKind
    subject: str = Field(min_length=1, max_length=300, description="The id of the workflow or the execution.")
    place: str = Field(default="", max_length=300, description="The selected node or step; empty: none.")


class CommentBody(Body):
    """A new comment."""

    model_config = sample(kind="workflow", subject="triage-support", place="classify", text="@ben, is it too long?")
    kind: SubjectKind
    subject: str = Field(min_length=1, max_length=300, description="The id of the workflow or the execution.")
    place: str = Field(default="", max_length=300, description="The node or the step that it is about; empty: none.")
    text: str = Field(description=f"Markdown, at most {TEXT_CHARS_MAX} characters. `@name` mentions a person.")


class CommentChangeBody(Body):
    """A change of a comment."""

    model_config = sample(resolved=True)
    text: str | None = Field(default=None, description="The new text.")
    resolved: bool | None = Field(default=None, description="Whether a comment on a workflow is settled.")

    @model_validator(mode="after")
    def _changes(self) -> CommentChangeBody:
        if self.text is None and self.resolved is None:
            raise ValueError("give `text` or `resolved`")
        return self


@router.get(
    "/comments",
    verb=CommentVerbs.list,
    responses=answers(CommentList, "unknown-workflow", "unknown-execution"),
    summary="List comments",
)
async def comments(
    session: CallerSession,
    kind: Annotated[SubjectKind, Query(description="What the comments are about.")],
    subject: Annotated[str, Query(min_length=1, max_length=300, description="The id of the workflow or execution.")],
) -> Response:
    """The comments on a workflow or an execution that the caller may see, oldest first."""
    return JsonReply(await session.comments.list(kind, subject))


@router.post(
    "/comments",
    verb=CommentVerbs.add,
    status_code=201,
    responses=answers(
        CommentView,
        "unknown-workflow",
        "unknown-execution",
        "comment-invalid",
        "too-many-comments",
        status=201,
        body=True,
    ),
    summary="Write a comment",
)
async def add(session: CallerSession, body: CommentBody) -> Response:
    """Comment on a workflow or an execution. A mentioned person who may see it finds the comment in the inbox."""
    made = await session.comments.add(body.kind, body.subject, body.text, place=body.place)
    return JsonReply(made, status=201)


@router.patch(
    "/comments/{cid}",
    verb=CommentVerbs.change,
    responses=answers(CommentView, "unknown-comment", "comment-invalid", body=True),
    summary="Change a comment",
)
async def change(session: CallerSession, cid: Cid, body: CommentChangeBody) -> Response:
    """Change the text of an own comment, or resolve a comment on a workflow."""
    return JsonReply(await session.comments.change(cid, text=body.text, resolved=body.resolved))


@router.delete(
    "/comments/{cid}",
    verb=CommentVerbs.delete,
    status_code=204,
    responses=refusals("unknown-comment"),
    summary="Delete a comment",
)
async def delete(session: CallerSession, cid: Cid) -> Response:
    """Delete an own comment; admins delete every comment."""
    await session.comments.delete(cid)
    return Response(status_code=204)


@router.get(
    "/mentions", verb=CommentVerbs.mentions, responses=answers(MentionList), summary="List mentions of the caller"
)
async def mentions(session: CallerSession) -> Response:
    """Comments that mention the caller, newest first, on what the caller may see."""
    return JsonReply(await session.comments.mentions())


@router.post(
    "/mentions/read",
    verb=CommentVerbs.mark_read,
    status_code=204,
    responses=refusals(),
    summary="Mark mentions as read",
)
async def mark_read(session: CallerSession) -> Response:
    """Mark all present mentions of the caller as read."""
    await session.comments.mark_read()
    return Response(status_code=204)


@router.post(
    "/presence",
    verb=CommentVerbs.present,
    responses=answers(PresentList, "unknown-workflow", "unknown-execution", body=True),
    summary="List who else is looking",
)
async def present(session: CallerSession, body: PresenceBody) -> Response:
    """Note that the caller looks at a workflow or an execution; return the other people who did within the last 20 s.

    Send this every 8 s while the page is visible.
    """
    return JsonReply(await session.comments.present(body.kind, body.subject, place=body.place))
