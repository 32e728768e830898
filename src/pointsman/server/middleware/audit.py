"""Audit middleware: record the ids of created things with the audit entry of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.auth.audit import Audit
from pointsman.auth.audit_outcomes import fresh_in, named_in
from pointsman.auth.callers import Caller


def note_answer(scope: Scope, value: object) -> None:
    """Note the ids in an answer to a POST, for `AuditMiddleware` to read after the response is sent."""
    if scope.get("method") == "POST" and isinstance(value, dict):
        scope.setdefault("state", {})["made"] = named_in(cast("Mapping[str, object]", value))


class AuditMiddleware:
    """ASGI middleware that adds the ids of created things to the audit log."""

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
