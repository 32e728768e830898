"""The graph dialect: paths, marks, defaults, fan-outs, merges, with the behaviour that authors expect."""

from __future__ import annotations

import json
from typing import Final, cast

import pytest

from pointsman.app import Pointsman
from pointsman.app import Workflow as Workflow_
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.definition.reading.documents import read_document
from pointsman.dialects import graph
from pointsman.dialects.detect import read_workflows
from pointsman.dialects.graph.flow import template_expression, with_results
from pointsman.dialects.readers import ImportedDocument
from pointsman.errors import PointsmanError
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import SKETCH, changed, codes, document, imported, workflow_of


def read(nodes: list[JsonObject], edges: list[tuple[str, ...]] | None = None, **head: Json) -> ImportedDocument:
    """Read a graph with edges as (from, to) or (from, to, condition)."""
    ways: list[Json] = [
        {"from_node": way[0], "to_node": way[1], **({"condition": way[2]} if len(way) > 2 else {})}
        for way in edges or []
    ]
    first = nodes[0].get("id") if nodes else None
    return graph.read({"name": "w", "entry_node_id": first, "nodes": [*nodes], "edges": ways, **head}, name="")


def agent(node_id: str, **more: Json) -> JsonObject:
    return {"id": node_id, "type": "agent", "agent_id": f"agent-{node_id}", **more}


def node_of(found: ImportedDocument, node_id: str) -> JsonObject:
    nodes = cast(list[JsonObject], found.document["nodes"])
    return next(node for node in nodes if node["id"] == node_id)


def config(found: ImportedDocument, node_id: str) -> JsonObject:
    return cast(JsonObject, node_of(found, node_id)["config"])


def edge_of(found: ImportedDocument, source: str, target: str) -> JsonObject:
    edges = cast(list[JsonObject], found.document["edges"])
    return next(edge for edge in edges if (edge["source"], edge["target"]) == (source, target))


def only(found: ImportedDocument, code: str) -> Problem:
    (problem,) = [problem for problem in found.losses if problem.code == code]
    return problem


@pytest.mark.requirement("S3-44", "S3-45", "S3-47", "S3-48", "S3-49", "S3-50", "S3-67")
def test_the_news_reporter_loads_with_the_dialects_limits() -> None:
    found = imported("graph/news-reporter")
    workflow = workflow_of(found)
    assert (workflow.id, len(workflow.nodes), len(workflow.edges)) == ("default-news-reporter-workflow", 8, 9)
    assert cast(JsonObject, found.document["config"])["limits"] == {
        "steps": 1000,
        "executionTime": 300_000,
        "parallel": 5,
    }
    assert codes(found.losses) == ["fanout-without-items"]
    assert graph.read(document("graph/news-reporter"), name="desks/evening.v2.json").document["id"] == "evening"


def test_own_limits_win_and_unknown_fields_are_kept() -> None:
    found = imported("graph/improvement-desk")
    limits = {"steps": 200, "executionTime": 240_000, "parallel": 10}
    assert cast(JsonObject, found.document["config"])["limits"] == limits
    assert found.document["x-graph"] == {"toolsets": [], "policy_profile": "read_only"}
    assert found.sources.author_pointer("/config/limits/steps") == "/limits/max_steps"


@pytest.mark.requirement("S3-51", "S3-52", "S3-63", "S3-O5", "T3-21")
def test_inputs_become_paths_and_outputs_are_inverted() -> None:
    node = node_of(imported("graph/news-reporter"), "report_branch")
    assert node["inputs"] == {"goal": "goal", "latest_news": "latest"}
    assert node["outputs"] == {
        "drafts.current_fanout_item": "result",
        "latest": "result",
        "outputs.report_branch": "result",
    }
    assert node["config"] == {"agent": "${AGENT_ID_REPORTER}", "result": "auto"}
    named = node_of(imported("graph/merges"), "write")
    assert cast(JsonObject, named["outputs"])["titles.current_fanout_item"] == "result.title"


