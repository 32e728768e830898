"""The client returns the same as an embedded app, and loses nothing on faulty connections."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import httpx2
import pytest

from pointsman import Client, PointsmanError
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.client.calls import AddressInvalid, ServerCalls, ServerUnreachable
from pointsman.client.events import StartEvent
from pointsman.client.executions import Begin, RemoteExecution, StreamEvent
from pointsman.definition.problems import WorkflowInvalid
from pointsman.engine.decide.human_tasks import GateClosedAlready
from pointsman.executions.execution import ExecutionFailed
from pointsman.executions.opening import KeyReused
from pointsman.runtime.local import UnknownExecution
from pointsman.store.errors import RevisionMoved
from pointsman.testing.clock import run_virtually
from pointsman.values import JsonObject
from pointsman.workflows.folders import UnknownFolder
from pointsman.workflows.versions import VersionNameTaken
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, TALK, WAITS
from tests.server.processes import free_port, needs_nginx, proxied, server_process

STEPS = 20
SLOW = "rules:\n  - {text: said, delay: 40ms}\n"


def slow_chain() -> JsonObject:
    return {
        "pointsman": 1,
        "id": "slow",
        "nodes": [{"id": f"n{n}", "type": "agent", "config": {"prompt": f"Say {n}."}} for n in range(STEPS)],
        "edges": [{"source": f"n{n}", "target": f"n{n + 1}"} for n in range(STEPS - 1)],
    }


@pytest.fixture
async def client(served: Served) -> AsyncGenerator[Client, None]:
    async with Client(str(served.client.base_url)) as one:
        yield one


@pytest.fixture
async def served() -> AsyncGenerator[Served, None]:
    async with serving() as one:
        yield one


async def test_an_execution_is_started_followed_answered_and_read(client: Client) -> None:
    assert (await client.save(LETTER))["id"] == "letter"
    assert "letter" in [one["id"] for one in await client.workflows()]
    execution = await client.start("letter", {"goal": "tides"})
    assert await execution.settled() == "waiting"
    (gate,) = await client.inbox()
    assert (gate["executionId"], gate["nodeId"]) == (execution.id, "review")
    answering = execution.events()
    heard = [await anext(answering)]
    await execution.answer("review", "approve", comment="Fine.")
    heard += [event async for event in answering]
    assert isinstance(heard[0], StartEvent)
    assert [one.event for one in heard].count("workflow.complete") == 1
    assert len({one.id for one in heard}) == len(heard)
    comment = await client.comment("execution", execution.id, "Well said.", place="review")
    assert await client.comments("execution", execution.id) == [comment]
    assert await client.mentions() == []
    (answer,) = cast("list[JsonObject]", (await client.answered())["answers"])
    assert (answer["executionId"], answer["action"], answer["comment"]) == (execution.id, "approve", "Fine.")
    output = await execution.output()
    assert isinstance(output, dict)
    assert (await client.view(execution.id))["output"] == output
    assert [one["executionId"] async for one in client.executions(workflow="letter")] == [execution.id]
    journal = [one async for one in execution.journal()]
    assert (journal[0]["kind"], journal[-1]["kind"]) == ("started", "completed")


async def test_the_client_raises_the_same_exceptions_as_the_embedded_app(client: Client) -> None:
    with pytest.raises(UnknownWorkflow, match="nope") as unknown:
        await client.start("nope")
    assert unknown.value.hint
    with pytest.raises(UnknownExecution):
        await client.open("exec-none")
    with pytest.raises(WorkflowInvalid) as invalid:
        await client.save("pointsman: 1\nid: x\nnodes: [{id: a, type: nonsense}]\n")
    assert invalid.value.problems
    await client.save(LETTER)
    execution = await client.start("letter", {"goal": "a"}, key="k")
    assert (await client.start("letter", {"goal": "a"}, key="k")).id == execution.id
    with pytest.raises(KeyReused):
        await client.start("letter", {"goal": "b"}, key="k")
    await execution.settled()
    await execution.answer("review", "approve", key="once")
    await execution.answer("review", "approve", key="once")
    with pytest.raises(GateClosedAlready):
        await execution.answer("review", "approve")
    await client.save(WAITS)
    stopped = await client.start("waits")
    assert await stopped.settled() == "waiting"
    await stopped.cancel(reason="enough")
    with pytest.raises(ExecutionFailed, match="cancelled"):
        await stopped.output()


async def test_the_client_changes_and_deletes_only_the_read_version(client: Client) -> None:
    first = await client.save(LETTER)
    read = await client.source("letter")
    assert read["etag"] == first["etag"]
    second = await client.save(LETTER.replace("Send it?", "Send this?"), over=read)
    assert (second["revision"], second["etag"]) == (2, (await client.source("letter"))["etag"])
    with pytest.raises(RevisionMoved):
        await client.save(LETTER.replace("Send it?", "Send that?"), over=read)
    with pytest.raises(RevisionMoved):
        await client.delete_workflow("letter", over=read)
    assert (await client.source("letter"))["revision"] == 2
    await client.delete_workflow("letter", over=second)
    with pytest.raises(UnknownWorkflow):
        await client.source("letter")


async def test_the_client_publishes_versions_and_moves_workflows(client: Client) -> None:
    await client.save(LETTER)
    assert (await client.publish_version("letter", "Spring", note="The first."))["revision"] == 1
    await client.save(LETTER.replace("Send it?", "Send this?"))
    assert [one["label"] is None for one in await client.workflows("letter")] == [True, False]
    with pytest.raises(VersionNameTaken):
        await client.publish_version("letter", "Spring")
    await client.unpublish_version("letter")
    await client.create_folder("sales/mail")
    await client.move_workflow("letter", "sales/mail")
    assert [(one["path"], one["workflows"]) for one in await client.folders()] == [("sales", 0), ("sales/mail", 1)]
    with pytest.raises(UnknownFolder):
        await client.move_workflow("letter", "none")


async def test_an_unknown_error_code_is_an_error_of_its_family(served: Served) -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(422, json={"code": "from-tomorrow", "detail": "no", "hint": "wait"})

    async with Client("http://there", transport=httpx2.MockTransport(answer)) as client:
        with pytest.raises(PointsmanError, match="no") as why:
            await client.workflows()
    assert (why.value.code, why.value.hint) == ("from-tomorrow", "wait")


async def test_conversations_events_and_forks_work_over_http(client: Client) -> None:
    await client.save(TALK)
    first = await client.start("talk", "Hello", session="s1")
    await first.settled()
    second = await first.say("And now?")
    assert await second.settled() == "completed"
    assert (await second.view())["sessionId"] == "s1"
    await client.save(WAITS)
    waits = await client.start("waits")
    await waits.settled()
    assert await waits.signal("knock", {"who": "Ada"}, key="1") == "taken"
    assert await waits.output() == {"said": {"who": "Ada"}}
    copy = await waits.fork(at=1)
    assert copy.id != waits.id
    assert await copy.settled() == "waiting"
    await copy.cancel()


async def test_a_start_with_a_lost_answer_happens_once(served: Served, client: Client) -> None:
    await client.save(CHAIN)
    real = httpx2.AsyncHTTPTransport()
    lost: list[httpx2.Request] = []

    class Losing(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            reply = await real.handle_async_request(request)
            if request.method == "POST" and len(lost) < 2:
                lost.append(request)
                await reply.aread()
                raise httpx2.ReadError("the line is dead")
            return reply

    async with Client(str(served.client.base_url), transport=Losing()) as careful:
        execution = await careful.start("chain", {})
        await execution.settled()
    await real.aclose()
    assert len(lost) == 2
    assert len({request.headers["idempotency-key"] for request in lost}) == 1
    assert [one["executionId"] async for one in client.executions()] == [execution.id]


async def test_a_request_that_must_not_be_repeated_is_not_retried(served: Served) -> None:
    said: list[str] = []

    def dead(request: httpx2.Request) -> httpx2.Response:
        said.append(request.url.path)
        raise httpx2.ReadError("the line is dead")

    async with Client("http://there", transport=httpx2.MockTransport(dead)) as client:
        with pytest.raises(ServerUnreachable, match="the line is dead"):
            await client.execution("exec-1").delegate("review", "ben")
    assert len(said) == 1


async def test_invalid_and_unreachable_addresses_are_reported() -> None:
    with pytest.raises(AddressInvalid):
        Client("localhost:8000")

    def other(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(404, text="<html>Apache</html>")

    async with Client("http://there", transport=httpx2.MockTransport(other)) as client:
        with pytest.raises(ServerUnreachable, match="Apache"):
            await client.workflows()
    async with Client(f"http://127.0.0.1:{free_port()}") as nobody:
        with pytest.raises(ServerUnreachable):
            async for _ in nobody.execution("exec-1").events(patience_s=0):
                pass


@needs_nginx
async def test_a_stream_through_a_proxy_survives_the_crash_of_its_server(file_store: str, tmp_path: Path) -> None:
    async with (
        server_process(file_store, tmp_path, script=SLOW) as server,
        proxied(server.port, tmp_path) as address,
        Client(address) as client,
    ):
        await client.save(slow_chain())
        execution = await client.start("slow")
        heard: list[str] = []
        beginnings: list[asyncio.Task[None]] = []
        async for event in execution.events():
            heard.append(event.id)
            if len(heard) == 8:
                assert await server.stop(signal.SIGKILL) != 0
                beginnings.append(asyncio.create_task(server.begin()))
        await asyncio.gather(*beginnings)
        assert heard == [event.id async for event in execution.events()]
        assert await execution.status() == "completed"
    assert len(heard) > 2 * STEPS


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_a_stream_that_ends_early_is_reopened_with_a_growing_delay() -> None:
    async def story() -> None:
        asked, heard, now = 0, 0, asyncio.get_running_loop().time

        class Retried(RemoteExecution):
            """It runs for a minute, in which each of its streams ends at once."""

            async def status(self) -> str:
                nonlocal asked
                asked += 1
                return "running" if now() < began + 60 else "completed"

            async def _stream(
                self, *, after: str | None, begin: Begin, patience_s: float
            ) -> AsyncGenerator[StreamEvent, None]:
                nonlocal heard
                heard += 1
                for none in ():
                    yield none

        began = now()
        calls = ServerCalls("http://127.0.0.1:1", None, timeout_s=1)
        assert await Retried(calls, "exec-1").settled() == "completed"
        await calls.http.aclose()
        assert 10 < heard < 40
        assert asked < 100

    run_virtually(story())
