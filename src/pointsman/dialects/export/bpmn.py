"""Export of a workflow as BPMN 2.0 XML for other tools: a process without a diagram, and a list of losses.

    nodes ─▶ tasks, gateways, events      parallel over items, loop ─▶ sub-processes (multi-instance, standard loop)
    edges ─▶ sequence flows               several edges out or in   ─▶ gateways of their own

BPMN describes control flow. It cannot express which agent or tool does the work; these are the losses.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pointsman.definition.graph.analysis import Graph, Regions, analyse, regions_of
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeKind, EdgeRef, routing_of
from pointsman.definition.model.base import Text
from pointsman.definition.model.control import (
    EmitConfig,
    EndConfig,
    LoopConfig,
    NoteConfig,
    ParallelConfig,
    WaitConfig,
)
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.work import WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects.writers import NEVER_LOST, condition_text, document_of, loss, lost_fields

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
    return Drawn(text, (*_losses(workflow), *drawing.losses))


def _process(workflow: WorkflowDefinition) -> Element:
    process = made("process", "process", name=str(workflow.name or workflow.id))
    process.set("isExecutable", "false")
    process.set("pointsman:id", clean(workflow.id))
    if workflow.description is not None:
        text_element(process, "documentation", str(workflow.description))
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


def _losses(workflow: WorkflowDefinition) -> Iterator[Problem]:
    yield from lost_fields(workflow, _HEAD, "", "bpmn")
    for number, node in enumerate(workflow.nodes):
        yield from lost_fields(node, _NODE, f"/nodes/{number}", "bpmn")
        if lost := [key for key in document_of(node.config) if key not in _CONFIG]:
            what = f"the configuration of {node.label!r} ({', '.join(lost)})"
            yield loss(f"/nodes/{number}/config", what, "bpmn")


Element = ElementTree.Element

_ELEMENTS: Final[Mapping[str, str]] = {
    "start": "startEvent",
    "end": "endEvent",
    "human": "userTask",
    "code": "scriptTask",
    "transform": "scriptTask",
    "workflow": "callActivity",
    "parallel": "parallelGateway",
    "join": "parallelGateway",
    "emit": "intermediateThrowEvent",
    "wait": "intermediateCatchEvent",
    "note": "textAnnotation",
}
"""Node type -> element; all other types become service tasks."""

ACTIVITIES: Final = frozenset(("serviceTask", "userTask", "scriptTask", "callActivity", "subProcess"))
"""Elements at which errors can be caught."""
GATEWAYS: Final = frozenset(("exclusiveGateway", "inclusiveGateway", "parallelGateway"))

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot express, not even escaped."""


def is_region(node: Node) -> bool:
    """Return whether a node becomes a sub-process: loops, and parallels over items."""
    config = node.config
    return isinstance(config, LoopConfig) or (isinstance(config, ParallelConfig) and config.items is not None)


def element_of(node: Node, element_id: str, signals: dict[str, int]) -> Element:
    """Return the element of a node without its flows. `signals` numbers the names of events in order of appearance."""
    if isinstance(node.config, NoteConfig):
        note = made("textAnnotation", element_id)
        text_element(note, "text", str(node.config.text or node.label))
        return note
    tag = "subProcess" if is_region(node) else _ELEMENTS.get(node.type, "serviceTask")
    if node.type == "decision":
        tag = "inclusiveGateway" if routing_of(node) == "all" else "exclusiveGateway"
    element = made(tag, element_id, name=node.label)
    element.set("pointsman:id", clean(node.id))
    element.set("pointsman:type", clean(node.type))
    if node.description is not None:
        text_element(element, "documentation", str(node.description))
    _details(element, node, signals)
    return element


def _details(element: Element, node: Node, signals: dict[str, int]) -> None:
    match node.config:
        case LoopConfig(over=str(items)):
            _instances(element, items, one_by_one=True)
        case LoopConfig() as config:
            _rounds(element, config)
        case ParallelConfig(items=str(items)):
            _instances(element, items, one_by_one=False)
        case EndConfig(terminate=True):
            ElementTree.SubElement(element, "terminateEventDefinition")
        case EmitConfig(event=name):
            _signal(element, name, signals)
        case WaitConfig() as config:
            _wait(element, config, signals)
        case WorkflowCallConfig(workflow=called):
            element.set("pointsman:workflow", clean(called))
        case _:
            pass


def _instances(element: Element, items: str, *, one_by_one: bool) -> None:
    loop = ElementTree.SubElement(element, "multiInstanceLoopCharacteristics")
    loop.set("isSequential", "true" if one_by_one else "false")
    loop.set("pointsman:items", clean(items))