@pytest.mark.requirement("S3-O5")
def test_an_agent_without_inputs_reads_the_latest_result() -> None:
    found = read([agent("a"), agent("b-c"), agent("d", params={"unit": 5, "of": "latest", "kind": "short"})])
    assert node_of(found, "a")["inputs"] == {"goal": "goal"}
    assert node_of(found, "b-c")["inputs"] == {"input": "latest ?? goal"}
    assert node_of(found, "d")["inputs"] == {"unit": "5", "of": "latest", "kind": '"short"'}
    assert cast(JsonObject, node_of(found, "b-c")["outputs"])['outputs["b-c"]'] == "result"


@pytest.mark.requirement("S3-72", "T3-4", "T3-5")
def test_a_written_and_indexed_path_gets_an_append_reducer() -> None:
    state = cast(JsonObject, imported("graph/news-reporter").document["state"])
    assert state["verdicts.*"] == {"reduce": "append"}
    assert state["latest"] == {"reduce": "last"}
    own = read([agent("a", outputs={"result": "notes.x"}), agent("b", inputs={"n": "notes.x[-1].text"})])
    assert cast(JsonObject, own.document["state"])["notes.x"] == {"reduce": "append"}
    plain = read([agent("a", outputs={"result": "notes.x"}), agent("b", inputs={"n": "notes.x", "m": '"notes.x[0]"'})])
    assert "notes.x" not in cast(JsonObject, plain.document["state"])


@pytest.mark.requirement("T3-2", "T3-3", "S3-26", "S3-31")
def test_a_fan_out_without_items_uses_the_documented_sources() -> None:
    single = config(imported("graph/news-reporter"), "report_fanout")
    assert single["items"] == 'state.fanout_items or state.targets or config.reporter_ids or ["default"]'
    several = config(imported("graph/merges"), "second")
    assert several["items"] == "state.fanout_items or state.targets or config.reporter_ids or null"
    assert (several["onNoItems"], several["duplicateKeys"]) == ("branches", "number")
    said = config(imported("graph/merges"), "desks")
    assert (said["items"], said["maxParallel"]) == ('["reporter_1", "reporter_2"]', 2)
    assert only(imported("graph/merges"), "branch-edge-mismatch").pointer == "/nodes/3/branches"
    mapped = read([{"id": "f", "type": "fanout", "branches": ["a"], "inputs": {"items": "state.servers"}}, agent("a")])
    fallback = 'state.fanout_items or state.targets or config.reporter_ids or ["default"]'
    assert config(mapped, "f")["items"] == f"state.servers ?? {fallback}"
    assert only(mapped, "never-written").pointer == "/nodes/0/inputs/items"


@pytest.mark.requirement("S3-33", "S3-36", "S3-O2", "T3-6", "T3-7")
def test_loops_and_marked_edges_are_converted() -> None:
    found = imported("graph/improvement-desk")
    assert config(found, "rounds") == {
        "bodyEnd": "exit",
        "while": 'verdicts.current_fanout_item[-1].decision != "accept"',
        "maxIterations": 3,
    }
    assert edge_of(found, "rounds", "judge")["mark"] == "body"
    assert "condition" not in edge_of(found, "rounds", "judge")
    bare = read(
        [{"id": "l", "type": "loop"}, agent("a")], [("l", "a", "loop_continue"), ("a", "l")], limits={"max_iters": 7}
    )
    assert config(bare, "l")["maxIterations"] == 7
    assert edge_of(bare, "l", "a")["mark"] == "body"
    inside = read([{"id": "l", "type": "loop"}, agent("a")], [("l", "a"), ("a", "l", "loop_exit")])
    assert edge_of(inside, "a", "l")["mark"] == "break"


def test_body_node_id_names_the_loop_body() -> None:
    found = imported("graph/branch-lists")
    assert edge_of(found, "again", "again_step") == {
        "source": "again",
        "target": "again_step",
        "mark": "body",
        "x-graph": {"from": "body_node_id"},
    }
    assert found.sources.author_pointer("/edges/5") == "/nodes/4/params"


