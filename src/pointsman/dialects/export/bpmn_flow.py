"""Edges as BPMN sequence flows: none crosses the border of a sub-process; several flows meet in gateways.

a ──▶ b                      a ──▶ ◇ ──▶ b, c          [ sub-process: ○ ─▶ … ─▶ ◎ ] ──▶ d
one edge                     several edges out or in   each region has its own start and end
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import DANGLING, TO_END, EdgeKind, EdgeRef, routing_of
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects.conditions import condition_text
from pointsman.dialects.export.bpmn_nodes import ACTIVITIES, GATEWAYS, Element, clean, formal, made
from pointsman.dialects.export.regions import Regions
from pointsman.dialects.losses import loss

Ways: TypeAlias = Literal["all", "one"]
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
            self._connect(ref, self._told(ref, at))

    def _told(self, ref: EdgeRef, at: str) -> Flow:
        """Return a flow with the label and condition of an edge, without its ends."""
        edge = self.workflow.edges[ref.number] if ref.number < len(self.workflow.edges) else None
        if edge is None or ref.kind in ("plain", "default", "error"):
            return Flow(PROCESS, "", "", str(edge.label or "") if edge is not None else "", kind=ref.kind)
        text = condition_text(edge.condition, edge.source) if edge.condition is not None else None
        if text is None and ref.kind == "llm":
            self.losses.append(loss(f"{at}/condition", "a question to a model", "bpmn"))
        label = edge.label or getattr(edge.condition, "label", "")
        return Flow(PROCESS, "", "", str(label), text or "", ref.kind)

    def _connect(self, ref: EdgeRef, told: Flow) -> None:
        """Add flows out of every region that contains only the source, and into the target. A region can be entered
        only at its owner."""
        source_in = self.regions.around[ref.source]
        target_in = self.regions.around[ref.target] if ref.target != TO_END else source_in
        shared = _shared(source_in, target_in)
        leaving, entering = source_in[shared:], target_in[shared:]
        around = source_in[shared - 1] if shared else PROCESS
        if entering == (ref.source,):
            start = self._event("startEvent", f"s{ref.source}", ref.source)
            self._flow(Flow(ref.source, start, f"n{ref.target}", told.name, told.condition, told.kind))
            return
        source = self._caught(ref) if ref.kind == "error" else f"n{ref.source}"
        for place in range(len(leaving) - 1, -1, -1):
            region = leaving[place]
            end = self._event("endEvent", f"e{region}", region)
            self._flow(Flow(region, source, end, told.name, told.condition, told.kind))
            source, told = f"n{region}", Flow(PROCESS, "", "")
        if leaving and ref.target == leaving[0]:
            return  # End of an iteration: the sub-process starts the next one itself.
        if entering:
            self.losses.append(loss(f"/edges/{ref.number}", "a jump into the middle of a region", "bpmn"))
        target = f"n{entering[0] if entering else ref.target}"
        if ref.target == TO_END:
            target = self._event("endEvent", f"finish{around}" if around != PROCESS else "finish", around)
            if self.elements[target].find("terminateEventDefinition") is None:
                ElementTree.SubElement(self.elements[target], "terminateEventDefinition")
        self._flow(Flow(around, source, target, told.name, told.condition, told.kind))

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
            self._place(caught, self.regions.around[ref.source][-1] if self.regions.around[ref.source] else PROCESS)
        return event

    def _event(self, tag: str, event_id: str, region: int) -> str:
        if event_id not in self.elements:
            self._place(made(tag, event_id), region)
        return event_id

    def _place(self, element: Element, region: int) -> None:
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
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _to(flow: Flow, target: str) -> Flow:
    return Flow(flow.region, flow.source, target, flow.name, flow.condition, flow.kind)


def _from(flow: Flow, source: str) -> Flow:
    return Flow(flow.region, source, flow.target, flow.name, flow.condition, flow.kind)
