"""Writing: how the writes of a step reach the data of its scope, and what `nodes` shows of a step. Part of the fold."""

from __future__ import annotations

from pointsman.engine import concurrency, scopes
from pointsman.engine.events import Write
from pointsman.engine.reports import Usage
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import Thread
from pointsman.values import Json, JsonObject

MESSAGES = ("messages",)


def write(state: ExecutionState, scope: ScopeState, writes: tuple[Write, ...], result: Json, thread: Thread) -> None:
    """Apply the writes of a step to its scope, and keep them for the data around a branch."""
    for one in writes:
        value = result if one.whole else one.value
        if scope.tokens > 1:
            _write_among_others(scope, one, value, thread)
        else:
            scope.data.write(one, value)
        if scope.opening is not None:
            scopes.remember(scope, one, value, thread)


def _write_among_others(scope: ScopeState, one: Write, value: Json, thread: Thread) -> None:
    """Other tokens run here at once: what is joined is put in thread order, whoever was faster."""
    if one.reduce == "append":
        place = concurrency.place(scope, one.path, thread)
        if place is not None:
            scope.data.insert(one.path, place, value)
        else:
            scope.data.write(one, value)
    elif one.reduce != "last" or concurrency.wins(scope, one.path, thread):
        scope.data.write(one, value)
        if one.reduce == "set":
            concurrency.wrote(scope, one.path, thread)


def say(messages: tuple[Json, ...]) -> tuple[Write, ...]:
    """The writes that add to the conversation."""
    return tuple(Write(MESSAGES, "append", message) for message in messages)


def show(result: Json, said: JsonObject | None) -> Json:
    """What `nodes.<id>` is: the result, and beside it what the engine says (`text`, `branch`, `action`, `round`)."""
    if not said:
        return result
    if isinstance(result, dict):
        return {**said, **result}
    return said if result is None else {**said, "result": result} if "branch" in said or "action" in said else result


def spend(state: ExecutionState, usage: Usage) -> None:
    """Add what a piece of work consumed."""
    total = state.usage
    total.input_tokens += usage.input_tokens
    total.output_tokens += usage.output_tokens
    total.model_calls += usage.model_calls
    total.tool_calls += usage.tool_calls
    if usage.cost_usd is not None:
        total.cost_usd = (total.cost_usd or 0.0) + usage.cost_usd
