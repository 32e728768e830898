"""Transforms: compile each operation of a `transform` node into a function from data to writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from pointsman.definition.model.work import (
    AnyOperation,
    Append,
    ArrayGet,
    Choose,
    CopyValue,
    Evaluate,
    Increment,
    LengthOf,
    Merge,
    Push,
    ReadMemorySection,
    SetValue,
    TemplateRenderConfig,
    TransformConfig,
)
from pointsman.engine.actions import TransformAction
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.engine.decide.outputs import StepRefused
from pointsman.engine.failures import Failure
from pointsman.engine.steps import Reducer
from pointsman.expressions.environment import Environment
from pointsman.expressions.jsonpath import compile_jsonpath
from pointsman.expressions.paths import Path
from pointsman.values import Json


def render_of(config: TemplateRenderConfig, formulas: FormulaCompiler) -> TransformAction:
    """Return the action of a `template-render` node; the result of the step is the rendered text."""
    bound = formulas.mapping(config.bind)
    page = formulas.inside(*(config.bind or {})).rendered(config.template)

    def select(env: Environment) -> Json:
        value = bound(env) if bound is not None else None
        if isinstance(value, dict):
            env.names = {**env.names, **value}
        return page(env)

    return TransformAction(steps=(), select=select, answers=True)


Written = list[tuple[tuple[str | int, ...], Reducer, Json]]
Operate = Callable[[Environment], Written]


def change_of(config: TransformConfig, formulas: FormulaCompiler) -> TransformAction:
    """Compile operations in order, then `set`, then `jsonpath`. Each sees the writes of the previous ones."""
    steps: list[Operate] = [_operation(operation, formulas) for operation in config.operations or ()]
    for target, source in (config.set or {}).items():
        steps.append(_assign(formulas.path(target), formulas, source))
    if config.jsonpath is None:
        return TransformAction(steps=tuple(steps), answers=bool(steps))
    matches = compile_jsonpath(config.jsonpath)
    where = formulas.value(config.input) if config.input is not None else None
    return TransformAction(
        steps=tuple(steps), select=lambda env: matches.find(env.state if where is None else where(env)), answers=True
    )


def _assign(path: Path, formulas: FormulaCompiler, source: str) -> Operate:
    value, reduce = formulas.value(source), formulas.reducer(path)
    return lambda env: [(path.resolve(env), reduce, value(env))]


def _operation(operation: AnyOperation, formulas: FormulaCompiler) -> Operate:
    match operation:
        case SetValue():
            path, value = formulas.path(operation.set), formulas.tree(operation.value)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case CopyValue():
            path, value = formulas.path(operation.to), formulas.value(operation.copy_)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case Evaluate():
            path, value = formulas.path(operation.to), formulas.value(operation.evaluate)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case LengthOf():
            path, value = formulas.path(operation.to), formulas.value(operation.length_of)
            return lambda env: [(path.resolve(env), "set", _length(value(env)))]
        case Push():
            path, value = formulas.path(operation.to), formulas.value(operation.push)
            return lambda env: [(path.resolve(env), "append", value(env))]
        case Append():
            path, value = formulas.path(operation.to), formulas.value(operation.append)
            return lambda env: [(path.resolve(env), "append", item) for item in _listed(value(env))]
        case Merge():
            path, value = formulas.path(operation.into), formulas.value(operation.merge)
            return lambda env: [(path.resolve(env), "merge", value(env))]
        case Increment():
            path, by = formulas.path(operation.increment), 1 if operation.by is None else operation.by
            whole = int(by) if float(by).is_integer() else by
            return lambda env: [(path.resolve(env), "add", whole)]
        case Choose():
            path, test = formulas.path(operation.to), formulas.test(operation.condition)
            then, otherwise = formulas.tree(operation.then), formulas.tree(operation.else_)
            return lambda env: [(path.resolve(env), "set", then(env) if test(env) else otherwise(env))]
        case ArrayGet():
            return _array_get(operation, formulas)
        case ReadMemorySection():
            return _unbound
        case _:
            assert_never(operation)


def _unbound(env: Environment) -> Written:
    raise StepRefused(
        Failure(
            code="unbound-operation",
            message="a transform cannot read long-term memory",
            hint="Read it with a `memory` node and copy its result.",
        )
    )


def _array_get(operation: ArrayGet, formulas: FormulaCompiler) -> Operate:
    path, items_of = formulas.path(operation.to), formulas.value(operation.array_get)
    index = formulas.value(operation.index) if isinstance(operation.index, str) else None

    def get(env: Environment) -> Written:
        items = items_of(env)
        at = operation.index if index is None else index(env)
        element: Json = None
        if (
            isinstance(items, list)
            and isinstance(at, int)
            and not isinstance(at, bool)
            and -len(items) <= at < len(items)
        ):
            element = items[at]
        return [(path.resolve(env), "set", element)]

    return get


def _length(value: Json) -> int:
    """Return the length of a list, string or object; 0 for null, 1 for any other value."""
    if value is None:
        return 0
    return len(value) if isinstance(value, list | str | dict) else 1


def _listed(value: Json) -> list[Json]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
