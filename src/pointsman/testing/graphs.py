"""Random workflows from a seed: every type of node that runs, nested. For properties that hold for all graphs.

    document = random_workflow(seed=7, size=20)

The outcome depends on the input, never on timing: concurrent steps write separate paths or append to the log. `unruly`
adds features that race by their nature: joins that wait for some branches, terminating ends, uncaught failures.
`undone` lets the workflow fail once nothing moves any more, and its steps be undone. Work nodes whose id begins with
`bad` fail; those with `slow` fail the first time only; those with `caller` leave a tool call pending on odd visits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, NamedTuple, TypeAlias

from pointsman.engine.actions import ProposedCall
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, WorkDone, WorkFailed
from pointsman.values import Json, JsonObject

INPUT: Final[JsonObject] = {"n": 5, "items": ["a", "b", "c"]}
"""An input for which the conditions of random workflows take both values."""

REDUCERS: Final = {"log": "append", "count.*": "add", "by.*.*": "append"}

WORK: Final[Mapping[str, JsonObject]] = {
    "tool": {"tool": "look_up"},
    "agent": {"prompt": "Go on with {input.n}"},
    "memory": {"scope": "execution", "operation": "get", "key": "seen"},
    "code": {"source": "1"},
    "http": {"url": "https://example.com/{input.n}"},
    "planner": {"goal": "Sort {input.n} things"},
    "verifier": {"criteria": "It is short."},
    "structured-record": {"schema": {"type": "object"}, "input": "input", "records": "log"},
}
"""Types of work, with a configuration of each. Executors alone distinguish them; simulated work is the same."""

DEPTH_MAX: Final = 5

ONWARD: Final = "onward"
"""The escalation gate, which asks whether the execution may continue."""


class Block(NamedTuple):
    """A part of a graph: its entry node, and the nodes from which control leaves it."""

    first: str
    lasts: tuple[str, ...]


Draw: TypeAlias = Callable[[int], Block]


def random_workflow(seed: int, size: int = 12, *, unruly: bool = False, undone: bool = False) -> JsonObject:
    """Return a native document of about `size` blocks."""
    return _Drawing(seed, size, unruly=unruly, undone=undone).document()


def asked_on(document: JsonObject, steps: int) -> JsonObject:
    """Return the same workflow with a limit of steps, at which people repeatedly let it continue."""
    nodes, config = document["nodes"], document["config"]
    assert isinstance(nodes, list)
    assert isinstance(config, dict)
    assert isinstance(config["limits"], dict)
    options: list[Json] = [{"value": "continue", "more": {"steps": steps}}]
    gate: JsonObject = {"id": ONWARD, "type": "human", "config": {"options": options, "approvers": {"quorum": 2}}}
    limits: JsonObject = {**config["limits"], "steps": steps}
    return {**document, "nodes": [*nodes, gate], "config": {**config, "limits": limits, "onLimit": ONWARD}}


def perform(command: Execute) -> WorkDone | WorkFailed | ToolCallsProposed:
    """Perform the work of random workflows: the same answer to the same step in every schedule."""
    step, attempt = command.step, command.attempt
    if step.node.startswith("danger") and (calls := _calls(command)):
        return ToolCallsProposed(step=step, attempt=attempt, calls=calls)
    if step.node.startswith("bad") or (step.node.startswith("slow") and attempt == 1):
        return WorkFailed(step=step, attempt=attempt, failure=Failure(code="bad", message="meant to", retryable=True))
    is_odd = bool(step.visit % 2)
    pending = (ToolCall(id="call", name="look_up", arguments={}),) if step.node.startswith("caller") and is_odd else ()
    return WorkDone(step=step, attempt=attempt, result=str(step), next="left" if is_odd else "right", pending=pending)


def _calls(command: Execute) -> tuple[ProposedCall, ...]:
    """Propose calls that first need approval, then the caller, and then two sub-workflows."""
    returned = {verdict.number for verdict in command.verdicts if verdict.returned}
    if 2 in returned:
        return ()
    if 1 in returned:
        calls = [ProposedCall(number=n, name="ask", arguments={}, wants="workflow", workflow="other") for n in (2, 3)]
        return tuple(calls)
    wants = "result" if command.verdicts else "approval"
    return (ProposedCall(number=1, name="look_up", arguments={}, wants=wants),)


class _Drawing:
    def __init__(self, seed: int, size: int, *, unruly: bool, undone: bool) -> None:
        self.random = Random(seed)
        self.types = Random(-1 - seed)
        """Chooses types of nodes; apart, so that types do not change the shape of a graph."""
        self.left = size
        self.unruly = unruly
        self.undone = undone
        self.nodes: list[JsonObject] = []
        self.edges: list[Json] = []

    def document(self) -> JsonObject:
        start = self.node("start", "start")
        lasts = (start,)
        while self.left > 0:
            lasts = self.after(lasts, self.block(0))
        if self.undone:
            self.undo()
        if self.random.random() < 0.5:
            self.after(lasts, Block(self.node("end", "end"), ()))
        return {
            "id": "random",
            "state": {name: {"reduce": reducer} for name, reducer in REDUCERS.items()},
            "config": {"limits": {"steps": 600, "stateSize": "200KB", "parallel": self.random.choice([1, 2, 8])}},
            "nodes": [*self.nodes],
            "edges": self.edges,
            **({"output": {"bad": "1 / 0"}} if self.undone else {}),
        }

    def undo(self) -> None:
        """Add compensations to work, gates and children: some succeed at once, some on retry, some never."""
        done = [node for node in self.nodes if node["type"] in (*WORK, "human", "workflow")]
        undo_nodes = [self.node("undo", "tool", {"tool": "look_up"}, outputs={"log": "result"})]
        undo_nodes += [self.node("slow", "tool", {"tool": "look_up"}, execution={"retries": 1})]
        undo_nodes += [
            self.node("bad", "tool", {"tool": "look_up"}),
            self.node("child", "workflow", {"workflow": "other"}),
        ]
        for node in done:
            if self.random.random() < 0.7:
                node["compensate"] = self.random.choice(undo_nodes)

    # Pieces

    def node(self, prefix: str, kind: str, config: JsonObject | None = None, **more: Json) -> str:
        name = f"{prefix}{len(self.nodes)}"
        self.nodes.append({"id": name, "type": kind, "config": config or {}, **more})
        return name

    def edge(self, source: str, target: str, condition: JsonObject | None = None, mark: str | None = None) -> None:
        edge: JsonObject = {"id": f"e{len(self.edges)}", "source": source, "target": target}
        if condition is not None:
            edge["condition"] = condition
        if mark is not None:
            edge["mark"] = mark
        self.edges.append(edge)

    def after(self, lasts: tuple[str, ...], block: Block) -> tuple[str, ...]:
        for last in lasts:
            self.edge(last, block.first)
        return block.lasts

    def test(self) -> JsonObject:
        """Return a condition on the input with a fixed but arbitrary value."""
        return {
            "type": "expression",
            "expression": f"input.n % {self.random.randint(2, 3)} == {self.random.randint(0, 1)}",
        }

    def block(self, depth: int) -> Block:
        """Draw any block; only simple ones when deep, or after enough blocks."""
        self.left -= 1
        simple: list[Draw] = [self.work, self.work, self.change, self.gate, self.pause, self.child, self.caught]
        simple.append(self.tell)
        nested: list[Draw] = [self.chain, self.choice, self.split, self.fan, self.fan, self.each, self.nest]
        nested += [self.loop, self.loop, self.cycle, self.several]
        draws = simple if depth >= DEPTH_MAX or self.left <= 0 else [*simple, *nested, *nested]
        return self.random.choice(draws)(depth + 1)

    # Simple blocks

    def work(self, depth: int) -> Block:
        name = self.work_node()
        return Block(name, (name,)) if self.types.random() < 0.9 else self.calls(name)

    def work_node(self) -> str:
        kinds = ["tool", "tool", "slow", "danger", "bad"] if self.unruly else ["tool", "tool", "slow", "danger"]
        more: JsonObject = {}
        if self.random.random() < 0.3:
            more["skipWhen"] = "input.n % 2 == 0"
        if self.random.random() < 0.7:
            more["outputs"] = {"log": "result"}
        if self.random.random() < 0.15:
            more["requiresApproval"] = True
        execution: JsonObject = {"retries": 1, **({"delay": "1s"} if self.random.random() < 0.2 else {})}
        prefix = self.random.choice(kinds)
        kind = self.types.choice([*WORK]) if self.types.random() < 0.5 else "tool"
        if kind == "verifier":
            more["routing"] = "all"
        return self.node(prefix, kind, WORK[kind], execution=execution, **more)

    def calls(self, before: str) -> Block:
        """Draw an agent behind a node, whose pending calls a tool executor runs and returns.

        What the agent does depends on the number of its visit, so only one branch at a time may reach it.
        """
        agent = self.node("caller", "agent", WORK["agent"], routing="label")
        executor, out = self.node("tools", "tool_executor"), self.node("set", "transform", {})
        self.edge(before, agent)
        self.edge(agent, executor)
        self.edge(agent, out, {"type": "label", "label": "right"})
        return Block(before, (out,))

    def change(self, depth: int) -> Block:
        if self.types.random() < 0.2:
            name = self.node("render", "template-render", {"template": "{input.n} items"})
        else:
            name = self.node("set", "transform", {"set": {f"count.c{len(self.nodes)}": "1"}})
        return Block(name, (name,))

    def tell(self, depth: int) -> Block:
        if self.types.random() < 0.3:
            name = self.node("tell", "progress", {"message": "{input.n} items"})
        else:
            name = self.node("tell", "emit", {"event": "told", "data": "input.n"})
        return Block(name, (name,))

    def gate(self, depth: int) -> Block:
        config: JsonObject = {"options": [{"value": "yes"}, {"value": "no"}]}
        if self.random.random() < 0.4:
            config["approvers"] = {"quorum": 2}
        name = self.node("ask", "human", config)
        block = self.block(depth)
        self.edge(name, block.first, {"type": "label", "label": "yes"})
        if self.random.random() < 0.5:
            return Block(name, block.lasts)
        other = self.block(depth)
        self.edge(name, other.first, {"type": "label", "label": "no"})
        return Block(name, (*block.lasts, *other.lasts))

    def pause(self, depth: int) -> Block:
        config: JsonObject = self.random.choice([{"duration": "5s"}, {"event": f"ready{len(self.nodes)}"}])
        name = self.node("wait", "wait", config)
        return Block(name, (name,))

    def child(self, depth: int) -> Block:
        name = self.node("child", "workflow", {"workflow": "other", "input": {"n": "input.n"}})
        return Block(name, (name,))

    def caught(self, depth: int) -> Block:
        """Draw work that fails, with an error edge."""
        bad = self.node("bad", "tool", {"tool": "look_up"})
        handler = self.node("tool", "tool", {"tool": "look_up"}, outputs={"log": "result"})
        self.edge(bad, handler, {"type": "error"})
        if self.random.random() < 0.5:
            ignored = self.node("bad", "tool", {"tool": "look_up"}, execution={"errorHandler": "continue"})
            self.edge(handler, ignored)
            return Block(bad, (ignored,))
        return Block(bad, (handler,))

    # Composite blocks

    def chain(self, depth: int) -> Block:
        first = self.block(depth)
        lasts = first.lasts
        for _ in range(self.random.randint(1, 3)):
            lasts = self.after(lasts, self.block(depth))
        return Block(first.first, lasts)

    def choice(self, depth: int) -> Block:
        cases: list[Json] = [{"when": "input.n % 2 == 0", "label": "a"}, {"when": "input.n % 3 == 2", "label": "b"}]
        name = self.node("dec", "decision", {"cases": cases, "default": "c"})
        lasts: list[str] = []
        for label in self.random.sample(["a", "b", "c"], 2):
            block = self.block(depth)
            self.edge(name, block.first, {"type": "label", "label": label})
            lasts += block.lasts
        block = self.block(depth)
        self.edge(name, block.first, {"type": "default"})
        return Block(name, (*lasts, *block.lasts))

    def split(self, depth: int) -> Block:
        """Draw a split with several edges, some conditional; branches of different length, some of which end."""
        name = self.node("split", "transform", {})
        lasts: list[str] = []
        for number in range(self.random.randint(2, 3)):
            block = self.block(depth)
            self.edge(name, block.first, self.test() if number and self.random.random() < 0.6 else None)
            if number == 0 or self.random.random() < 0.8:
                lasts += block.lasts
        if self.random.random() < 0.3:
            lasts.append(name)
        merged = self.node("merge", "join" if self.random.random() < 0.5 else "transform", {})
        for last in dict.fromkeys(lasts):
            self.edge(last, merged, self.test() if last == name else None)
        return Block(name, (merged,))

    def fan(self, depth: int) -> Block:
        """Draw a parallel of several branches."""
        config: JsonObject = {"onBranchError": self.random.choice(["fail", "continue", "ignore"])}
        if self.random.random() < 0.4:
            config["maxParallel"] = self.random.randint(1, 2)
        name = self.node("fan", "parallel", config)
        join = self.node("join", "join", self.join_config())
        for number in range(self.random.randint(1, 3)):
            block = self.block(depth)
            self.edge(name, block.first, self.test() if number and self.random.random() < 0.3 else None)
            if self.random.random() < 0.85 or number == 0:
                self.after(block.lasts, Block(join, ()))
        if self.random.random() < 0.2:
            self.edge(name, join)
        return Block(name, (join,))

    def join_config(self) -> JsonObject:
        config: JsonObject = {}
        if self.random.random() < 0.5:
            config["aggregate"] = self.random.choice(["list", "object", "first", "last", "vote", "count(results)"])
        if self.unruly and self.random.random() < 0.5:
            config["wait"] = self.random.choice(["any", 1, 2, "60%", "arrived >= 1"])
            config["cancelRest"] = self.random.random() < 0.5
        return config

    def each(self, depth: int) -> Block:
        """Draw a parallel over items whose branches write separate keys."""
        name = self.node("fan", "parallel", {"items": self.random.choice(["input.items", "[]"]), "as": "one"})
        join = self.node("join", "join", self.join_config())
        work = self.node("tool", "tool", {"tool": "look_up"}, outputs={f"by.{name}.current_fanout_item": "result"})
        self.edge(name, work)
        block = self.block(depth)
        self.edge(work, block.first)
        self.after(block.lasts, Block(join, ()))
        return Block(name, (join,))

    def nest(self, depth: int) -> Block:
        """Draw two parallels closed by one join."""
        outer, inner = self.node("fan", "parallel", {"items": "input.items"}), self.node("fan", "parallel", {})
        join = self.node("join", "join", {"of": outer})
        self.edge(outer, inner)
        for _ in range(2):
            block = self.block(depth)
            self.edge(inner, block.first)
            self.after(block.lasts, Block(join, ()))
        return Block(outer, (join,))

    def loop(self, depth: int) -> Block:
        """Draw a loop: counted, over items, or left from inside."""
        config: JsonObject = {"maxIterations": self.random.randint(1, 3)}
        if self.random.random() < 0.4:
            config = {"over": "input.items", "as": "turn"}
        if self.random.random() < 0.4:
            config |= {"collect": f"rounds{len(self.nodes)}", "countInto": f"done{len(self.nodes)}"}
        name = self.node("loop", "loop", config)
        block = self.block(depth)
        self.edge(name, block.first, mark="body")
        self.after(block.lasts, Block(name, ()))
        out = self.node("set", "transform", {})
        self.edge(name, out, mark="exit")
        if len(block.lasts) == 1 and self.random.random() < 0.3:
            self.edge(block.lasts[0], out, {"type": "expression", "expression": "loop.iteration == 2"}, "break")
        return Block(name, (out,))

    def cycle(self, depth: int) -> Block:
        """Draw a cycle by an edge back, until a counter reaches its bound."""
        count = f"turns{len(self.nodes)}"
        name = self.node("set", "transform", {"operations": [{"increment": count}]})
        block = self.block(depth)
        self.edge(name, block.first)
        check = self.node("dec", "decision", {"expression": f"{count} < {self.random.randint(1, 3)}"})
        self.after(block.lasts, Block(check, ()))
        self.edge(check, name, {"type": "label", "label": "true"})
        out = self.node("set", "transform", {})
        self.edge(check, out, {"type": "label", "label": "false"})
        return Block(name, (out,))

    def several(self, depth: int) -> Block:
        """Draw two branches that pass one node separately and merge behind it."""
        name = self.node("split", "transform", {})
        each = self.node("tool", "tool", {"tool": "look_up"}, trigger="each", outputs={"log": "result"})
        merged = self.node("merge", "transform", {})
        for _ in range(2):
            block = self.block(DEPTH_MAX)
            self.edge(name, block.first)
            self.after(block.lasts, Block(each, ()))
        behind = self.work_node()  # Both branches visit it in any order: no agent with pending calls.
        self.edge(each, behind)
        for source in (behind, name):
            self.edge(source, merged)
        if self.unruly and self.random.random() < 0.3:
            self.edge(name, self.node("end", "end", {"terminate": True}))
        return Block(name, (merged,))
