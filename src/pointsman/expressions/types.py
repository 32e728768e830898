"""Type checker: finds errors that an expression will make with data of a known shape, before anything runs.

It is deliberately simple: it reports only certain and very likely errors.

`shape_of` derives from a JSON Schema the possible types of a path, whether it may be missing, and its keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pointsman.expressions.compiler import Expression
from pointsman.expressions.environment import ITEM_SEGMENT, Names
from pointsman.expressions.functions import ALIASES
from pointsman.expressions.operators import equals, type_name, whole
from pointsman.expressions.syntax_tree import (
    ADD,
    COALESCE,
    COMPARE,
    Chain,
    Comprehension,
    Conditional,
    Dollar,
    Each,
    FunctionCall,
    Get,
    Lambda,
    ListOf,
    Literal,
    Name,
    ObjectOf,
    PathTree,
    Prefix,
    Slice,
    Tree,
    literal_key,
    rooted,
)
from pointsman.expressions.template_parser import EachBlock, If, Piece, Tag, Words
from pointsman.expressions.templates import Template
from pointsman.values import Json, JsonObject

ALL_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
REFERENCES_MAX: Final = 16
_NOT_READ: Final = ("$ref", "anyOf", "oneOf", "allOf", "if", "not")
"""Keywords that are not interpreted: a schema with one of them may describe any value."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """Facts about a value before it exists."""

    types: frozenset[str] = ALL_TYPES
    schema: JsonObject | None = None
    """Schema of the value, with its references resolved; None if nothing is known."""
    may_miss: bool = False
    constants: tuple[Json, ...] = ()
    """All values it can have, if the schema lists them."""


ANYTHING: Final = ValueShape()


class UnknownKey(Exception):
    """A closed object does not have this key. `known` are the keys it has."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        super().__init__()
        self.known = keys


def of_type(*types: str) -> ValueShape:
    """Return the shape of a value of one of these types."""
    return ValueShape(frozenset(types))


def of_value(value: Json) -> ValueShape:
    """Return the shape of a known value."""
    return ValueShape(frozenset({type_name(value)}), constants=(value,))


class Schemas:
    """Schemas of the roots that a formula can read (`state`,
    `input`, `result` …); a root without one may be any value."""

    def __init__(self, roots: dict[str, JsonObject]) -> None:
        self.roots = roots
        self._shapes = {name: shape_of(schema, schema) for name, schema in roots.items()}

    def root(self, name: str) -> ValueShape:
        return self._shapes.get(name, ANYTHING)

    def below(self, shape: ValueShape, key: str | int | None, root: str) -> ValueShape:
        """Return the shape under a key; None stands for any key.
        Raises `UnknownKey` if a closed object does not have it."""
        schema = shape.schema
        if schema is None:
            return ANYTHING
        document = self.roots.get(root, schema)
        if isinstance(key, int) or key is None:
            items = schema.get("items")
            below = shape_of(items, document) if isinstance(items, dict) else ANYTHING
            return ValueShape(below.types, below.schema, may_miss=True, constants=below.constants)
        return self.field(shape, schema, key, document)

    def field(self, shape: ValueShape, schema: JsonObject, key: str, document: JsonObject) -> ValueShape:
        """Return the shape of a named field."""
        declared = schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        required = schema.get("required")
        if key in properties:
            part = properties[key]
            below = shape_of(part, document) if isinstance(part, dict) else ANYTHING
            miss = shape.may_miss or not (isinstance(required, list) and key in required)
            return ValueShape(below.types, below.schema, miss, below.constants)
        rest = schema.get("additionalProperties")
        if rest is False and "patternProperties" not in schema and "object" in shape.types:
            raise UnknownKey(tuple(properties))
        below = shape_of(rest, document) if isinstance(rest, dict) else ANYTHING
        return ValueShape(below.types, below.schema, below.schema is not None, below.constants)


