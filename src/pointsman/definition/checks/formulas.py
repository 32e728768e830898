"""All expressions, templates, paths and queries of a workflow: compiled, with their errors, reads and writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pointsman.definition.checks.subject import Subject
from pointsman.definition.naming_rules import names_of, names_within, spelling_of
from pointsman.definition.problems import Problem, error, note, pointer_to, warning
from pointsman.definition.text_locations import TextLocation
from pointsman.expressions.compiler import Expression, compile_expression
from pointsman.expressions.environment import Names
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.jsonpath import compile_jsonpath
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.paths import ItemKey, compile_path
from pointsman.expressions.template_parser import EachBlock, If, Spelling, Tag
from pointsman.expressions.templates import Template, check_address, compile_parameters, compile_template
from pointsman.expressions.types import Schemas, TypeFinding, check_template_types, check_types
from pointsman.values import Json, JsonObject

NOTES: Final = frozenset({"list-may-miss", "order-may-miss"})
"""Findings that describe behaviour rather than a defect."""

_ITEMS: Final = re.compile(r"/config/(items|over)$")
CONDITIONS: Final = frozenset({"while", "until", "when"})


def check_types_of(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    schemas = _schemas(subject, {writing.keys[0] for writing in formulas.writings})
    for place, expression in formulas.expressions:
        typed = check_types(
            expression, schemas, condition=_is_condition(place), items=bool(_ITEMS.search(place.pointer))
        )
        yield from _problems_of(place, typed, is_certain=not expression.reads)
    for place, names, template in formulas.templates:
        yield from _problems_of(place, check_template_types(template, names, schemas))


def _problems_of(
    place: FormulaLocation, findings: Iterable[TypeFinding], *, is_certain: bool = False
) -> Iterator[Problem]:
    """`is_certain`: the formula reads no data, so that a step with items that are not a list always fails."""
    for finding in findings:
        if finding.code != "unknown-path" or finding.of_variable:  # `check_results` reports the others
            make = note if finding.code in NOTES else warning
            make = error if is_certain and finding.code == "items-not-a-list" else make
            message = f"{finding.message} (column {finding.offset + 1})"
            yield make(finding.code, place.pointer, message, hint=finding.hint)


def _is_condition(place: FormulaLocation) -> bool:
    return place.pointer.endswith("/condition/expression") or place.pointer.rpartition("/")[2] in CONDITIONS


def _schemas(subject: Subject, written: Collection[str | int | None]) -> Schemas:
    """Return the declared schemas of the data. The state is open: nodes may write undeclared fields.

    `written`: fields that nodes write; they need not have the type of the input."""
    fields: JsonObject = {}
    schema = subject.input_schema
    properties = (schema or {}).get("properties")
    if isinstance(properties, dict):
        fields.update((name, part) for name, part in properties.items() if name not in written)
    for pattern, about in (subject.workflow.state or {}).items():
        if about.schema_ is not None and "." not in pattern and "*" not in pattern:
            fields[pattern] = about.schema_
    result: dict[str, JsonObject] = {"state": {"type": "object", "properties": fields}} if fields else {}
    return Schemas(result if schema is None else {**result, "input": schema})


OF_TRIGGERS: Final = frozenset({"event", "headers"})
"""The only names in formulas of a trigger, which is evaluated before an execution exists."""
OF_REQUEST: Final = ("config", "url")
"""Position of the URL in an HTTP node."""

FOREIGN_MARK: Final = re.compile(r"\$[.{(\[\w]|=\{|<[%<]|\[\[|%[(\w]|｛")
"""Marks of a placeholder in the syntax of another language."""

Keys = tuple[str | int | None, ...]
"""A path into the state; None stands for any key."""


class FormulaLocation(NamedTuple):
    """Position of a formula: at a node, on an edge (then `node` is its source), or in the workflow as a whole."""

    node: int | None
    edge: int | None
    pointer: str
    text: str


class FormulaRead(NamedTuple):
    """One path that a formula reads."""

    place: FormulaLocation
    read: PathRead
    demands: bool
    """True if a missing value fails the step: `{x}` in a prompt."""


class CheckedTemplate(NamedTuple):
    """A template, and the parts of it that are left as text."""

    place: FormulaLocation
    names: Names
    literal: tuple[int, ...]
    """Offsets of braces that are text."""
    whole: bool
    """True for a parameter: its whole text may have been meant as a path."""


class Writing(NamedTuple):
    """One path that a node writes."""

    node: int
    keys: Keys
    pointer: str
    certain: bool
    """True if it is written whenever the node is done; false for fields that a person may edit."""
    by_item: bool
    """True if the path contains the key of the branch's item, so that no two branches write the same path."""


