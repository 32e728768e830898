"""Hostile code: each program ends with a named failure and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec import structs

from pointsman.errors import PointsmanError
from pointsman.tools.sandbox.interpreter import CodeFailed, CodeLimits, Interpreter
from pointsman.values import Bytes, Json, Seconds
from tests.sandboxes import BOXES, BoxName, box_or_skip, needs_box
from tests.tools.sandbox.hostile import HARMLESS, HOSTILE

pytestmark = pytest.mark.integration

LIMITS = CodeLimits(seconds=Seconds(0.4), memory_bytes=Bytes(32_000_000), result_bytes=Bytes(100_000))
ROOMY = CodeLimits(seconds=Seconds(30.0), memory_bytes=Bytes(32_000_000), at_once=2)


@pytest.fixture
async def interpreter() -> AsyncIterator[Interpreter]:
    async with contextlib.AsyncExitStack() as stack:
        made = Interpreter(LIMITS)
        stack.push_async_callback(made.close)
        yield made


def children(parent: int | str = "self") -> set[int]:
    """Return its child processes that have not been reaped."""
    return {int(pid) for task in Path(f"/proc/{parent}/task").iterdir() for pid in _children_of(task)}


def _children_of(thread: Path) -> list[str]:
    try:
        return (thread / "children").read_text().split()
    except FileNotFoundError:
        return []  # The thread has ended since it was listed.


def family(process: int) -> set[int]:
    """Return it and all its descendants."""
    return {process}.union(*map(family, children(process)))


def is_interpreter(process: int) -> bool:
    return Path(f"/proc/{process}/comm").read_text() == "monty\n"


def has_begun(process: int) -> bool:
    """Return whether it is the interpreter, or a sandbox around one."""
    try:
        return any(map(is_interpreter, family(process)))
    except OSError:
        return False


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the kernel sends no event
        await asyncio.sleep(0)


async def came_of(interpreter: Interpreter, source: str) -> str:
    try:
        return f"got {(await interpreter.run(source, {'words': ['a']})).value!r}"
    except CodeFailed as why:
        return why.failure.code
    except PointsmanError as why:
        return why.code


@needs_box
@pytest.mark.requirement("S1-104", "S1-144")
@pytest.mark.parametrize("code", HOSTILE)
async def test_hostile_programs_end_with_a_named_failure(code: str) -> None:
    programs = HOSTILE[code]
    # Code that takes all memory also takes long: which limit applies first depends on the machine.
    may = {"code-over-limit": {"code-over-limit", "timeout"}}.get(code, {code})
    limits = LIMITS if "timeout" in may else structs.replace(LIMITS, seconds=ROOMY.seconds)
    async with contextlib.AsyncExitStack() as stack:
        interpreter = Interpreter(limits)
        stack.push_async_callback(interpreter.close)
        came = await asyncio.gather(*(came_of(interpreter, source) for source in programs.values()))
        assert {name: got for name, got in zip(programs, came, strict=True) if got not in may} == {}
        assert (await interpreter.run("1 + 1", {})).value == 2


def test_there_are_enough_hostile_programs() -> None:
    assert sum(map(len, HOSTILE.values())) >= 90


@needs_box
async def test_harmless_programs_that_look_hostile_have_a_result(interpreter: Interpreter) -> None:
    inputs: dict[str, Json] = {"word": "__import__('os').system('id')"}
    for source, result in HARMLESS.values():
        assert (await interpreter.run(source, inputs)).value == result


@needs_box
async def test_a_failure_message_is_short(interpreter: Interpreter) -> None:
    with pytest.raises(CodeFailed) as caught:
        await interpreter.run("print('y' * 90_000)\nraise ValueError('x' * 10 ** 6)", {})
    assert len(caught.value.failure.message) < 600
    details = caught.value.failure.details
    assert details is not None
    assert details["output"] == "y" * 1_999 + "\n"


@pytest.mark.parametrize("handles", [True, False], ids=["by handle", "by number"])
@pytest.mark.parametrize("box", BOXES)
async def test_a_cancelled_caller_ends_the_process(
    box: BoxName, handles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    box_or_skip(box)
    if not handles:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    before = children()
    interpreter = Interpreter(ROOMY, sandbox=box)
    try:
        running = asyncio.create_task(interpreter.run("while True:\n    pass", {}))
        await until(lambda: bool(children() - before))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await interpreter.run("'goes on'", {})).value == "goes on"
    finally:
        await interpreter.close()
    assert children() == before


@pytest.mark.parametrize("box", BOXES)
async def test_a_killed_interpreter_is_a_failure_and_is_replaced(box: BoxName) -> None:
    box_or_skip(box)
    before = children()
    interpreter = Interpreter(ROOMY, sandbox=box)
    try:
        assert (await interpreter.run("1", {}, execution="a")).value == 1
        running = asyncio.create_task(interpreter.run("while True:\n    pass", {}, execution="a"))
        while not running.done():
            for process in filter(has_begun, children() - before):
                os.kill(process, signal.SIGKILL)
            await asyncio.sleep(0.01)
        with pytest.raises(CodeFailed) as caught:
            await running
        assert (caught.value.failure.code, caught.value.failure.retryable) == ("code-crashed", True)
        assert (await interpreter.run("2", {}, execution="a")).value == 2
    finally:
        await interpreter.close()


@needs_box
async def test_a_process_serves_only_one_execution() -> None:
    before = children()
    interpreter = Interpreter(ROOMY)
    try:
        owners: dict[str, set[int]] = {}
        for execution in ("a", "b", "a", "b", "a"):
            known = children() - before
            await interpreter.run("1", {}, execution=execution)
            owners.setdefault(execution, children() - before - known)
        assert [len(one) for one in owners.values()] == [1, 1]
        assert children() - before == owners["a"] | owners["b"]
        await interpreter.run("1", {}, execution="c")
        assert len(children() - before) == 2, "no more wait than run at once"
        assert not owners["b"] & children(), "the one that waited longest has ended"
    finally:
        await interpreter.close()
    assert children() == before


@pytest.mark.parametrize("box", BOXES)
async def test_an_interpreter_has_only_its_pipes_open(box: BoxName) -> None:
    box_or_skip(box)
    before = children()
    file = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(file, True)
    interpreter = Interpreter(ROOMY, sandbox=box)
    try:
        await interpreter.run("1", {})
        (process,) = [one for child in children() - before for one in family(child) if is_interpreter(one)]
        assert sorted(map(int, os.listdir(f"/proc/{process}/fd"))) == [0, 1, 2]
        assert os.readlink(f"/proc/{process}/fd/2") == os.devnull
    finally:
        await interpreter.close()
        os.close(file)


@needs_box
@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(0.45)\nn = 0\nwhile n < 4 * 10 ** 5:\n    n += 1\nn",
        "import time\nn = 0\nwhile n < 3 * 10 ** 5:\n    n += 1\n    if n % 10 ** 5 == 0: time.sleep(0.16)\nn",
        "import time\ntime.sleep(0.6)\n1",
        "import asyncio\nawait asyncio.sleep(0.6)\n1",
        "import time\ntry:\n    time.sleep(0.6)\nexcept BaseException:\n    time.sleep(0.45)\n1",
    ],
)
async def test_code_that_works_and_sleeps_past_its_limit_fails(source: str) -> None:
    """Work and sleep count together, in real time."""
    interpreter = Interpreter(CodeLimits(seconds=Seconds(0.5)))
    try:
        with pytest.raises(CodeFailed) as caught:
            await interpreter.run(source, {})
    finally:
        await interpreter.close()
    failure = caught.value.failure
    assert failure.code == "timeout"
    assert "0.5 s" in failure.message
    assert "`timeout` under [sandbox]" in failure.hint
