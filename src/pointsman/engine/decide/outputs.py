"""Outputs of a step and values from people: check writes for conflicts, size and schema before anything is written.

A violation by an output fails the step. An input, answer or event that is too large is refused with `StateTooLarge`, an
edit of the data with `EditRefused`. Schemas of declared fields hold for values that people write, not for those that
steps write. `fold.scopes.edit` applies edits.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, TypeAlias, cast

import msgspec

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.data import REPLACING, Data, WriteFailed, dotted
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import write_of
from pointsman.engine.fold.steps import MESSAGES
from pointsman.engine.plan import DeclaredField, Plan, PlanNode
from pointsman.engine.reports import EventReceived, GateAnswered, Start
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import DataEdit, Lineage, Scope, Write, are_concurrent, scope_text
from pointsman.errors import AuthorError, CallerError, PointsmanError
from pointsman.expressions.failures import ExpressionError, ExpressionFailed
from pointsman.expressions.operators import type_name
from pointsman.values import CONTAINERS, Json, JsonObject, Path

Writes: TypeAlias = tuple[Write, ...]

SIZED: Final = (str, *CONTAINERS)
"""Types whose values may be large."""
NOT_STORABLE: Final = "Texts must be valid Unicode, and nesting below a few hundred levels."
FIELDS_SHOWN: Final = 5
"""Number of the largest fields that a size failure names."""
ROW_SHARE_MAX: Final = 4
"""Limit of values produced by one decision, as a multiple of the state limit."""


class StepRefused(PointsmanError):
    """A step's outcome cannot be accepted; carries the failure it becomes."""

    code = "step-refused"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


EXPRESSION_CHARS_MAX: Final = 500
"""Characters of a formula shown with its failure."""


def failure_from(why: PointsmanError) -> Failure:
    """Return the step failure for an error of an author's formula or of a write. Other errors are raised again."""
    if isinstance(why, StepRefused):
        return why.failure
    if isinstance(why, AuthorError | CallerError) or type(why).code == "write-failed":
        return Failure(code=type(why).code, message=str(why), hint=why.hint, details=_place_of(why))
    raise why


def _place_of(why: PointsmanError) -> JsonObject | None:
    """Return the formula that failed, and the column of the part that failed."""
    if isinstance(why, ExpressionError | ExpressionFailed):
        return {"expression": why.source[:EXPRESSION_CHARS_MAX], "column": why.offset + 1}
    return None


def evaluate_outputs(
    ctx: DecisionContext,
    scope: ScopeState,
    node: PlanNode,
    result: Json,
    *,
    displayed: Json = None,
    env_state: JsonObject | None = None,
) -> tuple[Write, ...]:
    """Evaluate `outputs` over `result`. The result is not stored twice.

    `displayed`: the future value of `nodes.<id>`, where that is not the result.
    """
    if not node.outputs:
        return ()
    env = ctx.environment(scope, node, result)
    if env_state is not None:
        env.state = env_state
    own = result if displayed is None else displayed
    env.nodes = ChainMap({node.id: own}, cast(dict[str, Json], env.nodes))
    writes: list[Write] = []
    for output in node.outputs:
        path = output.path.resolve(env)
        if output.whole:
            writes.append(Write(path, output.reduce, whole=True))
        else:
            writes.append(Write(path, output.reduce, ctx.value(scope, output.value, env)))
    return tuple(writes)


def check_writes(
    ctx: DecisionContext,
    scope: ScopeState,
    node: PlanNode,
    thread: Lineage,
    writes: Writes,
    result: Json = None,
    *,
    result_bytes: int | None = None,
) -> None:
    """Check writes for conflicts, validity and size, before anything is written. Raises `StepRefused`.

    `result_bytes`: the size of the result if it was measured before.
    """
    size = size_of(result) if result_bytes is None and isinstance(result, SIZED) else result_bytes
    if writes:
        check_conflicts(ctx, scope, node, thread, writes)
        check_possible(scope, writes, result)
        check_size(ctx, scope, writes, result, size)
    if size is not None:
        _must_fit(size, limit_of(ctx))  # It is shown as `nodes.<id>`, whether it is written or not.


