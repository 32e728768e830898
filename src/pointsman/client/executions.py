"""An execution on a server, with the methods of an embedded one, over HTTP, and its streams, which reconnect.

Streams continue across lost connections and server restarts. Each event has an id; a reconnecting client sends the last
one and receives the following events. So none is lost or duplicated.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Literal, TypeAlias, cast
from uuid import uuid4

import httpx2
import msgspec

from pointsman.arguments import checks_arguments
from pointsman.client.calls import AWAY, CONNECT_S, Query, ServerCalls, refusal_in, refused, segment, unreachable
from pointsman.client.events import PublicEvent, event_of
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject

Begin: TypeAlias = Literal["start", "now", "snapshot"]

SETTLED: Final = frozenset({"completed", "failed", "cancelled", "waiting", "paused", "interrupted"})
QUIET_S: Final = 0.1
"""After this long without an event the status is queried: the execution may have settled."""
LOOK_S: Final = 2.0
"""Interval of status queries without events: redaction levels leave out many events."""
PAGE: Final = 500
PATIENCE_S: Final = 60.0
FAILED: Final = "execution-failed"


@checks_arguments
class RemoteExecution:
    """One execution. Only its id is kept here: every call asks the server."""

    def __init__(self, calls: ServerCalls, id: str) -> None:
        self.id = id
        self._calls = calls
        self._path = f"/api/workflows/executions/{segment(id)}"

    def __repr__(self) -> str:
        return f"RemoteExecution({self.id!r} at {self._calls.url})"

    async def view(self) -> JsonObject:
        """Return the view of the execution, from its journal."""
        return _object(await self._calls.ask(self._path))

    async def status(self) -> str:
        """Return the status. Cheaper than a view: read from the list of executions."""
        return str(_object(await self._calls.ask(f"{self._path}/events", {"limit": 1}))["status"])

    async def state(self, *, at: int) -> JsonObject:
        """Return the execution as it was after a row of its journal."""
        return _object(await self._calls.ask(f"{self._path}/state", {"at": at}))

    async def timeline(self) -> JsonObject:
        """Return when each step ran, waited and failed (`spans`), and the time per node (`nodes`)."""
        return _object(await self._calls.ask(f"{self._path}/timeline"))

    async def events(
        self,
        *,
        after: str | None = None,
        begin: Begin = "start",
        live: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> AsyncGenerator[PublicEvent, None]:
        """Yield the events of the execution until it has ended, see `client.events`. Live ones have no `id`.

        Reconnects after lost connections and server restarts for up to `patience_s`, without lost or duplicate events.
        `after`
        continues behind an id. `live` includes partial output of models.
        """
        async with aclosing(self._stream(after=after, begin=begin, patience_s=patience_s)) as events:
            async for event in events:
                if event.id or live:
                    yield event_of(event.json())

    def _stream(self, *, after: str | None, begin: Begin, patience_s: float) -> AsyncGenerator[StreamEvent, None]:
        return stream_events(self._calls, f"{self._path}/stream", {"from": begin}, after=after, patience_s=patience_s)

    async def journal(self, *, after: str | None = None) -> AsyncIterator[JsonObject]:
        """Yield the events of the journal so far, complete, oldest first."""
        while True:
            page = _object(await self._calls.ask(f"{self._path}/events", {"after": after, "limit": PAGE}))
            events = cast("list[JsonObject]", page["events"])
            for event in events:
                yield event
            if len(events) < PAGE:
                return
            after = str(page["last"])

    async def settled(self, *, patience_s: float = PATIENCE_S) -> str:
        """Wait until nothing happens by itself: ended, paused, or waiting only for people and events. Return the
        status.
        """
        status = await self.status()
        if status in SETTLED:
            return status
        news = asyncio.Event()
        hearing = asyncio.create_task(self._listen(news, patience_s))
        try:
            while (status := await self.status()) not in SETTLED:
                await asyncio.wait(
                    {hearing, waking := asyncio.ensure_future(news.wait())},
                    timeout=LOOK_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waking.cancel()
                if hearing.done():
                    hearing.result()  # Raises the reason for the end of the stream.
                while news.is_set():
                    news.clear()
                    await asyncio.sleep(QUIET_S)
            return status
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _listen(self, news: asyncio.Event, patience_s: float) -> None:
        """Listen until cancelled: an ended execution may be retried."""
        while True:
            async with aclosing(self._stream(after=None, begin="now", patience_s=patience_s)) as events:
                async for _ in events:
                    news.set()
            news.set()
            await asyncio.sleep(LOOK_S)

    async def output(self) -> Json:
        """Wait for the end and return the output. Raises `ExecutionFailed` if the execution did not complete."""
        await self.settled()
        view = await self.view()
        if view["status"] == "completed":
            return view["output"]
        errors = cast("list[JsonObject]", view["errors"]) if view["status"] == "failed" else []
        if errors:
            last = errors[-1]
            node, code = str(last["nodeId"] or ""), str(last["code"])
            message = f"execution {self.id} failed{f' at {node!r}' if node else ''}: [{code}] {last['message']}"
            why = refused(FAILED, message, str(last.get("hint") or ""))
            vars(why).update(execution=self.id, node=node, code=code)
            raise why
        raise refused(FAILED, f"the execution is {view['status']}", "Its view tells what it waits for.")

    # Actions of people

    async def answer(
        self,
        gate: str,
        action: str,
        data: Json = None,
        *,
        comment: str = "",
        key: str | None = None,
        digest: str = "",
    ) -> JsonObject:
        """Answer an open gate, named by its id, or by its node's id while that is unique. A repeated request counts
        once.

        `digest`: of the gate as it was read; the answer is refused if the gate shows other contents now.
        """
        body: JsonObject = {
            "gateId": gate,
            "action": action,
            "data": data,
            "comment": comment,
            "key": key or uuid4().hex,
        }
        if digest:
            body["digest"] = digest
        return await self._do("respond", body, twice=True)

    async def delegate(self, gate: str, to: str, *, comment: str = "") -> JsonObject:
        """Delegate the right to answer an open gate to another person."""
        return await self._do("delegate", {"gateId": gate, "to": to, "comment": comment}, twice=False)

    async def cancel(self, *, reason: str = "", now: bool = False) -> JsonObject:
        """Cancel the execution for good. A second call has no effect."""
        return await self._do("cancel", {"reason": reason, "now": now}, twice=True)

    async def pause(self) -> JsonObject:
        """Pause: start no further step."""
        return await self._do("pause", None, twice=False)

    async def resume(self, *, limits: Mapping[str, float] | None = None) -> JsonObject:
        """Continue after a pause, or after a limit that is raised."""
        return await self._do("resume", {"limits": dict(limits or {})}, twice=False)

    async def retry(self, *, limits: Mapping[str, float] | None = None) -> JsonObject:
        """Retry the steps that failed the execution."""
        return await self._do("retry", {"limits": dict(limits or {})}, twice=True, key=uuid4().hex)

    async def steer(
        self,
        messages: Sequence[Json] = (),
        *,
        set: Mapping[str, Json] | None = None,
        goto: str | None = None,
        reason: str = "",
    ) -> JsonObject:
        """Intervene manually between steps."""
        body: JsonObject = {"messages": [*messages], "set": dict(set or {}), "goto": goto, "reason": reason}
        return await self._do("steer", body, twice=True, key=uuid4().hex)

    async def signal(self, name: str, data: Json = None, *, key: str | None = None) -> str:
        """Send an event and return its outcome: `taken`, `kept` or `known`. With the same key it is delivered once."""
        body: JsonObject = {"name": name, "data": data, "key": key or uuid4().hex}
        return str((await self._do("signals", body, twice=True))["became"])

    async def fork(
        self, *, at: int | None = None, before: str | None = None, set: Mapping[str, Json] | None = None
    ) -> RemoteExecution:
        """Start a new execution as a copy of this one, up to a row or before a step."""
        body: JsonObject = {"at": at, "step": before, "set": dict(set or {})}
        made = await self._do("fork", body, twice=True, key=uuid4().hex)
        return RemoteExecution(self._calls, str(made["executionId"]))

    async def say(self, message: str) -> RemoteExecution:
        """Start the next turn of this execution's conversation, as an execution of its own."""
        made = await self._do("messages", {"message": message}, twice=True, key=uuid4().hex)
        return RemoteExecution(self._calls, str(made["executionId"]))

    async def move(self, to: str, *, check_only: bool = False) -> list[JsonObject]:
        """Continue with another saved definition (`id@revision`). Return what does not fit; empty: it was or would be
        migrated.

        Raises `MigrationRefused` if something does not fit, unless `check_only`.
        """
        migrated = await self._do("move", {"to": to, "checkOnly": check_only}, twice=True)
        return cast("list[JsonObject]", migrated["problems"])

    async def replay(self, *, against: str | None = None) -> JsonObject:
        """Decide the journal again without model or tool calls: `same`, `differences`."""
        return await self._do("replay", {"against": against}, twice=True)

    async def delete(self) -> None:
        """Delete an ended execution permanently."""
        await self._calls.call("DELETE", self._path, twice=True)

    async def _do(self, verb: str, body: Json, *, twice: bool, key: str | None = None) -> JsonObject:
        return _object(await self._calls.tell(f"{self._path}/{verb}", body, twice=twice, key=key))


