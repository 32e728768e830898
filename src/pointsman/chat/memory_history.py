"""History of a memory key: its values and their authors, page by page, the latest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, cast

import msgspec

from pointsman.auth.callers import Caller
from pointsman.chat.memories import NOBODY, OneMemory, nothing_remembered
from pointsman.executions.pages import PlaceInvalid
from pointsman.ports import ChangeAuthor
from pointsman.store.records import PastValue
from pointsman.values import Json, JsonObject

DIGITS_MAX: Final = 18
"""Maximum digits of a change number."""


def writer_for(caller: Caller) -> ChangeAuthor:
    return ChangeAuthor(person=caller.name, entrance=caller.entrance)


async def history_page(
    memory: OneMemory, key: str, *, sees: Callable[[str], Awaitable[bool]], after: str | None, limit: int
) -> JsonObject:
    """Return a page as `changes` and `next`. `sees` returns whether the caller may see an execution.

    Raises `NothingRemembered`, `PlaceInvalid`.
    """
    before = None if after is None else _number(after)
    known = await memory.history(key)
    if not known:
        raise nothing_remembered(key)
    behind = [one for one in known if before is None or one.number < before]
    page = behind[:limit]
    executions = {one.by.execution for one in page if one.by is not None} - {""}
    hidden = {execution for execution in executions if not await sees(execution)}
    changes: list[Json] = []
    for one in page:
        is_hidden = one.by is not None and one.by.execution in hidden
        changes.append(recalled_view(one, is_hidden=is_hidden))
    return {"changes": changes, "next": str(page[-1].number) if len(behind) > limit else None}


def recalled_view(one: PastValue, *, is_hidden: bool = False) -> JsonObject:
    """Return the JSON of a past value. `by` is null if the author is unknown or hidden from the caller."""
    is_known = one.by is not None and one.by != NOBODY and not is_hidden
    return {
        "number": one.number,
        "value": one.value,
        "changedAt": one.changed or None,
        "expiresAt": one.expires,
        "by": cast(JsonObject, msgspec.to_builtins(one.by)) if is_known else None,
    }


def writer_text(by: ChangeAuthor | None) -> str:
    """Return the author as `desk/note in exec-…`, `ann`, or `?`."""
    if by is None or by == NOBODY:
        return "?"
    if not by.execution:
        return by.person
    tool = f" by {by.tool}" if by.tool else ""
    return f"{by.workflow}/{by.node}{tool} in {by.execution}"


def _number(after: str) -> int:
    if after.isascii() and after.isdecimal() and len(after) <= DIGITS_MAX:
        return int(after)
    raise PlaceInvalid(f"{after[:60]!r} is no place in a history", hint="Use `next` of a page.")
