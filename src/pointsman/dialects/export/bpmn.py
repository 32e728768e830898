"""Export of a workflow as BPMN 2.0 XML for other tools: a process without a diagram, and a list of losses.

    nodes ─▶ tasks, gateways, events      parallel over items, loop ─▶ sub-processes (multi-instance, standard loop)
    edges ─▶ sequence flows               several edges out or in   ─▶ gateways of their own

BPMN describes control flow. It cannot express which agent or tool does the work; these are the losses.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pointsman.definition.graph.analysis import analyse
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects.export.bpmn_flow import PROCESS, Drawing
from pointsman.dialects.export.bpmn_nodes import Element, clean, element_of, is_region, made, said
from pointsman.dialects.export.regions import Regions, regions_of
from pointsman.dialects.losses import NEVER_LOST, document_of, loss, lost_fields

MODEL: Final = "http://www.omg.org/spec/BPMN/20100524/MODEL"
_SCHEMA_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
OWN: Final = "urn:pointsman:bpmn"
"""Namespace of the attributes with ids and types of the workflow."""

_HEAD: Final = NEVER_LOST | {"name", "description", "entry", "metadata", "canvas"}
_NODE: Final = frozenset(("id", "type", "name", "description", "routing", "config", "position", "metadata"))
_CONFIG: Final = frozenset(
    ("while", "until", "over", "maxIterations", "body", "items", "branches", "text", "terminate", "event", "duration")
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The XML text, and the parts of the workflow that it lacks."""

    text: str
    losses: tuple[Problem, ...]


def write(workflow: WorkflowDefinition) -> Drawn:
    """Return the workflow as BPMN. The XML is well-formed for any names: names are attributes and texts, ids are
    numbers."""
    graph = analyse(workflow)
    owners = [number for number, node in enumerate(workflow.nodes) if is_region(node)]
    regions = regions_of(graph, owners=owners)
    process = _process(workflow)
    signals: dict[str, int] = {}
    containers, elements = _elements(workflow, regions, process, signals)
    drawing = Drawing(workflow, graph, regions, containers, elements)
    drawing.draw()
    _notes_last(containers)
    root = ElementTree.Element("definitions", {"xmlns": MODEL, "xmlns:xsi": _SCHEMA_INSTANCE, "xmlns:pointsman": OWN})
    root.set("id", "definitions")
    root.set("targetNamespace", OWN)
    root.extend(made("signal", f"signal{number}", name=name) for name, number in signals.items())
    root.append(process)
    ElementTree.indent(root)
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
    return Drawn(text, (*_lost(workflow), *drawing.losses))


def _process(workflow: WorkflowDefinition) -> Element:
    process = made("process", "process", name=str(workflow.name or workflow.id))
    process.set("isExecutable", "false")
    process.set("pointsman:id", clean(workflow.id))
    if workflow.description is not None:
        said(process, "documentation", str(workflow.description))
    return process


def _elements(
    workflow: WorkflowDefinition, regions: Regions, process: Element, signals: dict[str, int]
) -> tuple[dict[int, Element], dict[str, Element]]:
    """Create every node's element inside its region's element. Owners of regions come first, because their elements
    contain the others."""
    containers = {PROCESS: process}
    elements: dict[str, Element] = {}
    order = sorted(range(len(workflow.nodes)), key=lambda number: (len(regions.around[number]), number))
    for number in order:
        element = element_of(workflow.nodes[number], f"n{number}", signals)
        elements[f"n{number}"] = element
        around = regions.around[number]
        containers[around[-1] if around else PROCESS].append(element)
        if number in regions.kinds:
            containers[number] = element
    return containers, elements


def _notes_last(containers: dict[int, Element]) -> None:
    """Move annotations behind all flow elements, as the BPMN schema requires."""
    for container in containers.values():
        notes = container.findall("textAnnotation")
        for note in notes:
            container.remove(note)
        container.extend(notes)


def _lost(workflow: WorkflowDefinition) -> Iterator[Problem]:
    yield from lost_fields(workflow, _HEAD, "", "bpmn")
    for number, node in enumerate(workflow.nodes):
        yield from lost_fields(node, _NODE, f"/nodes/{number}", "bpmn")
        if lost := [key for key in document_of(node.config) if key not in _CONFIG]:
            what = f"the configuration of {node.label!r} ({', '.join(lost)})"
            yield loss(f"/nodes/{number}/config", what, "bpmn")
