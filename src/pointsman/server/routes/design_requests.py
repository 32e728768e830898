"""Designing as it is asked for: whole or in rounds, and paid for once under a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol, cast

import msgspec
from fastapi import Depends, Header, Request, Response

from pointsman.auth.callers import Caller
from pointsman.server.context import AtDesk, Desk
from pointsman.server.design_stream import streamed
from pointsman.server.json_responses import JsonReply
from pointsman.server.routes.idempotency import once
from pointsman.server.routes.parameters import Editor, Key
from pointsman.server.sse import MEDIA_TYPE
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.authoring.design import Round

Accept = Annotated[
    str | None,
    Header(max_length=1000, description="`text/event-stream`: each round as it happens."),
]


class Work(Protocol):
    """Designing that tells its rounds."""

    def __call__(self, *, hear: Callable[[Round], None] = ...) -> Awaitable[JsonObject]: ...


class Asked(NamedTuple):
    """Who asks, and how it is to be answered."""

    desk: Desk
    caller: Caller
    request: Request
    key: str | None
    accept: str | None

    async def told(self, work: Work) -> Response:
        """Done once under a key: whoever lost the stream asks again, and pays no second time."""
        if MEDIA_TYPE not in (self.accept or "").lower():
            return await self.whole(work)
        return await streamed(partial(self._behind, work), self.desk.take_stream(self.caller))

    async def _behind(self, work: Work, hear: Callable[[Round], None]) -> JsonObject:
        if self.key is None:
            return await work(hear=hear)
        reply = await self.desk.behind.finish(self.whole(partial(work, hear=hear)))
        return cast("JsonObject", msgspec.json.decode(reply.body))

    async def whole(self, work: Callable[[], Awaitable[JsonObject]]) -> Response:
        """Its answer, without rounds."""

        async def answered() -> Response:
            return JsonReply(await work())

        return await once(self.desk, self.caller, self.request, self.key, answered)


async def _asked(request: Request, desk: AtDesk, caller: Editor, key: Key = None, accept: Accept = None) -> Asked:
    return Asked(desk, caller, request, key, accept)


Designing = Annotated[Asked, Depends(_asked)]
