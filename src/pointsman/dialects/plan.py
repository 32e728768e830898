"""The plan dialect: an old specification of steps in prose. It was never executable; it is migrated to a graph of
agents.

    {title, goal, steps: [{description, input_sources: ["user", 1, …], input_description, output_description,
                           method: {approach, tools, reasoning}}]}
"""

from __future__ import annotations

import re
from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.readers import (
    NO_WORDS,
    ForeignReader,
    ImportedDocument,
    Record,
    WrittenDocument,
    field_path,
    list_of,
    literal_text,
    object_of,
    records,
    slug,
    text_of,
    workflow_id,
)
from pointsman.dialects.writers import Dialect, Layout, Rendered, extension_of, loss, node_keys, write_with
from pointsman.values import Json, JsonObject

USER: Final = "user"
CONSTRUCTS: Final = ("map_reduce", "iterate")
"""Tools of the original system that become parallels here, if the approach names a collection to run over."""

_OVER: Final = re.compile(
    r"\b(map[\s_-]?reduce|iterat\w+)\b.*\b(over|across|per|for each|for every|each|every)\b", re.IGNORECASE | re.DOTALL
)


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Return a plan as a graph of agents `step_1` …, with edges from the input sources."""
    reading = ForeignReader("plan")
    head = Record(document, "", NO_WORDS)
    native: JsonObject = {"pointsman": 1}
    workflow_id(head, reading, native, name=name, names=("id",))
    if "id" not in document and not name:
        native["id"] = slug(text_of(document.get("title")) or "") or "plan"
    native["dialect"] = "plan"
    reading.move(native, "", "name", head, "title")
    reading.move(native, "", "description", head, "goal")
    steps = records(head.take("steps"), "/steps", NO_WORDS, reading)
    _Migration(reading, native, steps, text_of(document.get("goal"))).run()
    reading.keep(native, "", head)
    return reading.done(native)


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the plan that a workflow was migrated from, with a list of losses."""
    return write_with(DIALECT, workflow, original)


class _Migration:
    def __init__(self, reading: ForeignReader, native: JsonObject, steps: list[Record], goal: str | None) -> None:
        self.reading = reading
        self.native = native
        self.steps = steps
        self.goal = goal
        self.fields = _fields(steps)
        self.nodes: list[Json] = []
        self.edges: list[Json] = []
        self.asks_user = False

    def run(self) -> None:
        sources = [self._sources(index, step) for index, step in enumerate(self.steps)]
        roots = [index for index, listed in enumerate(sources) if not any(isinstance(source, int) for source in listed)]
        if len(roots) > 1:
            self.nodes.append({"id": "start", "type": "start"})
            self.edges.extend({"source": "start", "target": f"{self._entry(index)}"} for index in roots)
        for index, step in enumerate(self.steps):
            self._step(index, step, sources[index])
        self.native["entry"] = "start" if len(roots) > 1 else self._entry(roots[0]) if roots else None
        if self.asks_user:
            properties: JsonObject = {USER: {"type": "string", "description": "Input of the plan."}}
            self.native["input"] = {"type": "object", "properties": properties, "required": [USER]}
        self.native["nodes"], self.native["edges"] = self.nodes, self.edges
        for key in [key for key, value in self.native.items() if value is None]:
            del self.native[key]

    def _sources(self, index: int, step: Record) -> list[str | int]:
        """Return the sources of a step's inputs: the user, or numbers of steps. Without any: the previous step."""
        result: list[str | int] = []
        for at, source in enumerate(list_of(step.value.get("input_sources"))):
            number = int(source) if isinstance(source, str) and source.isdigit() and len(source) < 6 else source
            if number == USER:
                result.append(USER)
            elif isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= index:
                result.append(number)
            else:
                self._unknown(index, step, at, source)
        return result or [index or USER]

    def _unknown(self, index: int, step: Record, at: int, source: Json) -> None:
        pointer = f"{step.at('input_sources')}/{at}"
        is_step = isinstance(source, int) and not isinstance(source, bool) and 1 <= source <= len(self.steps)
        which = "itself" if source == index + 1 else f"the later step {source}"
        message = f"step {index + 1} takes its input from {which if is_step else repr(source)}"
        earlier = f", or the number of an earlier step (1 to {index})" if index else ""
        self.reading.error("unknown-source", pointer, message, f"Use 'user'{earlier}.")

    def _entry(self, index: int) -> str:
        """Return the first node of a step: its fan-out, if it has one."""
        name = f"step_{index + 1}"
        return f"{name}_each" if self._is_over_items(self.steps[index]) else name

    def _exit(self, index: int) -> str:
        name = f"step_{index + 1}"
        return f"{name}_all" if self._is_over_items(self.steps[index]) else name

    def _is_over_items(self, step: Record) -> bool:
        method = object_of(step.value.get("method"))
        tools = list_of(method.get("tools"))
        constructs = [tool for tool in CONSTRUCTS if tool in tools]  # The items of `tools` may be unhashable.
        return bool(constructs) and _OVER.search(text_of(method.get("approach")) or "") is not None

    def _step(self, index: int, step: Record, sources: list[str | int]) -> None:
        for source in sources:
            if isinstance(source, int):
                self._edge(self._exit(source - 1), self._entry(index), step)
        fields = [USER if isinstance(source, str) else self.fields[source - 1] for source in dict.fromkeys(sources)]
        self.asks_user = self.asks_user or USER in fields
        if not self._is_over_items(step):
            self._agent(index, step, fields, {self.fields[index]: "result"}, item=None)
            return
        name, over = f"step_{index + 1}", field_path(fields[0])
        items = f'type({over}) == "array" ? {over} : [{over}]'
        one_by_one = "iterate" in list_of(object_of(step.value.get("method")).get("tools"))
        parallel: JsonObject = {"items": items, "duplicateKeys": "number", **({"maxParallel": 1} if one_by_one else {})}
        implied: JsonObject = {"implied": True}
        self._node({"id": f"{name}_each", "type": "parallel", "config": parallel, "x-plan": implied}, step)
        self._agent(index, step, fields[1:], {}, item=fields[0])
        join: JsonObject = {"id": f"{name}_all", "type": "join", "config": {"aggregate": "list"}, "x-plan": implied}
        self._node({**join, "outputs": {self.fields[index]: "result"}}, step)
        self._edge(f"{name}_each", name, step)
        self._edge(name, f"{name}_all", step)

    def _edge(self, source: str, target: str, step: Record) -> None:
        self.reading.origin[f"/edges/{len(self.edges)}"] = step.pointer
        self.edges.append({"source": source, "target": target})

    def _node(self, node: JsonObject, step: Record) -> str:
        at = f"/nodes/{len(self.nodes)}"
        self.reading.origin[at] = step.pointer
        self.nodes.append(node)
        return at

    def _agent(self, index: int, step: Record, fields: list[str], outputs: JsonObject, *, item: str | None) -> None:
        node: JsonObject = {"id": f"step_{index + 1}", "type": "agent"}
        at = self._node(node, step)
        method = self.reading.inside(step, "method")
        step.known, method.known = _STEP_FIELDS, _METHOD_FIELDS
        self.reading.move(node, at, "name", step, "description")
        inputs: JsonObject = {
            **({item: "item"} if item is not None else {}),
            **{name: field_path(name) for name in fields},
        }
        node["inputs"] = inputs
        if outputs:
            node["outputs"] = outputs
            self.reading.origin[f"{at}/outputs"] = step.at("output_description")
        config: JsonObject = {"result": "auto"}
        if self.goal:
            config["system"] = literal_text(f"You carry out one step of a plan. The plan: {self.goal}")
        config["prompt"] = _prompt(step, method, [*inputs])
        tools = [tool for tool in list_of(method.value.get("tools")) if item is None or tool not in CONSTRUCTS]
        self.reading.put(config, f"{at}/config", "tools", tools, method.at("tools"))
        node["config"] = config
        step.taken.discard("method")
        self.reading.keep(node, at, step)


