"""Generator of `pointsman/sync.pyi`: the signatures of the mirrored classes, without `async`.

python -m tests.typing.sync_stub        writes the file; a test compares it with what this module makes
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

from pointsman import sync
from pointsman.app import Pointsman
from pointsman.client.client import Client
from pointsman.client.executions import RemoteExecution
from pointsman.executions.execution import Execution

STUB: Final = Path(sync.__file__).with_suffix(".pyi")
HEAD: Final = "# Types of `pointsman.sync`, made by `python -m tests.typing.sync_stub`. Do not edit.\n\n"
MIRRORED: Final[dict[type[object], type[object]]] = {
    sync.Execution: Execution,
    sync.Pointsman: Pointsman,
    sync.RemoteExecution: RemoteExecution,
    sync.Client: Client,
}
LOCAL: Final = {original.__name__ for original in MIRRORED.values()} | {"AppClosed"}
ITERATORS: Final = {"AsyncIterator": "Iterator", "AsyncGenerator": "Iterator"}
OPENED: Final = """
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
"""
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def stub() -> str:
    """Return the text of the stub."""
    sources: dict[str, str] = {"Iterator": "collections.abc", "Self": "typing", "ClassVar": "typing"}
    classes = [_class(mirror, original, sources) for mirror, original in MIRRORED.items()]
    body = "class AppClosed(CallerError):\n    code: ClassVar[str]\n" + "".join(classes)
    sources["CallerError"] = "pointsman.errors"
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)} - LOCAL
    imports = [
        f"from {sources[name]} import {name}\n" if sources[name] else f"import {name}\n"
        for name in sorted(used & sources.keys())
    ]
    made = _ruff("check", "--select=I", "--fix-only", "--quiet", text=HEAD + "".join(imports) + "\n" + body)
    return _ruff("format", "--quiet", text=made)


def _ruff(*command: str, text: str) -> str:
    program = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
    return subprocess.run(program, input=text, capture_output=True, text=True, check=True).stdout


def _class(mirror: type[object], original: type[object], sources: dict[str, str]) -> str:
    module = importlib.import_module(original.__module__)
    (node,) = [one for one in _tree(module).body if isinstance(one, ast.ClassDef) and one.name == original.__name__]
    generic = [base for base in node.bases if isinstance(base, ast.Subscript)]
    head = f"class {original.__name__}{'(' + ast.unparse(generic[0]) + ')' if generic else ''}:\n"
    for base in generic:
        _find(base, module, sources)
    omitted: frozenset[str] = getattr(mirror, "OMITTED", frozenset())
    is_opened = hasattr(mirror, "close")
    lines = [""]
    lines += [f"    {name}: {ast.unparse(kind)}\n" for name, kind in _attributes(node)]
    for name, function, at in _functions(node, module):
        is_made = name == "__init__" and is_opened
        if not is_made and (name.startswith("_") or name == "close" or name in omitted):
            continue
        _find(function.args, at, sources)
        _find(function.returns, at, sources)
        lines += [f"    {line}\n" for line in ast.unparse(_plain(name, function)).splitlines()]
    if is_opened:
        lines.append(OPENED)
    return f"\n{head}{''.join(lines)}\n"


def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Yield the public attributes that are arguments of the constructor: `self.id = id`."""
    for made in node.body:
        if isinstance(made, ast.FunctionDef) and made.name == "__init__":
            kinds = {one.arg: one.annotation for one in made.args.args if one.annotation is not None}
            for one in made.body:
                match one:
                    case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Name(id=value)) if name == value:
                        yield name, kinds[name]
                    case _:
                        pass


def _functions(node: ast.ClassDef, module: ModuleType) -> Iterator[tuple[str, Function, ModuleType]]:
    """Yield the methods of a class, and the functions of domains that it forwards to, with their modules."""
    for one in node.body:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                overloaded = any(
                    isinstance(other, Function) and other.name == one.name for other in node.body if other is not one
                )
                is_overload = any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in one.decorator_list)
                if is_overload or not overloaded:
                    yield one.name, one, module
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="_forward"), args=[ast.Name(id=of)])
            ):
                target = inspect.unwrap(getattr(module, of))
                at = importlib.import_module(target.__module__)
                (function,) = [
                    found for found in _tree(at).body if isinstance(found, Function) and found.name == target.__name__
                ]
                function.args.args[0] = ast.arg("self")
                yield name, function, at
            case _:
                pass


def _plain(name: str, function: Function) -> ast.FunctionDef:
    """Return a function without `async` and without its body; defaults are left out."""
    for at, _ in enumerate(function.args.defaults):
        function.args.defaults[at] = ast.Constant(...)
    for at, default in enumerate(function.args.kw_defaults):
        function.args.kw_defaults[at] = None if default is None else ast.Constant(...)
    body: list[ast.stmt] = [ast.Expr(ast.Constant(...))]
    made = ast.FunctionDef(name, function.args, body, function.decorator_list, _returned(function.returns), lineno=0)
    return ast.fix_missing_locations(made)


def _returned(returns: ast.expr | None) -> ast.expr | None:
    match returns:
        case ast.Subscript(value=ast.Name(id=kind), slice=inner) if kind in ITERATORS:
            item = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            return ast.Subscript(ast.Name(ITERATORS[kind]), item)
        case _:
            return returns


def _find(node: ast.AST | None, module: ModuleType, sources: dict[str, str]) -> None:
    """Record where each name of an annotation is imported from; the first record of a name stays."""
    imported = {
        alias.asname or alias.name: one.module
        for one in ast.walk(_tree(module))
        if isinstance(one, ast.ImportFrom) and one.module is not None
        for alias in one.names
    }
    imported |= {alias.name: "" for one in _tree(module).body if isinstance(one, ast.Import) for alias in one.names}
    for one in ast.walk(node) if node is not None else ():
        if isinstance(one, ast.Name) and one.id not in LOCAL and not hasattr(builtins, one.id):
            sources.setdefault(one.id, imported.get(one.id, module.__name__))
    sources.setdefault("overload", "typing")


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
