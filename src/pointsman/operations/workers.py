"""Workers of a store: which processes are alive, which queues they serve, and which executions they own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.store.coordination import QueueEntry, RuntimeEntry
from pointsman.store.errors import masked_address
from pointsman.values import ExecutionId
from pointsman.version import VERSION

OWNED_MAX: Final = 200


class WorkerView(TypedDict):
    """A live process of the store."""

    name: str
    """Host, process, its start, and a number."""
    role: str
    """`server`, `worker`, or `process` for commands and programs."""
    version: str
    queues: list[str]
    """The queues whose steps it performs."""
    capacity: int
    """Executions that it drives, or steps that it performs, at a time; 0: no limit."""
    executions: int
    """Executions that it owns."""
    steps: int
    """Placed steps that it performs."""
    since: float
    """Unix seconds."""
    beatSeconds: float
    """Seconds since it showed that it works; at 12 other processes take its executions over."""


class WorkerQueueView(TypedDict):
    """A queue of `placement`."""

    queue: str
    workers: int
    """Live workers that serve it. 0: its steps wait."""
    waiting: int
    running: int
    oldestSeconds: float
    """How long its oldest waiting step has waited."""


class OwnedExecutionView(TypedDict):
    """An execution and its owner."""

    executionId: str
    worker: str


class WorkersReport(TypedDict):
    """The processes of a store, the queues, and the owners of executions."""

    version: str
    """The release of the process that answers."""
    engine: str
    """The engine that dispatches executions; empty: the processes share them by claims."""
    shared: bool
    """Whether several processes can drive the store. False: one process does everything."""
    workers: list[WorkerView]
    queues: list[WorkerQueueView]
    owned: list[OwnedExecutionView]
    """At most 200, the newest executions first."""


async def workers_report(app: AppContext) -> WorkersReport:
    """Return the live processes of the store. An empty report if it has one process only."""
    report: WorkersReport = {
        "version": VERSION,
        "engine": masked_address(app.settings.runtime or ""),
        "shared": app.store.claims is not None,
        "workers": [],
        "queues": [],
        "owned": [],
    }
    claims = app.store.claims
    if claims is not None:
        runtimes = await claims.runtimes()
        report["workers"] = [_worker(runtime) for runtime in runtimes]
        report["queues"] = [*_queues(runtimes, await claims.steps.queues())]
        owned = await claims.owned(OWNED_MAX)
        report["owned"] = [{"executionId": ExecutionId(execution), "worker": name} for execution, name in owned]
    return report


def _worker(one: RuntimeEntry) -> WorkerView:
    return {
        "name": one.name,
        "role": one.facts.role,
        "version": one.facts.version,
        "queues": [*one.facts.queues],
        "capacity": one.facts.capacity,
        "executions": one.executions,
        "steps": one.steps,
        "since": one.started,
        "beatSeconds": one.beat_s,
    }


def _queues(runtimes: list[RuntimeEntry], entries: list[QueueEntry]) -> Iterator[WorkerQueueView]:
    """Yield the queues that have steps or workers, by name."""
    by_queue = {entry.queue: entry for entry in entries}
    for name in sorted({*by_queue, *(queue for runtime in runtimes for queue in runtime.facts.queues)}):
        steps = by_queue.get(name, QueueEntry(name, 0, 0, 0.0))
        yield {
            "queue": name,
            "workers": sum(name in runtime.facts.queues for runtime in runtimes),
            "waiting": steps.waiting,
            "running": steps.running,
            "oldestSeconds": steps.oldest_s,
        }
