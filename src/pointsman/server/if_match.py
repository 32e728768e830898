"""`If-Match`: the one rule, wherever a thing has an ETag. Each operation says what has which, and what is there now.

    no If-Match ─▶ over whatever is there      its ETag is named, or `*` ─▶ over that alone      else ─▶ 409

One code for both refusals: of what had changed when it was looked at, and of what changes before it is written.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from pointsman.workflows.revisions import RevisionMoved

T = TypeVar("T")
REVISION: Final = re.compile(r'\s*(?:W/)?"(\d{1,15})-')


def etag_of(mark: str) -> str:
    """The ETag of what has this mark."""
    return f'"{mark}"'


def held(if_match: str | None, etag: str | None, now: T, moved: RevisionMoved) -> T | None:
    """What it must be changed after: `now`, where its ETag was named; None: whatever is there then.

    `etag`: None where nothing is there. Raises `moved` where something else was named.
    """
    if if_match is None:
        return None
    # A proxy that compresses answers says that their ETags are weak; ours are of the content before.
    named = [one.strip().removeprefix("W/") for one in if_match.split(",")]
    if etag is None or not (etag in named or named == ["*"]):
        raise moved
    return now


def revision_of(if_match: str | None) -> int | None:
    """The revision that an ETag of a workflow names; one that names none is of no revision there is."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = REVISION.match(if_match)
    return int(found[1]) if found else 0