def _object(reply: Json) -> JsonObject:
    if not isinstance(reply, dict):
        raise PointsmanError(f"the server answered {type(reply).__name__}, not an object")
    return reply


SILENT_S: Final = 50.0
"""A server sends a sign of life every 15 s: after this long without one it counts as gone, even if the connection is
open.
"""
WAIT_S: Final = 0.5
WAIT_S_MAX: Final = 10.0
CLOSING: Final = "stream.closing"


@dataclass(slots=True)
class StreamEvent:
    """One event as received."""

    id: str = ""
    """Empty: a live event that is not stored."""
    event: str = ""
    data: list[str] = field(default_factory=list[str])

    def json(self) -> JsonObject:
        """Return the data with the `event` name, and the `id` to continue after."""
        result: JsonObject = msgspec.json.decode("\n".join(self.data))
        return {**result, "event": self.event} | ({"id": self.id} if self.id else {})


async def stream_events(
    calls: ServerCalls, path: str, query: Query, *, after: str | None, patience_s: float
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a path until the server ends the stream.

    Raises the server's error, and `ServerUnreachable` after `patience_s` without a successful reconnection.
    """
    last = after
    failed_since: float | None = None
    wait = WAIT_S
    loop = asyncio.get_running_loop()
    while True:
        asked_wait: float | None = None
        try:
            async with aclosing(_connection(calls, path, query, last)) as events:
                async for event in events:
                    # A stream that ends normally is requested again at once: the server reports whether there is more.
                    failed_since, wait, asked_wait = None, WAIT_S, 0.0
                    last = event.id or last
                    if event.event == CLOSING:
                        asked_wait = _retry_s(event)
                    elif event.data:
                        yield event
        except _Ended:
            return
        except httpx2.TransportError as why:
            failed_since = failed_since if failed_since is not None else loop.time()
            if loop.time() - failed_since >= patience_s:
                raise unreachable(calls.url, why) from None
        await asyncio.sleep(wait * (0.5 + random.random()) if asked_wait is None else asked_wait)
        wait = min(2 * wait, WAIT_S_MAX)


class _Ended(Exception):
    """The stream has no more events."""


class _Away(httpx2.TransportError):
    """An intermediary reports that the server is unavailable."""


async def _connection(
    calls: ServerCalls, path: str, query: Query, last: str | None
) -> AsyncGenerator[StreamEvent, None]:
    headers = {"accept": "text/event-stream"} | ({"last-event-id": last} if last else {})
    params = {name: value for name, value in query.items() if value is not None}
    timeout = httpx2.Timeout(CONNECT_S, read=SILENT_S)
    async with calls.http.stream("GET", calls.url + path, params=params, headers=headers, timeout=timeout) as reply:
        if reply.status_code == HTTPStatus.NO_CONTENT:
            raise _Ended
        if reply.status_code in AWAY or reply.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            raise _Away(f"it answered {reply.status_code}")
        if not reply.is_success:
            raise refusal_in(reply.status_code, await reply.aread(), calls.url)
        async for event in events_in(reply.aiter_lines()):
            yield event


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[StreamEvent]:
    """Parse server-sent events; some have only an id. A truncated event is dropped, because it is sent again."""
    event = StreamEvent()
    async for line in lines:
        if not line:
            if event.data or event.id:
                yield event
            event = StreamEvent()
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                event.id = value
            case "event":
                event.event = value
            case "data":
                event.data.append(value)
            case _:
                pass  # Comments and unknown fields.


def _retry_s(event: StreamEvent) -> float | None:
    retry_ms = event.json().get("retryMs")
    return retry_ms / 1000 if isinstance(retry_ms, int | float) else None
