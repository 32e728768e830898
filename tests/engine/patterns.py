"""The control-flow patterns of van der Aalst, ter Hofstede, Kiepuszewski, Barros and Russell as small workflows.

One entry per supported pattern: a drawing, the results of its nodes, and the outcome in every schedule: the visited
nodes (sorted) and the output. `UNSUPPORTED` lists the other patterns with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pointsman.values import Json

Said = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Pattern:
    """One pattern and its workflow."""

    name: str
    drawing: str
    visits: str
    """Every node as often as it is visited, in alphabetical order."""
    output: Json = None
    """The output of the execution; the result of a node is the node's name."""
    nodes: Said = field(default_factory=dict[str, dict[str, object]])
    edges: Said = field(default_factory=dict[str, dict[str, object]])
    input: Mapping[str, Json] = field(default_factory=dict[str, Json])
    status: str = "completed"
    spelling: str = ""
    """How to write it, for the reference."""
    or_visits: str = ""
    """The alternative, if the order of completion decides whether another node starts."""


def config(**said: Mapping[str, object]) -> dict[str, dict[str, object]]:
    return {name: {"config": one} for name, one in said.items()}


TO_FOUR = "tool2 -> tool4; tool3 -> tool4"
SPLIT = f"start -> tool1; tool1 -> tool2, tool3; {TO_FOUR}"
ITEMS: Mapping[str, Json] = {"items": ["a", "b", "c"]}
MANY = "start -> fan; fan -> tool1; tool1 -> join; join -> tool2"
LOOP = "start -> loop; loop -body-> tool1; tool1 -> loop; loop -exit-> tool2"
MILESTONE = "start -> tool1, ask1; tool1 -> tool2; tool2 -> tool3"

