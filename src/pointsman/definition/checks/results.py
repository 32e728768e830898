"""Reads of keys that a value does not have: in results whose schema the workflow declares, and in declared data.

outputSchema, form, input, state ─▶ schema of `nodes.<id>`, `result`, `input`, and of fields ─▶ each key of a read
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from pointsman.definition.checks.conflicts import dotted
from pointsman.definition.checks.formulas import FormulaRead, Formulas, Keys
from pointsman.definition.checks.repairs import question, replace
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.problems import Problem, warning
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.paths import compile_path
from pointsman.expressions.schema_types import Schemas, UnknownKey, ValueShape, shape_of
from pointsman.values import Json, JsonObject

OF_EVERY_NODE: Final = frozenset(
    {"action", "branch", "by", "comment", "error", "next", "response", "result", "round", "text"}
)
"""Keys that the engine adds to a result."""
_NOTHING: Final = frozenset({"null"})
_SCALARS: Final = frozenset({"boolean", "null", "number", "string"})


class Described(NamedTuple):
    """A value whose schema is known."""

    schema: JsonObject
    document: JsonObject
    """Document in which the references of the schema are resolved."""
    closed: bool = False
    """True if keys that the schema does not list count as missing, even where the schema allows them."""
    extra: frozenset[str] = frozenset()
    """Keys that the value has in addition to those of the schema."""


def check_results(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    values = _Values(subject, formulas)
    for reading in formulas.readings:
        if (found := values.of(reading)) is not None:
            yield from _misread(subject, reading, *found)


class _Values:
    """Values of a workflow whose schema is known."""

    def __init__(self, subject: Subject, formulas: Formulas) -> None:
        self.subject = subject
        self.formulas = formulas

    def of(self, reading: FormulaRead) -> tuple[Described, Keys, str] | None:
        """Return the described value at the start of a path, the
        rest of the path, and the name of the value for messages."""
        path, position = reading.read.path, reading.place.node
        match reading.read.root:
            case "result" if position is not None:
                node = self.subject.nodes[position]
                if isinstance(node.config, HumanConfig) and reading.place.edge is not None:
                    return None  # a gate passes on its input
                return self._below(self.results.get(node.id), path, self.subject.node(position))
            case "nodes" if path and isinstance(path[0], str) and path[0] in self.results:
                if position is not None and self.subject.nodes[position].id == path[0]:
                    return None  # a node may read its own earlier result, whatever it was
                name = self.subject.node(self.subject.graph.index[path[0]])
                return self._below(self.results[path[0]], path[1:], name)
            case "state" if path and isinstance(path[0], str):
                return self._below(self.fields.get(path[0]), path[1:], repr(path[0]))
            case "input" if (schema := self.subject.input_schema) is not None:
                return self._below(Described(schema, schema), path, "the input")
            case _:
                return None

    def _below(self, value: Described | None, path: Keys, name: str) -> tuple[Described, Keys, str] | None:
        return None if value is None or not path else (value, path, name)

    @cached_property
    def results(self) -> Mapping[str, Described]:
        """Results by the id of the node."""
        agents = {name: agent.output_schema for name, agent in (self.subject.workflow.agents or {}).items()}
        found: dict[str, Described] = {}
        for node in self.subject.nodes:
            schema = _schema_of(node, agents)
            if schema is not None:
                found[node.id] = Described(schema, schema, closed=True, extra=OF_EVERY_NODE)
        return found

    @cached_property
    def fields(self) -> Mapping[str, Described]:
        """Fields by name: declared ones, answers of gates, and fields that exactly one node writes."""
        workflow, found = self.subject.workflow, dict[str, Described]()
        schema = workflow.input_schema or {}
        properties = schema.get("properties")
        for name, part in (properties if isinstance(properties, dict) else {}).items():
            if isinstance(part, dict):
                found[name] = Described(part, schema)
        written = Counter(str(one.keys[0]) for one in self.formulas.writings)
        for name in [name for name in found if written[name]]:
            del found[name]
        for pattern, about in (workflow.state or {}).items():
            written[pattern.partition(".")[0]] += 1
            if about.schema_ is not None and "." not in pattern and "*" not in pattern:
                found[pattern] = Described(about.schema_, about.schema_)
        gates = [node.id for node in self.subject.nodes if isinstance(node.config, HumanConfig)]
        answers = {
            f"humanResponse_{gate.replace('-', '_')}": self.results[gate] for gate in gates if gate in self.results
        }
        found |= {name: one for name, one in answers.items() if not written[name]}
        found |= {name: one for name, one in self._written() if written[name] == 1 and name not in found}
        return found

    def _written(self) -> Iterator[tuple[str, Described]]:
        for node in self.subject.nodes:
            value = self.results.get(node.id)
            if value is None:
                continue
            for name, source in (node.outputs or {}).items():
                if "." not in name and "[" not in name and (part := _part(value, source)) is not None:
                    yield name, part


def _schema_of(node: Node, agents: Mapping[str, JsonObject | None]) -> JsonObject | None:
    if node.execution is not None and node.execution.error_handler == "continue":
        return None  # a failure may take the place of the result
    match node.config:
        case AgentConfig(output_schema=schema) if schema is not None:
            return schema
        case AgentConfig(agent=name) if name is not None:
            return agents.get(name)
        case HumanConfig(editable=editable, form=form):
            data: JsonObject = {} if editable else form if form is not None else {"type": "null"}
            return {"type": "object", "properties": {"response": {"type": "string"}, "data": data, "votes": {}}}
        case _:
            return None


def _part(value: Described, source: str) -> Described | None:
    """Return the description of `result` or `result.a.b` of a described result."""
    if source != "result" and not source.startswith("result."):
        return None
    try:
        keys = compile_path(source).segments[1:]
    except ExpressionError:
        return None
    if not keys:
        return value._replace(extra=frozenset())
    if keys[0] in value.extra:
        return None
    shape = shape_of(value.schema, value.document)
    for key in keys:
        if not isinstance(key, str | int):
            return None
        shape, missing = _step(shape, key, value)
        if missing is not None or shape.schema is None:
            return None
    return Described(shape.schema or {}, value.document, value.closed)


def _step(shape: ValueShape, key: str | int | None, value: Described) -> tuple[ValueShape, tuple[str, ...] | None]:
    """Return the shape below a key; and, if the key is missing, the existing keys."""
    schema = shape.schema
    if shape.types and shape.types <= _SCALARS and not (isinstance(key, int | None) and "string" in shape.types):
        return shape, ()
    if schema is None or (key is None and "items" not in schema):
        return ValueShape(), None
    properties = schema.get("properties")
    if isinstance(key, str) and isinstance(properties, dict) and properties and key not in properties:
        is_open = "additionalProperties" in schema or "patternProperties" in schema
        if value.closed and not is_open:
            return shape, tuple(properties)
    try:
        return Schemas({"": value.document}).below(shape, key, ""), None
    except UnknownKey as why:
        return shape, why.known


def _misread(subject: Subject, reading: FormulaRead, value: Described, path: Keys, name: str) -> Iterator[Problem]:
    shape = shape_of(value.schema, value.document)
    for depth, key in enumerate(path):
        if depth == 0 and key in value.extra and key not in _keys_of(shape.schema):
            return
        below, known = _step(shape, key, value)
        if known is not None:
            if not reading.read.guarded or not value.closed:
                yield _unknown(subject, reading, str(key), known, f"{name}{_at(path[:depth])}", shape)
            return
        if below.schema is None:
            return
        shape = below
    if shape.types == _NOTHING and not reading.read.guarded:
        yield _unknown(subject, reading, str(path[-1]), (), f"{name}{_at(path[:-1])}", shape)


def _keys_of(schema: JsonObject | None) -> Mapping[str, Json]:
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _at(path: Keys) -> str:
    return f" at {dotted(path)!r}" if path else ""


def _unknown(
    subject: Subject, reading: FormulaRead, key: str, known: tuple[str, ...], name: str, shape: ValueShape
) -> Problem:
    place, read = reading.place, reading.read
    near = subject.nearest(key, known)
    if known:
        rest = f"It has {listed(known)}."
    elif shape.types == _NOTHING:
        rest = "A gate without `form` collects no data. Add a `form`, or read `response`."
    else:
        rest = f"It is a {' or '.join(sorted(shape.types))}, which has no keys."
    written = place.text[read.offset : read.offset + read.length]
    at = written.rfind(key)
    fix = None
    if near is not None and at >= 0:
        start = read.offset + at
        fix = replace(place.pointer, place.text[:start] + near + place.text[start + len(key) :])
    message = f"{name} has no {key!r}: {written!r} never has a value"
    return warning("unknown-path", place.pointer, message, hint=question(near, rest), fix=fix)
