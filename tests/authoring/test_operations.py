"""Operations: the effect of each on a document, its refusals; and differences as operations."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.authoring.apply import apply_operations
from pointsman.authoring.comparison import operations_between, same
from pointsman.authoring.draft import Draft
from pointsman.authoring.operations import (
    OPERATIONS_MAX,
    AddNode,
    AnyOperation,
    Disconnect,
    MoveNode,
    OperationRefused,
    RemoveNode,
    RenameNode,
    operations_schema,
    read_operations,
    written_operations,
)
from pointsman.definition.graph.analysis import analyse
from pointsman.definition.json_schema import JsonSchema
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.testing.graphs import random_workflow
from pointsman.values import Json, JsonObject
from tests.definition.graphs import document
from tests.growth import check_linear

CHAIN = "start -> a; a -> b; b -> end"
FORK = "start -> fan; fan -> a; fan -> b; a -> join; b -> join; join -> end"
LOOP = "start -> loop; loop -body-> a; a -> loop; loop -> end"


def drawn(drawing: str, **configs: JsonObject) -> JsonObject:
    """Return a document whose edges have no ids: their ends identify them."""
    made = document(drawing, configs=configs)
    edges: Any = made["edges"]
    return {**made, "edges": [{key: value for key, value in edge.items() if key != "id"} for edge in edges]}


def after(drawing: JsonObject | str, *operations: JsonObject) -> JsonObject:
    given = drawn(drawing) if isinstance(drawing, str) else drawing
    before = copy.deepcopy(given)
    made = apply_operations(given, read_operations([*operations]))
    assert given == before, "the document that was given is not touched"
    return made


def ways(made: JsonObject) -> list[str]:
    edges: Any = made["edges"]
    return sorted(f"{edge['source']}->{edge['target']}" for edge in edges)


def ids(made: JsonObject) -> list[str]:
    nodes: Any = made["nodes"]
    return [node["id"] for node in nodes]


def node(made: JsonObject, name: str) -> Any:
    nodes: Any = made["nodes"]
    return next(one for one in nodes if one["id"] == name)


NEW: JsonObject = {"id": "new", "type": "transform", "config": {"operations": []}}


@pytest.mark.requirement("S4-36", "S4-37")
def test_a_node_is_added_after_another_on_an_edge_or_alone() -> None:
    assert ways(after(CHAIN, {"op": "add_node", "node": NEW, "after": "a"})) == [
        "a->new",
        "b->end",
        "new->b",
        "start->a",
    ]
    assert ways(after(CHAIN, {"op": "add_node", "node": NEW, "on": "b->end"})) == [
        "a->b",
        "b->new",
        "new->end",
        "start->a",
    ]
    alone = after(CHAIN, {"op": "add_node", "node": NEW})
    assert ids(alone)[-1] == "new"
    assert ways(alone) == ways(drawn(CHAIN))


@pytest.mark.requirement("S4-36")
def test_a_node_is_removed_with_its_edges_or_its_neighbours_are_connected() -> None:
    assert ways(after(CHAIN, {"op": "remove_node", "node": "a"})) == ["b->end"]
    bridged = after(CHAIN, {"op": "remove_node", "node": "a", "bridge": True})
    assert ids(bridged) == ["start", "b", "end"]
    assert ways(bridged) == ["b->end", "start->b"]


def test_a_bridge_keeps_the_condition_of_the_incoming_edge() -> None:
    made = after(
        "start -> dec; dec -#yes-> a; dec -#no-> b; a -> end; b -> end",
        {"op": "remove_node", "node": "a", "bridge": True},
    )
    edges: Any = made["edges"]
    kept = next(edge for edge in edges if edge["source"] == "dec" and edge["target"] == "end")
    assert kept["condition"] == {"type": "label", "label": "yes"}


def test_a_node_moves_into_a_parallel_as_a_branch_and_out_after_its_join() -> None:
    inside = after(FORK, {"op": "add_node", "node": NEW, "within": "fan"})
    assert {"fan->new", "new->join"} <= {*ways(inside)}
    graph = analyse(_read(inside))
    assert graph.scopes[graph.index["new"]] == (graph.index["fan"],)
    outside = after(inside, {"op": "move_node", "node": "new", "after": "fan"})
    assert {"join->new", "new->end"} <= {*ways(outside)}
    assert analyse(_read(outside)).scopes[graph.index["new"]] == ()


def test_a_node_moves_into_a_loop_at_its_end_and_out_after_it() -> None:
    inside = after(LOOP, {"op": "add_node", "node": NEW, "within": "loop"})
    assert ways(inside) == ["a->new", "loop->a", "loop->end", "new->loop", "start->loop"]
    graph = analyse(_read(inside))
    assert {graph.ids[one] for one in graph.loops[graph.index["loop"]].body} == {"a", "new"}
    outside = after(inside, {"op": "move_node", "node": "new", "after": "loop"})
    assert ways(outside) == ["a->loop", "loop->a", "loop->new", "new->end", "start->loop"]
    assert _read(outside)


def test_an_edge_that_continues_a_loop_still_does_with_a_node_inserted() -> None:
    before = drawn("start -> loop; loop -body-> a; a -> b; b -> loop; a -> loop; loop -> end")
    edges: Any = before["edges"]
    edges[-2]["mark"] = "continue"
    made = after(before, {"op": "add_node", "node": NEW, "on": "a->loop"})
    made_edges: Any = made["edges"]
    marks = {f"{edge['source']}->{edge['target']}": edge.get("mark") for edge in made_edges}
    assert (marks["a->new"], marks["new->loop"]) == (None, "continue")


def test_a_bridge_does_not_duplicate_an_existing_edge() -> None:
    made = after("start -> a; a -> b; start -> b; b -> end", {"op": "remove_node", "node": "a", "bridge": True})
    assert ways(made) == ["b->end", "start->b"]
    alone = after(
        "start -> loop; loop -body-> a; a -> loop; loop -> end", {"op": "remove_node", "node": "a", "bridge": True}
    )
    round = after("start -> a; a -> b; b -> a; a -> end", {"op": "remove_node", "node": "b", "bridge": True})
    assert ways(round) == ["a->end", "start->a"], "a node does not lead to itself because another one left"
    assert ways(alone) == ["loop->end", "loop->loop", "start->loop"], "a loop without a body is still one"


def test_a_listed_loop_body_gets_the_added_node() -> None:
    listed = drawn("start -> loop; loop -> end; a", loop={"body": ["a"], "maxIterations": 3})
    made = after(listed, {"op": "add_node", "node": NEW, "within": "loop"})
    assert node(made, "loop")["config"]["body"] == ["a", "new"]
    gone = after(made, {"op": "remove_node", "node": "a"})
    assert node(gone, "loop")["config"]["body"] == ["new"]


@pytest.mark.requirement("S4-38")
def test_fields_of_nodes_edges_and_the_workflow_are_changed_by_pointers() -> None:
    before = drawn("start -> agent; agent -> end", agent={"prompt": "One.", "tools": ["x", "y"]})
    made = after(
        before,
        {
            "op": "change_node",
            "node": "agent",
            "set": {"/config/prompt": "Two.", "/config/tools/-": "z", "/outputs/draft": "result"},
            "remove": ["/config/tools/0"],
        },
        {"op": "change_edge", "edge": "agent->end", "set": {"/condition": {"type": "default"}}},
        {"op": "change_workflow", "set": {"/name": "Letter", "/config/limits/steps": 9}},
    )
    agent = node(made, "agent")
    assert (agent["config"]["prompt"], agent["config"]["tools"]) == ("Two.", ["y", "z"])
    assert agent["outputs"] == {"draft": "result"}
    assert made["name"] == "Letter"
    assert made["config"] == {"limits": {"steps": 9}}
    assert _read(made)


NAMED: JsonObject = {
    "id": "w",
    "entry": "draft",
    "onError": "draft",
    "nodes": [
        {"id": "draft", "type": "agent", "config": {"prompt": "Write."}, "outputs": {"draft": "result"}},
        {
            "id": "mail",
            "type": "tool",
            "inputs": {
                "one": 'nodes.draft.text + nodeOutputs["draft"] + outputs.draft + draft.nodes.draft',
                "two": "'nodes.draft' + nodes.drafts + $.nodes.draft",
            },
            "config": {
                "tool": "send",
                "parameters": {"body": "Dear {nodes.draft.text}, nodes.draft {draft} \\{nodes.draft}"},
            },
        },
        {"id": "boss", "type": "agent", "config": {"prompt": "Hi {nodes.draft?}", "handoffs": ["draft"]}},
        {"id": "fan", "type": "parallel", "config": {"branches": ["draft", "mail"]}},
    ],
    "edges": [
        {"source": "draft", "target": "mail", "condition": {"type": "expression", "expression": "nodes.draft.ok"}}
    ],
}


def test_a_rename_changes_exactly_the_references_to_the_node() -> None:
    made = after(NAMED, {"op": "rename_node", "node": "draft", "to": "first draft"})
    told = json.dumps(made, ensure_ascii=False)
    assert node(made, "mail")["inputs"] == {
        "one": 'nodes["first draft"].text + nodeOutputs["first draft"] + outputs["first draft"] + draft.nodes.draft',
        "two": "'nodes.draft' + nodes.drafts + $.nodes[\"first draft\"]",
    }
    assert node(made, "mail")["config"]["parameters"]["body"] == (
        'Dear {nodes["first draft"].text}, nodes.draft {draft} \\{nodes.draft}'
    )
    assert node(made, "boss")["config"] == {"prompt": 'Hi {nodes["first draft"]?}', "handoffs": ["first draft"]}
    assert node(made, "fan")["config"]["branches"] == ["first draft", "mail"]
    assert (made["entry"], made["onError"]) == ("first draft", "first draft")
    edges: Any = made["edges"]
    assert edges == [
        {
            "source": "first draft",
            "target": "mail",
            "condition": {"type": "expression", "expression": 'nodes["first draft"].ok'},
        }
    ]
    assert node(made, "first draft")["outputs"] == {"draft": "result"}
    back = after(made, {"op": "rename_node", "node": "first draft", "to": "draft"})
    assert '"draft"' in told
    assert node(back, "mail")["config"] == node(NAMED, "mail")["config"]
    assert node(back, "mail")["inputs"]["two"] == "'nodes.draft' + nodes.drafts + $.nodes.draft"


@pytest.mark.parametrize(
    ("operation", "message", "hint"),
    [
        ({"op": "remove_node", "node": "q"}, "there is no node 'q'", "'start'"),
        ({"op": "remove_node", "node": "strat"}, "there is no node 'strat'", "Did you mean 'start'?"),
        ({"op": "add_node", "node": {"type": "end"}}, "the node has no id", '"id"'),
        ({"op": "add_node", "node": {"id": "a", "type": "end"}}, "the node 'a' already exists", "another id"),
        ({"op": "add_node", "node": {"id": "END", "type": "end"}}, "'END' is not a node", "another id"),
        ({"op": "add_node", "node": NEW, "after": "a", "on": "a->b"}, "after and on exclude each other", "one of them"),
        ({"op": "add_node", "node": NEW, "within": "a"}, "'a' is a transform", "a loop or a parallel"),
        ({"op": "move_node", "node": "start", "after": "a"}, "'start' is of type 'start'", "connect it again"),
        ({"op": "move_node", "node": "a"}, "does not contain the place for 'a'", "`within`"),
        ({"op": "move_node", "node": "a", "after": "a"}, "behind or into itself", "another node"),
        ({"op": "move_node", "node": "a", "on": "a->b"}, "an edge of 'a' itself", "another edge"),
        ({"op": "rename_node", "node": "a", "to": "b"}, "the node 'b' already exists", "another id"),
        ({"op": "rename_node", "node": "a", "to": "END"}, "'END' is not a node", "another id"),
        ({"op": "connect", "edge": {"source": "a"}}, "the edge has no 'target'", "{source, target"),
        ({"op": "connect", "edge": {"source": "a", "target": "zz"}}, "there is no node 'zz'", "'start'"),
        ({"op": "disconnect", "edge": "a->end"}, "there is no edge 'a->end'", "Did you mean"),
        ({"op": "change_edge", "edge": "a->b", "set": {"/target": "zz"}}, "there is no node 'zz'", "'start'"),
        ({"op": "change_node", "node": "a", "set": {"id": "x"}}, "'id' is not a JSON pointer", "/config/prompt"),
        (
            {"op": "change_node", "node": "a", "set": {"/id": "x"}},
            "'/id' of node 'a' cannot be changed",
            "Use the operations",
        ),
        ({"op": "change_node", "node": "a", "remove": ["/config/x"]}, "has no '/config/x'", "the position of 'x'"),
        ({"op": "change_workflow", "set": {"/nodes/0/id": "x"}}, "cannot be changed this way", "Use the operations"),
        ({"op": "order_nodes", "nodes": ["zz"]}, "there is no node 'zz'", "'start'"),
    ],
)
@pytest.mark.requirement("S4-43")
def test_an_invalid_operation_is_refused_by_name_without_effect(operation: JsonObject, message: str, hint: str) -> None:
    before = drawn(CHAIN)
    given = copy.deepcopy(before)
    operations = read_operations([{"op": "change_workflow", "set": {"/name": "x"}}, operation])
    with pytest.raises(OperationRefused) as refused:
        apply_operations(given, operations)
    assert str(refused.value).startswith(f"operation 2 ({operation['op']}): ")
    assert message in str(refused.value)
    assert hint in refused.value.hint
    assert given == before


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"op": "remove_node", "node": "a"},
        [{"op": "explode"}],
        [{"node": "a"}],
        [{"op": "remove_node"}],
        [{"op": "remove_node", "node": ""}],
        [{"op": "remove_node", "node": 7}],
        [{"op": "remove_node", "node": "a", "why": "x"}],
        [{"op": "add_node", "node": [1]}],
        ["remove_node"],
        [[]],
        [{"op": "remove_node", "node": "a"}] * (OPERATIONS_MAX + 1),
    ],
)
def test_a_value_that_is_not_a_list_of_operations_is_refused(value: Any) -> None:
    with pytest.raises(OperationRefused) as refused:
        read_operations(value)
    assert refused.value.hint


def test_a_bridge_over_a_branching_node_is_refused() -> None:
    with pytest.raises(OperationRefused, match="'dec' has 2 outgoing edges"):
        after("start -> dec; dec -#yes-> a; dec -#no-> b", {"op": "remove_node", "node": "dec", "bridge": True})
    with pytest.raises(OperationRefused, match="has 2 outgoing edges with conditions"):
        after("start -> dec; dec -#yes-> a; dec -#no-> b", {"op": "add_node", "node": NEW, "after": "dec"})


def test_a_bridge_over_an_error_edge_is_refused() -> None:
    before = drawn("start -> tool; tool -> a; a -> end")
    edges: Any = before["edges"]
    edges[1]["condition"] = {"type": "error"}
    with pytest.raises(OperationRefused, match="'tool' has outgoing edges only for errors"):
        after(before, {"op": "move_node", "node": "tool", "after": "a"})
    assert ways(after(before, {"op": "remove_node", "node": "tool"})) == ["a->end"]


def test_a_node_that_structures_others_cannot_be_moved() -> None:
    for name in ("fan", "join"):
        with pytest.raises(OperationRefused, match=f"'{name}' is of type"):
            after(FORK, {"op": "move_node", "node": name, "after": "start"})


def test_broken_documents_accept_operations_that_do_not_need_their_structure() -> None:
    broken: JsonObject = {"id": "w", "nodes": [{"id": "a", "type": "agent"}, "what", {"type": "end"}, {"id": "a"}]}
    mended = after(broken, {"op": "change_node", "node": "a", "set": {"/config": {"prompt": "Hi."}}})
    assert node(mended, "a")["config"] == {"prompt": "Hi."}
    with pytest.raises(OperationRefused, match="with a valid structure"):
        after(broken, {"op": "rename_node", "node": "a", "to": "b"})
    with pytest.raises(OperationRefused, match="'nodes' is not a list"):
        after({"id": "w", "nodes": {}}, {"op": "remove_node", "node": "a"})


def test_operations_survive_serialisation_and_match_their_schema() -> None:
    operations = (
        AddNode(node=NEW, after="a"),
        RemoveNode(node="a", bridge=True),
        MoveNode(node="a", within="loop"),
        RenameNode(node="a", to="b"),
    )
    written: list[Json] = [*written_operations(operations)]
    assert read_operations(written) == operations
    schema = JsonSchema(operations_schema())
    assert schema.correction(written) == ""
    assert schema.correction([{"op": "remove_node"}]) != ""
    assert schema.correction([{"op": "explode", "node": "a"}]) != ""


graphs = st.builds(random_workflow, st.integers(0, 400), st.integers(1, 25), unruly=st.booleans())


@given(graphs, graphs)
@settings(max_examples=60, deadline=None)
def test_a_difference_transforms_one_workflow_into_the_other(before: JsonObject, other: JsonObject) -> None:
    meant = {**other, "id": before["id"]}
    made = apply_operations(before, operations_between(before, meant))
    assert same(made, meant)
    assert operations_between(made, meant) == ()


@given(graphs, st.data())
@settings(max_examples=60, deadline=None)
def test_a_rename_keeps_the_graph_and_can_be_reverted(before: JsonObject, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ids(before)))
    new = data.draw(st.sampled_from(["other", "an other", 'quo"ted', "ö-1", "7"]))
    made = apply_operations(before, [RenameNode(node=name, to=new)])
    assert name not in ids(made)
    graph, was = analyse(_read(made)), analyse(_read(before))
    assert (graph.scopes, graph.out, graph.join_of) == (was.scopes, was.out, was.join_of)
    back = apply_operations(made, [RenameNode(node=new, to=name)])
    assert _told(back) == _told(before)


def _told(made: JsonObject) -> str:
    """Remove quotes from names that need none."""
    return json.dumps(made, sort_keys=True)


@given(graphs, st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_inserting_any_node_anywhere_keeps_the_paths_or_is_refused(before: JsonObject, one: int, other: int) -> None:
    names = ids(before)
    moved, to = names[one % len(names)], names[other % len(names)]
    place = ("after", "within")[(one + other) % 2]
    was = analyse(_read(before))
    try:
        made = apply_operations(before, read_operations([{"op": "move_node", "node": moved, place: to}]))
    except OperationRefused:
        return
    graph = analyse(_read(made))
    lost = {was.ids[n] for n, scope in enumerate(was.scopes) if scope is not None} - {
        graph.ids[n] for n, scope in enumerate(graph.scopes) if scope is not None
    }
    assert lost <= {moved}, "nothing else is cut off"


@given(graphs, st.data())
@settings(max_examples=60, deadline=None)
def test_operations_together_do_what_they_do_one_by_one(before: JsonObject, data: st.DataObject) -> None:
    names = [*ids(before), "x", "y"]
    edges: Any = before["edges"]
    lines = [f"{edge['source']}->{edge['target']}{more}" for edge in edges for more in ("", " 2")] or ["x"]
    made: JsonObject = before
    done: list[AnyOperation] = []
    for _ in range(data.draw(st.integers(1, 10))):
        name, to = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
        operation = data.draw(
            st.sampled_from(
                (
                    RenameNode(node=name, to=to),
                    RemoveNode(node=name),
                    Disconnect(edge=data.draw(st.sampled_from(lines))),
                )
            )
        )
        alone = _refusal(made, [operation])
        assert _refusal(before, [*done, operation]) == alone
        if not alone:
            done.append(operation)
            made = apply_operations(made, [operation])
    assert same(apply_operations(before, done), made)


def _refusal(made: JsonObject, operations: list[AnyOperation]) -> str:
    """Return why the last operation is refused; empty: it is not."""
    try:
        apply_operations(made, operations)
    except OperationRefused as why:
        return str(why).partition(": ")[2] + why.hint
    return ""


def _chain(size: int, name: str, prompt: str) -> JsonObject:
    """Return a chain of agents."""
    return {
        "pointsman": 1,
        "id": "long",
        "nodes": [
            {"id": f"{name}{n}", "type": "agent", "config": {"prompt": prompt.format(n=n, of=f"{name}{max(n - 1, 0)}")}}
            for n in range(size)
        ],
        "edges": [{"source": f"{name}{n}", "target": f"{name}{n + 1}"} for n in range(size - 1)],
    }


@pytest.mark.parametrize("prompt", ["Write {n}.", "Write.", "Improve {{{{nodes.{of}.text}}}}."])
def test_thousands_of_renamed_nodes_are_compared_in_linear_time(prompt: str) -> None:
    check_linear(lambda size: operations_between(_chain(size, "a", prompt), _chain(size, "b", prompt)), 250)
    before, after_ = _chain(300, "a", prompt), _chain(300, "b", prompt)
    found = operations_between(before, after_)
    assert same(apply_operations(before, found), after_)
    renamed = sum(isinstance(one, RenameNode) for one in found)
    assert renamed == (0 if "nodes" in prompt else 300)


def test_many_renames_read_the_workflow_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Draft] = []
    read = Draft.workflow

    def counted(draft: Draft) -> WorkflowDefinition:
        reads.append(draft)
        return read(draft)

    monkeypatch.setattr(Draft, "workflow", counted)
    before = _chain(300, "a", "Improve {{{{nodes.{of}.text}}}}.")
    made = apply_operations(before, [RenameNode(node=f"a{n}", to=f"b{n}") for n in range(300)])
    assert same(made, _chain(300, "b", "Improve {{{{nodes.{of}.text}}}}."))
    assert len(reads) == 1


def test_a_refusal_for_structure_names_an_error() -> None:
    broken = _chain(200, "a", "Write.")
    broken["nodes"] = [{**node, "config": {"prompt": 7}} for node in _nodes_of(broken)]
    with pytest.raises(OperationRefused, match=r"valid structure, and /nodes/\d+"):
        apply_operations(broken, [RenameNode(node="a1", to="b")])


def _nodes_of(made: JsonObject) -> Any:
    return made["nodes"]


def _read(made: JsonObject) -> WorkflowDefinition:
    found, problems = WorkflowDefinition.from_document(made)
    assert found is not None, problems
    return found
