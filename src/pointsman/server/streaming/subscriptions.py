"""Subscriptions: where the event stream of a subscriber begins, and what it receives first.

reconnect with an id ─▶ events after that id
start                ─▶ all events
snapshot             ─▶ the present view of the execution, then new events
now                  ─▶ new events
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pointsman.context import AppContext
from pointsman.engine.state import ENDED
from pointsman.executions.family_view import seen
from pointsman.executions.pages import PlaceInvalid, place_of
from pointsman.executions.public_events import bulletins
from pointsman.executions.views import ExecutionView
from pointsman.ports import Row
from pointsman.server.streaming.ring_buffer import START, StreamPosition
from pointsman.values import ExecutionId

if TYPE_CHECKING:
    from pointsman.server.streaming.broker import SseBroker

Beginning: TypeAlias = Literal["start", "now", "snapshot"]


class SubscriptionStart(NamedTuple):
    """The position where a subscription begins."""

    after: StreamPosition
    snapshot: ExecutionView | None = None
    """The execution view as of that position."""

    @property
    def id(self) -> str:
        return f"{self.after[0]}.{self.after[1]}"


async def join(
    app: AppContext, broker: SseBroker, execution: str, *, begin: Beginning, last: str | None
) -> SubscriptionStart | None:
    """Return where a subscription begins. `last`: the id of the last received event. None: the execution has ended and
    no event is left.

    Raises `PlaceInvalid` if the journal has no event `last`: continuing after it would leave out the events before it.
    """
    name = ExecutionId(execution)
    if last:
        place = place_of(last)
        await _must_be_told(app, name, place)
        return None if await broker.is_over(name, place) else SubscriptionStart(place)
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


async def _must_be_told(app: AppContext, execution: ExecutionId, place: StreamPosition) -> None:
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


def _end_of(execution: ExecutionId, row: Row) -> StreamPosition:
    """Return the position after all public events of the row."""
    *_, last = bulletins(execution, row)
    return row.seq, int(str(last["id"]).partition(".")[2])
