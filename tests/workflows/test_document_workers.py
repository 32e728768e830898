"""Documents of callers are processed by worker processes: within limits, and one at a time for each caller."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pointsman.app import Workflow
from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.definition.problems import WorkflowInvalid, error, invalid
from pointsman.errors import EngineBug
from pointsman.settings.sections import DocumentSettings
from pointsman.workflows.document_work import WAITING_CHARS_MAX, DocumentTooExpensive, DocumentWork, pool_for
from pointsman.workflows.sources import Outline
from tests.quick_starts import fresh_starts

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("ready_forks")]

LIMITS = DocumentSettings(workers=1, seconds=0.3, seconds_per_mb=0, memory_mb=300)
CHAIN = '{"pointsman": 1, "id": "x", "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "Go."}}], "edges": []}'


def process(*_: object) -> int:
    return os.getpid()


def spin(_: str = "") -> None:
    while True:
        pass


def meet(folder: str) -> None:
    """Wait until another worker has arrived too."""
    Path(folder, str(os.getpid())).touch()
    while len(os.listdir(folder)) < 2:
        time.sleep(0.005)


def wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.005)


def stuck_in_c() -> int:
    return len(str(7 ** (7**8)))


def take_memory(megabytes: int) -> int:
    return len(bytearray(megabytes * 1_000_000))


def refuse() -> None:
    raise invalid((error("shape", "/nodes", "there are no nodes", hint="Add one."),))


def fail() -> None:
    raise KeyError("a bug")


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def outlined(workflow: Workflow) -> Outline:
    return workflow.outline


@pytest.fixture
async def work() -> AsyncIterator[DocumentWork]:
    made = DocumentWork()
    made.use_workers(LIMITS, (__name__,))
    yield made
    await made.close()


async def test_jobs_run_in_another_process(work: DocumentWork) -> None:
    assert await work.run(process, by="ada", chars=1) != os.getpid()


async def test_without_workers_jobs_run_in_this_process() -> None:
    assert await DocumentWork().run(process, by="ada", chars=1) == os.getpid()


async def test_without_workers_the_event_loop_runs_while_a_large_document_is_read() -> None:
    loop, turned = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_loop(_: str) -> bool:
        return asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(30)

    task = asyncio.create_task(DocumentWork().run(wait_for_loop, "x" * 30_000, by="ada", chars=30_000))
    await asyncio.sleep(0)
    turned.set()
    assert await task


@pytest.mark.parametrize("job", [spin, stuck_in_c])
async def test_a_job_over_the_time_limit_is_refused_and_the_next_one_runs(work: DocumentWork, job: object) -> None:
    assert callable(job)
    with pytest.raises(DocumentTooExpensive, match=r"more than 0\.3 s of processor time") as caught:
        await work.run(job, by="ada", chars=1)
    assert "seconds" in caught.value.hint
    assert "[documents]" in caught.value.hint
    assert await work.run(process, by="ada", chars=1)


async def test_a_job_over_the_memory_limit_is_refused_and_the_next_one_runs(work: DocumentWork) -> None:
    with pytest.raises(DocumentTooExpensive, match="more than 300 MB of memory") as caught:
        await work.run(take_memory, 1000, by="ada", chars=1)
    assert "memory_mb" in caught.value.hint
    assert await work.run(take_memory, 1, by="ada", chars=1) == 1_000_000


async def test_a_crashed_worker_is_replaced(work: DocumentWork) -> None:
    before = await work.run(process, by="ada", chars=1)
    with pytest.raises(DocumentTooExpensive, match="SIGSEGV"):
        await work.run(kill_itself, by="ada", chars=1)
    assert await work.run(process, by="ada", chars=1) != before


async def test_a_worker_with_much_memory_is_replaced() -> None:
    work = DocumentWork()
    work.use_workers(LIMITS.model_copy(update={"seconds": 30, "memory_mb": 310}), (__name__,))  # Its own pool.
    with fresh_starts():  # A fork has more memory.
        before = await work.run(process, by="ada", chars=1)
        await work.run(take_memory, 200, by="ada", chars=1)
        assert await work.run(process, by="ada", chars=1) != before
    await work.close()


async def test_a_second_process_starts_only_while_the_first_is_busy(tmp_path: Path) -> None:
    work = DocumentWork()
    work.use_workers(LIMITS.model_copy(update={"workers": 2, "seconds": 30, "memory_mb": 1000}), (__name__,))
    assert len({await work.run(process, by="ada", chars=1) for _ in range(20)}) == 1
    await asyncio.gather(*(work.run(meet, str(tmp_path), by=name, chars=1) for name in ("ada", "grace")))
    assert len(os.listdir(tmp_path)) == 2
    await work.close()


async def test_a_worker_of_a_large_server_runs_several_jobs() -> None:
    ballast = bytearray(os.urandom(1)) * 200_000_000
    work = DocumentWork()
    work.use_workers(LIMITS.model_copy(update={"seconds": 30, "memory_mb": 305}), (__name__,))  # Its own pool.
    with fresh_starts():  # A fork does not have the memory of this process.
        assert len({await work.run(process, by="ada", chars=1) for _ in range(3)}) == 1
    assert len(ballast) == 200_000_000
    await work.close()


async def test_the_limit_grows_with_the_document() -> None:
    work = DocumentWork()
    work.use_workers(LIMITS.model_copy(update={"seconds": 0.01, "seconds_per_mb": 0.1}), (__name__,))
    with pytest.raises(DocumentTooExpensive, match=r"more than 0\.21 s"):
        await work.run(spin, by="ada", chars=2_000_000)


async def test_the_caller_receives_the_refusal_of_a_job(work: DocumentWork) -> None:
    with pytest.raises(WorkflowInvalid, match="there are no nodes") as caught:
        await work.run(refuse, by="ada", chars=1)
    assert [problem.pointer for problem in caught.value.problems] == ["/nodes"]
    assert caught.value.hint == "Add one."


async def test_a_bug_in_a_job_has_its_traceback(work: DocumentWork) -> None:
    with pytest.raises(EngineBug) as caught:
        await work.run(fail, by="ada", chars=1)
    assert "KeyError: 'a bug'" in caught.value.__notes__[0]


async def test_a_caller_waits_only_for_their_own_documents(tmp_path: Path) -> None:
    work, order = DocumentWork(), list[str]()
    work.use_workers(LIMITS.model_copy(update={"workers": 2, "seconds": 30}), (__name__,))
    await asyncio.gather(*(work.run(meet, str(tmp_path), by=name, chars=1) for name in ("grace", "linus")))

    async def ask(by: str, job: Callable[..., object], *arguments: object) -> None:
        await work.run(job, *arguments, by=by, chars=1)
        order.append(by)

    free = tmp_path / "free"
    mallory = [asyncio.create_task(ask("mallory", wait_for, str(free))) for _ in range(3)]
    await asyncio.gather(*(ask("ada", process) for _ in range(3)))
    free.touch()
    await asyncio.gather(*mallory)
    assert order == ["ada"] * 3 + ["mallory"] * 3, "mallory's documents take one worker of two"


async def test_a_caller_with_too_many_waiting_jobs_is_refused(work: DocumentWork) -> None:
    first = asyncio.create_task(work.run(spin, by="mallory", chars=1))
    await asyncio.sleep(0)
    with pytest.raises(TooManyRequests, match="'mallory' has 1 documents waiting"):
        await work.run(process, by="mallory", chars=WAITING_CHARS_MAX)
    with pytest.raises(DocumentTooExpensive):
        await first
    assert await work.run(process, by="mallory", chars=WAITING_CHARS_MAX)


async def test_a_cancelled_job_occupies_its_worker_until_it_ends(work: DocumentWork) -> None:
    await work.run(process, by="ada", chars=1)
    started = time.monotonic()
    leaving = asyncio.create_task(work.run(spin, by="mallory", chars=1))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    await work.run(process, by="mallory", chars=1)
    assert time.monotonic() - started > LIMITS.seconds / 2


async def test_a_cheap_document_is_read_in_this_process_afterwards(work: DocumentWork) -> None:
    first = await work.run(process, by="ada", chars=1, of="digest")
    assert first != os.getpid()
    assert await work.run(process, by="ada", chars=1, of="digest") == os.getpid()
    assert await work.run(process, by="ada", chars=1, of="another") != os.getpid()


async def test_a_workflow_sent_as_text_is_read_identically(work: DocumentWork) -> None:
    workflow = Workflow(CHAIN)
    outline = await work.run(outlined, workflow, by="ada", chars=workflow.chars)
    assert "read" not in vars(workflow)
    assert outline == Workflow(CHAIN).outline
    assert outline.node_count == 1


def test_pools_are_shared_by_installations_with_the_same_limits() -> None:
    assert pool_for(workers=1, memory_mb=300, modules=(__name__,)) is pool_for(
        workers=1, memory_mb=300, modules=(__name__,)
    )
