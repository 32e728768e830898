"""Builder of workflows in Python: it makes a document, which is checked, saved and executed like any other.

wf = Workflow.build("desk")
draft = wf.agent("draft", prompt="Write about {topic}", outputs={"draft": "result"})
wf.human("review", after=draft, show=["draft"]).on("reject", draft)

call ─▶ node or edge as data ─▶ checked at once, errors with the line of the call ─▶ to_dict() ─▶ Workflow
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias, cast

from pointsman.arguments import checks_arguments, described
from pointsman.definition.model.base import Model, written
from pointsman.definition.model.nodes import CONFIG_OF, AnyCondition, Node
from pointsman.definition.model.work import UnboundConfig
from pointsman.definition.model.workflow import FORMAT, WorkflowDefinition
from pointsman.definition.problems import Problem, error, invalid
from pointsman.dialects.writers import yaml_text
from pointsman.errors import PointsmanError
from pointsman.json_conversion import JsonType, NotJson, TypeUnsupported, as_json
from pointsman.tools.conversion import as_tool, is_tool_like
from pointsman.tools.tool import ToolInvalid
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from typing import Unpack

    from pointsman.workflows.node_options import (
        AgentNodeOptions,
        CodeNodeOptions,
        DecisionNodeOptions,
        EmitNodeOptions,
        EndNodeOptions,
        HttpNodeOptions,
        HumanNodeOptions,
        JoinNodeOptions,
        LoopNodeOptions,
        MemoryNodeOptions,
        NodeLike,
        NodeOptions,
        NoteNodeOptions,
        ParallelNodeOptions,
        PlannerNodeOptions,
        ProgressNodeOptions,
        StartNodeOptions,
        StructuredRecordNodeOptions,
        TemplateRenderNodeOptions,
        ToolNodeOptions,
        TransformNodeOptions,
        VerifierNodeOptions,
        WaitNodeOptions,
        WorkflowCallNodeOptions,
        WorkflowOptions,
    )

Mark: TypeAlias = Literal["body", "exit", "break", "continue"]

OWN_CODE: Final = str(Path(__file__).parents[1])
"""The directory of this package: a call inside it is not the caller's."""
CODE_HINT: Final = (
    "A document is data. Name a tool instead: a function in `tools=[…]` of Pointsman, called by a tool node."
)


class CodePlace(NamedTuple):
    """A line of the caller's code."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class CodePlaces:
    """The lines of code that made the parts of a document."""

    by_pointer: Mapping[str, CodePlace] = field(default_factory=dict[str, CodePlace])

    def located(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return the problems with the files and lines of the calls that made their parts."""
        return tuple(map(self._located, problems)) if self.by_pointer else problems

    def _located(self, problem: Problem) -> Problem:
        pointer = problem.pointer
        while pointer and pointer not in self.by_pointer:
            pointer = pointer.rpartition("/")[0]
        place = self.by_pointer[pointer]
        return replace(problem, file=place.file, line=place.line, column=None)


@checks_arguments
class NodeBuilder:
    """A node of a workflow that is being built. Its methods add edges from it."""

    __argument_hint__: ClassVar[str] = (
        "Pass what a method of the builder returned, as in `pay = wf.tool(…)`. For the id of a node: `to`."
    )

    def __init__(self, workflow: WorkflowBuilder, id: str) -> None:
        self.workflow = workflow
        self.id = id

    def __repr__(self) -> str:
        return f"<node {self.id!r} of {self.workflow.id!r}>"

    def then(self, target: NodeBuilder) -> NodeBuilder:
        """Continue with a node, and return that node."""
        self.to(target)
        return target

    def on(self, label: str, target: NodeLike) -> NodeBuilder:
        """Continue with `target` if this node emits the label: the action of a person, the branch of a decision."""
        return self.to(target, condition={"type": "label", "label": label})

    def when(self, expression: str, target: NodeLike) -> NodeBuilder:
        """Continue with `target` if the expression holds."""
        return self.to(target, condition={"type": "expression", "expression": expression})

    def otherwise(self, target: NodeLike) -> NodeBuilder:
        """Continue with `target` if no other edge of this node is taken."""
        return self.to(target, condition={"type": "default"})

    def on_error(self, target: NodeLike, *, codes: Sequence[str] | None = None) -> NodeBuilder:
        """Continue with `target` if this node fails for good. `codes`: only with one of these codes."""
        return self.to(target, condition={"type": "error", **({} if codes is None else {"codes": codes})})

    def to(
        self,
        target: NodeLike,
        *,
        condition: AnyCondition | Mapping[str, object] | None = None,
        mark: Mark | None = None,
        label: str | None = None,
    ) -> NodeBuilder:
        """Add an edge to a node, or to `END`, and return this node. `mark`: how the edge belongs to a loop.

        Raises `WorkflowInvalid`.
        """
        self.workflow.connect(self, target, condition=condition, mark=mark, label=label)
        return self