@dataclass(slots=True)
class Formulas:
    """All findings, reads and writes."""

    problems: list[Problem] = field(default_factory=list[Problem])
    readings: list[FormulaRead] = field(default_factory=list[FormulaRead])
    writings: list[Writing] = field(default_factory=list[Writing])
    texts: list[CheckedTemplate] = field(default_factory=list[CheckedTemplate])
    templates: list[tuple[FormulaLocation, Names, Template]] = field(
        default_factory=list[tuple[FormulaLocation, Names, Template]]
    )
    """Templates that compute something."""
    expressions: list[tuple[FormulaLocation, Expression]] = field(
        default_factory=list[tuple[FormulaLocation, Expression]]
    )


def read_formulas(subject: Subject) -> Formulas:
    """Compile all formulas. An error in one does not stop the others."""
    reader = _FormulaReader(subject)
    for location in subject.text_locations:
        if location.kind == "parameters":
            for parts, text in _texts(location.tree, location.parts):
                reader.read(location._replace(text=text, parts=parts))
        elif location.kind in ("expression", "template", "path", "jsonpath"):
            reader.read(location)
    return reader.found


def _texts(tree: Json, parts: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text of a JSON tree with its position."""
    waiting: list[tuple[tuple[str | int, ...], Json]] = [(parts, tree)]
    while waiting:
        at, value = waiting.pop()
        match value:
            case str():
                yield at, value
            case list():
                waiting.extend(((*at, index), one) for index, one in reversed([*enumerate(value)]))
            case dict():
                waiting.extend(((*at, key), one) for key, one in reversed([*value.items()]))
            case _:
                pass


class _FormulaReader:
    """Compiler of text locations, one after the other."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.found = Formulas()
        self.spelling: Spelling = spelling_of(subject.workflow)
        self.names = names_of(subject.workflow, subject.graph, subject.names)
        self.within: tuple[int, str, Names] = (-1, "", Names())
        inputs = {name for node in subject.nodes for name in node.inputs or {}}
        self.at_large = subject.names
        self.anywhere = replace(self.at_large, as_names=frozenset(inputs | {"text"}))
        """Names for agents defined outside of nodes: they see the inputs of every node that uses them."""

    def read(self, location: TextLocation) -> None:
        place, names = self.place(location), self.names_at(location)
        try:
            self.compile(location, place, names)
        except ExpressionError as why:
            self.found.problems.append(self.problem(location, why))

    def compile(self, location: TextLocation, place: FormulaLocation, names: Names) -> None:
        match location.kind:
            case "expression":
                expression = compile_expression(location.text, names=names)
                self.found.expressions.append((place, expression))
                if location.parts[0] == "triggers":
                    self.found.problems += _reads_of_trigger(location, expression)
                else:
                    self.note(place, expression.reads, demands=False)
            case "template":
                self.note(place, self.template(location, place, names).reads, demands=True)
            case "parameters":
                parameters = compile_parameters(location.text, names=names, spelling=self.spelling)
                self.note(place, tuple(read for _, read in parameters.reads), demands=True)
                if parameters.secrets and location.parts[2:] == OF_REQUEST:
                    check_address(parameters.secrets[0], location.text)
                if not parameters.secrets:
                    self.template(location, place, names)
            case "jsonpath":
                compile_jsonpath(location.text)
            case "path":
                self.path(location, place, names)
            case _:
                pass

    def template(self, location: TextLocation, place: FormulaLocation, names: Names) -> Template:
        template = compile_template(location.text, names=names, spelling=self.spelling)
        if _computes(template):
            self.found.templates.append((place, names, template))
        whole = location.kind == "parameters" and template.fixed
        unbalanced = location.text.count("{") != location.text.count("}")
        if template.literal or whole or unbalanced or FOREIGN_MARK.search(location.text):
            self.found.texts.append(CheckedTemplate(place, names, template.literal, whole))
        return template

    def path(self, location: TextLocation, place: FormulaLocation, names: Names) -> None:
        segments = compile_path(location.text, names=names).segments
        keys = tuple(None if isinstance(key, ItemKey) else key for key in segments)
        if not location.writes:
            read = PathRead("state", keys, 0, len(location.text), guarded=True)
            self.found.readings.append(FormulaRead(place, read, demands=False))
        elif place.node is not None:
            certain = "editable" not in location.parts and "failuresInto" not in location.parts
            by_item = any(isinstance(key, ItemKey) for key in segments)
            self.found.writings.append(Writing(place.node, keys, place.pointer, certain, by_item))

    def note(self, place: FormulaLocation, reads: tuple[PathRead, ...], *, demands: bool) -> None:
        for read in reads:
            # `{x}` fails if x is missing; `{{x}}` renders nothing.
            single = place.text.startswith("{", read.offset - 1) and not place.text.startswith("{{", read.offset - 2)
            self.found.readings.append(FormulaRead(place, read, demands and single and not read.guarded))

    def place(self, location: TextLocation) -> FormulaLocation:
        head, *rest = location.parts
        if head == "nodes" and isinstance(rest[0], int):
            return FormulaLocation(rest[0], None, location.pointer, location.text)
        if head == "edges" and isinstance(rest[0], int):
            source = self.subject.graph.edges[rest[0]].source
            return FormulaLocation(source if source >= 0 else None, rest[0], location.pointer, location.text)
        return FormulaLocation(None, None, location.pointer, location.text)

    def names_at(self, location: TextLocation) -> Names:
        head, *rest = location.parts
        if head == "agents":
            return self.anywhere
        if head == "triggers":
            return Names(OF_TRIGGERS)
        if head == "nodes" and isinstance(rest[0], int):
            return self.names_within(rest[0], str(rest[2])) if rest[1] == "config" else self.names[rest[0]]
        if head == "edges" and isinstance(rest[0], int) and (source := self.subject.graph.edges[rest[0]].source) >= 0:
            return self.names[source]
        return Names(fields_first=self.anywhere.fields_first)

    def names_within(self, node: int, key: str) -> Names:
        """Return the names of a field of a node's configuration. Cached: the field may contain many texts."""
        if self.within[:2] != (node, key):
            names, own = self.names[node], names_within(self.subject.nodes[node], key)
            self.within = (node, key, Names(names.as_names | own, names.fields_first, names.declared) if own else names)
        return self.within[2]

    def problem(self, location: TextLocation, why: ExpressionError) -> Problem:
        return error(why.code, pointer_to(*location.parts), f"{why} (column {why.offset + 1})", hint=why.hint)


def _computes(template: Template) -> bool:
    return any(
        isinstance(piece, If | EachBlock) or (isinstance(piece, Tag) and piece.path is None)
        for piece in template.pieces
    )


def _reads_of_trigger(location: TextLocation, expression: Expression) -> Iterator[Problem]:
    for read in expression.reads:
        if read.root not in OF_TRIGGERS:
            name = location.text[read.offset : read.offset + read.length]
            message = f"a trigger reads {name!r}, which does not exist before an execution starts"
            yield error("trigger-reads-state", location.pointer, message, hint="Read `event` (the data) or `headers`.")
