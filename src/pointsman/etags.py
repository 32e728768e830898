"""Content-based ETags, so that a writer cannot overwrite a version it has not read.

    read ─▶ its ETag      change, `after` the ETag ─▶ done, or `RevisionMoved`: another writer changed it meanwhile

The ETag depends on the content, not on the number of changes: equal contents have equal ETags. The store ensures that
no change happens between check and write.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.values import Json

T = TypeVar("T")
REVISION: Final = re.compile(r'\s*(?:W/)?"(\d{1,15})-')
"""The ETag of a revision of a workflow."""


def content_etag(content: Json) -> str:
    """Return the ETag of stored content; None stands for no content."""
    return sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]


def etag_of(mark: str) -> str:
    """Return the hash of stored content as an ETag, in quotes."""
    return f'"{mark}"'


NOTHING: Final = content_etag(None)
ABSENT: Final = etag_of(NOTHING)
"""The ETag of what does not exist: a change that names it creates the object, and never replaces one."""


def match_etag(match: str | None, etag: str | None, now: T, moved: RevisionMoved) -> T | None:
    """Return the version that a write must replace: `now` if `match` names its ETag; None: any version.

        no match ─▶ replace any version      current ETag, or `*` ─▶ replace only this version      else ─▶ 409
                                             `ABSENT` ─▶ create it

    `match` is what `If-Match` contains: ETags, separated by commas. `etag`: None if nothing exists. Raises
    `RevisionMoved` if `match` names something else; the same error as if the version changes between the check and
    the write.
    """
    if match is None:
        return None
    # A compressing proxy marks ETags as weak; ours identify the content before compression.
    tags = [one.strip().removeprefix("W/") for one in match.split(",")]
    if (etag or ABSENT) not in tags and not (etag and tags == ["*"]):
        raise moved
    return now


def revision_of(match: str | None) -> int | None:
    """Return the revision in the ETag of a workflow; None: any; 0, which never exists, if the ETag contains none."""
    if match is None or match.strip() == "*":
        return None
    revision_match = REVISION.match(match)
    return int(revision_match[1]) if revision_match else 0


async def entry_etag(entries: ConfigStore, kind: str, key: str) -> str:
    """Return the ETag of an entry of the store."""
    entry = await entries.find(kind, key)
    return NOTHING if entry is None else content_etag(entry.value)


async def matched_entry(entries: ConfigStore, kind: str, key: str, match: str | None, what: str) -> str | None:
    """Return the ETag that a write of an entry must replace, for `put_after` and `delete_after`. See `match_etag`."""
    if match is None:
        return None
    mark = await entry_etag(entries, kind, key)
    return match_etag(match, None if mark == NOTHING else etag_of(mark), mark, revision_moved(what))


async def put_after(entries: ConfigStore, kind: str, key: str, value: Json, *, after: str | None, what: str) -> None:
    """Write an entry; with `after`, only over content with that ETag. Raises `RevisionMoved`;
    `what` as in "the title"."""
    version = await _version(entries, kind, key, after, what)
    try:
        await entries.put(kind, key, value, after=version)
    except EntryMoved:
        raise revision_moved(what) from None


async def delete_after(entries: ConfigStore, kind: str, key: str, *, after: str | None, what: str) -> bool:
    """Delete an entry; with `after`, only content with that ETag. Return False if there was none. Raises
    `RevisionMoved`."""
    version = await _version(entries, kind, key, after, what)
    try:
        return await entries.delete(kind, key, after=version)
    except EntryMoved:
        raise revision_moved(what) from None


def revision_moved(what: str) -> RevisionMoved:
    """Return the error for a writer that read another version."""
    return RevisionMoved(f"{what} was changed since it was read", hint="Read it again, and change that.")


async def _version(entries: ConfigStore, kind: str, key: str, after: str | None, what: str) -> int | None:
    if after is None:
        return None
    entry = await entries.find(kind, key)
    if entry is not None and after == NOTHING:
        raise RevisionMoved(f"{what} is there already", hint="Read it, and change that.")
    if after != (NOTHING if entry is None else content_etag(entry.value)):
        raise revision_moved(what)
    return 0 if entry is None else entry.version
