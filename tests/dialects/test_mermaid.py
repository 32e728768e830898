"""Mermaid pictures: complete, framed, and safe for any names."""

from __future__ import annotations

import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.export.mermaid import draw
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import WORKFLOWS, imported, workflow_of

LINE = re.compile(
    r" *(flowchart TD|end|classDef .*"
    r"|subgraph g\d+ \[L\]"
    r"|(n|m)\d+(\(\[|\[\[|\{\{|\[\(|\[/|\[\\|\(\(|\{|\(|>|\[)L(\]\)|\]\]|\}\}|\)\]|/\]|\\\]|\)\)|\}|\)|\])(:::\w+)?"
    r"|begin\(\(L\)\)|finish\(\(\(L\)\)\)"
    r"|(n|m)\d+ (-->|-\.->)(\|L\|)? ((n|m)\d+|finish)|begin --> n\d+)"
)
LABEL = re.compile(r'"(?:[\w \-.,:/!?+=…]|#\d+;)*"')


def lines_of(picture: str) -> list[str]:
    """Return the lines with every label replaced by L."""
    return [LABEL.sub("L", line) for line in picture.splitlines()]


def workflow(nodes: list[JsonObject], edges: list[JsonObject]) -> WorkflowDefinition:
    found, problems = WorkflowDefinition.from_document(
        {"id": "w", "nodes": cast(Json, nodes), "edges": cast(Json, edges)}
    )
    assert found is not None, problems
    return found


@pytest.mark.parametrize("file", WORKFLOWS)
@pytest.mark.requirement("S1-151")
def test_every_node_and_edge_is_drawn(file: str) -> None:
    drawn = workflow_of(imported(file))
    lines = lines_of(draw(drawn))
    assert all(LINE.fullmatch(line) for line in lines), [line for line in lines if not LINE.fullmatch(line)]
    assert {line.strip().split("[")[0].split("{")[0].split("(")[0].split(">")[0] for line in lines} >= {
        f"n{number}" for number in range(len(drawn.nodes))
    }
    arrows = [line for line in lines if "-->" in line or "-.->" in line]
    assert len(arrows) >= len(drawn.edges)


@given(name=st.text(max_size=80), label=st.text(min_size=1, max_size=80))
def test_hostile_names_are_escaped(name: str, label: str) -> None:
    picture = draw(
        workflow(
            [{"id": "a", "type": "agent", "name": name}, {"id": "b", "type": "human"}],
            [{"source": "a", "target": "b", "condition": {"type": "label", "label": label}}],
        )
    )
    assert all(LINE.fullmatch(line) for line in lines_of(picture))


def test_directives_links_and_quotes_stay_inside_their_label() -> None:
    evil = 'x"] --> y; %%{init: {"securityLevel": "loose"}}%%\nclick n0 "javascript:alert(1)" <script>'
    picture = draw(workflow([{"id": evil, "type": "agent"}], []))
    assert "%%" not in picture
    assert "<" not in picture
    assert len(picture.splitlines()) == 7


def test_branches_and_loop_bodies_are_framed() -> None:
    picture = draw(workflow_of(imported("graph/news-reporter")))
    frames = [line.strip() for line in picture.splitlines() if "subgraph" in line or line.strip() == "end"]
    assert len(frames) == 4
    assert frames[1] == 'subgraph g6 ["at most 3 rounds"]'
    inner = picture[picture.index("subgraph g6") : picture.index("end\n", picture.index("subgraph g6"))]
    assert 'n7["review"]' in inner


def test_a_dangling_edge_leads_to_a_dashed_box() -> None:
    picture = draw(workflow_of(imported("rows/2nchat")))
    assert 'm0["missing: node-uuid-6"]:::missing' in picture
    assert picture.count(" m0") == 4


def test_deep_nesting_is_drawn() -> None:
    depth = 400
    nodes: list[JsonObject] = [{"id": f"l{n}", "type": "loop", "config": {"maxIterations": 2}} for n in range(depth)]
    edges: list[JsonObject] = [{"source": f"l{n}", "target": f"l{n + 1}", "mark": "body"} for n in range(depth - 1)]
    back: list[JsonObject] = [{"source": f"l{n + 1}", "target": f"l{n}"} for n in range(depth - 1)]
    picture = draw(workflow(nodes, [*edges, *back]))
    assert picture.count("subgraph") == depth - 1
