"""Types of expressions: comparisons that never hold, conditions that are no yes or no, fields no schema has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pointsman.definition.checks.formulas import Formulas, Place
from pointsman.definition.checks.subject import Subject
from pointsman.definition.problems import Problem, note, warning
from pointsman.expressions.types import Finding, check_template_types, check_types
from pointsman.values import JsonObject

NOTES: Final = frozenset({"list-may-miss", "order-may-miss"})
"""Findings that say what happens rather than what is wrong."""

CONDITIONS: Final = frozenset({"while", "until", "when"})


def check_types_of(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    schemas = _schemas(subject)
    for place, expression in formulas.expressions:
        yield from _told(place, check_types(expression, schemas, condition=_is_condition(place)))
    for place, names, template in formulas.templates:
        yield from _told(place, check_template_types(template, names, schemas))


def _told(place: Place, findings: Iterable[Finding]) -> Iterator[Problem]:
    for finding in findings:
        if finding.code != "unknown-path":  # `check_results` reports those, of every text.
            make = note if finding.code in NOTES else warning
            message = f"{finding.message} (column {finding.offset + 1})"
            yield make(finding.code, place.pointer, message, hint=finding.hint)


def _is_condition(place: Place) -> bool:
    return place.pointer.endswith("/condition/expression") or place.pointer.rpartition("/")[2] in CONDITIONS


def _schemas(subject: Subject) -> dict[str, JsonObject]:
    """What is declared of the data. The state is open: nodes write what nobody declared."""
    fields: JsonObject = {}
    schema = subject.input_schema
    properties = (schema or {}).get("properties")
    if isinstance(properties, dict):
        fields.update(properties)
    for pattern, about in (subject.workflow.state or {}).items():
        if about.schema_ is not None and "." not in pattern and "*" not in pattern:
            fields[pattern] = about.schema_
    found: dict[str, JsonObject] = {"state": {"type": "object", "properties": fields}} if fields else {}
    return found if schema is None else {**found, "input": schema}