def _rounds(element: Element, config: LoopConfig) -> None:
    loop = ElementTree.SubElement(element, "standardLoopCharacteristics", {"testBefore": "true"})
    if config.max_iterations is not None:
        loop.set("loopMaximum", str(config.max_iterations))
    test = config.while_ or (f"not ({config.until})" if config.until is not None else None)
    if test is not None:
        formal(loop, "loopCondition", test)


def _signal(element: Element, name: str | Text, signals: dict[str, int]) -> None:
    number = signals.setdefault(str(name), len(signals))
    ElementTree.SubElement(element, "signalEventDefinition", {"signalRef": f"signal{number}"})


def _wait(element: Element, config: WaitConfig, signals: dict[str, int]) -> None:
    if config.event is not None:
        _signal(element, config.event, signals)
        return
    timer = ElementTree.SubElement(element, "timerEventDefinition")
    if config.duration is not None:
        formal(timer, "timeDuration", f"PT{config.duration.seconds:g}S")
    elif config.until is not None:
        formal(timer, "timeDate", config.until)


def made(tag: str, element_id: str, *, name: str = "") -> Element:
    return ElementTree.Element(tag, {"id": element_id, **({"name": clean(name)} if name else {})})


def text_element(parent: Element, tag: str, text: str) -> Element:
    child = ElementTree.SubElement(parent, tag)
    child.text = clean(text)
    return child


def formal(parent: Element, tag: str, expression: str) -> None:
    text_element(parent, tag, expression).set("xsi:type", "tFormalExpression")


def clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


PROCESS: Final = -1
"""Region of elements that are in no other region."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A sequence flow inside one region."""

    region: int
    source: str
    target: str
    name: str = ""
    condition: str = ""
    kind: EdgeKind = "plain"


