"""Access to usage: which part of it a caller may see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, TypeGuard

from pointsman.auth.policy import sees, visible
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.definition.problems import did_you_mean
from pointsman.errors import CallerError
from pointsman.executions.usage_rollup import DIMENSIONS, Dimension, UsageAudience
from pointsman.store.records import Summary
from pointsman.values import ExecutionId

if TYPE_CHECKING:
    from pointsman.auth.callers import Caller


class UsageUnknown(CallerError):
    """Usage was requested by an unknown dimension."""

    code: ClassVar[str] = "usage-unknown"


def narrowed(of: Iterable[str]) -> dict[Dimension, str]:
    """Parse filters such as `model:gpt-5`. Raises `UsageUnknown`."""
    found: dict[Dimension, str] = {}
    for one in of:
        name, colon, wanted = one.partition(":")
        if not colon or not _is_dimension(name):
            near = did_you_mean(name, DIMENSIONS)
            hint = f"{near} Say it as model:gpt-5; known: {', '.join(DIMENSIONS)}.".strip()
            raise UsageUnknown(f"usage is not told apart by {one[:80]!r}", hint=hint)
        found[name] = wanted
    return found


def _is_dimension(name: str) -> TypeGuard[Dimension]:
    return name in DIMENSIONS


def told_to(app: AppContext, caller: Caller) -> UsageAudience | None:
    """Return the part of usage that a caller may see; None: everything. Single executions are included if they still
    exist and are listed for the caller."""
    if caller.role == "admin":
        return None

    async def workflow(name: str, revision: int) -> bool:
        try:
            return revision > 0 and await visible(app, caller, f"{name}@{revision}")
        except UnknownWorkflow:
            return False

    async def execution(name: str) -> bool:
        summary = await app.store.executions.find(ExecutionId(name))
        return summary is not None and await listed(summary)

    async def listed(summary: Summary) -> bool:
        return await sees(app, caller, summary)

    return UsageAudience(workflow, execution, listed)