def check_conflicts(ctx: DecisionContext, scope: ScopeState, node: PlanNode, thread: Lineage, writes: Writes) -> None:
    """Check that no concurrent branch of control in this scope wrote or read the same path.

    Otherwise the winner of a write, or the value that is read, would depend on timing.
    """
    if not scope.write_log:
        return
    for write in writes:
        for path, trail in scope.write_log.overlapping(write.path):
            if path == write.path and trail.reducers == {write.reduce} != {"set"}:
                continue
            for entry in trail.entries:
                if are_concurrent((thread, node.id), (entry.lineage, entry.node), ctx.plan.leads):
                    raise StepRefused(
                        Failure(
                            code="write-conflict",
                            message=f"{entry.node!r} and {node.id!r} ran concurrently, and both wrote "
                            f"{dotted(write.path)!r}",
                            hint="Give the path a reducer in `state`, or let the steps write different paths.",
                        )
                    )
        for reader, read in scope.write_log.readers_of(write.path):
            if reader != node.id and are_concurrent((thread, node.id), (read, reader), ctx.plan.leads):
                raise StepRefused(read_race(reader, node.id, dotted(write.path)))


def read_race(reader: str, writer: str, path: str) -> Failure:
    """Return the failure of two concurrent nodes: the value that one reads depends on the speed of the other."""
    return Failure(
        code="read-race",
        message=f"{reader!r} reads {path!r} while {writer!r}, which runs at the same time, writes it",
        hint="Read it before the split, or after the branches join.",
    )


def check_possible(scope: ScopeState, writes: Writes, result: Json) -> None:
    """Check that writes can be applied one after another. Raises `WriteFailed`."""
    data = scope.data
    if len(writes) > 1 and _overlap(writes):
        data = Data(scope.data.shared())
    for write in writes:
        value = result if write.whole else write.value
        data.check(write, value)
        if data is not scope.data:
            data.write(write, value)


def _overlap(writes: Writes) -> bool:
    """Return whether one write may change what another one finds."""
    roots = [write.path[:1] for write in writes]
    return len(set(roots)) < len(roots)


