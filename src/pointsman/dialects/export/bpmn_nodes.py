"""Nodes as BPMN elements."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Final

from pointsman.definition.graph.links import routing_of
from pointsman.definition.model.control import (
    EmitConfig,
    EndConfig,
    LoopConfig,
    NoteConfig,
    ParallelConfig,
    WaitConfig,
)
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.text import Text
from pointsman.definition.model.work import WorkflowCallConfig

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
        said(note, "text", str(node.config.text or node.label))
        return note
    tag = "subProcess" if is_region(node) else _ELEMENTS.get(node.type, "serviceTask")
    if node.type == "decision":
        tag = "inclusiveGateway" if routing_of(node) == "all" else "exclusiveGateway"
    element = made(tag, element_id, name=node.label)
    element.set("pointsman:id", clean(node.id))
    element.set("pointsman:type", clean(node.type))
    if node.description is not None:
        said(element, "documentation", str(node.description))
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


def said(parent: Element, tag: str, text: str) -> Element:
    child = ElementTree.SubElement(parent, tag)
    child.text = clean(text)
    return child


def formal(parent: Element, tag: str, expression: str) -> None:
    said(parent, tag, expression).set("xsi:type", "tFormalExpression")


def clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
