"""Checking and evaluating a single formula for its author: problems, paths that it reads, and its value.

The check of the whole workflow determines whether the data exist when the formula is evaluated. Here a caller may
describe them: `schemas` by root, and the `names` that an enclosing parallel or loop gives its items.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from typing_extensions import TypedDict

from pointsman.definition.naming_rules import FIELDS_FIRST, SINGLE_BRACES
from pointsman.definition.problems import Severity
from pointsman.expressions.compiler import Expression, compile_expression
from pointsman.expressions.environment import ROOTS, Environment, Names
from pointsman.expressions.failures import ExpressionError, ExpressionFailed
from pointsman.expressions.functions import ALIASES, MANUAL
from pointsman.expressions.jsonpath import compile_jsonpath
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.paths import compile_path
from pointsman.expressions.templates import Template, compile_template
from pointsman.expressions.types import ALL_TYPES, Schemas, TypeChecker, check_types
from pointsman.values import Json, JsonObject

Kind: TypeAlias = Literal["expression", "condition", "template", "path", "jsonpath"]
"""A condition is an expression of which only the truth value is used."""


class FormulaProblem(TypedDict):
    """One finding about a formula."""

    severity: Severity
    code: str
    message: str
    hint: str
    offset: int
    """Its first character, counted from 0."""
    length: int


class ReadPath(TypedDict):
    """A path that a formula reads."""

    root: str
    """`state`, `nodes`, `input`, `result` … or an `as` name."""
    path: list[str | int | None]
    """Keys below the root; null is any key."""
    offset: int
    length: int


class CheckedFormula(TypedDict):
    """The findings about a formula, its types, and what it reads."""

    ok: bool
    """Whether it has no errors."""
    problems: list[FormulaProblem]
    types: list[str] | None
    """Types of JSON that it may return; null: any."""
    reads: list[ReadPath]


class EvaluatedFormula(TypedDict):
    """The value of a formula, or why it has none."""

    ok: bool
    value: Json
    missing: list[str]
    """Paths that a template left empty."""
    failure: FormulaProblem | None


class FunctionView(TypedDict):
    """A function of the language."""

    name: str
    aliases: list[str]
    signature: str
    about: str


class LanguageFunctions(TypedDict):
    """The functions of the language."""

    functions: list[FunctionView]


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
        fields = frozenset(_properties(self.schemas))
        return Names(self.names, fields if self.dialect in FIELDS_FIRST else frozenset(), fields)

    def expression(self) -> Expression:
        return compile_expression(self.text, names=self.read_as())

    def template(self) -> Template:
        spelling = "single" if self.dialect in SINGLE_BRACES else "double"
        return compile_template(self.text, names=self.read_as(), spelling=spelling)


def check_formula(formula: Formula) -> CheckedFormula:
    """Job: check a formula."""
    types: list[str] | None = None
    reads: Sequence[PathRead] = ()
    problems: list[FormulaProblem] = []
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
    wrong = any(problem["severity"] == "error" for problem in problems)
    return {"ok": not wrong, "problems": problems, "types": types, "reads": [_read(one) for one in reads]}


def evaluate_formula(formula: Formula, values: JsonObject) -> EvaluatedFormula:
    """Job: evaluate a formula over `values`, which bare names refer to. Errors in the text or in the data are part of
    the result."""
    try:
        value, missing = _evaluated(formula, environment_of(formula, values))
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


def functions_of_language() -> LanguageFunctions:
    """Return every function of the language: its name, aliases, signature and description."""
    others: dict[str, list[str]] = {}
    for alias, name in ALIASES.items():
        others.setdefault(name, []).append(alias)
    functions: list[FunctionView] = [
        {"name": name, "aliases": others.get(name, []), "signature": entry.signature, "about": entry.about}
        for name, entry in MANUAL.items()
    ]
    return {"functions": functions}


def _evaluated(formula: Formula, env: Environment) -> tuple[Json, Sequence[str]]:
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


def _typed(expression: Expression, formula: Formula) -> tuple[list[str] | None, list[FormulaProblem]]:
    schemas = dict(formula.schemas)
    shape = TypeChecker(expression.source, expression.names, Schemas(schemas), frozenset()).shape(expression.tree)
    checked = check_types(expression, schemas, condition=formula.kind == "condition")
    problems = [
        _problem("note" if one.code in _NOTES else "warning", one.code, one.message, one.hint, one.offset, one.length)
        for one in checked
    ]
    return (None if shape.types == ALL_TYPES else [*sorted(shape.types)]), problems


def _unknown(reads: Iterable[PathRead], formula: Formula) -> Iterable[FormulaProblem]:
    """Yield a warning for each field that a closed state does not have."""
    state = formula.schemas.get("state", {})
    properties = _properties(formula.schemas)
    if state.get("additionalProperties") is not False:
        return
    for read in reads:
        name = read.path[0] if read.root == "state" and read.path else None
        if not isinstance(name, str) or name in properties or name in ROOTS:
            continue
        near = difflib.get_close_matches(name, properties, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(properties)) or 'none'}."
        yield _problem(
            "warning", "unknown-path", f"there is no value named {name!r} here", hint, read.offset, read.length
        )


def _properties(schemas: Mapping[str, JsonObject]) -> JsonObject:
    declared = schemas.get("state", {}).get("properties")
    return declared if isinstance(declared, dict) else {}


def _problem(severity: Severity, code: str, message: str, hint: str, offset: int, length: int) -> FormulaProblem:
    return {
        "severity": severity,
        "code": code,
        "message": message,
        "hint": hint,
        "offset": offset,
        "length": length,
    }


def _read(read: PathRead) -> ReadPath:
    return {"root": read.root, "path": [*read.path], "offset": read.offset, "length": read.length}