@dataclass(slots=True)
class Drawing:
    """The elements of a process and the flows between them."""

    workflow: WorkflowDefinition
    graph: Graph
    regions: Regions
    containers: dict[int, Element]
    """Region -> the element that contains its parts."""
    elements: dict[str, Element]
    flows: dict[Flow, None] = field(default_factory=dict[Flow, None])
    losses: list[Problem] = field(default_factory=list[Problem])

    def draw(self) -> None:
        for ref in self.graph.edges:
            self._edge(ref)
        if (entry := self.graph.entry) is not None and self.workflow.nodes[entry].type != "start":
            self._flow(Flow(PROCESS, self._event("startEvent", "begin", PROCESS), f"n{entry}"))
        self._close()
        self._gather()
        self._split()
        self._write()

    def _edge(self, ref: EdgeRef) -> None:
        at = f"/edges/{ref.number}"
        if DANGLING in (ref.source, ref.target):
            self.losses.append(loss(at, "an edge that leads nowhere", "bpmn"))
        elif ref.kind == "never":
            self.losses.append(loss(f"{at}/condition", "an edge that is never taken", "bpmn"))
        else:
            self._connect(ref, self._condition_flow(ref, at))

    def _condition_flow(self, ref: EdgeRef, at: str) -> Flow:
        """Return a flow with the label and condition of an edge, without its ends."""
        edge = self.workflow.edges[ref.number] if ref.number < len(self.workflow.edges) else None
        if edge is None or ref.kind in ("plain", "default", "error"):
            return Flow(PROCESS, "", "", str(edge.label or "") if edge is not None else "", kind=ref.kind)
        text = condition_text(edge.condition, edge.source) if edge.condition is not None else None
        if text is None and ref.kind == "llm":
            self.losses.append(loss(f"{at}/condition", "a question to a model", "bpmn"))
        label = edge.label or getattr(edge.condition, "label", "")
        return Flow(PROCESS, "", "", str(label), text or "", ref.kind)

    def _connect(self, ref: EdgeRef, flow: Flow) -> None:
        """Add flows out of every region that contains only the source, and into the target. A region can be entered
        only at its owner."""
        source_in = self.regions.around[ref.source]
        target_in = self.regions.around[ref.target] if ref.target != TO_END else source_in
        shared = _shared(source_in, target_in)
        leaving, entering = source_in[shared:], target_in[shared:]
        around = source_in[shared - 1] if shared else PROCESS
        if entering == (ref.source,):
            start = self._event("startEvent", f"s{ref.source}", ref.source)
            self._flow(Flow(ref.source, start, f"n{ref.target}", flow.name, flow.condition, flow.kind))
            return
        source = self._caught(ref) if ref.kind == "error" else f"n{ref.source}"
        for place in range(len(leaving) - 1, -1, -1):
            region = leaving[place]
            end = self._event("endEvent", f"e{region}", region)
            self._flow(Flow(region, source, end, flow.name, flow.condition, flow.kind))
            source, flow = f"n{region}", Flow(PROCESS, "", "")
        if leaving and ref.target == leaving[0]:
            return  # End of an iteration: the sub-process starts the next one itself.
        if entering:
            self.losses.append(loss(f"/edges/{ref.number}", "a jump into the middle of a region", "bpmn"))
        target = f"n{entering[0] if entering else ref.target}"
        if ref.target == TO_END:
            target = self._event("endEvent", f"finish{around}" if around != PROCESS else "finish", around)
            if self.elements[target].find("terminateEventDefinition") is None:
                ElementTree.SubElement(self.elements[target], "terminateEventDefinition")
        self._flow(Flow(around, source, target, flow.name, flow.condition, flow.kind))

    def _caught(self, ref: EdgeRef) -> str:
        """Return the start of an error edge: a boundary event on its source."""
        node = f"n{ref.source}"
        if self.elements[node].tag not in ACTIVITIES:
            self.losses.append(loss(f"/edges/{ref.number}/condition", "catching an error there", "bpmn"))
            return node
        event = f"b{ref.number}"
        if event not in self.elements:
            caught = made("boundaryEvent", event)
            caught.set("attachedToRef", node)
            ElementTree.SubElement(caught, "errorEventDefinition")
            self._add_to_region(
                caught, self.regions.around[ref.source][-1] if self.regions.around[ref.source] else PROCESS
            )
        return event

    def _event(self, tag: str, event_id: str, region: int) -> str:
        if event_id not in self.elements:
            self._add_to_region(made(tag, event_id), region)
        return event_id

    def _add_to_region(self, element: Element, region: int) -> None:
        self.elements[element.attrib["id"]] = element
        self.containers[region].append(element)

    def _flow(self, flow: Flow) -> None:
        self.flows.setdefault(flow)

    def _close(self) -> None:
        """Lead each node without an outgoing flow to an end event: a process with a start event needs one."""
        left = {flow.source for flow in self.flows}
        for number, node in enumerate(self.workflow.nodes):
            if f"n{number}" in left or node.type in ("end", "note"):
                continue
            region = self.regions.around[number][-1] if self.regions.around[number] else PROCESS
            end = self._event("endEvent", f"e{region}" if region != PROCESS else "done", region)
            self._flow(Flow(region, f"n{number}", end))

    def _gather(self) -> None:
        """Put an inclusive gateway before each activity with several incoming flows: the engine waits for all
        active ones, while BPMN would start the activity for each."""
        into: dict[str, list[Flow]] = {}
        for flow in self.flows:
            into.setdefault(flow.target, []).append(flow)
        for target, flows in into.items():
            tag = self.elements[target].tag
            if len(flows) < 2 or tag in GATEWAYS or tag == "endEvent":
                continue
            gateway = self._event("inclusiveGateway", f"{target}in", flows[0].region)
            self._replace({flow: _to(flow, gateway) for flow in flows})
            self._flow(Flow(flows[0].region, gateway, target))

    def _split(self) -> None:
        out: dict[str, list[Flow]] = {}
        for flow in self.flows:
            out.setdefault(flow.source, []).append(flow)
        for source, flows in out.items():
            if len(flows) < 2 or self.elements[source].tag in GATEWAYS:
                continue
            gateway = self._event(self._gateway(source, flows), f"{source}out", flows[0].region)
            self._replace({flow: _from(flow, gateway) for flow in flows})
            self._flow(Flow(flows[0].region, source, gateway))

    def _gateway(self, source: str, flows: Sequence[Flow]) -> str:
        number = source.removeprefix("n")
        if number.isdigit() and routing_of(self.workflow.nodes[int(number)]) != "all":
            return "exclusiveGateway"
        return "parallelGateway" if all(flow.kind == "plain" for flow in flows) else "inclusiveGateway"

    def _replace(self, changed: dict[Flow, Flow]) -> None:
        self.flows = {changed.get(flow, flow): None for flow in self.flows}

    def _write(self) -> None:
        for number, flow in enumerate(self.flows):
            element = ElementTree.SubElement(self.containers[flow.region], "sequenceFlow", {"id": f"f{number}"})
            element.set("sourceRef", flow.source)
            element.set("targetRef", flow.target)
            if flow.name:
                element.set("name", clean(flow.name))
            if flow.condition:
                formal(element, "conditionExpression", flow.condition)
            source = self.elements[flow.source]
            if flow.kind == "default" and source.tag in ("exclusiveGateway", "inclusiveGateway"):
                source.set("default", f"f{number}")


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of regions that contain both."""
    count = 0
    for part, theirs in zip(one, other, strict=False):
        if part != theirs:
            break
        count += 1
    return count


def _to(flow: Flow, target: str) -> Flow:
    return Flow(flow.region, flow.source, target, flow.name, flow.condition, flow.kind)


def _from(flow: Flow, source: str) -> Flow:
    return Flow(flow.region, source, flow.target, flow.name, flow.condition, flow.kind)
