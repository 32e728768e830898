"""Typed events of an execution: the same classes in a program and from a server, with tokens where asked."""

from __future__ import annotations

import msgspec
import pytest

from pointsman import Pointsman, Workflow
from pointsman.client import events
from pointsman.client.events import (
    CLASSES,
    CompleteEvent,
    DeltaEvent,
    GateEvent,
    NodeCompleteEvent,
    NodeErrorEvent,
    NodeEvent,
    NodeStartEvent,
    OtherEvent,
    PublicEvent,
    StartEvent,
    event_of,
)
from pointsman.executions.public_events import public_events
from pointsman.settings import Settings
from pointsman.values import ExecutionId, JsonObject
from pointsman.workflows.builder import WorkflowBuilder
from pointsman.workflows.scripts import parse_script

SCRIPT = parse_script("rules: [{node: draft, text: The tide comes twice a day.}]")


def letter() -> WorkflowBuilder:
    wf = Workflow.build("letter")
    draft = wf.agent("draft", prompt="Write about {topic}")
    gate = wf.human("review", after=draft, message="Good?", form={"stars": {"type": "integer"}})
    gate.on("approve", wf.transform("last", set={"n": "[1].map(x => x / 0)"})).on("reject", "END")
    return wf


async def collected(app: Pointsman, *, live: bool) -> list[PublicEvent]:
    execution = await app.start(letter(), {"topic": "tides"})
    found: list[PublicEvent] = []
    async for event in execution.events(live=live):
        found.append(event)
        if isinstance(event, GateEvent):
            await execution.answer(event.gate_id, "reject")
    return found


async def test_events_have_a_class_each_and_their_fields() -> None:
    async with Pointsman("memory:", settings=Settings(), script=SCRIPT) as app:
        found = await collected(app, live=False)
    assert isinstance(found[0], StartEvent)
    assert (found[0].workflow_id, found[0].input, found[0].event) == ("letter", {"topic": "tides"}, "workflow.start")
    (started,) = [one for one in found if isinstance(one, NodeStartEvent) and one.node_id == "draft"]
    (done,) = [one for one in found if isinstance(one, NodeCompleteEvent) and one.node_id == "draft"]
    assert (done.step, done.result) == (started.step, "The tide comes twice a day.")
    (gate,) = [one for one in found if isinstance(one, GateEvent)]
    assert (gate.node_id, gate.message) == ("review", "Good?")
    assert [option["value"] for option in gate.options] == ["approve", "reject"]
    assert not any(isinstance(one, DeltaEvent | OtherEvent) for one in found)
    assert len({one.id for one in found}) == len(found)


async def test_live_events_have_the_tokens_between_the_events_of_their_step() -> None:
    async with Pointsman("memory:", settings=Settings(), script=SCRIPT) as app:
        found = await collected(app, live=True)
    of_draft = [one for one in found if isinstance(one, NodeEvent) and one.node_id == "draft"]
    kinds = [type(one) for one in of_draft]
    tokens = [one.text for one in of_draft if isinstance(one, DeltaEvent)]
    assert "".join(tokens) == "The tide comes twice a day."
    assert len(tokens) > 1
    assert kinds.index(NodeStartEvent) < kinds.index(DeltaEvent)
    assert max(at for at, kind in enumerate(kinds) if kind is DeltaEvent) < kinds.index(NodeCompleteEvent)


async def test_a_reader_continues_behind_an_event() -> None:
    async with Pointsman("memory:", settings=Settings(), script=SCRIPT) as app:
        execution = await app.run(letter(), {"topic": "tides"})
        found = [one async for one in execution.events()]
        for at, one in enumerate(found):
            rest = [other async for other in execution.events(after=one.id)]
            assert rest == found[at + 1 :]


async def test_a_program_and_a_server_have_equal_events() -> None:
    async with Pointsman("memory:", settings=Settings(), script=SCRIPT) as app:
        execution = await app.run(letter(), {"topic": "tides"})
        found = [one async for one in execution.events()]
        sent = [one for row in await execution.rows() for one in public_events(ExecutionId(execution.id), row, "full")]
        assert [event_of(msgspec.to_builtins(one)) for one in sent] == found
        for one, event in zip(sent, found, strict=True):
            # Default values are left out.
            assert event.to_json().items() <= msgspec.to_builtins(one).items()


def test_an_event_of_a_newer_server_is_another_event() -> None:
    sent: JsonObject = {"id": "7.0", "event": "workflow.new", "n": 1}
    assert event_of(sent) == OtherEvent(id="7.0", name="workflow.new", data=sent)
    assert event_of(sent).event == "workflow.new"


def test_every_class_of_events_has_a_name() -> None:
    kinds = {one for one in vars(events).values() if isinstance(one, type) and issubclass(one, PublicEvent)}
    assert kinds - set(CLASSES.values()) == {PublicEvent, NodeEvent, OtherEvent}


@pytest.mark.parametrize("name", CLASSES)
def test_a_field_that_is_left_out_has_its_default(name: str) -> None:
    assert event_of({"event": name}) == CLASSES[name]()


async def test_errors_and_ends_are_events() -> None:
    wf = Workflow.build("fails")
    wf.transform("bad", set={"n": "1 / 0"}, execution={"errorHandler": "fail"})
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.run(wf)
        found = [one async for one in execution.events()]
    (error,) = [one for one in found if isinstance(one, NodeErrorEvent)]
    assert error.error["code"]
    assert not any(isinstance(one, CompleteEvent) for one in found)
