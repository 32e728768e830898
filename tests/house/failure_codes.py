"""The codes that the source puts into failures of steps and warnings of executions, derived from its syntax trees.

Failure(code=X), CallVerdict(code=X), replace(…, code=X), WarningRaised(code=X)
    X a text                        ─▶ a code
    X the `code` of another object  ─▶ nothing: the place that made that object has it
    X a parameter                   ─▶ what the callers of the function pass, and its default
    X a local or module-level name  ─▶ what is assigned to it; of a table, all its texts
    anything else                   ─▶ an error, so that no code escapes
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src"
CODE: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
FAILURES: Final = frozenset({"Failure", "CallVerdict", "replace"})
WARNINGS: Final = frozenset({"WarningRaised"})
RECONSTRUCTED: Final = {"pointsman/engine/causes.py"}
"""Modules that make failures again from stored events."""
EXAMPLES: Final = {"pointsman/testing/graphs.py", "pointsman/testing/simulation.py"}
"""Modules whose failures are those of imaginary tools in tests."""
MADE_UP: Final = {"child-": ("child-cancelled", "child-failed")}
"""Beginning of a code that is put together -> the codes that it becomes."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class UnknownCode(Exception):
    """The code of a failure cannot be derived."""


class Module:
    """One module: its tree, its functions, and the function around each node."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(SOURCE).as_posix()
        self.package = self.name.split("/")[1]
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.around: dict[ast.AST, Function | None] = {}
        self._enter(self.tree, None)

    def _enter(self, node: ast.AST, function: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            self.around[child] = function
            self._enter(child, child if isinstance(child, Function) else function)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in self.around if isinstance(node, ast.Call))


@cache
def modules() -> tuple[Module, ...]:
    paths = (path for path in sorted((SOURCE / "pointsman").rglob("*.py")) if "static" not in path.parts)
    return tuple(Module(path) for path in paths)


def called(call: ast.Call) -> str:
    """Return the last name of the called function."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def codes_in(makers: frozenset[str]) -> dict[str, str]:
    """Return code -> a place that passes it as `code` to one of these functions."""
    found: dict[str, str] = {}
    for module in modules():
        if module.name in EXAMPLES | RECONSTRUCTED:
            continue
        for call in module.calls():
            for keyword in call.keywords:
                if called(call) in makers and keyword.arg == "code":
                    for code in codes_of(keyword.value, module, module.around[call]):
                        found.setdefault(code, f"{module.name}:{call.lineno}")
    return found


def codes_of(value: ast.expr, module: Module, function: Function | None) -> set[str]:
    """Return the codes that an expression may have. Raises `UnknownCode`."""
    match value:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.Attribute(attr="code"):
            return set()
        case ast.IfExp(body=body, orelse=other):
            return codes_of(body, module, function) | codes_of(other, module, function)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if start in MADE_UP:
            return {*MADE_UP[start]}
        case ast.Call(func=ast.Name(id="str"), args=[inner]):
            return codes_of(inner, module, function)
        case ast.Call(func=ast.Attribute(attr="get"), args=[_, default]):
            return codes_of(default, module, function)
        case ast.Name(id=name):
            return named(name, module, function)
        case _:
            raise UnknownCode(f"{module.name}:{value.lineno}: {ast.unparse(value)}")


def named(name: str, module: Module, function: Function | None) -> set[str]:
    found: list[set[str]] = []
    if function is not None:
        if name in parameters(function):
            found.append(passed(name, function, module))
        found += [of_assignment(value, module, function) for value in assigned(name, function)]
        found += [set[str]()] if captures_code(name, function) else []
    if not found:
        found = [of_assignment(value, one, None) for one, value in constants(name, module)]
    if not found:
        raise UnknownCode(f"{module.name}: {name}")
    return {code for codes in found for code in codes}


def of_assignment(value: ast.expr, module: Module, function: Function | None) -> set[str]:
    """Return the codes of an assigned value; of a table, or of a search in one, all texts that look like codes."""
    if isinstance(value, ast.Constant | ast.Name | ast.Attribute | ast.IfExp) and not is_number(value):
        return codes_of(value, module, function)
    found: set[str] = set()
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
            found.add(node.value)
        elif isinstance(node, ast.Name) and node.id.isupper():
            for one, table in constants(node.id, module):
                found |= of_assignment(table, one, None)
    return found


def is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def parameters(function: Function) -> list[str]:
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def passed(name: str, function: Function, module: Module) -> set[str]:
    """Return what the callers of a function pass as a parameter, and its default."""
    names = parameters(function)
    place = names.index(name) - (names[0] in ("self", "cls"))
    found = defaults(function).get(name)
    codes = set[str]() if found is None else codes_of(found, module, None)
    for caller in modules():
        if caller is not module and not uses(caller, function, module):
            continue
        for call in caller.calls():
            if called(call) != function.name:
                continue
            given = [one.value for one in call.keywords if one.arg == name] or call.args[place : place + 1]
            for value in given:
                if not isinstance(value, ast.Starred):
                    codes |= codes_of(value, caller, caller.around[call])
    return codes


def uses(importer: Module, function: Function, module: Module) -> bool:
    """Return whether a module imports a function, or may call a public method because it is in the same package."""
    name = function.name
    if function.args.args and function.args.args[0].arg == "self":
        return not name.startswith("_") and importer.package == module.package
    return any(
        isinstance(node, ast.ImportFrom)
        and f"{(node.module or '').replace('.', '/')}.py" == module.name
        and any(alias.name == name for alias in node.names)
        for node in importer.around
    )


def defaults(function: Function) -> dict[str, ast.expr]:
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    late = zip(reversed(plain), reversed(args.defaults), strict=False)
    named_only = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return {one.arg: value for one, value in (*late, *named_only) if value is not None}


def assigned(name: str, function: Function) -> Iterator[ast.expr]:
    """Yield the values that a function assigns to a local name."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from of_target(name, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from of_target(name, target, value)
            case ast.NamedExpr(target=target, value=value):
                yield from of_target(name, target, value)
            case ast.For(target=target, iter=value):
                yield from of_target(name, target, value)
            case _:
                pass


def of_target(name: str, target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    match target, value:
        case ast.Name(id=one), _ if one == name:
            yield value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            for left, right in zip(targets, values, strict=True):
                yield from of_target(name, left, right)
        case ast.Tuple(elts=targets), _ if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            yield value
        case _:
            return


def captures_code(name: str, function: Function) -> bool:
    """Return whether a `case` of the function binds the name to the `code` of another object."""
    return any(
        isinstance(node, ast.MatchClass)
        and any(
            attribute == "code" and isinstance(pattern, ast.MatchAs) and pattern.name == name
            for attribute, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        )
        for node in ast.walk(function)
    )


def constants(name: str, module: Module) -> Iterator[tuple[Module, ast.expr]]:
    """Yield the module-level value of a name, also if the module imports it."""
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=one)], value=value) if one == name:
                yield module, value
            case ast.AnnAssign(target=ast.Name(id=one), value=ast.expr() as value) if one == name:
                yield module, value
            case ast.ImportFrom(module=str(source), names=names):
                origin = next((alias.name for alias in names if (alias.asname or alias.name) == name), None)
                path = source.replace(".", "/")
                for other in modules():
                    if origin is not None and other.name in (f"{path}.py", f"{path}/__init__.py"):
                        yield from constants(origin, other)
            case _:
                pass
