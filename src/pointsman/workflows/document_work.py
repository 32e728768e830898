"""Work on documents of callers: outside the event loop, within limits, and one at a time for each caller.

    server:   caller ─▶ own queue ─▶ thread ── pipe ──▶ worker process, with a limit of processor time and memory
                                       └── kills a process that exceeds a limit, and starts the next
    library:  caller ─▶ this process; large documents in a thread

All installations in this process that have the same limits share a pool of worker processes, which end with it. The
first worker starts with the first job, another one when a job arrives while all others are busy. After a worker has
measured a job on a workflow as cheap, this process performs it, which saves the round trip at a start.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from typing import ClassVar, Final, NamedTuple, TypeVar, cast

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.context import Part
from pointsman.errors import AuthorError, EngineBug, OperatorError, PointsmanError
from pointsman.platforms import STARTS
from pointsman.settings.sections import DocumentSettings
from pointsman.workflows.document_worker import JOB, PICKLE_PROTOCOL, REPLY, JobResult, rebuilt

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
        future = cast("asyncio.Task[object]", task)
        self._tasks.add(future)
        future.add_done_callback(_retrieved)
        future.add_done_callback(self._tasks.discard)
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
                hint="Wait for the answers before sending the next document.",
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


MB: Final = 1_000_000
START_S_MAX: Final = 60.0
"""Time within which a worker must be ready."""
PROGRAM: Final = "from pointsman.workflows.document_worker import main; main()"
SIMPLER: Final = "Make the document smaller or simpler."
WALL_RATIO: Final = 5.0
WALL_S_MIN: Final = 10.0
"""Wall-clock limit of a job: `WALL_S_MIN` + `WALL_RATIO` times its processor time, because a worker may wait for a
processor."""
ENVIRONMENT: Final = ("PATH", "LANG", "TZ", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", *STARTS)
"""Environment variables that workers receive, besides `PYTHON*` and `LC_*`: no keys of providers."""


class DocumentTooExpensive(AuthorError):
    """A document needs more processor time or memory than the server grants. The job had no effect."""

    code: ClassVar[str] = "document-too-expensive"


class WorkersUnavailable(OperatorError):
    """The server cannot start the processes that read documents."""

    code: ClassVar[str] = "document-workers-unavailable"


class Performed(NamedTuple):
    """The result of a job, and its processor time."""

    value: object
    cpu_s: float


class _WorkerEnded(Exception):
    """The worker process has ended."""


class _Worker:
    """One worker process. One thread at a time uses it."""

    def __init__(self, memory_bytes: int, modules: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(memory_bytes), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is for the server only.
        )
        self.is_ready = False
        self.goes_on = True

    def perform(self, job: bytes, seconds: float) -> bytes:
        """Return the reply to a job. Raises `_WorkerEnded` if the process ends first, `WorkersUnavailable` if it never
        started."""
        if not self.is_ready:
            self._wait_until_ready()
        stdin = self._process.stdin
        assert stdin is not None
        overdue = Timer(WALL_S_MIN + WALL_RATIO * seconds, self._process.kill)
        overdue.start()
        try:
            stdin.write(JOB.pack(seconds, len(job)) + job)
            stdin.flush()
            return self._receive()
        except OSError as why:
            raise _WorkerEnded from why
        finally:
            overdue.cancel()

    def _wait_until_ready(self) -> None:
        overdue = Timer(START_S_MAX, self._process.kill)
        overdue.start()
        try:
            self._receive()
        except _WorkerEnded:
            self.goes_on = False
            raise WorkersUnavailable(
                f"the worker process for documents does not start ({self.why_ended()})",
                hint="Its standard error is in the server's log. `workers = 0` under [documents] reads "
                "documents in the server process.",
            ) from None
        finally:
            overdue.cancel()
        self.is_ready = True

    def _receive(self) -> bytes:
        self.goes_on, length = REPLY.unpack(self._exactly(REPLY.size))
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(length)
        if len(data) < length:
            raise _WorkerEnded
        return data

    def why_ended(self) -> str:
        """Return what ended the process: a signal or an exit status."""
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"status {status}"

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # The pipe may hold a part of a job.
                    pipe.close()


class _Job(NamedTuple):
    function: Callable[..., object]
    arguments: tuple[object, ...]
    seconds: float
    future: Future[Performed]


class DocumentPool:
    """A limited number of worker processes, each with a thread that waits for it."""

    def __init__(self, *, workers: int, memory_mb: int, modules: tuple[str, ...] = ()) -> None:
        """`modules`: modules that jobs need; workers import them before the first job."""
        self.memory_mb = memory_mb
        self._workers_max = workers
        self._modules = modules
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._workers: set[_Worker] = set()
        self._is_closed = False
        self._counting = Lock()
        self._threads = 0
        self._free = 0
        """Threads that wait for a job, less the jobs that wait for a thread."""

    def submit(
        self, function: Callable[..., object], arguments: tuple[object, ...], seconds: float
    ) -> Future[Performed]:
        """Perform a module-level function in a worker. The future raises its errors, `DocumentTooExpensive`,
        `WorkersUnavailable`."""
        future = Future[Performed]()
        with self._counting:
            self._free -= 1
            needs_thread = self._free < 0 and self._threads < self._workers_max
            self._threads += needs_thread
            self._free += needs_thread
        self._jobs.put(_Job(function, arguments, seconds, future))
        if needs_thread:  # A daemon thread: a process that ends does not wait for documents.
            Thread(target=self._serve, name=f"document-worker-{self._threads}", daemon=True).start()
        return future

    def _serve(self) -> None:
        worker: _Worker | None = None
        while True:
            job = self._jobs.get()
            settle: Callable[[], None] | None = None
            if job.future.set_running_or_notify_cancel():
                try:
                    worker = worker or self._started()
                    settle = partial(job.future.set_result, self._perform(worker, job))
                except BaseException as why:
                    settle = partial(job.future.set_exception, why)
            with self._counting:  # Before the result is set: the caller's next job must not start another process.
                self._free += 1
            if settle is not None:
                settle()
            del job, settle  # They hold the document.
            if worker is not None and not worker.goes_on:
                worker = self._replaced(worker)

    def _perform(self, worker: _Worker, job: _Job) -> Performed:
        frame = pickle.dumps((job.function, job.arguments), PICKLE_PROTOCOL)
        try:
            reply = worker.perform(frame, job.seconds)
        except _WorkerEnded:
            worker.goes_on = False
            raise self._too_expensive(worker.why_ended(), job.seconds) from None
        return self._result(cast(JobResult, pickle.loads(reply)))  # noqa: S301 - our own worker wrote it

    def _started(self) -> _Worker:
        worker = _Worker(self.memory_mb * MB, self._modules)
        self._workers.add(worker)
        return worker

    def _replaced(self, worker: _Worker) -> _Worker | None:
        """Close a worker and start the next one before it is needed; None: the last one never started, or the pool is
        closed."""
        self._workers.discard(worker)
        worker.close()
        return self._started() if worker.is_ready and not self._is_closed else None

    def _result(self, outcome: JobResult) -> Performed:
        match outcome.kind:
            case "value":
                return Performed(outcome.value, outcome.cpu_s)
            case "refused":
                raise rebuilt(cast("tuple[type[PointsmanError], tuple[object, ...], dict[str, object]]", outcome.value))
            case "memory":
                raise DocumentTooExpensive(
                    f"the document needs more than {self.memory_mb} MB of memory",
                    hint=f"{SIMPLER} An operator can raise `memory_mb` under [documents].",
                )
            case "bug":
                why = EngineBug("reading the document failed; this is a bug in Pointsman")
                why.add_note(str(outcome.value))
                raise why

    def _too_expensive(self, ended: str, seconds: float) -> DocumentTooExpensive:
        if ended == "SIGPROF":
            return DocumentTooExpensive(
                f"the document needs more than {seconds:.3g} s of processor time",
                hint=f"{SIMPLER} An operator can raise `seconds` and `seconds_per_mb` under [documents].",
            )
        return DocumentTooExpensive(
            f"reading the document ended its worker process ({ended})",
            hint=f"{SIMPLER} An operator can raise `memory_mb` under [documents].",
        )

    def close(self) -> None:
        """End the processes. Jobs in progress fail."""
        self._is_closed = True
        for worker in [*self._workers]:
            worker.kill()


def _environment() -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if name in ENVIRONMENT or name.startswith(("PYTHON", "LC_"))
    }
    # `sys.path` may have changed since this process started.
    return {**inherited, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}


@cache
def pool_for(*, workers: int, memory_mb: int, modules: tuple[str, ...] = ()) -> DocumentPool:
    """Return the pool of this process with these limits."""
    pool = DocumentPool(workers=workers, memory_mb=memory_mb, modules=modules)
    atexit.register(pool.close)
    return pool
