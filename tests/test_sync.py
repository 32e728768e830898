"""`pointsman.sync`: the same objects without `await`, also where an event loop is running, and when Ctrl-C comes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman import Gate, Workflow
from pointsman.client.events import CompleteEvent, StartEvent
from pointsman.models.script import Script
from pointsman.runtime.local import UnknownExecution
from pointsman.settings import Settings
from pointsman.sync import AppClosed, Client, Execution, Pointsman
from pointsman.tools.tool import ToolContext
from tests.typing import sync_stub


@pytest.fixture
def app() -> Iterator[Pointsman]:
    with Pointsman("memory:", settings=Settings(), script=Script(), tools=[price, wait_for_end]) as app:
        yield app


def price(article: str) -> float:
    return {"pen": 1.5}[article]


started = threading.Event()
ended = threading.Event()


async def wait_for_end(context: ToolContext) -> None:
    started.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()


def order() -> Workflow:
    wf = Workflow.build("order", output={"price": "price"})
    found = wf.tool("price", tool=price, parameters={"article": "{article}"})
    pay = wf.human("pay", message="Pay?", form={"n": {"type": "integer"}}, after=found)
    pay.on("approve", wf.transform("keep", set={"price": "nodes.price"}))
    return Workflow.of(wf)


def test_a_workflow_runs_to_its_output(app: Pointsman) -> None:
    execution = app.run(order(), {"article": "pen"})
    assert (execution.status, [gate["nodeId"] for gate in execution.waiting]) == ("waiting", ["pay"])
    execution.answer("pay", "approve", {"n": 1})
    assert execution.output() == {"price": 1.5}
    assert CompleteEvent in {type(event) for event in execution.events()}
    assert repr(app.open(execution.id)) == f"<Execution {execution.id!r}: completed>"


def test_an_iteration_may_stop_early(app: Pointsman) -> None:
    execution = app.run(order(), {"article": "pen"})
    events = execution.events()
    assert isinstance(next(events), StartEvent)
    events.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - iterators of this module are generators


def test_errors_are_those_of_the_asynchronous_methods(app: Pointsman) -> None:
    with pytest.raises(UnknownExecution):
        app.open("exec-missing")


async def test_it_works_where_an_event_loop_is_running() -> None:
    with Pointsman("memory:", settings=Settings(), tools=[price]) as app:
        assert app.run(order(), {"article": "pen"}).status == "waiting"


def test_types_of_outputs_and_gates_are_read(app: Pointsman) -> None:
    execution = app.run(order(), {"article": "pen"}).returning(dict[str, float])
    assert isinstance(execution, Execution)
    execution.answer(Gate("pay", shows=dict, takes=dict[str, int]), "approve", {"n": 1})
    assert execution.output() == {"price": 1.5}


def test_parts_for_the_event_loop_are_left_out_and_a_closed_app_is_refused(app: Pointsman) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'store'"):
        app.store  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - wrong on purpose
    app.close()
    app.close()
    with pytest.raises(AppClosed, match="is closed"):
        app.run(order())


def test_a_client_is_mirrored() -> None:
    with Client("http://localhost:1") as client:
        execution = client.execution("exec-1")
        assert (execution.id, type(execution).__module__) == ("exec-1", "pointsman.sync")


def test_ctrl_c_ends_the_call_and_leaves_the_execution(app: Pointsman) -> None:
    wf = Workflow.build("slow")
    wf.tool("wait", tool=wait_for_end)

    def interrupt() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        app.run(wf)
    (execution,) = app.executions()
    assert execution.status == "running"
    assert not ended.is_set()
    app.close()
    assert ended.is_set()


@pytest.mark.integration
def test_the_stub_is_that_of_the_mirrored_classes() -> None:
    assert Path(sync_stub.STUB).read_text(encoding="utf-8") == sync_stub.stub(), "run: python -m tests.typing.sync_stub"