_STEP_FIELDS: Final = frozenset(("description", "input_sources", "input_description", "output_description", "method"))
_METHOD_FIELDS: Final = frozenset(("approach", "tools", "reasoning"))


def _fields(steps: list[Record]) -> list[str]:
    """Return the output field of each step: a unique name derived from its description."""
    fields: list[str] = []
    names: set[str] = set()
    for index, step in enumerate(steps):
        name = slug(text_of(step.value.get("output_description")) or "", separator="_")
        name = name if name and not name[0].isdigit() else f"step_{index + 1}_output"
        own = f"{name}_{index + 1}" if name in names or name == USER else name
        fields.append(own)
        names.add(own)
    return fields


def _prompt(step: Record, method: Record, inputs: list[str]) -> str:
    """Return a prompt with all texts of the plan's author, then the step's inputs."""
    parts = {
        "": step.value.get("description"),
        "Approach: ": method.value.get("approach"),
        "Why: ": method.value.get("reasoning"),
        "Given: ": step.value.get("input_description"),
        "Deliver: ": step.value.get("output_description"),
    }
    lines = [literal_text(f"{word}{text}") for word, text in parts.items() if isinstance(text, str) and text]
    return "\n".join([*lines, *(f"\n{name}:\n{{{name}}}" for name in inputs)])


def _render(workflow: WorkflowDefinition) -> Rendered:
    """Return the stored steps, with names, order and removed steps taken from the graph."""
    head: JsonObject = {}
    if workflow.name is not None:
        head["title"] = workflow.name.in_()
    if workflow.description is not None:
        head["goal"] = workflow.description.in_()
    nodes: dict[str, JsonObject] = {}
    losses = (
        []
        if workflow.dialect == "plan"
        else [loss("/edges", "a graph", "plan", hint="A plan has only steps in prose.")]
    )
    for index, key in enumerate(node_keys(workflow)):
        node, extension = workflow.nodes[index], extension_of(workflow.nodes[index], "plan")
        if node.type == "agent":
            nodes[key] = {"description": node.label, **extension}
        elif node.type != "start" and not extension.get("implied"):
            losses.append(loss(f"/nodes/{index}/type", f"a node of type {node.type!r}", "plan"))
    return Rendered({**head, **extension_of(workflow, "plan")}, nodes, {}, tuple(losses))


def _layout(document: JsonObject) -> Layout:
    return Layout(document, document.get("steps"), None, _assemble)


def _assemble(head: JsonObject, nodes: Json, _edges: Json) -> JsonObject:
    return head if nodes is None and "steps" not in head else {**head, "steps": nodes}


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("plan", NO_WORDS, _read, _render, _layout, _assemble)