@pytest.mark.requirement("S3-O3", "S3-O4")
def test_editor_artefacts_are_not_part_of_the_workflow() -> None:
    found = imported("graph/editor-artefacts")
    workflow = workflow_of(found)
    assert [node.id for node in workflow.nodes] == ["begin", "draft", "polish", "shine", "publish"]
    assert [(edge.source, edge.target, edge.mark) for edge in workflow.edges] == [
        ("begin", "draft", None),
        ("draft", "polish", None),
        ("polish", "shine", "body"),
        ("shine", "polish", None),
        ("polish", "publish", "exit"),
    ]
    assert found.sources.author_pointer("/edges/4/target") == "/edges/6/to_node"
    assert found.sources.author_pointer("/nodes/4/config/agent") == "/nodes/6/agent_id"
    assert node_of(found, "begin")["config"] == {"set": {"latest": "goal"}}
    assert (workflow.id, workflow.enabled, workflow.nodes[1].label) == ("polish", True, "Draft")
    assert node_of(found, "draft")["position"] == {"x": 100, "y": 0}
    assert node_of(found, "draft")["x-graph"] == {"agentName": "Writer"}


def test_artefacts_survive_an_edit_beside_them() -> None:
    original = document("graph/editor-artefacts")
    workflow = changed(
        workflow_of(imported("graph/editor-artefacts")),
        lambda native: cast(list[JsonObject], native["nodes"])[4].update(name="Out"),
    )
    written = graph.write(workflow, original).document
    assert written["edges"] == original["edges"]
    assert [node["id"] for node in cast(list[JsonObject], written["nodes"])] == [
        node["id"] for node in cast(list[JsonObject], original["nodes"])
    ]


@pytest.mark.requirement("T3-16", "T3-17", "S3-24", "X-1")
def test_an_unconditional_edge_beside_conditional_ones_is_the_default() -> None:
    found = imported("graph/improvement-desk")
    assert edge_of(found, "choose", "look_up_text")["condition"] == {"type": "default"}
    assert only(found, "default-beside-conditions").pointer == "/edges/3"
    assert edge_of(found, "worth_writing", "desks")["condition"] == {
        "type": "expression",
        "expression": 'nodes.worth_writing.branch == "true"',
    }
    plain = read([agent("a"), agent("b"), agent("c")], [("a", "b", "x == 1"), ("a", "c")])
    assert "condition" not in edge_of(plain, "a", "c")
    assert codes(plain.losses) == []


def test_condition_results_are_replaced_outside_strings() -> None:
    assert with_results("a condition result and not b-c condition result") == (
        'nodes.a.branch == "true" and not nodes["b-c"].branch == "true"'
    )
    assert with_results('x == "a condition result"') == 'x == "a condition result"'


@pytest.mark.requirement("T3-15")
def test_a_condition_that_is_on_no_edge_gets_a_warning() -> None:
    assert only(imported("graph/improvement-desk"), "condition-disagrees").pointer == "/nodes/1/condition"
    assert "condition-disagrees" not in codes(imported("graph/news-reporter").losses)


@pytest.mark.requirement("S3-O8")
def test_lists_of_nodes_per_outcome_become_edges() -> None:
    found = imported("graph/branch-lists")
    assert edge_of(found, "gate", "small")["condition"] == {"type": "label", "label": "false"}
    true: JsonObject = {"type": "expression", "expression": 'nodes.gate.branch == "true"'}
    assert edge_of(found, "gate", "big")["condition"] == true
    assert edge_of(found, "gate", "log") == {
        "source": "gate",
        "target": "log",
        "condition": true,
        "x-graph": {"from": "true_nodes"},
    }


def test_a_removed_edge_leaves_the_list_it_came_from() -> None:
    def drop(native: JsonObject) -> None:
        native["edges"] = [edge for edge in cast(list[JsonObject], native["edges"]) if edge["target"] != "log"]

    workflow = changed(workflow_of(imported("graph/branch-lists")), drop)
    written = graph.write(workflow, document("graph/branch-lists")).document
    params = cast(JsonObject, cast(list[JsonObject], written["nodes"])[0]["params"])
    assert params == {"true_nodes": ["big"], "false_nodes": ["small"]}


