"""Work on documents of callers: outside the event loop, within limits, and one at a time for each caller.

    server:   caller ─▶ own queue ─▶ worker process, with a limit of processor time and memory
    library:  caller ─▶ this process; large documents in a thread

After a worker has measured a job on a workflow as cheap, this process performs it, which saves the round trip at a
start.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.context import Part
from pointsman.settings.sections import DocumentSettings
from pointsman.workflows.document_pool import DocumentPool, Performed, pool_for

SHORT_CHARS_MAX: Final = 20_000
"""Without workers, documents up to this length are read in the thread of the event loop: about 20 ms."""
CHEAP_S_MAX: Final = 0.02
"""Longest processor time of a job in a worker for which this process performs it the next time."""
COSTS_MAX: Final = 10_000
"""Workflows whose costs are stored."""
WAITING_CHARS_MAX: Final = 64_000_000
"""Characters of waiting documents of one caller."""
WAITING_CHARS_MIN: Final = 65_536
"""Least number of characters that each document counts: a caller may have about a thousand small ones waiting."""
RETRY_S: Final = 5.0
_THREADS: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="documents")
"""One thread: threads share the interpreter, and each further one would slow the event loop."""

T = TypeVar("T")


@dataclass(slots=True)
class _Queue:
    """The waiting documents of one caller."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting_chars: int = 0
    count: int = 0


class DocumentWork:
    """Performs jobs on documents for one installation."""

    def __init__(self) -> None:
        """Jobs run in this process until `use_workers` is called."""
        self._pool: DocumentPool | None = None
        self._limits = DocumentSettings()
        self._queues: dict[str, _Queue] = {}
        self._costs: OrderedDict[str, dict[object, float]] = OrderedDict()
        """Digest -> job -> processor time in a worker."""
        self._tasks: set[asyncio.Task[object]] = set()

    def use_workers(self, limits: DocumentSettings, modules: tuple[str, ...] = ()) -> None:
        """Perform jobs in worker processes from now on. `modules`: the modules that define jobs."""
        self._limits = limits
        if limits.workers:
            self._pool = pool_for(workers=limits.workers, memory_mb=limits.memory_mb, modules=modules)

    async def run(self, job: Callable[..., T], *arguments: object, by: str, chars: int, of: str = "") -> T:
        """Return `job(*arguments)`. The job is a module-level function; its arguments and result can be pickled.

        `by` is the caller, `chars` the length of all documents in the arguments, `of` the digest of a document that is
        used repeatedly. Raises the errors of the job, `DocumentTooExpensive`, and `TooManyRequests` if the caller has
        too many documents waiting.
        """
        if self._pool is None:
            return await beside(chars, lambda: job(*arguments))
        if self._is_cheap(job, of):
            return job(*arguments)
        queue = self._entered(by, chars)
        return await self._finished(self._turn(queue, self._pool, job, arguments, chars, of, by))

    async def here(self, work: Callable[[], T], *, chars: int, of: str) -> T:
        """Return `work()`, performed in this process on a document on which jobs have run. It runs in a thread unless
        they were cheap."""
        costs = self._costs.get(of)
        is_costly = self._pool is not None and (costs is None or max(costs.values()) > CHEAP_S_MAX)
        return await beside(SHORT_CHARS_MAX + 1 if is_costly else chars, work)

    def _is_cheap(self, job: Callable[..., object], of: str) -> bool:
        """Return whether a worker has performed this job on this document within `CHEAP_S_MAX`."""
        cost = self._costs.get(of, {}).get(job)
        return cost is not None and cost <= CHEAP_S_MAX

    async def close(self) -> None:
        """Cancel all unfinished jobs."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _finished(self, work: Coroutine[None, None, T]) -> T:
        """Return the result. A cancelled caller keeps its position until the worker is done, so that cancelling does
        not make room for more jobs."""
        task = asyncio.ensure_future(work)
        known = cast("asyncio.Task[object]", task)
        self._tasks.add(known)
        known.add_done_callback(_retrieved)
        known.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _turn(
        self,
        queue: _Queue,
        pool: DocumentPool,
        job: Callable[..., T],
        arguments: tuple[object, ...],
        chars: int,
        of: str,
        by: str,
    ) -> T:
        try:
            async with queue.turn:
                if self._is_cheap(job, of):  # Measured while this caller waited.
                    return job(*arguments)
                limits = self._limits
                seconds = limits.seconds + limits.seconds_per_mb * chars / 1_000_000
                done: Performed = await asyncio.wrap_future(pool.submit(job, arguments, seconds))
        finally:
            self._left(queue, by, chars)
        if of:
            self._costs.setdefault(of, {})[job] = done.cpu_s
            if len(self._costs) > COSTS_MAX:
                self._costs.popitem(last=False)
        return cast(T, done.value)

    def _entered(self, by: str, chars: int) -> _Queue:
        """Return the caller's queue with one more document. Raises `TooManyRequests`."""
        queue = self._queues.setdefault(by, _Queue())
        counted = max(chars, WAITING_CHARS_MIN)
        if queue.count and queue.waiting_chars + counted > WAITING_CHARS_MAX:
            raise TooManyRequests(
                f"{by!r} has {queue.count} documents waiting to be read",
                hint="Wait for the answers, then send the next one.",
                retry_after_s=RETRY_S,
            )
        queue.waiting_chars += counted
        queue.count += 1
        return queue

    def _left(self, queue: _Queue, by: str, chars: int) -> None:
        queue.waiting_chars -= max(chars, WAITING_CHARS_MIN)
        queue.count -= 1
        if not queue.count and self._queues.get(by) is queue:
            del self._queues[by]


DOCUMENTS: Final = Part[DocumentWork]("documents", lambda _: DocumentWork(), close=DocumentWork.close)


async def beside(chars: int, work: Callable[[], T]) -> T:
    """Return `work()`, in a thread for more than a short document."""
    if chars <= SHORT_CHARS_MAX:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


def _retrieved(task: asyncio.Future[object]) -> None:
    """Retrieve the error of a task whose caller was cancelled, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
