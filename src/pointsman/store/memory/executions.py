"""The list of executions and the inboxes in memory: summaries in a dict, filtered by a scan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from msgspec.structs import replace

from pointsman.engine.state import ENDED
from pointsman.store.budget_usage import Spenders, SpendingQuery, amount_of
from pointsman.store.records import TRIAL, ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId


def keep_summary(summaries: dict[ExecutionId, Summary], summary: Summary) -> None:
    """Keep a summary; one without open gates keeps those of the previous one."""
    known = summaries.get(summary.execution)
    if summary.gates is None and known is not None and known.gates:
        summary = replace(summary, gates=known.gates)
    summaries[summary.execution] = summary


class MemoryExecutions:
    """Summaries in a dict, filtered by a scan."""

    def __init__(self, summaries: dict[ExecutionId, Summary], last: Callable[[ExecutionId], Awaitable[int]]) -> None:
        """`last` returns the number of the last row of an execution."""
        self._summaries = summaries
        self._last = last

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        if seq is None or await self._last(summary.execution) <= seq:
            keep_summary(self._summaries, summary)

    async def find(self, execution: ExecutionId) -> Summary | None:
        return self._summaries.get(execution)

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        found = [summary for summary in self._summaries.values() if fits(summary, query)]
        if query.last_of_session:
            last = last_turns(self._summaries.values())
            found = [summary for summary in found if summary.session in last and last[summary.session] is summary]
        if query.due is None:
            newest_first = not query.oldest_first
            found.sort(key=lambda summary: (summary.started, summary.execution), reverse=newest_first)
        else:
            found.sort(key=lambda summary: (summary.wakes or 0.0, summary.execution))
        return found[: query.limit]

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return spenders_among(self._summaries.values(), query)

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        open_ = (entry for summary in self._summaries.values() for entry in summary.gates or ())
        found = [entry for entry in open_ if waits_for(entry, query)]
        found.sort(key=lambda entry: (entry.opened, entry.execution, entry.gate))
        return found[: query.limit]


def waits_for(entry: GateEntry, query: InboxQuery) -> bool:
    asked = query.asked
    return (
        (asked is None or bool({*asked} & {*entry.asked}))
        and (query.without is None or query.without not in entry.asked)
        and query.workflow in (None, entry.workflow)
        and (query.after is None or (entry.opened, entry.execution, entry.gate) > query.after)
    )


def spenders_among(summaries: Iterable[Summary], query: SpendingQuery) -> list[Spenders]:
    """Add up usage in the same way as the SQL stores."""
    groups: defaultdict[tuple[int, str, str | None, ExecutionId | None], list[Summary]] = defaultdict(list)
    for one in summaries:
        late = query.since is not None and one.updated < query.since
        early = query.until is not None and one.updated >= query.until
        if one.workflow == query.workflow and one.revision and not (one.status in ENDED and (late or early)):
            kin = (one.revision, one.owner, one.session, one.parent)
            groups[kin if query.apart else (0, "", None, None)].append(one)
    found: list[Spenders] = []
    for (revision, owner, session, parent), some in groups.items():
        amounts = [amount_of(one.spent, query.measure) for one in some]
        found.append(
            Spenders(
                executions=len(some),
                near=sum(query.near <= amount < query.most for amount in amounts),
                over=sum(amount >= query.most for amount in amounts if amount > 0),
                highest=max(amounts),
                dearest=some[amounts.index(max(amounts))].execution,
                revision=revision,
                owner=owner,
                session=session,
                parent=parent,
            )
        )
    return found


def last_turns(summaries: Iterable[Summary]) -> dict[str, Summary]:
    """Return the last turn of each session, without child executions."""
    last: dict[str, Summary] = {}
    for one in summaries:
        if one.session is not None and one.parent is None:
            before = last.get(one.session)
            if before is None or (one.started, one.execution) > (before.started, before.execution):
                last[one.session] = one
    return last


def fits(summary: Summary, query: ExecutionQuery) -> bool:
    return (
        (not query.statuses or summary.status in query.statuses)
        and query.workflow in (None, summary.workflow)
        and query.parent in (None, summary.parent)
        and query.session in (None, summary.session)
        and query.owner in (None, summary.owner)
        and (query.due is None or (summary.wakes is not None and summary.wakes <= query.due))
        and (query.awaits is None or query.awaits in summary.awaits)
        and (query.trials or not summary.execution.startswith(TRIAL))
        and (query.since is None or summary.updated >= query.since)
        and (query.before is None or _is_behind(summary, query.before, oldest_first=query.oldest_first))
    )


def _is_behind(summary: Summary, last: tuple[float, ExecutionId], *, oldest_first: bool) -> bool:
    place = (summary.started, summary.execution)
    return place > last if oldest_first else place < last
