"""The list of executions and the inboxes of people, inside the process: summaries in a dict, filtered by looking."""

from __future__ import annotations

from msgspec.structs import replace

from pointsman.journal.records import ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId


def keep_summary(summaries: dict[ExecutionId, Summary], summary: Summary) -> None:
    """One that does not say which gates are open keeps those it had."""
    known = summaries.get(summary.execution)
    if summary.gates is None and known is not None and known.gates:
        summary = replace(summary, gates=known.gates)
    summaries[summary.execution] = summary


class MemoryExecutions:
    """Summaries in a dict, filtered by looking at each."""

    def __init__(self, summaries: dict[ExecutionId, Summary]) -> None:
        self._summaries = summaries

    async def put(self, summary: Summary) -> None:
        keep_summary(self._summaries, summary)

    async def find(self, execution: ExecutionId) -> Summary | None:
        return self._summaries.get(execution)

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        found = [summary for summary in self._summaries.values() if fits(summary, query)]
        if query.due is None:
            found.sort(key=lambda summary: (summary.started, summary.execution), reverse=True)
        else:
            found.sort(key=lambda summary: (summary.wakes or 0.0, summary.execution))
        return found[: query.limit]

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


def fits(summary: Summary, query: ExecutionQuery) -> bool:
    return (
        (not query.statuses or summary.status in query.statuses)
        and query.workflow in (None, summary.workflow)
        and query.parent in (None, summary.parent)
        and query.session in (None, summary.session)
        and query.owner in (None, summary.owner)
        and (query.due is None or (summary.wakes is not None and summary.wakes <= query.due))
        and (query.awaits is None or query.awaits in summary.awaits)
        and (query.since is None or summary.updated >= query.since)
        and (query.before is None or (summary.started, summary.execution) < query.before)
    )
