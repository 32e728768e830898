"""Joining: where a subscriber of an execution begins, and what it is told first.

who came back with an id ─▶ behind that event
start                    ─▶ everything
snapshot                 ─▶ the execution as it is, then what comes
now                      ─▶ what comes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pointsman.context import AppContext
from pointsman.engine.state import ENDED
from pointsman.executions.family_view import seen
from pointsman.executions.pages import PlaceInvalid, place_of
from pointsman.executions.public_events import bulletins
from pointsman.executions.ring_buffer import START, Place
from pointsman.ports import Row
from pointsman.values import ExecutionId, JsonObject

if TYPE_CHECKING:
    from pointsman.executions.broker import Channels

Beginning: TypeAlias = Literal["start", "now", "snapshot"]


class SubscriptionStart(NamedTuple):
    """Where it begins."""

    after: Place
    snapshot: JsonObject | None = None
    """The execution as it was at that place."""

    @property
    def id(self) -> str:
        return f"{self.after[0]}.{self.after[1]}"


async def join(
    app: AppContext, channels: Channels, execution: str, *, begin: Beginning, last: str | None
) -> SubscriptionStart | None:
    """`last`: the id of the last event that was heard. None: it has ended, and nothing is left to tell.

    Raises `PlaceInvalid` where the journal has no such event: to go on behind it would leave out what comes before it.
    """
    name = ExecutionId(execution)
    if last:
        place = place_of(last)
        await _must_be_told(app, name, place)
        return None if await channels.is_over(name, place) else SubscriptionStart(place)
    if begin == "start":
        return SubscriptionStart(START)
    if begin == "snapshot":
        rows, view = await seen(app.runtime, app.settings, name)
        return SubscriptionStart(_end_of(name, rows[-1]), view)
    state = await app.runtime.load(name)
    if state.status in ENDED:
        return None
    row = await _row(app, name, state.seq)
    return SubscriptionStart(START if row is None else _end_of(name, row))


async def _must_be_told(app: AppContext, execution: ExecutionId, place: Place) -> None:
    row = await _row(app, execution, place[0])
    if place[0] and (row is None or place > _end_of(execution, row)):
        raise PlaceInvalid(
            f"{execution!r} has no event {place[0]}.{max(place[1], 0)}",
            hint="Begin again without an id; it is that of another execution, or of a store that was put back.",
        )


async def _row(app: AppContext, execution: ExecutionId, seq: int) -> Row | None:
    async for row in app.store.journal.read(execution, after=max(seq - 1, 0)):
        return row if row.seq == seq else None
    return None


def _end_of(execution: ExecutionId, row: Row) -> Place:
    """Behind everything that the row is told as."""
    *_, last = bulletins(execution, row)
    return row.seq, int(str(last["id"]).partition(".")[2])
