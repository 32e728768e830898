"""A large document of a caller is checked beside the event loop: other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from pointsman.app import Workflow
from pointsman.app.aside import SHORT_CHARS_MAX, aside


async def test_event_loop_turns_while_a_large_document_is_read() -> None:
    loop, entered, turned = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def work() -> bool:
        loop.call_soon_threadsafe(entered.set)
        return turned.wait(timeout=30)

    task = asyncio.create_task(aside(SHORT_CHARS_MAX + 1, work))
    await entered.wait()
    turned.set()
    assert await task


async def test_short_documents_stay_in_the_thread_of_the_caller() -> None:
    assert await aside(SHORT_CHARS_MAX, threading.current_thread) is threading.current_thread()


@pytest.mark.parametrize("count", [3, 2000])
async def test_workflow_reads_the_same_aside(count: int) -> None:
    nodes = [{"id": f"n{number}", "type": "agent", "config": {"prompt": "Go."}} for number in range(count)]
    text = json.dumps({"pointsman": 1, "id": "x", "nodes": nodes, "edges": []})
    found = await Workflow.parse_aside(text, name="x")
    assert found.definition == Workflow.parse(text, name="x").definition
