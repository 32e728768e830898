"""Invalid values anywhere in a document of the older format give problems at the author's positions, never an
exception."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.definition.problems import pointer_to
from pointsman.definition.reading.documents import read_document
from pointsman.dialects import native
from pointsman.dialects.detect import read_workflow
from pointsman.values import Json
from tests.definition.test_workflow import JUNK, places
from tests.dialects.old_documents import node, old

OLD = old(
    node(
        "s",
        "start",
        inputVariables=[{"name": "q", "type": "select", "options": ["a"]}],
        inputMapping={"a": "$.input.q"},
    ),
    {
        **node("p", "prompt", modelId="m", outputVariable="x", progress={"message": "m"}, timeout=3),
        "size": {"width": 1},
    },
    node("d", "decision", type="switch", variable="a", conditions=[{"branch": "b", "equals": 1}], choices=["c"]),
    node("h", "human", options=["a", {"value": "b"}], inputSchema={}, showData=["$.data.x"]),
    node(
        "l", "loop", mode="forEach", array="xs", concurrency=2, body=[node("i", "loop", mode="for", count=2, body=[])]
    ),
    node("c", "loop", mode="while", condition="a < 3"),
    {**node("k", "code", code="1"), "parentId": "c"},
    {**node("m", "memory", operation="read", scope="short_term", value="{{x}}"), "parentId": "c"},
    node("f", "parallel", branches=[{"id": "b", "nodes": [node("t", "tool", toolId="t")]}], outputVariable="o"),
    node("g", "parallel", dynamicBranches={"path": "xs", "as": "x"}),
    node("j", "join", aggregation="n_of_m", n=2, strategy="all", inputVariables=["a"]),
    node("r", "template-render", template="t", recordsVar="_r"),
    node("v", "verifier", criteria="c", inputVariable="x"),
    node("u", "structured-record", schemaName="n", inputPath="$.data.x"),
    node("e", "end", outputVariables=["x"], outputMapping={"y": "$.data.y"}),
    edges=(
        {"source": "d", "target": "h", "condition": {"type": "equals", "field": "result.branch", "value": True}},
        {"source": "k", "target": "m", "condition": {"type": "llm", "llmPrompt": "p"}, "animated": True},
        {"source": "d", "target": "h", "condition": {"type": "expression", "expression": "result.branch === 'x' && y"}},
    ),
    config={"maxExecutionTime": 1, "maxIterations": 2, "limits": {"parallel": 1}},
)
PLACES = places(OLD)[1:]


def mutated(path: tuple[str | int, ...], junk: Json) -> Any:
    document: Any = copy.deepcopy(OLD)
    holder = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = junk
    return document


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_invalid_values_anywhere_are_reported_at_their_position(path: tuple[str | int, ...], junk: Json) -> None:
    document = mutated(path, junk)
    read = read_workflow(read_document(json.dumps(document)))
    assert read.workflow is not None or read.problems
    known = {pointer_to(*place) for place in places(document)}
    assert {problem.pointer for problem in read.problems} <= known
    assert all(problem.line is not None for problem in read.problems)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_reading_does_not_change_the_authors_document(path: tuple[str | int, ...], junk: Json) -> None:
    document = mutated(path, junk)
    before = copy.deepcopy(document)
    native.read(document, name="w")
    assert document == before
