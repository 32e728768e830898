"""An execution on a server: as an embedded one, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Literal, TypeAlias, cast
from uuid import uuid4

from pointsman.client.calls import ServerCalls, segment
from pointsman.client.errors import refused
from pointsman.client.streams import StreamEvent, told
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject

Begin: TypeAlias = Literal["start", "now", "snapshot"]

SETTLED: Final = frozenset({"completed", "failed", "cancelled", "waiting", "paused", "interrupted"})
QUIET_S: Final = 0.1
"""Nothing was told for so long: it may have settled."""
LOOK_S: Final = 2.0
"""So often it is looked at where nothing is told: levels of observability leave out much."""
PAGE: Final = 500
PATIENCE_S: Final = 60.0
FAILED: Final = "execution-failed"


class RemoteExecution:
    """One execution. Nothing is kept here but its id: every call asks the server."""

    def __init__(self, calls: ServerCalls, id: str) -> None:
        self.id = id
        self._calls = calls
        self._path = f"/api/workflows/executions/{segment(id)}"

    def __repr__(self) -> str:
        return f"RemoteExecution({self.id!r} at {self._calls.url})"

    async def view(self) -> JsonObject:
        """The execution as its journal tells."""
        return _object(await self._calls.ask(self._path))

    async def status(self) -> str:
        """Cheaper than a view: nothing is read but what lists know."""
        return str(_object(await self._calls.ask(f"{self._path}/events", {"limit": 1}))["status"])

    async def state(self, *, at: int) -> JsonObject:
        """The execution as it was after a row of its journal."""
        return _object(await self._calls.ask(f"{self._path}/state", {"at": at}))

    async def timeline(self) -> JsonObject:
        """What ran, waited and failed when (`spans`), and what each node took (`nodes`)."""
        return _object(await self._calls.ask(f"{self._path}/timeline"))

    async def events(
        self,
        *,
        after: str | None = None,
        begin: Begin = "start",
        live: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> AsyncGenerator[JsonObject, None]:
        """What its stream tells, until it has ended: each has its `event` and, unless it is live, an `id`.

        Lost connections are made again, and a server that begins again is waited for, up to `patience_s`: nothing is
        lost or told twice. `after` goes on behind an id. `live`: what models say while they say it, too.
        """
        async with aclosing(self._told(after=after, begin=begin, patience_s=patience_s)) as events:
            async for event in events:
                if event.id or live:
                    yield event.json()

    def _told(self, *, after: str | None, begin: Begin, patience_s: float) -> AsyncGenerator[StreamEvent, None]:
        return told(self._calls, f"{self._path}/stream", {"from": begin}, after=after, patience_s=patience_s)

    async def journal(self, *, after: str | None = None) -> AsyncIterator[JsonObject]:
        """The events of its journal so far, in full, oldest first."""
        while True:
            page = _object(await self._calls.ask(f"{self._path}/events", {"after": after, "limit": PAGE}))
            events = cast("list[JsonObject]", page["events"])
            for event in events:
                yield event
            if len(events) < PAGE:
                return
            after = str(page["last"])

    async def settled(self, *, patience_s: float = PATIENCE_S) -> str:
        """Wait until nothing more happens by itself: ended, paused, or only people and events can go on. Its status."""
        status = await self.status()
        if status in SETTLED:
            return status
        news = asyncio.Event()
        hearing = asyncio.create_task(self._hear(news, patience_s))
        try:
            while (status := await self.status()) not in SETTLED:
                await asyncio.wait(
                    {hearing, waking := asyncio.ensure_future(news.wait())},
                    timeout=LOOK_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waking.cancel()
                if hearing.done():
                    hearing.result()  # Raises why nothing more is heard.
                while news.is_set():
                    news.clear()
                    await asyncio.sleep(QUIET_S)
            return status
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear(self, news: asyncio.Event, patience_s: float) -> None:
        """Until cancelled: what has ended may be retried."""
        while True:
            async with aclosing(self._told(after=None, begin="now", patience_s=patience_s)) as events:
                async for _ in events:
                    news.set()
            news.set()
            await asyncio.sleep(LOOK_S)

    async def output(self) -> Json:
        """Wait for its end and return what it produced. Raises `ExecutionFailed` where it did not complete."""
        await self.settled()
        seen = await self.view()
        if seen["status"] == "completed":
            return seen["output"]
        errors = cast("list[JsonObject]", seen["errors"]) if seen["status"] == "failed" else []
        if errors:
            last = errors[-1]
            node, code = str(last["nodeId"] or ""), str(last["code"])
            message = f"execution {self.id} failed{f' at {node!r}' if node else ''}: [{code}] {last['message']}"
            why = refused(FAILED, message, str(last.get("hint") or ""))
            vars(why).update(execution=self.id, node=node, code=code)
            raise why
        raise refused(FAILED, f"the execution is {seen['status']}", "Its view tells what it waits for.")

    # What people do ------------------------------------------------------------------------------------------------

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
        """Answer an open gate, named by its id, or by its node's id while that is unique. Counts once. `digest`: of the
        gate as it was read; the answer is refused where it shows something else by now.
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
        """Pass one's right to answer an open gate on to another person."""
        return await self._do("delegate", {"gateId": gate, "to": to, "comment": comment}, twice=False)

    async def cancel(self, *, reason: str = "", now: bool = False) -> JsonObject:
        """Stop it for good. A second time does nothing."""
        return await self._do("cancel", {"reason": reason, "now": now}, twice=True)

    async def pause(self) -> JsonObject:
        """Let no further step start."""
        return await self._do("pause", None, twice=False)

    async def resume(self, *, limits: Mapping[str, float] | None = None) -> JsonObject:
        """Go on after a pause, or a limit that is raised."""
        return await self._do("resume", {"limits": dict(limits or {})}, twice=False)

    async def retry(self, *, limits: Mapping[str, float] | None = None) -> JsonObject:
        """Try the step again that failed it."""
        return await self._do("retry", {"limits": dict(limits or {})}, twice=True, key=uuid4().hex)

    async def steer(
        self,
        messages: Sequence[Json] = (),
        *,
        set: Mapping[str, Json] | None = None,
        goto: str | None = None,
        reason: str = "",
    ) -> JsonObject:
        """Take a hand between steps."""
        body: JsonObject = {"messages": [*messages], "set": dict(set or {}), "goto": goto, "reason": reason}
        return await self._do("steer", body, twice=True, key=uuid4().hex)

    async def signal(self, name: str, data: Json = None, *, key: str | None = None) -> str:
        """Send it an event; what became of it: `taken`, `kept` or `known`. Under one key it comes once."""
        body: JsonObject = {"name": name, "data": data, "key": key or uuid4().hex}
        return str((await self._do("signals", body, twice=True))["became"])

    async def fork(
        self, *, at: int | None = None, before: str | None = None, set: Mapping[str, Json] | None = None
    ) -> RemoteExecution:
        """A new execution that begins as a copy of this one, up to a row or before a step."""
        body: JsonObject = {"at": at, "step": before, "set": dict(set or {})}
        made = await self._do("fork", body, twice=True, key=uuid4().hex)
        return RemoteExecution(self._calls, str(made["executionId"]))

    async def say(self, message: str) -> RemoteExecution:
        """The next turn of the conversation that this one is a turn of: an execution of its own."""
        made = await self._do("messages", {"message": message}, twice=True, key=uuid4().hex)
        return RemoteExecution(self._calls, str(made["executionId"]))

    async def move(self, to: str, *, check_only: bool = False) -> list[JsonObject]:
        """Go on with another saved definition (`id@revision`). What does not fit; empty: it is moved, or would be.

        Raises `MigrationRefused` where something does not fit and it is not only checked.
        """
        said = await self._do("move", {"to": to, "checkOnly": check_only}, twice=True)
        return cast("list[JsonObject]", said["problems"])

    async def replay(self, *, against: str | None = None) -> JsonObject:
        """Its journal decided again, without a call of a model or tool: `same`, `differences`."""
        return await self._do("replay", {"against": against}, twice=True)

    async def delete(self) -> None:
        """For good. It must have ended."""
        await self._calls.call("DELETE", self._path, twice=True)

    async def _do(self, verb: str, body: Json, *, twice: bool, key: str | None = None) -> JsonObject:
        return _object(await self._calls.tell(f"{self._path}/{verb}", body, twice=twice, key=key))


def _object(said: Json) -> JsonObject:
    if not isinstance(said, dict):
        raise PointsmanError(f"the server answered {type(said).__name__}, not an object")
    return said
