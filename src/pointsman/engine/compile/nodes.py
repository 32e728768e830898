"""Nodes: compile the action of each node, its entry mode and its exit edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import routing_of
from pointsman.definition.graph.walks import cycles
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import write_text
from pointsman.definition.model.control import (
    DecisionConfig,
    EmitConfig,
    EndConfig,
    HumanConfig,
    JoinConfig,
    LoopConfig,
    NoteConfig,
    ParallelConfig,
    StartConfig,
    ToolExecutorConfig,
    WaitConfig,
)
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.policies import Limits
from pointsman.definition.model.work import (
    CodeConfig,
    HttpConfig,
    MemoryConfig,
    PlannerConfig,
    ProgressConfig,
    StructuredRecordConfig,
    TemplateRenderConfig,
    ToolConfig,
    TransformConfig,
    VerifierConfig,
    WorkflowCallConfig,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.naming_rules import COMPENSATED, compensations_of
from pointsman.engine.actions import (
    Action,
    EmitAction,
    HumanTaskAction,
    JoinAction,
    LoopAction,
    NoOpAction,
    ParallelAction,
    PlanEdge,
    Value,
    WorkSpec,
)
from pointsman.engine.compile import control, work
from pointsman.engine.compile.formulas import EdgeQuestion, FormulaCompiler, judge_of, question_of, timeout_label
from pointsman.engine.compile.transforms import change_of, render_of
from pointsman.engine.plan import EnterMode, Exits, NodePosition, NoRoute, PlanNode, StepPolicy
from pointsman.values import END, Json

TRANSPARENT: Final = frozenset({"decision", "loop", "wait", "emit", "note", "human", "progress", "verifier"})


class NodeCompiler:
    """Compiler of the nodes of one workflow."""

    def __init__(
        self,
        workflow: WorkflowDefinition,
        graph: Graph,
        formulas: FormulaCompiler,
        edges: dict[int, PlanEdge],
        agents: dict[str, AgentConfig],
        model: str | None,
        operator: Limits,
    ) -> None:
        self.workflow = workflow
        self.times = work.times_of(workflow.config, operator)
        self.graph = graph
        self.formulas = formulas
        self.edges = edges
        self.agents = agents
        self.model = model
        config = workflow.config
        self.conversational = config is not None and bool(config.conversational)
        self.has_executor = any(node.type == "tool_executor" for node in workflow.nodes)
        self.messages = self.conversational or self.has_executor or "messages" in (workflow.state or {})
        self.ids = frozenset(graph.ids)
        self.loops_of = _loops_of(graph)
        self.separate = separate(graph)
        self.compensations = compensations_of(workflow)

    def nodes(self, position: int) -> list[PlanNode]:
        """Return the plan node and, if its edges ask a model, the hidden judge behind it."""
        node = self.graph.links.nodes[position]
        plan_node = self._node(position, node)
        if node.id in self.compensations:
            return [_alone(plan_node)]
        questions = self._questions(position)
        return [plan_node] if not questions else self._judged(plan_node, node, questions)

    def _node(self, position: int, node: Node) -> PlanNode:
        formulas = self.formulas.inside(*self._as_names(position))
        action = self._does(position, node, formulas)
        out = tuple(self.edges[number] for number in self.graph.out[position] if number in self.edges)
        out += _timeout_edge(node, action, out)
        catches = tuple(edge for edge in out if edge.kind == "error")
        edges = tuple(edge for edge in out if edge.kind != "error")
        leave = routing_of(node)
        plain = len(edges) == 1 and edges[0].kind == "plain" and not isinstance(action, LoopAction | ParallelAction)
        return PlanNode(
            id=node.id,
            index=position,
            type=node.type,
            display_name=write_text(node.name) if node.name is not None and formulas.all_languages else None,
            action=action,
            enter=self._enter(position, node, action),
            exits=Exits(
                mode=leave,
                edges=edges,
                straight=edges[0] if plain and not (leave == "label" and node.type == "human") else None,
                catches=catches,
                labels=_labels(edges),
                fallback=_fallback(edges) if leave == "label" else None,
                tool_executor=self._tool_executor(edges),
                no_route=self._no_route(node, leave, edges),
            ),
            outputs=work.outputs_of(node, formulas),
            transparent=node.type in TRANSPARENT,
            position=NodePosition(
                parallels=tuple(self.graph.ids[number] for number in self.graph.scopes[position] or ()),
                loops=self.loops_of.get(position, ()),
                has_lineage=position in self.separate.threaded,
                splits_apart=position in self.separate.apart,
            ),
            policy=StepPolicy(
                visits_max=self._visits_max(position),
                skip=formulas.test(node.skip_when) if node.skip_when is not None else None,
                approval=control.approval_of(node, self.workflow.config, formulas),
                compensate=node.compensate,
            ),
        )

    def _as_names(self, position: int) -> list[str]:
        """Return the `as` names of the parallels and loops around a node."""
        around = [self.graph.links.nodes[number] for number in self.graph.scopes[position] or ()]
        around += [self.graph.links.nodes[self.graph.index[loop]] for loop in self.loops_of.get(position, ())]
        configs = [
            enclosing.config for enclosing in around if isinstance(enclosing.config, ParallelConfig | LoopConfig)
        ]
        names = [config.as_ for config in configs if config.as_ is not None]
        return [*names, COMPENSATED] if self.graph.ids[position] in self.compensations else names

    def _does(self, position: int, node: Node, formulas: FormulaCompiler) -> Action:  # noqa: C901 - one flat list of types
        config = node.config
        inputs = formulas.mapping(node.inputs)
        formulas = formulas.inside(*(node.inputs or {}))
        match config:
            case StartConfig():
                return control.start_action(config, formulas)
            case EndConfig():
                return control.end_action(config, formulas)
            case ParallelConfig():
                return control.parallel_action(config, formulas, self.graph, position, self.edges)
            case JoinConfig():
                return control.join_action(config, formulas, self.graph, position)
            case LoopConfig():
                return control.loop_action(config, formulas, self.graph, position, self.edges)
            case HumanConfig():
                return control.human_task_action(config, formulas, self.ids)
            case WaitConfig():
                return control.wait_action(config, formulas)
            case EmitConfig():
                return control.emit_action(config, formulas)
            case NoteConfig():
                return NoOpAction()
            case TransformConfig():
                return change_of(config, formulas)
            case TemplateRenderConfig():
                return render_of(config, formulas)
            case ProgressConfig():
                return EmitAction(event=_progress, data=formulas.rendered(config.message))
            case WorkflowCallConfig():
                retry = work.retry_of(node.execution, self.workflow.config)
                on_failure = work.on_failure_of(node.execution, self.workflow.config)
                return control.workflow_action(config, inputs, formulas, retry, on_failure)
            case DecisionConfig() if config.llm_prompt is None:
                return control.decision_action(config, formulas) or NoOpAction()
            case _:
                return self._work(node, formulas, inputs)

    def _work(self, node: Node, formulas: FormulaCompiler, inputs: Value | None) -> Action:
        config = node.config
        if isinstance(config, AgentConfig):
            return self._agent(node, config, formulas, inputs)
        spec = self._spec(node, node.type, work.document_of(config))
        match config:
            case ToolConfig():
                spec = replace(spec, secrets=formulas.secrets(config.parameters))
                resolve = work.tool_input(config, formulas, inputs)
            case MemoryConfig():
                resolve = work.memory_input(config, formulas)
            case CodeConfig():
                resolve = work.code_input(config, formulas, inputs)
            case ToolExecutorConfig():
                return work.work_of(node, spec, _nothing, self.workflow.config, times=self.times)
            case DecisionConfig():
                choices: list[Json] = [choice.label for choice in config.choices or ()]
                spec = replace(spec, kind="agent", config={**spec.config, "choices": choices})
                resolve = work.decision_input(config, formulas)
                return work.work_of(node, spec, resolve, self.workflow.config, times=self.times, is_decision=True)
            case PlannerConfig():
                resolve = work.planner_input(config, self.agents, formulas, inputs)
            case VerifierConfig():
                resolve = work.verifier_input(node.id, config, formulas, inputs)
                return work.work_of(node, spec, resolve, self.workflow.config, times=self.times, is_decision=True)
            case StructuredRecordConfig():
                resolve = work.record_input(config, formulas, inputs)
            case HttpConfig():
                spec = replace(spec, secrets=work.secrets_of_request(spec.config, formulas))
                resolve = work.other_input(spec.config, formulas, inputs)
            case _:
                resolve = work.other_input(spec.config, formulas, inputs)
        return work.work_of(node, spec, resolve, self.workflow.config, times=self.times)

    def _agent(self, node: Node, config: AgentConfig, formulas: FormulaCompiler, inputs: Value | None) -> Action:
        agent, name = work.resolved_agent(config, self.agents)
        leaves_calls = self.has_executor
        spec = replace(
            self._spec(node, "agent", work.document_of(agent)),
            agent=name,
            routes=self._routes(node),
            conversational=self.conversational,
            leaves_calls=leaves_calls,
        )
        resolve = work.agent_input(agent, formulas, inputs)
        listens = self.messages and (agent.prompt is None or leaves_calls)
        scope = agent.memory.scope if agent.memory is not None else None
        if scope == "none" and not leaves_calls:  # otherwise the agent needs the results of its own calls
            listens = False
        forgets = scope in ("none", "execution")
        return work.work_of(
            node,
            spec,
            resolve,
            self.workflow.config,
            times=self.times,
            receives_messages=listens,
            own_messages_only=forgets,
        )

    def _spec(self, node: Node, kind: str, config: dict[str, Json]) -> WorkSpec:
        settings = self.workflow.config
        return WorkSpec(
            node=node.id,
            kind=kind,
            config={**config, "model": self.model} if self.model is not None and "model" in config else config,
            name=node.name.in_(self.formulas.language) if node.name is not None else node.id,
            settings={
                **({"model": self.model} if self.model is not None else {}),
                "defaultModel": self.model or (settings.default_model if settings is not None else None),
                "workflow": self.workflow.id,
                "language": self.formulas.language,
                **work.call_times(self.times),
                "auto": self.workflow.dialect in ("graph", "steps", "plan"),
            },
        )

    def _routes(self, node: Node) -> tuple[str, ...]:
        """Return the labels by which an agent may leave, except the edge to the tool executor."""
        if routing_of(node) != "label":
            return ()
        position = self.graph.index[node.id]
        names: list[str] = []
        for number in self.graph.out[position]:
            edge = self.edges.get(number)
            if edge is not None and edge.label is not None and not self._is_executor(edge.target):
                names.append(edge.label)
        return tuple(dict.fromkeys(names))

    def _is_executor(self, target: str) -> bool:
        return target != END and self.graph.links.nodes[self.graph.index[target]].type == "tool_executor"

    def _tool_executor(self, edges: tuple[PlanEdge, ...]) -> PlanEdge | None:
        return next((edge for edge in edges if self._is_executor(edge.target)), None)

    def _enter(self, position: int, node: Node, action: Action) -> EnterMode:
        if isinstance(action, LoopAction):
            return "loop"
        if isinstance(action, JoinAction) and action.closes:
            return "join"
        coming = [number for number in self.graph.into[position] if number in self.edges]
        if len(coming) <= 1:
            return "arrival"
        return "each" if passes_separately(node) else "merge"

    def _no_route(self, node: Node, leave: str, edges: tuple[PlanEdge, ...]) -> NoRoute:
        match node.type:
            case "tool_executor":
                return "caller"
            case "human":
                return "cancel"
            case "decision":
                imported = self.workflow.dialect not in (None, "native")
                return "end" if not edges or (imported and leave != "label") else "fail"
            case _ if leave == "label" and node.type != "verifier":
                return "turn" if self.conversational else "fail" if edges else "end"
            case "verifier":
                return "fail" if edges else "end"
            case _:
                return "end"

    def _visits_max(self, position: int) -> int | None:
        limits = self.workflow.config.limits if self.workflow.config is not None else None
        if limits is None or limits.visits is None or self.loops_of.get(position) or position in self.graph.loops:
            return None
        return limits.visits

    def _questions(self, position: int) -> list[tuple[int, EdgeQuestion]]:
        questions: list[tuple[int, EdgeQuestion]] = []
        for number in self.graph.out[position]:
            if number < len(self.workflow.edges):
                question = question_of(self.workflow.edges[number], self.graph.edges[number], self.formulas)
                if question is not None:
                    questions.append((number, question))
        return questions

    def _judged(self, plan_node: PlanNode, node: Node, questions: list[tuple[int, EdgeQuestion]]) -> list[PlanNode]:
        """Split a node: it leads to its judge, and the judge takes over its unlabelled edges."""
        judge = judge_of(node.id)
        bridge = PlanEdge(id=judge, index=plan_node.index, source=node.id, target=judge)
        exits = plan_node.exits
        labelled = tuple(edge for edge in exits.edges if edge.kind == "label") if exits.mode == "label" else ()
        spec = self._spec(node, "judge", {})
        judge_input = work.judge_input([question for _, question in questions])
        asks = replace(
            plan_node,
            id=judge,
            type="judge",
            action=work.work_of(node, spec, judge_input, self.workflow.config, times=self.times, is_decision=True),
            enter="arrival",
            exits=replace(
                exits,
                mode="first" if exits.mode == "label" else exits.mode,
                edges=tuple(edge for edge in exits.edges if edge not in labelled),
                straight=None,
                labels={},
                fallback=None,
            ),
            outputs=(),
            transparent=True,
            hidden=True,
            policy=replace(plan_node.policy, skip=None),
        )
        first = replace(
            exits,
            edges=(*labelled, bridge),
            straight=None if labelled else bridge,
            labels=_labels(labelled),
            fallback=bridge if labelled else None,
        )
        return [replace(plan_node, exits=first), asks]


def _alone(plan_node: PlanNode) -> PlanNode:
    """Return a compensation node: the engine enters it directly, and it has no exit edges."""
    exits = Exits(tool_executor=plan_node.exits.tool_executor, no_route="undone")
    return replace(plan_node, enter="arrival", exits=exits, policy=replace(plan_node.policy, compensate=None))


def _timeout_edge(node: Node, action: Action, out: tuple[PlanEdge, ...]) -> tuple[PlanEdge, ...]:
    """Return the timeout edge of a gate if another edge already leads to the same node."""
    if not isinstance(action, HumanTaskAction) or any(edge.label == action.terms.on_timeout for edge in out):
        return ()
    timeout_edge = next((edge for edge in out if timeout_label(edge.target) == action.terms.on_timeout), None)
    return (
        ()
        if timeout_edge is None
        else (replace(timeout_edge, id=f"{node.id}-timeout", kind="label", label=action.terms.on_timeout, test=None),)
    )


def _nothing(env: object) -> Json:
    return {}


def _progress(env: object) -> Json:
    return "progress"


def _labels(ways: tuple[PlanEdge, ...]) -> dict[str, PlanEdge]:
    edges: dict[str, PlanEdge] = {}
    for edge in ways:
        if edge.label is not None:
            edges.setdefault(edge.label, edge)
    return edges


def _fallback(edges: tuple[PlanEdge, ...]) -> PlanEdge | None:
    return next((edge for edge in edges if edge.kind in ("plain", "default")), None)


def _loops_of(graph: Graph) -> dict[int, tuple[str, ...]]:
    """Return for each node the loops whose bodies contain it, innermost (smallest body) first."""
    arrivals: dict[int, list[tuple[int, str]]] = {}
    for loop, shape in graph.loops.items():
        for node in shape.body:
            arrivals.setdefault(node, []).append((len(shape.body), graph.ids[loop]))
    return {node: tuple(name for _, name in sorted(loops)) for node, loops in arrivals.items()}


@dataclass(frozen=True, slots=True)
class Separate:
    """Nodes that several tokens may pass one after the other, so that a visit counter cannot distinguish their visits.

    trigger: each ──▶ a ──▶ b ──▶ merge            every arrival passes separately until a merge

    split ─┬─▶ main ─▶ back to split               the next round starts while side branches of earlier rounds still
           └─▶ side ─▶ b                           run; a counter would number the fastest one first

    By position of the node.
    """

    threaded: frozenset[int]
    """Nodes whose steps carry their lineage."""
    apart: frozenset[int]
    """Nodes behind `trigger: each`. Arrivals of one visit are also never combined with those of another visit."""


def passes_separately(node: Node) -> bool:
    """Return whether every arrival starts the node. True for a tool executor: it serves each caller separately, because
    merging arrivals would lose calls.
    """
    return node.trigger == "each" or node.type == "tool_executor"


def separate(graph: Graph) -> Separate:
    """Find the nodes with concurrent visits, in time linear in the size of the graph."""
    each = [n for n, node in enumerate(graph.links.nodes) if passes_separately(node) and len(graph.into[n]) > 1]
    apart = _until_merged(graph, each)
    return Separate(apart | _until_merged(graph, _beside_cycles(graph)), apart)


def _until_merged(graph: Graph, starts: Iterable[int]) -> frozenset[int]:
    nodes: set[int] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node in nodes:
            continue
        nodes.add(node)
        join = graph.join_of.get(node)
        if join is not None and graph.closes[join][0] == node:
            waiting.append(join)  # the join closes each of its parallels separately
        waiting += [target for target in graph.links.targets(node) if not _merges(graph, target)]
    return frozenset(nodes)


def _merges(graph: Graph, node: int) -> bool:
    return node in graph.closes or (len(graph.into[node]) > 1 and not passes_separately(graph.links.nodes[node]))


def _beside_cycles(graph: Graph) -> list[int]:
    """Return the first nodes outside each cycle that can split.

    The rounds of a loop node are not such cycles: each round waits for its whole body.
    """
    ends_round = {edge for loop in graph.loops.values() for edge in loop.back_edges}
    edges = [
        [graph.edges[edge].target for edge in out if edge not in ends_round and graph.edges[edge].target >= 0]
        for out in graph.out
    ]
    indexes: list[int] = []
    for cycle in cycles(edges):
        inside = set(cycle)
        if any(_splits(graph, node) for node in cycle):
            indexes += [to for node in cycle for to in edges[node] if to not in inside and not _merges(graph, to)]
    return indexes


def _splits(graph: Graph, position: int) -> bool:
    """Return whether several edges of a node may be taken at once."""
    node = graph.links.nodes[position]
    kinds = [graph.edges[edge].kind for edge in graph.out[position]]
    several = sum(kind not in ("error", "default") for kind in kinds) > 1 or kinds.count("error") > 1
    return several and routing_of(node) == "all" and not isinstance(node.config, LoopConfig | ParallelConfig)