def size_of(value: Json) -> int:
    """Return the bytes of a value as JSON: exact for containers, approximate for other values."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, CONTAINERS):
        try:
            return len(msgspec.json.encode(value))
        except (RecursionError, ValueError, OverflowError) as why:
            message = f"the value cannot be stored: {why}"
            raise StepRefused(Failure(code="unstorable-value", message=message, hint=NOT_STORABLE)) from why
    return 8


def check_size(ctx: DecisionContext, scope: ScopeState, writes: Writes, result: Json, size: int | None = None) -> None:
    """Check that the data do not grow over the limit. `size`: bytes of the result if known.

    Amortised: all data are measured only when an upper bound passes the limit.
    """
    limit = limit_of(ctx)
    if limit is None or not writes:
        return
    added = 0
    for write in writes:
        added += size_of(write.value) if not write.whole else size_of(result) if size is None else size
    bound = ctx.state.counters.data_bytes_max
    if bound is None or bound + added > limit:
        bound = measured(ctx.state) - sum(size_of(scope.data.at(w.path)) for w in writes if w.reduce in REPLACING)
        if bound + added > limit:
            raise StepRefused(_too_large(scope, writes, result, bound + added, limit))
    ctx.state.counters.data_bytes_max = bound + added


def check_messages(ctx: DecisionContext, scope: ScopeState, messages: tuple[Json, ...]) -> None:
    """Check the size of messages added to the conversation, measured as one value."""
    new_messages: list[Json] = [*messages]
    check_size(ctx, scope, (Write(MESSAGES, "append", whole=True),), new_messages)


def check_values(ctx: DecisionContext, values: Iterable[Json]) -> None:
    """Check that values, alone and together, are not larger than the state may be.

    Otherwise repeated joins could grow a value without limit although it is never written.
    """
    limit = limit_of(ctx)
    if limit is None:
        return
    total = 0
    for value in values:
        total += size_of(value)
        _must_fit(total, limit)
    # Instant steps share one row: the row must not grow without limit either.
    ctx.produced_bytes += total
    _must_fit(ctx.produced_bytes, ROW_SHARE_MAX * limit)


def _must_fit(size: int, limit: int | None) -> None:
    if limit is not None and size > limit:
        raise StepRefused(
            Failure(
                code="state-too-large",
                message=f"the value has more than {limit} bytes, the limit of the state",
                hint="Return less from the step, or raise limits.stateSize.",
            )
        )


def limit_of(ctx: DecisionContext) -> int | None:
    if ctx.state.compensation is not None:
        return None  # compensation may exceed the limit
    limit = ctx.plan.limits.state_bytes
    raised = ctx.state.limits.raised.get("stateSize")
    return limit if limit is None or raised is None else max(limit, int(raised))


def measured(state: ExecutionState) -> int:
    """Return the exact size of all data in bytes: the state, and the writes of open branches. O(size)."""
    total = size_of(state.root.data.root)
    for scope in state.scopes.values():
        total += sum(size_of(value) for _, value, _ in scope.writes)
    for opening in state.parallel_frames.values():
        for branch in opening.settled.values():
            total += sum(size_of(value) for _, value in branch.writes)
    return total


def _too_large(scope: ScopeState, writes: tuple[Write, ...], result: Json, size: int, limit: int) -> Failure:
    fields = {name: size_of(value) for name, value in scope.data.root.items()}
    for write in writes:
        name = str(write.path[0])
        before = size_of(scope.data.at(write.path)) if write.reduce in REPLACING else 0
        fields[name] = max(fields.get(name, 0) - before, 0) + size_of(result if write.whole else write.value)
    largest = _largest(fields)
    listing = ", ".join(f"{name} ({bytes_} bytes)" for name, bytes_ in largest.items())
    return Failure(
        code="state-too-large",
        message=f"the state would grow to {size} bytes, over the limit of {limit}; largest fields: {listing}",
        hint="Write less into the state, or raise limits.stateSize.",
        details={"largest": largest},
    )


def largest_of(fields: JsonObject) -> JsonObject:
    """Return the largest fields of an object with their sizes."""
    return _largest({name: size_of(value) for name, value in fields.items()})


def _largest(sizes: dict[str, int]) -> JsonObject:
    return dict(sorted(sizes.items(), key=lambda item: -item[1])[:FIELDS_SHOWN])


def listed_items(items: Json, *, of: str, field: str) -> list[Json]:
    """Return the elements of a list, or the fields of an object.

    Null is rejected since it may be a misspelt path; so is a string or number, which is not a list of one element.
    Raises
    `StepRefused`.
    """
    if isinstance(items, list):
        return items
    if isinstance(items, dict):
        return [{"key": key, "value": value} for key, value in items.items()]
    hint = f"Set `{field}` to a list"
    if items is None:
        hint += " that is written before; write `… ?? []` after it if it may be missing"
    else:
        hint += "; write `[…]` around a single value"
    raise StepRefused(
        Failure(code="items-not-a-list", message=f"{of} are {type_name(items)}, not a list", hint=f"{hint}.")
    )


class StateTooLarge(CallerError):
    """Input, an answer or an event is larger than the state of the execution may be. Nothing was written."""

    code = "state-too-large"


def input_must_fit(ctx: DecisionContext, report: Start) -> None:
    """Raise `StateTooLarge` for an input that, with the initial state, exceeds the limit of the state."""
    messages: JsonObject = {} if not report.messages else {"messages": [*report.messages]}
    beside: JsonObject = {**ctx.plan.initial, **messages}
    limit, measured = limit_of(ctx), report.input_bytes
    if limit is not None and measured is not None and measured + size_of(beside) <= limit:
        return  # A large input is not encoded again: together they are at most as large as their sum.
    _input_must_fit(ctx, "the input", {**ctx.plan.initial, **report.input, **messages})


def answer_must_fit(ctx: DecisionContext, report: GateAnswered) -> None:
    """Raise `StateTooLarge` for a person's answer that exceeds the limit of the state."""
    _input_must_fit(ctx, "the answer", {"data": report.data, "comment": report.comment})


def size_of_answer(value: Json) -> int:
    """Return the bytes of one value as JSON."""
    return size_of({"": value})


