"""What came of deeds: the ids of what is new are told to the audit log, beside who asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.auth.audit import Audit
from pointsman.auth.audit_outcomes import fresh_in, named_in
from pointsman.auth.callers import Caller


def note_answer(scope: Scope, value: object) -> None:
    """For `Recorded`, which comes to see it when it has been sent."""
    if scope.get("method") == "POST" and isinstance(value, dict):
        scope.setdefault("state", {})["made"] = named_in(cast("Mapping[str, object]", value))


class Recorded:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
        state = cast("dict[str, object]", scope.get("state") or {})
        asked, made = state.get("asked"), state.get("made")
        if asked is None or not isinstance(made, dict):
            return
        caller, what, deed, target = cast("tuple[Caller, str, str, str]", asked)
        fresh = fresh_in(cast("dict[str, object]", made), target)
        if fresh:
            self._audit.made(caller, what, deed, fresh)
