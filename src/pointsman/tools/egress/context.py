"""Trace context of outgoing calls."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

TRACEPARENT: Final[ContextVar[str | None]] = ContextVar("traceparent", default=None)
"""W3C `traceparent` header for calls whose address comes from data; None: tracing is off."""