@checks_arguments
class WorkflowBuilder:
    """A workflow that is being built. Each method named like a type of nodes adds a node of that type.

    `after=` names the nodes that lead to the new one. All methods raise `WorkflowInvalid`, with file and line of the
    call, for options that are wrong; what only the whole graph shows is found by `check` and `start`.
    """

    def __init__(self, id: str, **options: Unpack[WorkflowOptions]) -> None:
        place = _calling_place()
        self._place = place
        self._nodes: list[JsonObject] = []
        self._edges: list[JsonObject] = []
        self._node_places: dict[str, CodePlace] = {}
        self._edge_places: list[CodePlace] = []
        self.id = id
        self._options = self._as_data(options, WorkflowDefinition, "", place)
        self._check({**self._options}, place)

    def __repr__(self) -> str:
        return f"<builder of {self.id!r}: {len(self._nodes)} nodes>"

    def to_dict(self) -> JsonObject:
        """Return the document as it is now. Its entry is the start node, or else the node that was added first."""
        head: JsonObject = {"pointsman": FORMAT, "id": self.id, **self._options}
        if self._nodes and not any(node["type"] == "start" for node in self._nodes):
            head.setdefault("entry", self._nodes[0]["id"])
        return {**head, "nodes": [*self._nodes], "edges": [*self._edges]}

    def to_yaml(self) -> str:
        """Return the document as YAML. Reading it gives the same workflow."""
        return yaml_text(self.to_dict()) + "\n"

    @property
    def places(self) -> CodePlaces:
        """The lines of code that made the nodes and edges."""
        nodes = {f"/nodes/{at}": place for at, place in enumerate(self._node_places.values())}
        edges = {f"/edges/{at}": place for at, place in enumerate(self._edge_places)}
        return CodePlaces({"": self._place, **nodes, **edges})

    def node(self, id: str, type: str, **options: Unpack[NodeOptions]) -> NodeBuilder:
        """Add a node of any type, such as one that an installed package performs; its configuration are the options
        that not every node has."""
        return self._node(id, type, options)

    def start(self, id: str, **options: Unpack[StartNodeOptions]) -> NodeBuilder:
        """Add the entry."""
        return self._node(id, "start", options)

    def end(self, id: str, **options: Unpack[EndNodeOptions]) -> NodeBuilder:
        """Add an end of a branch."""
        return self._node(id, "end", options)

    def agent(self, id: str, **options: Unpack[AgentNodeOptions]) -> NodeBuilder:
        """Add a model with a role and tools."""
        return self._node(id, "agent", options)

    def tool(self, id: str, **options: Unpack[ToolNodeOptions]) -> NodeBuilder:
        """Add one tool call, without a model."""
        return self._node(id, "tool", options)

    def tool_executor(self, id: str, **options: Unpack[NodeOptions]) -> NodeBuilder:
        """Add the node that runs the tool calls which an agent left pending."""
        return self._node(id, "tool_executor", options)

    def decision(self, id: str, **options: Unpack[DecisionNodeOptions]) -> NodeBuilder:
        """Add a decision, which emits the label of a branch: see `on`."""
        return self._node(id, "decision", options)

    def parallel(self, id: str, **options: Unpack[ParallelNodeOptions]) -> NodeBuilder:
        """Add a node that opens one scope per branch and item."""
        return self._node(id, "parallel", options)

    def join(self, id: str, **options: Unpack[JoinNodeOptions]) -> NodeBuilder:
        """Add the node that closes a parallel and makes one result of its branches."""
        return self._node(id, "join", options)

    def loop(self, id: str, **options: Unpack[LoopNodeOptions]) -> NodeBuilder:
        """Add a loop: counted, conditional, or once per item. Edges that lead back to it end a round."""
        return self._node(id, "loop", options)

    def human(self, id: str, **options: Unpack[HumanNodeOptions]) -> NodeBuilder:
        """Add a gate: the execution waits for a person."""
        return self._node(id, "human", options)

    def transform(self, id: str, **options: Unpack[TransformNodeOptions]) -> NodeBuilder:
        """Add a change of data."""
        return self._node(id, "transform", options)

    def memory(self, id: str, **options: Unpack[MemoryNodeOptions]) -> NodeBuilder:
        """Add an access to memory."""
        return self._node(id, "memory", options)

    def workflow(self, id: str, **options: Unpack[WorkflowCallNodeOptions]) -> NodeBuilder:
        """Add a call of a sub-workflow."""
        return self._node(id, "workflow", options)

    def code(self, id: str, **options: Unpack[CodeNodeOptions]) -> NodeBuilder:
        """Add sandboxed code."""
        return self._node(id, "code", options)

    def wait(self, id: str, **options: Unpack[WaitNodeOptions]) -> NodeBuilder:
        """Add a timer, or a wait for an event."""
        return self._node(id, "wait", options)

    def emit(self, id: str, **options: Unpack[EmitNodeOptions]) -> NodeBuilder:
        """Add the publication of an event."""
        return self._node(id, "emit", options)

    def note(self, id: str, **options: Unpack[NoteNodeOptions]) -> NodeBuilder:
        """Add a comment; it never runs."""
        return self._node(id, "note", options)

    def http(self, id: str, **options: Unpack[HttpNodeOptions]) -> NodeBuilder:
        """Add an HTTP request."""
        return self._node(id, "http", options)

    def progress(self, id: str, **options: Unpack[ProgressNodeOptions]) -> NodeBuilder:
        """Add a progress message for watchers."""
        return self._node(id, "progress", options)

    def template_render(self, id: str, **options: Unpack[TemplateRenderNodeOptions]) -> NodeBuilder:
        """Add the rendering of a template."""
        return self._node(id, "template-render", options)

    def planner(self, id: str, **options: Unpack[PlannerNodeOptions]) -> NodeBuilder:
        """Add a planner, which breaks a goal into tasks."""
        return self._node(id, "planner", options)

    def verifier(self, id: str, **options: Unpack[VerifierNodeOptions]) -> NodeBuilder:
        """Add a verifier, which emits `pass`, `retry` or `fail`."""
        return self._node(id, "verifier", options)

    def structured_record(self, id: str, **options: Unpack[StructuredRecordNodeOptions]) -> NodeBuilder:
        """Add a check of an extraction against a schema, which is appended to a list."""
        return self._node(id, "structured-record", options)

    def connect(
        self,
        source: NodeLike,
        target: NodeLike,
        *,
        condition: AnyCondition | Mapping[str, object] | None = None,
        mark: Mark | None = None,
        label: str | None = None,
    ) -> None:
        """Add an edge, see `NodeBuilder.to`."""
        place = _calling_place()
        ends = {"source": source, "target": target}
        options = {"condition": condition, "mark": mark, "label": label}
        parts = {**ends, **{name: value for name, value in options.items() if value is not None}}
        edge = {name: self._value(part, name, place) for name, part in parts.items()}
        self._check({"edges": [edge]}, place)
        self._edges.append(edge)
        self._edge_places.append(place)

    def _node(self, id: str, type: str, options: Mapping[str, object]) -> NodeBuilder:
        place = _calling_place()
        if id in self._node_places:
            first = self._node_places[id]
            message = f"the node {id!r} was already added at {Path(first.file).name}:{first.line}"
            raise _refused(place, "duplicate-id", message, "Choose another id.")
        of_node = {name: option for name, option in options.items() if name in Node.model_fields}
        of_type = {name: option for name, option in options.items() if name not in of_node and name != "after"}
        node: JsonObject = {"id": id, "type": type, **self._as_data(of_node, Node, f"node {id!r}: ", place)}
        if of_type:
            node["config"] = self._as_data(of_type, CONFIG_OF.get(type, UnboundConfig), f"node {id!r}: ", place)
        self._check({"nodes": [node]}, place)
        edges = [self._value(one, "after", place) for one in _sources(options.get("after"), f"node {id!r}", place)]
        self._nodes.append(node)
        self._node_places[id] = place
        for source in edges:
            self._edges.append({"source": source, "target": id})
            self._edge_places.append(place)
        return NodeBuilder(self, id)

    def _as_data(self, options: Mapping[str, object], model: type[Model], where: str, place: CodePlace) -> JsonObject:
        """Return options as a part of a document, with the keys of documents."""
        keys = {name: known.alias or name for name, known in model.model_fields.items()}
        given_options = {name: option for name, option in options.items() if option is not None}
        return {
            keys.get(name, name): self._value(value, f"{where}{name}", place) for name, value in given_options.items()
        }

    def _value(self, value: object, path: str, place: CodePlace) -> Json:
        """Return a value of an option as JSON, see `_written`. Raises `WorkflowInvalid`."""
        try:
            return self._written(value, path, place)
        except (NotJson, TypeUnsupported) as why:
            raise _refused(place, why.code, str(why), why.hint) from None
        except RecursionError:
            message = f"{path} contains itself, or is nested too deep"
            raise _refused(place, NotJson.code, message, "Pass lists and objects without cycles.") from None

    def _written(self, value: object, path: str, place: CodePlace) -> Json:
        """Return a value of an option as JSON: nodes as ids, tools as names, types as schemas."""
        match value:
            case NodeBuilder():
                self._must_be_own(value, place)
                return value.id
            case Model():
                return self._written(written(value), path, place)
            case Mapping():
                parts = cast("Mapping[str, object]", value).items()
                return {name: self._written(one, f"{path}.{name}", place) for name, one in parts}
            case list() | tuple():
                parts = enumerate(cast("Sequence[object]", value))
                return [self._written(one, f"{path}[{at}]", place) for at, one in parts]
            case type():
                return JsonType(value, what=path).schema
            case _ if is_tool_like(value):
                return self._tool_name(value, path, place)
            case _:
                return as_json(value, what=path, path=path)

    def _tool_name(self, value: object, path: str, place: CodePlace) -> str:
        """Return the name of a function as a tool. Only options that name tools take functions."""
        if path.rpartition(" ")[2].partition("[")[0] not in ("tool", "tools"):
            raise _refused(place, NotJson.code, f"{path} is a function", CODE_HINT)
        try:
            return as_tool(value).name
        except ToolInvalid as why:
            raise _refused(place, why.code, f"{path}: {why}", why.hint) from None

    def _must_be_own(self, node: NodeBuilder, place: CodePlace) -> None:
        if node.workflow is not self:
            message = f"the node {node.id!r} belongs to the workflow {node.workflow.id!r}, not to {self.id!r}"
            raise _refused(place, "dangling-edge", message, "Call the other workflow by a node: `workflow(…)`.")

    def _check(self, part: JsonObject, place: CodePlace) -> None:
        """Raise `WorkflowInvalid` if a part of a document has a wrong shape."""
        _, problems = WorkflowDefinition.from_document({"id": self.id, **part})
        if problems:
            raise invalid(CodePlaces({"": place}).located(tuple(problems)))


def _refused(place: CodePlace, code: str, message: str, hint: str) -> PointsmanError:
    return invalid(CodePlaces({"": place}).located((error(code, "", message, hint=hint),)))


def _sources(after: object, node: str, place: CodePlace) -> Sequence[object]:
    """Return the nodes of the option `after`. Raises `WorkflowInvalid`."""
    match after:
        case None:
            return ()
        case str() | NodeBuilder():
            return (after,)
        case list() | tuple():
            return cast("Sequence[object]", after)
        case _:
            message = f"{node}: after is {described(after)}"
            raise _refused(place, "bad-value", message, "Pass a node, the id of a node, or a list of these.")


def _calling_place() -> CodePlace:
    """Return the line of the caller's code that called this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(OWN_CODE):
        frame = frame.f_back
    assert frame is not None, "CPython has frames"
    return CodePlace(frame.f_code.co_filename, frame.f_lineno)
