"""Redaction levels: how much of an execution readers outside the store receive.

At `minimal` they receive the shape of what happened (what ran when, how often, how long, how it ended) without the
content. Removed fields are named, so that readers do not take them for empty. At every level, values that are secret by
name or value are masked.

    event or view ─▶ its level: content is removed ─▶ secrets are masked ─▶ reader

The fields of `minimal` are listed and everything else counts as content, so a new event reveals nothing by mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, cast

from pointsman.context import AppContext, Part
from pointsman.errors import CallerError
from pointsman.executions.public_events import Observability, Redact
from pointsman.executions.views import ExecutionView, observability_of
from pointsman.values import ExecutionId, Instant, Json, JsonObject, json_of

LEVELS_MAX: Final = 10_000

_SHAPE: Final = frozenset(
    {
        *(
            "kind",
            "step",
            "node",
            "scope",
            "after",
            "edge",
            "thread",
            "merged",
            "starts",
            "branches",
            "steps",
            "before",
        ),
        *("next", "labels", "undone_by", "caller", "timer", "purpose", "phase", "cause", "outcome", "about", "limit"),
        *("gate", "by", "to", "groups", "approvers", "action", "name", "workflow", "version", "definition", "session"),
        *("parent", "origin", "undoes", "usage", "limits", "code", "message", "orders", "paths", "dropped", "brought"),
    }
)
"""Fields of events that every level includes; numbers are included too."""
_SHAPE_OF: Final[Mapping[str, frozenset[str]]] = {
    "attempt_started": frozenset({"reason"}),
    "token_ended": frozenset({"reason"}),
    "cancelled": frozenset({"reason"}),
    "gate_opened": frozenset({"options", "form"}),
}
_OF_FAILURES: Final = frozenset({"code", "message", "retryable", "nodeId"})
_CONTENT: Final = ("input", "state", "output", "waiting", "answers", "progress")
"""Fields of the execution view."""


class NotTold(CallerError):
    """The execution's redaction level does not allow this."""

    code = "not-told"


def event_told(event: JsonObject, level: Observability, redact: Redact) -> JsonObject:
    """Return an event of the journal (`event_view`) at a level. `withheld` names the removed fields."""
    return redact(_shape(event) if level == "minimal" else event)


def view_told(shown: ExecutionView, redact: Redact, *, keeps: Collection[str] = ()) -> ExecutionView:
    """Return the view of an execution at its own level. Fields in `keeps`, which the caller asked for, are included at
    every level and unmasked."""
    view = json_of(shown)
    kept = {name: view[name] for name in keeps if name in view}
    if view.get("observability") == "minimal":
        withheld = [name for name in _CONTENT if name not in keeps and view.get(name)]
        view = {**view, **{name: _empty(view[name]) for name in withheld}}
        if withheld:
            view["withheld"] = cast("list[Json]", withheld)
        view["errors"] = [_failure(cast("JsonObject", one)) for one in cast("list[Json]", view["errors"])]
    return cast("ExecutionView", {**redact(view), **kept})


async def level_of(app: AppContext, execution: str) -> Observability:
    """Return the redaction level of an execution. Raises `UnknownExecution`."""
    name = ExecutionId(execution)
    driver = app.runtime.drivers.get(name)
    if driver is not None:
        return observability_of(driver.state.setup.options)
    summary = await app.store.executions.find(name)
    known = app[LEVELS]
    found = known.get(name)
    # Its journal may be long, and a reader that pages through it asks for every page.
    if found is not None and summary is not None and found[0] == summary.updated:
        return found[1]
    level = observability_of((await app.runtime.load(name)).setup.options)
    if summary is not None:
        if len(known) >= LEVELS_MAX:
            known.clear()
        known[name] = (summary.updated, level)
    return level


async def must_be_told(app: AppContext, execution: str, what: str) -> None:
    """Raises `NotTold`, `UnknownExecution`."""
    if await level_of(app, execution) == "minimal":
        raise NotTold(
            f"{execution!r} is observed at 'minimal': {what} would tell its content",
            hint="`pointsman export` does it for whoever has the store.",
        )


LEVELS: Final = Part[dict[ExecutionId, tuple[Instant, Observability]]]("levels", lambda _: {})
"""The level, with the update time of the summary when it was read."""


def _shape(event: JsonObject) -> JsonObject:
    told = _SHAPE | _SHAPE_OF.get(str(event["kind"]), frozenset())
    found: JsonObject = {}
    withheld: list[Json] = []
    for name, value in event.items():
        if name in told or value is None or isinstance(value, int | float):
            found[name] = value
        elif name == "failure" and isinstance(value, dict):
            found[name] = _failure(value)
        else:
            withheld.append(name)
    if withheld:
        found["withheld"] = withheld
    return found


def _failure(failure: JsonObject) -> JsonObject:
    return {name: value for name, value in failure.items() if name in _OF_FAILURES}


def _empty(value: Json) -> Json:
    return {} if isinstance(value, dict) else [] if isinstance(value, list) else None
