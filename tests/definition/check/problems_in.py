"""Short functions for tests of checks: check a drawing, look at the problems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pointsman.definition.checks import check
from pointsman.definition.checks.subject import UNKNOWN_INSTALLATION, Installation
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject
from tests.definition.graphs import document

Configs: TypeAlias = Mapping[str, Mapping[str, Json]]


def workflow_of(native: JsonObject) -> WorkflowDefinition:
    workflow, problems = WorkflowDefinition.from_document(native)
    assert workflow is not None, problems
    return workflow


def found(native: JsonObject, *, known: Installation = UNKNOWN_INSTALLATION) -> tuple[Problem, ...]:
    return check(workflow_of(native), installation=known)


def drawn(
    drawing: str, *, configs: Configs | None = None, known: Installation = UNKNOWN_INSTALLATION, **keys: Json
) -> tuple[Problem, ...]:
    """Return the problems of a drawing. Callers give `x`, `y`, `z`, unless `input` defines others."""
    given: JsonObject = {"type": "object", "properties": {"x": {}, "y": {}, "z": {}}}
    native = document(drawing, configs=configs, **{"input": given, **keys})
    return found(native, known=known)


def codes(problems: tuple[Problem, ...]) -> list[str]:
    """Return the codes of errors and warnings, sorted, without notes."""
    return sorted(problem.code for problem in problems if problem.severity != "note")


def the(problems: tuple[Problem, ...], code: str) -> Problem:
    """Return the only problem of this code."""
    (problem,) = (one for one in problems if one.code == code)
    return problem
