"""Verbs of comments. People who see a workflow or an execution read its comments; operators among them write.

A mention gives no right: its list is filtered by what the person may see at that moment, so that a mention reveals
nothing, and the author of a comment does not learn who exists.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import TypedDict

from pointsman.auth.callers import NotAllowed
from pointsman.auth.policy import must_see, must_see_workflow
from pointsman.auth.verbs import Verbs, verb
from pointsman.comments.comments import (
    Comment,
    CommentSubject,
    SubjectKind,
    UnknownComment,
    add_comment,
    change_comment,
    delete_comment,
    find_comment,
    list_comments,
    mark_read,
    mentioned_in,
    mentions,
    read_until,
)
from pointsman.comments.presence import others_on
from pointsman.errors import CallerError, PointsmanError


class CommentView(TypedDict):
    """A comment on a workflow or an execution."""

    id: str
    workflow: str | None
    """The workflow that it is about; null: it is about an execution."""
    execution: str | None
    """The execution that it is about; null: it is about a workflow."""
    place: str | None
    """The node of the workflow, or the step of the execution; null: all of it."""
    by: str
    text: str
    """Markdown."""
    mentions: list[str]
    """The names that it mentions as `@name`, whether or not such people exist."""
    at: float
    editedAt: float | None
    resolvedBy: str | None
    """The person who resolved it; null: it is open."""


class CommentList(TypedDict):
    """Comments, oldest first."""

    comments: list[CommentView]


class MentionView(CommentView):
    """A comment that mentions the caller."""

    unread: bool


class MentionList(TypedDict):
    """Comments that mention the caller, newest first."""

    mentions: list[MentionView]
    unread: int
    """How many of them the caller has not read."""


class PresentView(TypedDict):
    """Another person who looks at the same workflow or execution."""

    name: str
    place: str | None
    """The node or the step that the person has selected; null: none."""
    at: float
    """When the person last gave a sign."""


class PresentList(TypedDict):
    """The other people who look at a workflow or an execution now, by name."""

    people: list[PresentView]


def comment_view(comment: Comment) -> CommentView:
    subject = comment.subject
    return {
        "id": comment.id,
        "workflow": subject.id if subject.kind == "workflow" else None,
        "execution": subject.id if subject.kind == "execution" else None,
        "place": comment.place or None,
        "by": comment.by,
        "text": comment.text,
        "mentions": mentioned_in(comment.text),
        "at": comment.at,
        "editedAt": comment.edited,
        "resolvedBy": comment.resolved or None,
    }


def _comment_id(comment: CommentView) -> Mapping[str, object]:
    return {"comment": comment["id"]}


class CommentVerbs(Verbs):
    """Actions of a caller on comments."""

    @verb("viewer", "read comments", audit=False)
    async def list(self, kind: SubjectKind, subject: str) -> CommentList:
        """Return the comments on a workflow or an execution that the caller may see, oldest first."""
        found = await list_comments(self.app, await self._seen(kind, subject))
        return {"comments": [comment_view(comment) for comment in found]}

    @verb("operator", "write comments", target=("kind", "subject", "place"), made=_comment_id)
    async def add(self, kind: SubjectKind, subject: str, text: str, *, place: str = "") -> CommentView:
        """Comment on a workflow or an execution, a node of the one or a step of the other."""
        about = await self._seen(kind, subject)
        return comment_view(await add_comment(self.app, about, by=self.caller.name, text=text, place=place))

    @verb("operator", "write comments", target=("comment",))
    async def change(self, comment: str, *, text: str | None = None, resolved: bool | None = None) -> CommentView:
        """Change the text of an own comment, or whether a comment on a workflow is resolved."""
        found = await self._found(comment)
        if text is not None and found.by != self.caller.name:
            raise NotAllowed(f"the comment is by {found.by!r}", hint="People change only their own comments.")
        if resolved is not None and found.subject.kind != "workflow":
            raise NotAllowed("comments on executions are not resolved", hint="Resolve comments on workflows.")
        by = None if resolved is None else self.caller.name if resolved else ""
        return comment_view(await change_comment(self.app, found, text=text, resolved=by))

    @verb("operator", "write comments", target=("comment",))
    async def delete(self, comment: str) -> None:
        """Delete an own comment; admins delete every comment."""
        found = await self._found(comment)
        if found.by != self.caller.name and self.caller.role != "admin":
            raise NotAllowed(f"the comment is by {found.by!r}", hint="People delete only their own comments.")
        await delete_comment(self.app.store.entries, found)

    @verb("viewer", "read comments", audit=False)
    async def mentions(self) -> MentionList:
        """Return the comments that mention the caller, as far as the caller may see what they are about."""
        read = await read_until(self.app, self.caller.name)
        seen: dict[CommentSubject, bool] = {}
        found: list[MentionView] = []
        for comment in await mentions(self.app, self.caller.name):
            if comment.subject not in seen:
                seen[comment.subject] = await self._sees(comment.subject)
            if seen[comment.subject]:
                found.append({**comment_view(comment), "unread": max(comment.at, comment.edited or 0.0) > read})
        return {"mentions": found, "unread": sum(mention["unread"] for mention in found)}

    @verb("viewer", "read comments", audit=False)
    async def mark_read(self) -> None:
        """Note that the caller has read all present mentions."""
        await mark_read(self.app, self.caller.name)

    @verb("viewer", "read comments", audit=False)
    async def present(self, kind: SubjectKind, subject: str, *, place: str = "") -> PresentList:
        """Note that the caller looks at a workflow or an execution, and return the other people who do.

        Only people who may see it are listed: each has asked here.
        """
        others = await others_on(self.app, await self._seen(kind, subject), self.caller.name, place)
        return {"people": [{"name": one.person, "place": one.place or None, "at": one.at} for one in others]}

    async def _found(self, id: str) -> Comment:
        """Return a comment that the caller may see. Raises `UnknownComment`."""
        comment = await find_comment(self.app, id)
        if comment is None or not await self._sees(comment.subject):
            raise UnknownComment(f"there is no comment {id!r}", hint="List the comments again.")
        return comment

    async def _seen(self, kind: SubjectKind, subject: str) -> CommentSubject:
        """Raise `UnknownWorkflow` or `UnknownExecution` for what the caller may not see."""
        if kind == "workflow":
            await must_see_workflow(self.app, self.caller, subject)
            return CommentSubject(kind, subject.partition("@")[0])
        await must_see(self.app, self.caller, subject)
        return CommentSubject(kind, subject)

    async def _sees(self, subject: CommentSubject) -> bool:
        try:
            await self._seen(subject.kind, subject.id)
        except CallerError:
            return False
        except PointsmanError as why:
            if why.code != "unknown-workflow":
                raise
            return False
        return True
