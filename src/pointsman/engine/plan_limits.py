"""Limits of a plan: values, their source, and what happens when one is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class PlanLimits(Struct, frozen=True, kw_only=True, gc=False):
    """Limits that no prompt can change. None = unlimited. Times in seconds, size in bytes of JSON."""

    steps: int | None = 10_000
    parallel: int = 8
    execution_time_s: float | None = None
    deadline_s: float | None = None
    """Wall-clock time, including waits."""
    retry_after_s: float = 3600.0
    """The longest wait before a retry that the other side may request."""
    state_bytes: int | None = 50_000_000
    budgets: tuple[tuple[str, float], ...] = ()
    """`tokens`, `modelCalls`, `toolCalls`, `costUsd`, each if set: the amount that may be spent."""
    budget_policy: Literal["warn", "pause", "stop"] = "stop"
    budget_warn_at: float = 0.8
    """The share of a budget at which a warning is raised."""
    sources: Mapping[str, str] = {}
    """Source of a limit, by its name in documents: `definition` or `operator`; absent: default."""
    caps: Mapping[str, float] = {}
    """The operator's caps, by name: no limit can be raised above its cap."""
    on_limit: str | None = None
    """The fallback node when a limit trips; None: the execution is interrupted and can be resumed."""
