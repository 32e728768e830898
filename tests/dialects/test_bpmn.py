"""BPMN export: well-formed, flows within one process, gateways for several ways, losses reported."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.export import bpmn
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import WORKFLOWS, imported, workflow_of

NS = f"{{{bpmn.MODEL}}}"
OWN = f"{{{bpmn.OWN}}}"


def xml_of(workflow: WorkflowDefinition) -> ElementTree.Element:
    return ElementTree.fromstring(bpmn.write(workflow).text)


def made(nodes: list[JsonObject], edges: list[JsonObject]) -> ElementTree.Element:
    found, problems = WorkflowDefinition.from_document(
        {"id": "w", "nodes": cast(Json, nodes), "edges": cast(Json, edges)}
    )
    assert found is not None, problems
    return xml_of(found)


def tags(root: ElementTree.Element) -> list[str]:
    return [element.tag.removeprefix(NS) for element in root.iter()]


def by_id(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    return {element.attrib["id"]: element for element in root.iter() if "id" in element.attrib}


@pytest.mark.parametrize("file", WORKFLOWS)
def test_flows_stay_inside_a_process_and_each_node_occurs_once(file: str) -> None:
    workflow = workflow_of(imported(file))
    root = xml_of(workflow)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    named = [element.attrib[f"{OWN}id"] for element in root.iter() if f"{OWN}type" in element.attrib]
    assert sorted(named) == sorted(node.id for node in workflow.nodes)
    for scope in (element for element in root.iter() if element.tag in (f"{NS}process", f"{NS}subProcess")):
        own = {child.attrib["id"] for child in scope if "id" in child.attrib}
        for flow in scope.findall(f"{NS}sequenceFlow"):
            assert {flow.attrib["sourceRef"], flow.attrib["targetRef"]} <= own
        starts = [child for child in scope if child.tag == f"{NS}startEvent"]
        assert len(starts) == 1


@pytest.mark.parametrize("file", WORKFLOWS)
def test_no_activity_has_several_incoming_or_outgoing_flows(file: str) -> None:
    root = xml_of(workflow_of(imported(file)))
    elements = by_id(root)
    for end in ("sourceRef", "targetRef"):
        seen: set[str] = set()
        for flow in root.iter(f"{NS}sequenceFlow"):
            element = elements[flow.attrib[end]]
            if not element.tag.endswith(("Gateway", "endEvent")):
                assert flow.attrib[end] not in seen
            seen.add(flow.attrib[end])


NODES: list[JsonObject] = [
    {"id": "s", "type": "start"},
    {"id": "a", "type": "agent"},
    {"id": "h", "type": "human"},
    {"id": "p", "type": "parallel"},
    {"id": "x", "type": "tool", "config": {"tool": "t"}},
    {"id": "y", "type": "workflow", "config": {"workflow": "other@2"}},
    {"id": "j", "type": "join"},
    {"id": "w", "type": "wait", "config": {"duration": "90s"}},
    {"id": "v", "type": "wait", "config": {"event": "paid"}},
    {"id": "e", "type": "end", "config": {"terminate": True}},
    {"id": "n", "type": "note", "config": {"text": "Why"}},
]
EDGES: list[JsonObject] = [
    {"source": "s", "target": "a"},
    {"source": "a", "target": "h"},
    {"source": "a", "target": "e", "condition": {"type": "error"}},
    {"source": "h", "target": "p", "condition": {"type": "label", "label": "approve"}},
    {"source": "h", "target": "e", "condition": {"type": "default"}},
    {"source": "p", "target": "x"},
    {"source": "p", "target": "y"},
    {"source": "x", "target": "j"},
    {"source": "y", "target": "j"},
    {"source": "j", "target": "w"},
    {"source": "w", "target": "v"},
    {"source": "v", "target": "e"},
]


def test_types_and_routing_become_elements_and_gateways() -> None:
    root = made(NODES, EDGES)
    own = {
        element.attrib[f"{OWN}id"]: element.tag.removeprefix(NS)
        for element in root.iter()
        if f"{OWN}type" in element.attrib
    }
    assert own == {
        "s": "startEvent",
        "a": "serviceTask",
        "h": "userTask",
        "p": "parallelGateway",
        "x": "serviceTask",
        "y": "callActivity",
        "j": "parallelGateway",
        "w": "intermediateCatchEvent",
        "v": "intermediateCatchEvent",
        "e": "endEvent",
    }
    elements = by_id(root)
    assert elements["n2out"].tag == f"{NS}exclusiveGateway"
    assert elements[elements["n2out"].attrib["default"]].attrib["targetRef"] == "n9"
    assert elements["b2"].attrib["attachedToRef"] == "n1"
    assert [element.text for element in root.iter(f"{NS}timeDuration")] == ["PT90S"]
    assert [element.attrib["name"] for element in root.iter(f"{NS}signal")] == ["paid"]
    assert [element.text for element in root.iter(f"{NS}text")] == ["Why"]
    assert "terminateEventDefinition" in tags(root)


def test_items_and_loops_become_repeated_sub_processes() -> None:
    root = xml_of(workflow_of(imported("graph/improvement-desk")))
    desks = next(element for element in root.iter(f"{NS}subProcess") if element.attrib[f"{OWN}id"] == "desks")
    rounds = next(element for element in desks.iter(f"{NS}subProcess") if element.attrib[f"{OWN}id"] == "rounds")
    instances = desks.find(f"{NS}multiInstanceLoopCharacteristics")
    standard = rounds.find(f"{NS}standardLoopCharacteristics")
    assert instances is not None
    assert instances.attrib["isSequential"] == "false"
    assert standard is not None
    assert (standard.attrib["loopMaximum"], standard.attrib["testBefore"]) == ("3", "true")
    inside = [element.attrib.get(f"{OWN}id") for element in rounds.iter(f"{NS}serviceTask")]
    assert inside == ["judge", "improve"]


@given(name=st.text(max_size=60), text=st.text(max_size=60))
def test_any_name_gives_well_formed_xml(name: str, text: str) -> None:
    root = made(
        [{"id": "a", "type": "agent", "name": name, "description": text}, {"id": "b", "type": "human"}],
        [{"source": "a", "target": "b", "condition": {"type": "expression", "expression": text}, "label": name}],
    )
    assert root.tag == f"{NS}definitions"


def test_losses_of_the_bpmn_export_are_listed() -> None:
    losses = bpmn.write(workflow_of(imported("rows/2nchat"))).losses
    places = [loss.pointer for loss in losses]
    assert "/nodes/0/config" in places
    assert "/edges/14" in places
    assert {loss.code for loss in losses} == {"not-in-dialect"}
