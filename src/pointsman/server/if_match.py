"""Evaluation of `If-Match`, the same for everything that has an ETag.

    no If-Match ─▶ replace any version      current ETag, or `*` ─▶ replace only this version      else ─▶ 409

The error code is the same whether the version had changed before the request or changes before the write.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from pointsman.workflows.revisions import RevisionMoved

T = TypeVar("T")
REVISION: Final = re.compile(r'\s*(?:W/)?"(\d{1,15})-')


def etag_of(mark: str) -> str:
    """Return the content hash as an ETag, in quotes."""
    return f'"{mark}"'


def held(if_match: str | None, etag: str | None, now: T, moved: RevisionMoved) -> T | None:
    """Return the version that a write must replace: `now` if `If-Match` names its ETag; None: any version.

    `etag`: None if nothing exists. Raises `moved` if `If-Match` names something else.
    """
    if if_match is None:
        return None
    # A compressing proxy marks ETags as weak; ours identify the content before compression.
    named = [one.strip().removeprefix("W/") for one in if_match.split(",")]
    if etag is None or not (etag in named or named == ["*"]):
        raise moved
    return now


def revision_of(if_match: str | None) -> int | None:
    """Return the revision in the ETag of a workflow; None: any; 0, which never exists, if the ETag contains none."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = REVISION.match(if_match)
    return int(found[1]) if found else 0