@pytest.mark.requirement("S3-38", "S3-42", "S3-O6", "T3-13", "T3-26")
def test_merges_keep_their_strategies_and_find_values_of_branches() -> None:
    stitch = config(imported("graph/improvement-desk"), "stitch")
    assert (stitch["mergeKey"], stitch["aggregate"], stitch["template"]) == ("drafts", "stitch", "### {key}\n{result}")
    assert only(imported("graph/improvement-desk"), "merge-key-unwritten").pointer == "/nodes/11/params/merge_key"
    together = config(imported("graph/merges"), "together")
    assert (together["mergeKey"], together["expectedKeys"]) == ("final", ["reporter_1", "reporter_2"])
    assert (together["timeout"], together["onTimeout"]) == ("60s", "continue")
    done = config(imported("graph/merges"), "done")
    assert (done["aggregate"], done["timeout"]) == ("list", "1500ms")
    unknown = read([{"id": "m", "type": "merge", "params": {"strategy": "stich"}}])
    assert only(unknown, "unknown-strategy").hint.startswith("Did you mean 'stitch'?")
    assert (config(unknown, "m")["aggregate"], config(unknown, "m")["separator"]) == ("concat", " | ")


def test_a_custom_template_becomes_an_expression() -> None:
    assert template_expression("{count}: {items} {not this") == 'str(len(items)) + ": " + str(items) + " {not this"'
    assert template_expression("{items[a]}") == 'str(find(branches, b => b.key == "a").result)'
    assert template_expression("") == '""'


@pytest.mark.requirement("S3-86", "S3-89", "T3-23", "S3-O9")
def test_policies_of_nodes_and_documents_are_converted() -> None:
    write = node_of(imported("graph/merges"), "write")
    assert (write["execution"], write["skipWhen"]) == ({"timeout": 20000, "errorHandler": "continue"}, 'goal == ""')
    assert cast(JsonObject, imported("graph/merges").document["config"])["errorHandling"] == "retry"
    stops = read([agent("a")], error_strategy="fail")
    assert cast(JsonObject, stops.document["config"])["errorHandling"] == "fail"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        *(("many", "wrong-type"), (True, "wrong-type"), ([1], "wrong-type"), (1.5, "wrong-type")),
        *((0, "out-of-range"), (-1, "out-of-range"), ("3", "type-converted"), (7, None)),
    ],
)
def test_a_wrong_number_of_iterations_is_reported_without_a_loop(said: Json, code: str | None) -> None:
    found = read([agent("a")], limits={"max_iters": said})
    told = [(one.code, one.pointer) for one in found.losses]
    assert told == ([] if code is None else [(code, "/limits/max_iters")])


def test_native_policies_on_graph_nodes_are_kept() -> None:
    own: JsonObject = {"retries": 1, "retryDelay": "2s", "retryOn": ["timeout"], "errorHandler": "llm_recovery"}
    found = read([agent("a", timeout_ms=500, execution=own), agent("b", execution={"retris": 1})])
    assert node_of(found, "a")["execution"] == {**own, "timeout": 500}
    _, problems = WorkflowDefinition.from_document(found.document)
    assert [one.pointer for one in problems if one.code == "unknown-key"] == ["/nodes/1/execution/retris"]
    right = read([agent("a", timeout_ms=500, execution=own)])
    written = graph.write(workflow_of(right), None)
    assert written.losses == ()
    assert graph.read(written.document, name="").document["nodes"] == [
        {**node_of(right, "a"), "execution": {**own, "timeout": 500}}
    ]


@pytest.mark.requirement("S3-83", "T3-24")
def test_a_graph_that_ends_in_merges_returns_their_result() -> None:
    assert imported("graph/improvement-desk").document["output"] == "latest"
    assert imported("graph/news-reporter").document["output"] == "final ?? drafts ?? latest"


@pytest.mark.requirement("S3-46", "T3-20")
def test_unknown_types_and_sketches_are_reported() -> None:
    sketch = imported(SKETCH)
    assert only(sketch, "schema-sketch").pointer == "/nodes/0/type"
    slip = only(read([agent("a"), {"id": "b", "type": "fan_out"}]), "unknown-node-type")
    assert (slip.pointer, slip.hint[:22]) == ("/nodes/1/type", "Did you mean 'fanout'?")
    assert only(read([{"id": "a", "type": "agent"}]), "agent-missing").pointer == "/nodes/0"
    assert only(read([{"id": "c", "type": "conditional"}]), "condition-missing").pointer == "/nodes/0"


