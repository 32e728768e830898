"""Comments in the store, and mentions in them. They are part of neither the definition nor the journal.

    comment-of     id of a comment ─▶ its subject
    comments/…     all comments of one subject, by id; ids grow with time
    mentions/…     the comments that mention one person, by id
    mentions-read  person ─▶ up to when the person has read mentions

A comment is written last and deleted first, so that after a crash there may be a mention of a comment that does not
exist, which readers skip, and never a comment without its mentions.
"""

from __future__ import annotations

import re
import secrets
from typing import ClassVar, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.store.api import ConfigStore

SUBJECTS: Final = "comment-of"
READ: Final = "mentions-read"
TEXT_CHARS_MAX: Final = 10_000
COMMENTS_MAX: Final = 1_000
"""Comments on one subject."""
MENTIONS_MAX: Final = 20
"""People that one comment mentions."""
LISTED_MAX: Final = 200
"""Mentions that are stored for a person: older ones are deleted."""
MENTION: Final = re.compile(r"(?<![\w@./])@([\w][\w.@+-]{0,199})")

SubjectKind: TypeAlias = Literal["workflow", "execution"]


class UnknownComment(CallerError):
    """There is no comment with this id for the caller."""

    code: ClassVar[str] = "unknown-comment"


class CommentInvalid(CallerError):
    """The text of a comment is blank or too long."""

    code: ClassVar[str] = "comment-invalid"


class TooManyComments(CallerError):
    """A workflow or an execution has the maximum number of comments."""

    code: ClassVar[str] = "too-many-comments"


class CommentSubject(Struct, frozen=True):
    """What a comment is about."""

    kind: SubjectKind
    id: str

    @property
    def entries(self) -> str:
        """The kind of the entries of its comments."""
        return f"comments/{self.kind}/{self.id}"


class Comment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One comment."""

    id: str
    subject: CommentSubject
    by: str
    text: str
    """Markdown."""
    at: float
    place: str = ""
    """The node of the workflow, or the step of the execution; empty: all of it."""
    edited: float | None = None
    resolved: str = ""
    """The person who resolved it; empty: it is open."""


def must_be_valid(text: str) -> None:
    """Raise `CommentInvalid` for a text that a comment cannot have."""
    if not text.strip() or "\0" in text:
        raise CommentInvalid("the comment has no text", hint="Write at least one visible character, and no NUL.")
    if len(text) > TEXT_CHARS_MAX:
        raise CommentInvalid(f"the comment has {len(text)} characters", hint=f"Write at most {TEXT_CHARS_MAX}.")


def mentioned_in(text: str) -> list[str]:
    """Return the names that a text mentions as `@name`, each once."""
    names = (match.rstrip(".-+@") for match in MENTION.findall(text))
    return [*dict.fromkeys(name for name in names if name)][:MENTIONS_MAX]


def mentions_of(person: str) -> str:
    """Return the kind of the entries of a person's mentions."""
    return f"mentions/{person}"


async def list_comments(app: AppContext, subject: CommentSubject) -> list[Comment]:
    """Return the comments on a subject, oldest first."""
    return [msgspec.convert(entry.value, Comment) for entry in await app.store.entries.list(subject.entries)]


async def find_comment(app: AppContext, id: str) -> Comment | None:
    entry = await app.store.entries.find(SUBJECTS, id)
    if entry is None:
        return None
    subject = msgspec.convert(entry.value, CommentSubject)
    stored = await app.store.entries.find(subject.entries, id)
    return None if stored is None else msgspec.convert(stored.value, Comment)


async def add_comment(app: AppContext, subject: CommentSubject, *, by: str, text: str, place: str) -> Comment:
    """Store a comment and its mentions. Raises `CommentInvalid`, `TooManyComments`."""
    must_be_valid(text)
    if len(await app.store.entries.list(subject.entries)) >= COMMENTS_MAX:
        raise TooManyComments(
            f"{subject.kind} {subject.id!r} has {COMMENTS_MAX} comments", hint="Delete comments that are settled."
        )
    now = app.clock.now()
    id = f"{int(now * 1e6):016x}-{secrets.token_hex(6)}"
    comment = Comment(id=id, subject=subject, by=by, text=text, at=now, place=place)
    await app.store.entries.put(SUBJECTS, id, msgspec.to_builtins(subject))
    await _mention(app, comment, mentioned_in(text))
    await app.store.entries.put(subject.entries, id, msgspec.to_builtins(comment))
    return comment


async def change_comment(
    app: AppContext, comment: Comment, *, text: str | None = None, resolved: str | None = None
) -> Comment:
    """Replace the text of a comment, or the person who resolved it. People whom the new text no longer mentions lose
    the mention. Raises `CommentInvalid`."""
    changed = comment
    if text is not None and text != comment.text:
        must_be_valid(text)
        changed = replace(changed, text=text, edited=app.clock.now())
        before, after = mentioned_in(comment.text), mentioned_in(text)
        await _mention(app, changed, [name for name in after if name not in before])
        for name in before:
            if name not in after:
                await app.store.entries.delete(mentions_of(name), comment.id)
    if resolved is not None:
        changed = replace(changed, resolved=resolved)
    await app.store.entries.put(comment.subject.entries, comment.id, msgspec.to_builtins(changed))
    return changed


async def delete_comment(entries: ConfigStore, comment: Comment) -> None:
    await entries.delete(comment.subject.entries, comment.id)
    for name in mentioned_in(comment.text):
        await entries.delete(mentions_of(name), comment.id)
    await entries.delete(SUBJECTS, comment.id)


async def delete_comments_of(entries: ConfigStore, subject: CommentSubject) -> None:
    """Delete all comments on a subject."""
    for entry in await entries.list(subject.entries):
        await delete_comment(entries, msgspec.convert(entry.value, Comment))


async def mentions(app: AppContext, person: str) -> list[Comment]:
    """Return the comments that mention a person, newest first, whether or not the person may see them."""
    listed = await app.store.entries.list(mentions_of(person))
    comments = [await find_comment(app, entry.key) for entry in reversed(listed)]
    return [comment for comment in comments if comment is not None]


async def read_until(app: AppContext, person: str) -> float:
    """Return up to when a person has read mentions, unix seconds."""
    entry = await app.store.entries.find(READ, person)
    return 0.0 if entry is None else cast("float", entry.value)


async def mark_read(app: AppContext, person: str) -> None:
    await app.store.entries.put(READ, person, app.clock.now())


async def _mention(app: AppContext, comment: Comment, names: list[str]) -> None:
    for name in names:
        if name == comment.by:
            continue
        kind = mentions_of(name)
        await app.store.entries.put(kind, comment.id, comment.at)
        for old in (await app.store.entries.list(kind))[:-LISTED_MAX]:
            await app.store.entries.delete(kind, old.key)
