"""Limits of a plan: values, their source, and what happens when one is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class PlanLimits(Struct, frozen=True, kw_only=True, gc=False):
    """What no prompt can talk away. None = unlimited. Times in seconds, size in bytes of JSON."""

    steps: int | None = 10_000
    parallel: int = 8
    execution_time_s: float | None = None
    deadline_s: float | None = None
    """On the wall clock, waits included."""
    retry_after_s: float = 3600.0
    """The longest wait for which the other side may ask before a retry."""
    state_bytes: int | None = 50_000_000
    budgets: tuple[tuple[str, float], ...] = ()
    """`tokens`, `modelCalls`, `toolCalls`, `costUsd`, where there is one: how much may be spent."""
    budget_policy: Literal["warn", "pause", "stop"] = "stop"
    budget_warn_at: float = 0.8
    """The share of a budget that is spent when a warning is due."""
    sources: Mapping[str, str] = {}
    """Who said a limit, by its name in documents: `definition` or `operator`; absent: it is the default."""
    caps: Mapping[str, float] = {}
    """What the operator allows at most, by name: no limit can be raised above it."""
    on_limit: str | None = None
    """The node to route to when one trips; None: interrupted, resumable."""
