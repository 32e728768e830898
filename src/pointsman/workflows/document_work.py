"""Work on documents of callers: beside the event loop, within limits, and one at a time for each caller.

    server:   caller ─▶ own queue ─▶ worker process, with a limit of processor time and memory
    library:  caller ─▶ this process; large documents in a thread

A workflow whose cost a worker has measured, and that is small, is read in this process from then on: a start costs no
trip to another process.
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
from pointsman.settings.documents import DocumentSettings
from pointsman.workflows.document_pool import DocumentPool, Performed, pool_for

SHORT_CHARS_MAX: Final = 20_000
"""Without workers, documents up to this length are read in the thread of the event loop: in some 20 ms."""
CHEAP_S_MAX: Final = 0.02
"""Work that took a worker no longer is done in this process the next time."""
COSTS_MAX: Final = 10_000
"""Workflows whose cost is remembered."""
WAITING_CHARS_MAX: Final = 64_000_000
"""Characters of documents that one caller may have waiting."""
WAITING_CHARS_MIN: Final = 65_536
"""Each document counts at least as much: a caller may have some thousand small ones waiting."""
RETRY_S: Final = 5.0
_THREADS: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="documents")
"""One: threads share the interpreter, and each more would slow the event loop further."""

T = TypeVar("T")


@dataclass(slots=True)
class _Queue:
    """The documents of one caller."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting_chars: int = 0
    count: int = 0


class DocumentWork:
    """Performs jobs on documents for one installation."""

    def __init__(self) -> None:
        """In this process, until `use_workers`."""
        self._pool: DocumentPool | None = None
        self._limits = DocumentSettings()
        self._queues: dict[str, _Queue] = {}
        self._costs: OrderedDict[str, dict[object, float]] = OrderedDict()
        """Digest -> job -> what it took a worker."""
        self._tasks: set[asyncio.Task[object]] = set()

    def use_workers(self, limits: DocumentSettings, modules: tuple[str, ...] = ()) -> None:
        """From now on, perform jobs in worker processes. `modules`: those that define jobs."""
        self._limits = limits
        if limits.workers:
            self._pool = pool_for(workers=limits.workers, memory_mb=limits.memory_mb, modules=modules)

    async def run(self, job: Callable[..., T], *arguments: object, by: str, chars: int, of: str = "") -> T:
        """Return `job(*arguments)`. The job is a function of a module; its arguments and result can be pickled.

        `by` names the caller, `chars` is the length of all documents in the arguments, `of` the digest of a document
        that is worked on again and again. Raises what the job raises, `DocumentTooExpensive`, and `TooManyRequests`
        where the caller has too much waiting.
        """
        if self._pool is None:
            return await beside(chars, lambda: job(*arguments))
        if self._is_cheap(job, of):
            return job(*arguments)
        queue = self._entered(by, chars)
        return await self._finished(self._turn(queue, self._pool, job, arguments, chars, of, by))

    async def here(self, work: Callable[[], T], *, chars: int, of: str) -> T:
        """Return what `work` returns. It works in this process, on a document that jobs have been performed on: in a
        thread where they took long enough to notice."""
        costs = self._costs.get(of)
        is_costly = self._pool is not None and (costs is None or max(costs.values()) > CHEAP_S_MAX)
        return await beside(SHORT_CHARS_MAX + 1 if is_costly else chars, work)

    def _is_cheap(self, job: Callable[..., object], of: str) -> bool:
        """Whether a worker has performed this job on this document in at most `CHEAP_S_MAX`."""
        cost = self._costs.get(of, {}).get(job)
        return cost is not None and cost <= CHEAP_S_MAX

    async def close(self) -> None:
        """Give up what is waiting."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _finished(self, work: Coroutine[None, None, T]) -> T:
        """The result. A caller who leaves keeps their turn until the worker is done: to leave must not make room."""
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
                if self._is_cheap(job, of):  # It was measured while this one waited.
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
        """The caller's queue with one more document. Raises `TooManyRequests`."""
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
    """Return what `work` returns: in a thread where it works on more than a short document."""
    if chars <= SHORT_CHARS_MAX:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


def _retrieved(task: asyncio.Future[object]) -> None:
    """A caller who left does not read the error."""
    if not task.cancelled():
        task.exception()