PATTERNS: dict[int, Pattern] = {
    1: Pattern("Sequence", "start -> tool1; tool1 -> tool2", "start tool1 tool2", "tool2", spelling="an edge"),
    2: Pattern(
        "Parallel Split",
        "start -> tool1; tool1 -> tool2, tool3",
        "start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        spelling="several edges under `routing: all`, or `parallel`",
    ),
    3: Pattern(
        "Synchronization",
        SPLIT,
        "start tool1 tool2 tool3 tool4",
        "tool4",
        spelling="a node with several incoming edges, or `join`",
    ),
    4: Pattern(
        "Exclusive Choice",
        "start -> dec; dec -n > 1-> tool1; dec -default-> tool2",
        "dec start tool1",
        output="tool1",
        input={"n": 2},
        spelling="`decision`, or conditions under `routing: first`",
    ),
    5: Pattern(
        "Simple Merge",
        "start -> dec; dec -n > 1-> tool1; dec -default-> tool2; tool1 -> tool3; tool2 -> tool3",
        "dec start tool1 tool3",
        output="tool3",
        input={"n": 2},
        spelling="a node with several incoming edges",
    ),
    6: Pattern(
        "Multi-Choice",
        "start -> tool1; tool1 -n > 1-> tool2; tool1 -n > 0-> tool3; tool1 -n > 5-> tool4",
        "start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        input={"n": 2},
        spelling="conditions under `routing: all`",
    ),
    7: Pattern(
        "Structured Synchronizing Merge",
        "start -> tool1; tool1 -n > 1-> tool2; tool1 -n > 5-> tool3; tool1 -n > 0-> tool5; tool5 -> tool4; " + TO_FOUR,
        "start tool1 tool2 tool4 tool5",
        output="tool4",
        input={"n": 2},
        spelling="a node with several incoming edges: it waits for the ways that were taken",
    ),
    8: Pattern(
        "Multi-Merge",
        SPLIT,
        "start tool1 tool2 tool3 tool4 tool4",
        ["tool4", "tool4"],
        nodes={"tool4": {"trigger": "each"}},
        spelling="`trigger: each`",
    ),
    9: Pattern(
        "Structured Discriminator",
        "start -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -> join; join -> tool3",
        "fan join start tool1 tool2 tool3",
        output="tool3",
        nodes=config(join={"wait": "any"}),
        spelling="`parallel` … `join` with `wait: any`",
    ),
    10: Pattern(
        "Arbitrary Cycles",
        "start -> tool1; tool1 -> tool2; tool2 -> set; set -n < 3-> tool1; set -n < 4-> tool2; set -default-> tool3",
        "set set set start tool1 tool1 tool2 tool2 tool2 tool3",
        output="tool3",
        nodes={"set": {"routing": "first", "config": {"operations": [{"increment": "n"}]}}},
        input={"n": 1},
        spelling="edges back to any node",
    ),
    11: Pattern(
        "Implicit Termination",
        "start -> tool1, tool2; tool1 -> tool3",
        "start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        spelling="the default: it ends when nothing is left to do",
    ),
    12: Pattern(
        "Multiple Instances without Synchronization",
        "start -> fan; fan -> tool1",
        "fan start tool1 tool1 tool1",
        output=["tool1", "tool1", "tool1"],
        nodes=config(fan={"items": "input.items"}),
        input=ITEMS,
        spelling="`parallel` without a join",
    ),
    13: Pattern(
        "Multiple Instances with a Priori Design-Time Knowledge",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "[1, 2, 3]"}),
        spelling="`parallel` with a list of fixed length as `items`",
    ),
    14: Pattern(
        "Multiple Instances with a Priori Run-Time Knowledge",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "input.items"}),
        input=ITEMS,
        spelling="`parallel` with `items`",
    ),
    16: Pattern(
        "Deferred Choice",
        "start -> ask; ask -#left-> tool1; ask -#right-> tool2",
        "ask start tool2",
        output="tool2",
        nodes=config(ask={"options": [{"value": "right"}, {"value": "left"}]}),
        spelling="`human` with labels; for events a `parallel` of `wait` nodes, `wait: any, cancelRest`",
    ),
    18: Pattern(
        "Milestone",
        "start -> tool1; tool1 -> set1; set1 -> tool2; set1 -done-> tool3",
        "set1 start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        nodes=config(set1={"set": {"done": "true"}}),
        spelling="a condition on the state, or `wait` for an event that `emit` announces",
    ),
    19: Pattern(
        "Cancel Activity",
        "start -> fan; fan -> tool1, wait; tool1 -> join; wait -> join; join -> tool2",
        "fan join start tool1 tool2 wait",
        output="tool2",
        nodes=config(join={"wait": "any", "cancelRest": True}, wait={"duration": "60s"}),
        spelling="the activity and its reason to stop as branches of `parallel`; `wait: any, cancelRest`; or `timeout`",
    ),
    20: Pattern(
        "Cancel Case",
        "start -> tool1; tool1 -> ask, tool2; ask -#approve-> tool3",
        "ask start tool1 tool2",
        status="cancelled",
        nodes=config(ask={"options": [{"value": "reject"}]}),
        spelling="the cancel command, a `reject` without an edge, or `end` with `status: cancelled`",
    ),
    21: Pattern(
        "Structured Loop",
        LOOP,
        "loop loop loop start tool1 tool1 tool2",
        "tool2",
        nodes=config(loop={"maxIterations": 2}),
        spelling="`loop` with `while`, `until`, `maxIterations` or `over`",
    ),
    22: Pattern(
        "Recursion",
        "start -> child; child -> tool1",
        "child start tool1",
        output="tool1",
        nodes={"child": {"type": "workflow", "config": {"workflow": "drawn"}}},
        spelling="`workflow` that names itself; the depth is bounded",
    ),
    24: Pattern(
        "Persistent Trigger",
        "start -> wait; wait -> tool1",
        "start tool1 wait",
        output="tool1",
        nodes=config(wait={"event": "paid"}),
        spelling="`wait` for an event, with `match`",
    ),
    25: Pattern(
        "Cancel Region",
        "start -> fan; fan -> wait1, tool2; wait1 -> join; tool2 -> wait2; wait2 -> join; join -> tool4",
        "fan join start tool2 tool4 wait1 wait2",
        output="tool4",
        nodes=config(join={"wait": 1, "cancelRest": True}, wait1={"duration": "9s"}, wait2={"duration": "60s"}),
        spelling="the region as a branch of `parallel`; `join` with `cancelRest`",
    ),
    26: Pattern(
        "Cancel Multiple Instance Activity",
        "start -> fan; fan -> bad1; bad1 -> join; fan -error-> tool2; join -> tool3",
        "bad1 bad1 bad1 fan start tool2",
        output="tool2",
        nodes={**config(fan={"items": "input.items"}), "bad1": {"type": "tool", "config": {"tool": "t"}}},
        input=ITEMS,
        spelling="`onBranchError: fail` with an error edge on the `parallel`; or cancel the execution",
    ),
    27: Pattern(
        "Complete Multiple Instance Activity",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "input.items"}, join={"wait": "arrived >= 2", "cancelRest": True}),
        input=ITEMS,
        spelling="`join` with an expression as `wait` and `cancelRest`",
    ),
    28: Pattern(
        "Blocking Discriminator",
        LOOP.replace("tool1 -> loop", "tool1 -> fan; fan -> tool3, tool4; tool3 -> join; tool4 -> join; join -> loop"),
        "fan fan join join loop loop loop start tool1 tool1 tool2 tool3 tool3 tool4 tool4",
        output="tool2",
        nodes=config(loop={"maxIterations": 2}, join={"wait": "any"}),
        spelling="`wait: any`: every opening is counted by itself, so that none blocks the next one",
    ),
    29: Pattern(
        "Cancelling Discriminator",
        "start -> fan; fan -> tool1, wait; tool1 -> join; wait -> join; join -> tool3",
        "fan join start tool1 tool3 wait",
        output="tool3",
        nodes=config(join={"wait": "any", "cancelRest": True}, wait={"duration": "60s"}),
        spelling="`join` with `wait: any, cancelRest: true`",
    ),
    30: Pattern(
        "Structured Partial Join",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "input.items"}, join={"wait": 2}),
        input=ITEMS,
        spelling='`join` with `wait: 2` or `wait: "60%"`',
    ),
    31: Pattern(
        "Blocking Partial Join",
        LOOP.replace("tool1 -> loop", "tool1 -> fan; fan -> tool3; tool3 -> join; join -> loop"),
        "fan fan join join loop loop loop start tool1 tool1 tool2 tool3 tool3 tool3 tool3 tool3 tool3",
        output="tool2",
        nodes=config(loop={"maxIterations": 2}, fan={"items": "input.items"}, join={"wait": 2}),
        input=ITEMS,
        spelling="`wait: N`: every opening is counted by itself",
    ),
    32: Pattern(
        "Cancelling Partial Join",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "input.items"}, join={"wait": 2, "cancelRest": True}),
        input=ITEMS,
        spelling="`join` with `wait: 2, cancelRest: true`",
    ),
    33: Pattern(
        "Generalized AND-Join",
        "start -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -> join; join -> tool3",
        "fan join start tool1 tool2 tool3",
        output="tool3",
        spelling="`join`: arrivals of different openings are never mixed",
    ),
    34: Pattern(
        "Static Partial Join for Multiple Instances",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "[1, 2, 3]"}, join={"wait": 2}),
        spelling="`parallel` with `items` and `join` with `wait: N`",
    ),
    35: Pattern(
        "Cancelling Partial Join for Multiple Instances",
        MANY,
        "fan join start tool1 tool1 tool1 tool2",
        "tool2",
        nodes=config(fan={"items": "[1, 2, 3]"}, join={"wait": 2, "cancelRest": True}),
        spelling="the same with `cancelRest`",
    ),
    37: Pattern(
        "Local Synchronizing Merge",
        "start -> tool1; tool1 -> tool2; tool1 -n > 1-> tool3; tool3 -n > 5-> tool4; tool2 -> tool4; tool3 -> tool5",
        "start tool1 tool2 tool3 tool4 tool5",
        output=["tool4", "tool5"],
        input={"n": 2},
        spelling="a node with several incoming edges",
    ),
    38: Pattern(
        "General Synchronizing Merge",
        "start -> tool1; tool1 -> tool2, tool3; tool2 -> set1; tool3 -> set2; set1 -n > 9-> set2; set2 -n > 9-> set1",
        "set1 set2 start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        input={"n": 1},
        spelling="a node with several incoming edges, in any graph: merges that wait for each other start together",
    ),
    41: Pattern(
        "Thread Merge",
        SPLIT.replace("tool4", "join") + "; join -> end",
        "end join start tool1 tool2 tool3",
        output=["tool2", "tool3"],
        spelling="`join` of plain ways",
    ),
    42: Pattern(
        "Thread Split",
        "start -> fan; fan -> tool1; tool1 -> join; join -> end",
        "end fan join start tool1 tool1 tool1",
        output=["tool1", "tool1", "tool1"],
        nodes=config(fan={"items": "input.items"}),
        input=ITEMS,
        spelling="`parallel` with `items`",
    ),
    43: Pattern(
        "Explicit Termination",
        "start -> tool1, wait; tool1 -> end",
        "end start tool1 wait",
        output="tool1",
        nodes=config(end={"terminate": True}, wait={"event": "never"}),
        spelling="`end` with `terminate: true`, or the target `END`",
    ),
}

UNSUPPORTED: dict[int, tuple[str, str]] = {
    15: (
        "Multiple Instances without a Priori Run-Time Knowledge",
        "The number of branches is fixed when a parallel opens. A `loop` may open a `parallel` in each round.",
    ),
    17: (
        "Interleaved Parallel Routing",
        "There are no locks between steps. `parallel` with `maxParallel: 1` runs whole branches one after another.",
    ),
    23: (
        "Transient Trigger",
        "Nearly: an event reaches only who waits at that moment and is not kept; it never interrupts work that runs.",
    ),
    36: (
        "Dynamic Partial Join for Multiple Instances",
        "As 15: branches cannot be added. The condition of the join may be an expression over what has arrived.",
    ),
    39: ("Critical Section", "There are no locks. `concurrency: {max: 1}` bounds executions of one workflow."),
    40: ("Interleaved Routing", "As 17: `parallel` with `maxParallel: 1` fixes the order of the branches."),
}