def test_native_types_are_valid_in_a_graph() -> None:
    found = read([agent("a"), {"id": "t", "type": "transform", "params": {"set": {"x": "1"}, "position": {"x": 1}}}])
    assert node_of(found, "t") == {"id": "t", "type": "transform", "position": {"x": 1}, "config": {"set": {"x": "1"}}}
    written = graph.write(workflow_of(found), None)
    assert [loss.pointer for loss in written.losses] == ["/nodes/1/type"]
    assert graph.read(written.document, name="").document["nodes"] == found.document["nodes"]


def test_a_native_workflow_is_written_as_a_graph_and_its_losses_are_listed() -> None:
    native: JsonObject = {
        "id": "w",
        "entry": "a",
        "output": {"text": "x"},
        "agents": {"writer": {"system": "You write."}},
        "nodes": [
            {
                "id": "a",
                "type": "agent",
                "config": {"agent": "writer", "result": "json"},
                "outputs": {"x": "result", "y": "result.a + 1"},
                "execution": {"timeout": "2s", "retries": 2},
            },
            {"id": "d", "type": "decision", "config": {"cases": [{"when": "x", "label": "yes"}]}},
        ],
        "edges": [
            {"source": "a", "target": "d", "condition": {"type": "equals", "field": "x.y", "value": "z"}},
            {"source": "d", "target": "a", "condition": {"type": "llm", "prompt": "Again?"}},
        ],
    }
    workflow, _ = WorkflowDefinition.from_document(native)
    assert workflow is not None
    assert isinstance(workflow.nodes[0].config, AgentConfig)
    written = graph.write(workflow, None)
    assert sorted(loss.pointer for loss in written.losses) == [
        "/edges/1/condition",
        "/nodes/0/config/result",
        "/nodes/0/outputs/y",
        "/nodes/1/config/cases",
        "/output",
    ]
    edges = cast(list[JsonObject], written.document["edges"])
    assert edges[0]["condition"] == 'x.y == "z"'
    assert cast(list[JsonObject], written.document["nodes"])[0]["timeout_ms"] == 2000


def test_an_unconditional_edge_back_is_not_taken_and_reported() -> None:
    nodes = [agent(name, inputs={"goal": "goal"}) for name in "abc"]
    found = read(nodes, [("a", "b"), ("b", "c"), ("c", "b")])
    assert only(found, "edge-revisits").pointer == "/edges/2"
    edges = cast("list[JsonObject]", found.document["edges"])
    assert [edge.get("condition") for edge in edges] == [None, None, {"type": "never"}]
    asked = read(nodes, [("a", "b"), ("b", "c"), ("c", "b", "latest.again == true")])
    assert [one for one in asked.losses if one.code == "edge-revisits"] == []


EMPTY_ENVELOPES: Final[list[JsonObject]] = [
    {"workflow_id": "x", "graph_definition": {}},
    {"workflow_id": "x", "graph_definition": {"nodes": [], "edges": [], "limits": {"max_steps": 3}}},
    {"workflows": [{"id": "w", "is_active": True, "graph_definition": {"nodes": []}}]},
    {"workflows": []},
]


@pytest.mark.parametrize("envelope", EMPTY_ENVELOPES)
def test_an_envelope_without_a_graph_has_no_nodes(envelope: JsonObject) -> None:
    (found,) = read_workflows(read_document(json.dumps(envelope).encode()))
    assert [one.code for one in found.problems] == ["no-nodes"]


async def test_a_disabled_workflow_is_refused_with_the_key_of_its_author() -> None:
    document: JsonObject = {"name": "w", "entry_node_id": "a", "nodes": [agent("a")], "edges": [], "is_active": False}
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as app:
        with pytest.raises(PointsmanError, match="is disabled") as refused:
            await app.start(Workflow_.parse(json.dumps(document)), {"goal": "x"})
    assert "is_active" in refused.value.hint