def shape_of(schema: JsonObject, document: JsonObject) -> ValueShape:
    """Return the shape that a schema describes. Schemas with
    keywords that are not interpreted may describe any value."""
    for _ in range(REFERENCES_MAX):
        reference = schema.get("$ref")
        if reference is None:
            break
        target = referred(reference, document)
        if target is None:
            return ANYTHING
        schema = target
    for word in _NOT_READ:
        if word in schema:
            return ANYTHING
    constants = schema.get("enum")
    values = tuple(constants) if isinstance(constants, list) else (schema["const"],) if "const" in schema else ()
    return ValueShape(types_of(schema, values), schema, constants=values)


def types_of(schema: JsonObject, constants: tuple[Json, ...]) -> frozenset[str]:
    """Return the types that a schema allows."""
    declared = schema.get("type")
    if declared is None and not constants:
        return ALL_TYPES
    listed = declared if isinstance(declared, list) else [declared] if declared is not None else []
    names = {"number" if name == "integer" else name for name in listed if isinstance(name, str)}
    if names:
        return frozenset(names) & ALL_TYPES
    return frozenset(map(type_name, constants)) or ALL_TYPES


def referred(reference: Json, document: JsonObject) -> JsonObject | None:
    """Return the part of the document to which `#/a/b` points; other references are not followed."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    result: Json = document
    for step in filter(None, reference[1:].split("/")):
        result = result.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(result, dict) else None
    return result if isinstance(result, dict) else None


def fixed_index(value: Json) -> str | int | None:
    """Return a literal as a key."""
    if isinstance(value, str):
        return value
    return int(value) if whole(value) else None


RETURNS: Final[dict[str, tuple[str, ...]]] = {
    "len": ("number",),
    "count": ("number",),
    "sum": ("number",),
    "str": ("string",),
    "type": ("string",),
    "join": ("string",),
    "lower": ("string", "null"),
    "upper": ("string", "null"),
    "trim": ("string", "null"),
    "keys": ("array",),
    "values": ("array",),
    "split": ("array",),
    "map": ("array",),
    "filter": ("array",),
    "sort": ("array",),
    "unique": ("array",),
} | dict.fromkeys(
    ("exists", "empty", "startsWith", "endsWith", "contains", "matches", "bool", "any", "all"), ("boolean",)
)
IN_EACH: Final[Mapping[str, ValueShape]] = {
    "@index": of_type("number"),
    "@number": of_type("number"),
    "@key": of_type("number", "string"),
    "@first": of_type("boolean"),
    "@last": of_type("boolean"),
}
"""Shapes of the names in the body of an `each` block, beside `this`."""
ORDER: Final = frozenset({"<", "<=", ">", ">="})
_LIST: Final = frozenset({"array"})
_TEXT: Final = frozenset({"string"})
_HOLDS_ITEMS: Final = frozenset({"array", "object", "string"})
TAKES: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("join", "sum", "map", "filter", "any", "all", "sort", "unique"), _LIST),
    **dict.fromkeys(("lower", "upper", "trim", "split", "startsWith", "endsWith", "matches"), _TEXT),
    **dict.fromkeys(("len", "contains"), _HOLDS_ITEMS),
}
"""Accepted types of the first argument, besides null; other types fail."""


@dataclass(frozen=True, slots=True)
class TypeFinding:
    """One remark about an expression."""

    code: str
    """`unknown-path`, `never-equal`, `wrong-types`, `condition-not-boolean`, `items-not-a-list`, `order-may-miss` or
    `list-may-miss`."""
    offset: int
    length: int
    message: str
    hint: str
    of_variable: bool = False
    """Whether the path of `unknown-path` starts at a variable of the formula, such as an element of a list."""


def check_types(
    expression: Expression,
    schemas: dict[str, JsonObject] | Schemas,
    *,
    keys: frozenset[str] = frozenset(),
    condition: bool = False,
    items: bool = False,
) -> list[TypeFinding]:
    """Return the findings for `expression` over data of these shapes, in reading order.

    `schemas` are JSON Schemas by root (`state`, `input`, `result` …); an object is closed only if its schema contains
    `additionalProperties: false`. `keys` are bare names besides state fields: settings, names of the engine.
    `condition`: only the truth of the value counts. `items`: the value must be a list or an object.
    """
    schemas = schemas if isinstance(schemas, Schemas) else Schemas(schemas)
    checker = TypeChecker(expression.source, expression.names, schemas, keys)
    shape = checker.shape(expression.tree)
    if condition and shape.types and not shape.types & {"boolean"} and shape.types != ALL_TYPES:
        types = " or ".join(sorted(shape.types))
        checker.find(
            "condition-not-boolean", expression.tree, f"this condition is a {types}, not a boolean", "Compare it."
        )
    if items:
        checker.items(expression.tree, shape, "the items are")
    return sorted(checker.findings, key=lambda finding: finding.offset)


def check_template_types(template: Template, names: Names, schemas: Schemas) -> list[TypeFinding]:
    """Return the findings for the expressions and the `each` blocks of a template, in reading order."""
    checker = TypeChecker(template.source, names, schemas, frozenset())
    checker.pieces(template.pieces)
    return sorted(checker.findings, key=lambda finding: finding.offset)


class TypeChecker:
    """One pass over the trees of one text."""

    def __init__(self, source: str, names: Names, schemas: Schemas, known: frozenset[str]) -> None:
        self.source = source
        self.names = names
        self.schemas = schemas
        self.known = known
        self.variables: dict[str, ValueShape] = {}
        self.findings: list[TypeFinding] = []

    def find(self, code: str, tree: Tree, message: str, hint: str, *, of_variable: bool = False) -> None:
        self.findings.append(TypeFinding(code, tree.at, tree.end - tree.at, message, hint, of_variable))

    def items(self, tree: Tree, shape: ValueShape, what: str) -> None:
        """Report a value that cannot be repeated over. Null is left to the node, which may have a rule for it."""
        wrong = shape.types - {"null"}
        if wrong and not wrong & {"array", "object"}:
            types = " or ".join(sorted(wrong))
            hint = "Name a list or an object, or write `[…]` around a single value."
            self.find("items-not-a-list", tree, f"{what} a {types}, not a list", hint)

    def pieces(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            match piece:
                case Tag(value=tree):
                    self.shape(tree)
                case If(test=tree, then=then, otherwise=otherwise):
                    self.shape(tree)
                    self.pieces(then)
                    self.pieces(otherwise)
                case EachBlock():
                    self.repeat(piece)
                case Words():
                    pass

    def repeat(self, block: EachBlock) -> None:
        """Check an `each` block: what it repeats over, and its body, in which `this` is an element."""
        shape = self.shape(block.path)
        self.items(block.path, shape, "`each` repeats over")
        outer = self.variables
        element = self.element(shape) if shape.types <= {"array", "null"} else ANYTHING
        self.variables = outer | IN_EACH | {"this": element}
        self.pieces(block.body)
        self.variables = outer
        self.pieces(block.otherwise)

    def shape(self, tree: Tree) -> ValueShape:
        match tree:
            case Literal(value=value):
                return of_value(value)
            case Name() | Dollar() | Get() | Each():
                return self.path(tree)
            case Chain():
                return self.chain(tree)
            case FunctionCall():
                return self.call(tree)
            case Prefix():
                self.shape(tree.operand)
                return of_type("boolean") if tree.sign in ("not", "!") else of_type("number")
            case Conditional():
                self.shape(tree.condition)
                return ValueShape(self.shape(tree.yes).types | self.shape(tree.no).types)
            case _:
                return self.built(tree)

    def built(self, tree: ListOf | ObjectOf | Comprehension | Slice) -> ValueShape:
        match tree:
            case ListOf():
                for item in tree.items:
                    self.shape(item)
                return of_type("array")
            case ObjectOf():
                for _, value in tree.pairs:
                    self.shape(value)
                return of_type("object")
            case Comprehension():
                element = self.element(self.shape(tree.source))
                self.within(tree.variable, element, [tree.body, *([tree.condition] if tree.condition else [])])
                return of_type("array")
            case Slice():
                for bound in (tree.start, tree.stop):
                    if bound:
                        self.shape(bound)
                return ValueShape(self.shape(tree.base).types)

    def path(self, tree: PathTree) -> ValueShape:
        start, parts, own = rooted(tree)
        for part in parts:
            if isinstance(part, Get) and not isinstance(part.key, Literal):
                self.shape(part.key)
        shape, root = self.start(start, own=own)
        if shape is None:
            assert isinstance(start, Name)
            return self.unknown(start.name, start, self.fields("state"))
        for part in parts:
            if isinstance(part, Get) and part.dotted and literal_key(part) in ("length", ITEM_SEGMENT):
                return ANYTHING
            key = fixed_index(part.key.value) if isinstance(part, Get) and isinstance(part.key, Literal) else None
            if key is None and shape.schema is not None and "items" not in shape.schema:
                return ANYTHING
            try:
                shape = self.schemas.below(shape, key, root)
            except UnknownKey as why:
                is_variable = own and isinstance(start, Name) and start.name in self.variables
                return self.unknown(str(key), part, why.known, of_variable=is_variable)
        return ValueShape(ALL_TYPES) if any(isinstance(part, Each) for part in parts) else shape

    def start(self, start: Tree, *, own: bool) -> tuple[ValueShape | None, str]:
        """Return the shape from which a path starts, and its root; None for an undeclared bare name."""
        if isinstance(start, Dollar):
            return self.schemas.root("state"), "state"
        if not isinstance(start, Name):
            return ValueShape(self.shape(start).types), ""
        if own and start.name in self.variables:
            return self.variables[start.name], "state"
        root = self.names.root(start.name)
        if root:
            return self.schemas.root(root), root
        try:
            return self.schemas.below(self.schemas.root("state"), start.name, "state"), "state"
        except UnknownKey:
            return (ANYTHING, "") if start.name in self.known else (None, "")

    def fields(self, root: str) -> tuple[str, ...]:
        declared = self.schemas.roots.get(root, {}).get("properties")
        return (*declared, *self.known) if isinstance(declared, dict) else tuple(self.known)

    def unknown(self, key: str, place: Tree, keys: tuple[str, ...], *, of_variable: bool = False) -> ValueShape:
        near = difflib.get_close_matches(key, keys, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(sorted(keys)) or 'none'}."
        written = self.source[place.at : place.end]
        message = f"{written!r} does not exist: the value is always null"
        self.find("unknown-path", place, message, hint, of_variable=of_variable)
        return ANYTHING

    def element(self, shape: ValueShape) -> ValueShape:
        return self.schemas.below(shape, None, "state") if shape.schema else ANYTHING

    def within(self, variable: str, element: ValueShape, bodies: list[Tree]) -> None:
        outer = self.variables.get(variable)
        self.variables[variable] = element
        for body in bodies:
            self.shape(body)
        del self.variables[variable]
        if outer is not None:
            self.variables[variable] = outer

    def call(self, tree: FunctionCall) -> ValueShape:
        first = ANYTHING
        for number, argument in enumerate(tree.arguments):
            if isinstance(argument, Lambda):
                self.within(argument.variable, self.element(first), [argument.body])
            else:
                shape = self.shape(argument)
                first = shape if number == 0 else first
        name = ALIASES.get(tree.name, tree.name)
        if tree.arguments and not isinstance(tree.arguments[0], Lambda):
            self.argument(name, tree, tree.arguments[0], first)
        return of_type(*RETURNS[name]) if name in RETURNS else ANYTHING

    def argument(self, name: str, call: FunctionCall, argument: Tree, shape: ValueShape) -> None:
        """Check the first argument of a function that accepts only some types."""
        accepted, types = TAKES.get(name), shape.types - {"null"}
        if accepted is None:
            return
        if types and not types & accepted:
            needs, has = " or ".join(sorted(accepted)), " or ".join(sorted(types))
            self.find(
                "wrong-types", call, f"{name}() requires {needs}, and this is {has}: it fails", "Convert it first."
            )
        elif name == "join" and (shape.may_miss or "null" in shape.types) and shape.types != ALL_TYPES:
            written = self.source[argument.at : argument.end]
            message = f"{written!r} may be missing; {name}() then gives an empty text"
            self.find("list-may-miss", argument, message, f"Give a default: `{written} ?? ['none']`.")

    def chain(self, tree: Chain) -> ValueShape:
        shapes = [self.shape(tree.first), *(self.shape(operand) for _, operand in tree.rest)]
        if tree.strength == COMPARE:
            self.comparisons(tree, shapes)
            return of_type("boolean")
        if tree.strength == COALESCE:
            return ValueShape(
                frozenset[str]().union(*(shape.types - {"null"} for shape in shapes[:-1]), shapes[-1].types)
            )
        if tree.strength < COMPARE:
            return ValueShape(frozenset[str]().union(*(shape.types for shape in shapes)))
        joins = tree.strength == ADD and all(sign == "+" for sign, _ in tree.rest)
        return ANYTHING if joins else of_type("number")

    def comparisons(self, tree: Chain, shapes: list[ValueShape]) -> None:
        operands = [tree.first, *(operand for _, operand in tree.rest)]
        for number, (sign, _) in enumerate(tree.rest):
            left, right = shapes[number : number + 2]
            if sign in ("==", "!="):
                self.equality(tree, sign, left, right, operands[number : number + 2])
            elif sign in ORDER:
                if not self.orderable(tree, sign, left, right):
                    continue
                for operand, shape in zip(operands[number : number + 2], (left, right), strict=True):
                    self.order(operand, shape)
            elif sign in ("in", "not in") and right.types - {"null"} and not right.types & _HOLDS_ITEMS:
                kind = "/".join(sorted(right.types))
                hint = "The right side must be a list, an object or a text."
                self.find("wrong-types", tree, f"`in` is not defined for a {kind}: this fails", hint)

    def orderable(self, tree: Chain, sign: str, left: ValueShape, right: ValueShape) -> bool:
        """Return whether the sides have an order: two numbers or two texts. Report any other pair, because it fails."""
        sides = left.types - {"null"}, right.types - {"null"}
        if not all(sides) or sides[0] & sides[1] & {"number", "string"}:
            return True
        kinds = " and ".join("/".join(sorted(kind)) for kind in sides)
        hint = "Compare two numbers or two texts: `number(x)` reads a number from a text."
        self.find("wrong-types", tree, f"{sign!r} is not defined between {kinds}: this fails", hint)
        return False

    def equality(self, tree: Chain, sign: str, left: ValueShape, right: ValueShape, sides: list[Tree]) -> None:
        if any(isinstance(side, Get) and literal_key(side) == "branch" for side in sides):
            return
        result = "false" if sign == "==" else "true"
        types = [shape.types | ({"null"} if shape.may_miss else set[str]()) for shape in (left, right)]
        if not types[0] & types[1]:
            kinds = " and ".join("/".join(sorted(kind)) for kind in (left.types, right.types))
            hint = "Convert one side: `number(x)` or `str(x)`."
            self.find("never-equal", tree, f"{kinds} are never equal: this is always {result}", hint)
            return
        for constant, other in ((left, right), (right, left)):
            if constant.schema and constant.constants and len(other.constants) == 1 and not other.schema:
                self.constant(tree, result, constant, other.constants[0])

    def constant(self, tree: Chain, result: str, shape: ValueShape, value: Json) -> None:
        """Report a literal that is not among the values that the schema lists."""
        if (value is None and shape.may_miss) or any(equals(value, possible) for possible in shape.constants):
            return
        texts = [text for text in shape.constants if isinstance(text, str)]
        near = difflib.get_close_matches(value, texts, 1) if isinstance(value, str) else []
        hint = f"Did you mean {near[0]!r}?" if near else f"Possible: {', '.join(map(repr, shape.constants))}."
        self.find("never-equal", tree, f"the value is never {value!r}: this is always {result}", hint)

    def order(self, operand: Tree, shape: ValueShape) -> None:
        if shape.may_miss and isinstance(operand, Name | Get):
            written = self.source[operand.at : operand.end]
            message = f"{written!r} may be missing; the comparison is then false"
            self.find("order-may-miss", operand, message, f"Give a default: `({written} ?? 0)`.")
