"""History of a memory key: its values and their authors, page by page, the latest first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, cast

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.chat.memories import NOBODY, OneMemory, nothing_remembered
from pointsman.executions.pages import PlaceInvalid
from pointsman.ports import ChangeAuthor
from pointsman.store.records import PastValue
from pointsman.values import Json

DIGITS_MAX: Final = 18
"""Maximum digits of a change number."""


class WriterView(TypedDict, total=False):
    """The author of a value: a step of an execution, or a person."""

    execution: str
    """The execution of the step."""
    workflow: str
    node: str
    agent: str
    """The agent that the node names."""
    tool: str
    """The memory tool that an agent called."""
    person: str
    """The person, if no execution wrote the value."""
    entrance: str
    """How the person was authenticated: `key`, `login`, `shell` …"""


class ChangeView(TypedDict):
    """A present or former value of a key."""

    number: int
    """Number of the change, from 1 for each key; some may be missing."""
    value: Json
    changedAt: float | None
    expiresAt: float | None
    by: WriterView | None
    """null: the author is unknown, or the caller may not see that execution."""


class HistoryPage(TypedDict):
    """The present value of a key, then its former values, the latest first."""

    changes: list[ChangeView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def writer_for(caller: Caller) -> ChangeAuthor:
    return ChangeAuthor(person=caller.name, entrance=caller.entrance)


async def history_page(
    memory: OneMemory, key: str, *, sees: Callable[[str], Awaitable[bool]], after: str | None, limit: int
) -> HistoryPage:
    """Return a page of the history. `sees` returns whether the caller may see an execution.

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
    changes = [change_view(one, is_hidden=one.by is not None and one.by.execution in hidden) for one in page]
    return {"changes": changes, "next": str(page[-1].number) if len(behind) > limit else None}


def change_view(one: PastValue, *, is_hidden: bool = False) -> ChangeView:
    is_known = one.by is not None and one.by != NOBODY and not is_hidden
    return {
        "number": one.number,
        "value": one.value,
        "changedAt": one.changed or None,
        "expiresAt": one.expires,
        "by": cast("WriterView", msgspec.to_builtins(one.by)) if is_known else None,
    }


def writer_text(by: WriterView | None) -> str:
    """Return the author as `desk/note in exec-…`, `ann`, or `?`."""
    if by is None:
        return "?"
    if "execution" not in by:
        return by.get("person", "?")
    tool = f" by {by['tool']}" if "tool" in by else ""
    return f"{by.get('workflow', '')}/{by.get('node', '')}{tool} in {by['execution']}"


def _number(after: str) -> int:
    if after.isascii() and after.isdecimal() and len(after) <= DIGITS_MAX:
        return int(after)
    raise PlaceInvalid(f"{after[:60]!r} is no place in a history", hint="Use `next` of a page.")
