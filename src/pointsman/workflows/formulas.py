"""Checking and evaluating a single formula for its author: problems, paths that it reads, and its value.

The check of the whole workflow determines whether the data exist when the formula is evaluated. Here a caller may
describe them: `schemas` by root, and the `names` that an enclosing parallel or loop gives its items.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pointsman.definition.naming_rules import FIELDS_FIRST, SINGLE_BRACES
from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import ExpressionError, ExpressionFailed
from pointsman.expressions.formula import Expression, compile_expression
from pointsman.expressions.function_reference import MANUAL
from pointsman.expressions.functions import ALIASES
from pointsman.expressions.jsonpath import compile_jsonpath
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.names import ROOTS, Names
from pointsman.expressions.paths import compile_path
from pointsman.expressions.schema_types import ALL_TYPES, Schemas
from pointsman.expressions.templates import Template, compile_template
from pointsman.expressions.types import TypeChecker, check_types
from pointsman.values import Json, JsonObject

Kind: TypeAlias = Literal["expression", "condition", "template", "path", "jsonpath"]
"""A condition is an expression of which only the truth value is used."""

_NOTES: Final = frozenset({"list-may-miss", "order-may-miss"})
_WHOLE: Final = frozenset({"state", "nodes", "config"})
"""Roots that an environment stores separately."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula's text and kind, and what is known of its position."""

    text: str
    kind: Kind
    dialect: str = "native"
    names: frozenset[str] = frozenset()
    """`as` names of the enclosing parallels and loops."""
    schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """JSON Schemas by root: `state`, `input`, `result` …"""

    def read_as(self) -> Names:
        known = frozenset(_properties(self.schemas))
        return Names(self.names, known if self.dialect in FIELDS_FIRST else frozenset(), known)

    def expression(self) -> Expression:
        return compile_expression(self.text, names=self.read_as())

    def template(self) -> Template:
        spelling = "single" if self.dialect in SINGLE_BRACES else "double"
        return compile_template(self.text, names=self.read_as(), spelling=spelling)


def check_formula(formula: Formula) -> JsonObject:
    """Job: return `{ok, problems, types, reads}`. Offsets are characters of the text, counted from 0. `types`: null =
    any."""
    types: list[Json] | None = None
    reads: Sequence[PathRead] = ()
    problems: list[Json] = []
    try:
        match formula.kind:
            case "expression" | "condition":
                expression = formula.expression()
                reads = expression.reads
                types, problems = _typed(expression, formula)
            case "template":
                reads = formula.template().reads
                problems = [*_unknown(reads, formula)]
            case "path":
                compile_path(formula.text, names=formula.read_as())
            case "jsonpath":
                compile_jsonpath(formula.text)
    except ExpressionError as why:
        problems = [_problem("error", why.code, str(why), why.hint, why.offset, why.length)]
    wrong = any(isinstance(one, dict) and one["severity"] == "error" for one in problems)
    return {"ok": not wrong, "problems": problems, "types": types, "reads": [_read(one) for one in reads]}


def evaluate_formula(formula: Formula, values: JsonObject) -> JsonObject:
    """Job: evaluate a formula over `values`, which bare names refer to. Return `{ok, value, missing, failure}`.

    `missing` lists the paths that a template left empty. Errors in the text or the data are returned, not raised.
    """
    try:
        value, missing = _given(formula, environment_of(formula, values))
    except (ExpressionError, ExpressionFailed) as why:
        failure = _problem("error", why.code, str(why), why.hint, why.offset, why.length)
        return {"ok": False, "value": None, "missing": [], "failure": failure}
    return {"ok": True, "value": value, "missing": [*missing], "failure": None}


def environment_of(formula: Formula, values: JsonObject) -> Environment:
    """Assign each of `values` to the root or `as` name that its name denotes, all others to the state."""
    names = formula.read_as()
    state, roots = dict[str, Json](), dict[str, Json]()
    apart: dict[str, dict[str, Json]] = {one: {} for one in _WHOLE}
    for name, value in values.items():
        root = names.root(name)
        if root in _WHOLE and root:
            apart[root].update(value if isinstance(value, dict) else {})
        elif root:
            roots[root] = value
        else:
            state[name] = value
    return Environment({**state, **apart["state"]}, nodes=apart["nodes"], names=roots, config=apart["config"])


def functions_of_language() -> list[Json]:
    """Return every function of the language: its name, aliases, signature and description."""
    others: dict[str, list[Json]] = {}
    for alias, name in ALIASES.items():
        others.setdefault(name, []).append(alias)
    return [
        {"name": name, "aliases": others.get(name, []), "signature": entry.signature, "about": entry.about}
        for name, entry in MANUAL.items()
    ]


def _given(formula: Formula, env: Environment) -> tuple[Json, Sequence[str]]:
    match formula.kind:
        case "expression":
            return formula.expression().evaluate(env), ()
        case "condition":
            return formula.expression().holds(env), ()
        case "template":
            rendered = formula.template().render(env)
            return rendered.text, rendered.missing
        case "path":
            return [*compile_path(formula.text, names=formula.read_as()).resolve(env)], ()
        case "jsonpath":
            return compile_jsonpath(formula.text).find(env.state), ()


def _typed(expression: Expression, formula: Formula) -> tuple[list[Json] | None, list[Json]]:
    schemas = dict(formula.schemas)
    shape = TypeChecker(expression.source, expression.names, Schemas(schemas), frozenset()).shape(expression.tree)
    found = check_types(expression, schemas, condition=formula.kind == "condition")
    problems: list[Json] = [
        _problem("note" if one.code in _NOTES else "warning", one.code, one.message, one.hint, one.offset, one.length)
        for one in found
    ]
    return (None if shape.types == ALL_TYPES else [*sorted(shape.types)]), problems


def _unknown(reads: Iterable[PathRead], formula: Formula) -> Iterable[Json]:
    """Yield a warning for each field that a closed state does not have."""
    state = formula.schemas.get("state", {})
    known = _properties(formula.schemas)
    if state.get("additionalProperties") is not False:
        return
    for read in reads:
        name = read.path[0] if read.root == "state" and read.path else None
        if not isinstance(name, str) or name in known or name in ROOTS:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(known)) or 'none'}."
        yield _problem("warning", "unknown-path", f"nothing is called {name!r} here", hint, read.offset, read.length)


def _properties(schemas: Mapping[str, JsonObject]) -> JsonObject:
    declared = schemas.get("state", {}).get("properties")
    return declared if isinstance(declared, dict) else {}


def _problem(severity: str, code: str, message: str, hint: str, offset: int, length: int) -> JsonObject:
    said: JsonObject = {"severity": severity, "code": code, "message": message, "hint": hint}
    return {**said, "offset": offset, "length": length}


def _read(read: PathRead) -> JsonObject:
    return {"root": read.root, "path": [*read.path], "offset": read.offset, "length": read.length}
