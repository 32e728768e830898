"""The codes of all problems that the source can report, read from the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pointsman
from pointsman.expressions.failures import ExpressionError

SOURCE: Final = Path(pointsman.__file__).parent
LAYERS: Final = ("definition", "dialects", "auth", "workflows", "executions", "chat", "triggers", "operations")
MAKERS: Final = {
    **dict.fromkeys(("error", "warning", "note", "make", "Problem", "Finding", "find", "Unreadable"), 0),
    **dict.fromkeys(("_nothing", "_ending_problem"), 1),
}
"""Functions that make problems, and the position of the code among their arguments."""


ONE_WORD: Final = frozenset({"disabled", "draft", "empty", "fenced", "shape", "unreadable"})


def codes_in_source() -> set[str]:
    """Return every literal code that is passed to a function that makes problems, and those of the expressions."""
    files = [path for layer in LAYERS for path in (SOURCE / layer).rglob("*.py")]
    found = {code for path in (*files, SOURCE / "expressions" / "types.py") for code in _codes_of(path)}
    return found | {kind.code for kind in _below(ExpressionError)}


def _codes_of(path: Path) -> Iterator[str]:
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and (name := _name(call.func)) != "Failure":
            place = MAKERS.get(name, -1)
            given = call.args[place : place + 1] if place >= 0 else []
            given += [keyword.value for keyword in call.keywords if keyword.arg == "code"]
            yield from (code for one in given for code in _literals(one))


def _literals(value: ast.expr) -> Iterator[str]:
    """Yield the texts of `"code"` and of `"code" if … else "other"`."""
    match value:
        case ast.Constant(value=str(text)) if _is_code(text):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _literals(body)
            yield from _literals(orelse)
        case _:
            pass


def _is_code(text: str) -> bool:
    """Return whether a text consists of lower-case words with dashes; single words may be something else."""
    words = text.split("-")
    return text in ONE_WORD or (len(words) > 1 and all(w.isascii() and w.isalpha() and w.islower() for w in words))


def _name(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _below(kind: type[ExpressionError]) -> Iterator[type[ExpressionError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _below(inner)
