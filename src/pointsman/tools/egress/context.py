"""What outgoing calls say of where they come from."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

TRACEPARENT: Final[ContextVar[str | None]] = ContextVar("traceparent", default=None)
"""Sent with calls whose address is data, where somebody traces: as W3C Trace Context says."""
