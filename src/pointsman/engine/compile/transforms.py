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
        found = bound(env) if bound is not None else None
        if isinstance(found, dict):
            env.names = {**env.names, **found}
        return page(env)

    return TransformAction(steps=(), select=select, answers=True)


Written = list[tuple[tuple[str | int, ...], Reducer, Json]]
Operate = Callable[[Environment], Written]


def change_of(config: TransformConfig, formulas: FormulaCompiler) -> TransformAction:
    """Compile operations in order, then `set`, then `jsonpath`. Each sees the writes of the previous ones."""
    steps: list[Operate] = [_operation(one, formulas) for one in config.operations or ()]
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


def _operation(one: AnyOperation, formulas: FormulaCompiler) -> Operate:
    match one:
        case SetValue():
            path, value = formulas.path(one.set), formulas.tree(one.value)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case CopyValue():
            path, value = formulas.path(one.to), formulas.value(one.copy_)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case Evaluate():
            path, value = formulas.path(one.to), formulas.value(one.evaluate)
            return lambda env: [(path.resolve(env), "set", value(env))]
        case LengthOf():
            path, value = formulas.path(one.to), formulas.value(one.length_of)
            return lambda env: [(path.resolve(env), "set", _length(value(env)))]
        case Push():
            path, value = formulas.path(one.to), formulas.value(one.push)
            return lambda env: [(path.resolve(env), "append", value(env))]
        case Append():
            path, value = formulas.path(one.to), formulas.value(one.append)
            return lambda env: [(path.resolve(env), "append", item) for item in _listed(value(env))]
        case Merge():
            path, value = formulas.path(one.into), formulas.value(one.merge)
            return lambda env: [(path.resolve(env), "merge", value(env))]
        case Increment():
            path, by = formulas.path(one.increment), 1 if one.by is None else one.by
            whole = int(by) if float(by).is_integer() else by
            return lambda env: [(path.resolve(env), "add", whole)]
        case Choose():
            path, test = formulas.path(one.to), formulas.test(one.condition)
            then, otherwise = formulas.tree(one.then), formulas.tree(one.else_)
            return lambda env: [(path.resolve(env), "set", then(env) if test(env) else otherwise(env))]
        case ArrayGet():
            return _array_get(one, formulas)
        case ReadMemorySection():
            return _unbound
        case _:
            assert_never(one)


def _unbound(env: Environment) -> Written:
    raise StepRefused(
        Failure(
            code="unbound-operation",
            message="a transform cannot read long-term memory",
            hint="Read it with a `memory` node and copy its result.",
        )
    )


def _array_get(one: ArrayGet, formulas: FormulaCompiler) -> Operate:
    path, held = formulas.path(one.to), formulas.value(one.array_get)
    index = formulas.value(one.index) if isinstance(one.index, str) else None

    def get(env: Environment) -> Written:
        items = held(env)
        at = one.index if index is None else index(env)
        found: Json = None
        if (
            isinstance(items, list)
            and isinstance(at, int)
            and not isinstance(at, bool)
            and -len(items) <= at < len(items)
        ):
            found = items[at]
        return [(path.resolve(env), "set", found)]

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
