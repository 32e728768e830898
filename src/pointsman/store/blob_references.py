"""Finds the blobs that an event refers to: the definition of an execution, those of its sub-workflows, its script.

A store records which execution uses a blob, so that unused blobs can be deleted. It knows the contents of large rows
itself; references inside events are found here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, cast

HOLD_S: Final = 600.0
"""How long a blob stays after it was put, until an execution uses it."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FIELDS: Final = ("definition", "options")


def blobs_named(events: Sequence[object]) -> Sequence[bytes]:
    """Return the digests under `definition` and anywhere in `options` of events. On the hot path of every row."""
    for event in events:
        if _names_any(type(event)):
            return [digest for event in events if _names_any(type(event)) for digest in _digests_in(event)]
    return ()


def _digests_in(event: object) -> Iterator[bytes]:
    pending: list[object] = [getattr(event, name, None) for name in _FIELDS]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(cast("dict[str, object]", item).values())
        elif isinstance(item, list):
            pending.extend(cast("list[object]", item))
        elif isinstance(item, str) and _DIGEST.fullmatch(item):
            yield bytes.fromhex(item)


@lru_cache
def _names_any(kind: type) -> bool:
    return "definition" in getattr(kind, "__struct_fields__", ())