def event_must_fit(ctx: DecisionContext, report: EventReceived) -> None:
    """Raise `StateTooLarge` for an event whose data exceed the limit of the state."""
    _input_must_fit(ctx, f"the event {report.name!r}", {"data": report.data})


def _input_must_fit(ctx: DecisionContext, what: str, values: JsonObject) -> None:
    limit = limit_of(ctx)
    if limit is None or (size := size_of(values)) <= limit:
        return
    fields = ", ".join(f"{name} ({bytes_} bytes)" for name, bytes_ in largest_of(values).items())
    raise StateTooLarge(
        f"{what} has {size} bytes, over the limit of the state, {limit}; largest fields: {fields}",
        hint="Give less, or raise limits.stateSize.",
    )


class EditRefused(CallerError):
    """A value cannot be written where a person wants it: the path, its schema or the size forbids it."""

    code = "edit-refused"


def check_edits(ctx: DecisionContext, edits: Iterable[DataEdit]) -> None:
    """Check edits before anything is written: their paths, the size, and the schemas of the fields. Raises
    `EditRefused`.
    """
    in_order = sorted(edits, key=lambda edit: edit.scope)
    for key, several in groupby(in_order, key=lambda edit: edit.scope):
        scope = ctx.state.scopes.get(key)
        if scope is None:
            raise _no_such_scope(ctx.state, scope_text(key))
        writes = tuple(write_of(edit) for edit in several)
        try:
            check_possible(scope, writes, None)
            check_size(ctx, scope, writes, None)
        except (WriteFailed, StepRefused) as why:
            raise EditRefused(f"the edit is refused: {why}", hint=why.hint) from why
        if ctx.plan.declared:
            _check_declared(ctx.plan, scope, writes)


def _check_declared(plan: Plan, scope: ScopeState, writes: Sequence[Write]) -> None:
    draft = Data(scope.data.shared())
    for write in writes:
        draft.write(write, write.value)
    wrong = misfit(plan.declared, draft.root, [write.path for write in writes])
    if wrong is not None:
        path, message = wrong
        raise EditRefused(
            f"{dotted(path)!r} does not match its declaration in the workflow: {message}",
            hint="See `state` in the definition.",
        )


def scope_named(state: ExecutionState, text: str) -> Scope:
    """Return the open scope with this text, written as in the texts of its steps: `each[1.0]/`. Raises
    `EditRefused`.
    """
    for key in state.scopes:
        if scope_text(key) == text:
            return key
    raise _no_such_scope(state, text)


def _no_such_scope(state: ExecutionState, named: str) -> EditRefused:
    scopes = ", ".join(scope_text(key) for key in sorted(state.scopes) if key)
    return EditRefused(
        f"no branch {named!r} is open",
        hint=f"Open: {scopes or 'none'}. Without a branch the edit applies to the execution.",
    )


def misfit(declared: Sequence[DeclaredField], data: JsonObject, paths: Sequence[Path]) -> tuple[Path, str] | None:
    """Return the first path at, above or below one of the paths whose value does not fit its declared schema, and
    why.
    """
    for path, message in undeclared(declared, data):
        if any(all(part == other for part, other in zip(path, touched, strict=False)) for touched in paths):
            return path, message
    return None


def undeclared(declared: Sequence[DeclaredField], data: JsonObject) -> Iterator[tuple[Path, str]]:
    """Yield each path whose value does not fit its schema, and why."""
    for field in declared:
        schema = JsonSchema(field.schema)
        for path, value in _values(data, field.pattern):
            for misfit in schema.misfits(value):
                yield (*path, *misfit.path), misfit.message


def _values(data: JsonObject, pattern: Sequence[str]) -> Iterator[tuple[Path, Json]]:
    """Yield the values at a pattern (`*` is any key), with their paths."""
    places: list[tuple[Path, Json]] = [((), data)]
    for key in pattern:
        places = [((*path, name), value) for path, container in places for name, value in _members(container, key)]
    yield from places


def _members(value: Json, key: str) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        return []
    return [*value.items()] if key == "*" else [(key, value[key])] if key in value else []
