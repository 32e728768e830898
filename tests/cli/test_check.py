"""`pointsman check`: all problems, their positions, and an exit code for scripts."""

from __future__ import annotations

import json
from pathlib import Path

from pointsman.values import JsonObject
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written


def test_a_valid_workflow_has_no_problems(prompt: Prompt) -> None:
    printed = prompt("check", written("letter.yaml", flows.APPROVAL))
    assert (printed.code, printed.out) == (0, "letter.yaml: native, no problems: can run\n")


def test_a_problem_shows_its_line_a_caret_and_a_hint(prompt: Prompt) -> None:
    printed = prompt("check", written("broken.yaml", flows.BROKEN))
    lines = printed.out.splitlines()
    assert printed.code == 1
    assert lines[0].startswith("broken.yaml:6:21: error [dangling-edge] ")
    assert "'nowhere'" in lines[0]
    assert lines[1].endswith("- {source: start, target: nowhere}")
    assert lines[2].index("^") == lines[1].index("target")
    assert lines[3] == "  → Add the node, or remove what names it."


def test_check_with_json_option_prints_one_object(prompt: Prompt) -> None:
    printed = prompt("check", "--json", written("broken.yaml", flows.BROKEN))
    told = printed.json
    assert printed.code == 1
    assert (told["ok"], told["dialect"]) == (False, "native")
    assert set(told["problems"][0]) == {"code", "severity", "pointer", "line", "column", "message", "hint", "fix"}
    assert (told["problems"][0]["code"], told["problems"][0]["line"]) == ("dangling-edge", 6)


def test_check_of_several_files_exits_with_the_worst_code(prompt: Prompt) -> None:
    printed = prompt(
        "check", "--json", written("good.yaml", flows.CHAIN), written("broken.yaml", flows.BROKEN), "none.yaml"
    )
    assert printed.code == 2
    assert [(one["file"], one["ok"]) for one in printed.json] == [
        ("good.yaml", True),
        ("broken.yaml", False),
        ("none.yaml", False),
    ]
    assert printed.json[2]["problems"][0]["code"] == "file-unreadable"


def test_lenient_drops_dangling_edges_with_a_warning(prompt: Prompt) -> None:
    printed = prompt("check", "--lenient", written("broken.yaml", flows.BROKEN))
    assert printed.code == 0
    assert "warning" in printed.out


def test_a_variable_is_allowed_by_the_var_option(prompt: Prompt) -> None:
    file = written("model.yaml", flows.CHAIN.replace("prompt: one", "prompt: one, model: '${SPEAKER}'"))
    assert "unresolved-variable" in prompt("check", file).out
    assert prompt("check", file, "--var", "SPEAKER=scripted").code == 0


def test_the_dialect_option_overrides_detection(prompt: Prompt) -> None:
    printed = prompt("check", "--json", "--dialect", "rows", written("chain.yaml", flows.CHAIN))
    assert printed.json["dialect"] == "rows"
    assert printed.code == 1


def test_a_check_without_called_workflows_opens_no_store(prompt: Prompt, tmp_path: Path) -> None:
    assert prompt("check", written("chain.yaml", flows.CHAIN)).code == 0
    assert not (tmp_path / "data").exists()


def test_a_called_workflow_is_found_among_saved_ones(prompt: Prompt) -> None:
    outer = "pointsman: 1\nid: outer\nnodes:\n  - {id: call, type: workflow, config: {workflow: chain}}\nedges: []\n"
    written("outer.yaml", outer)
    assert "unknown-workflow" in prompt("check", "outer.yaml").out
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    assert "unknown-workflow" not in prompt("check", "outer.yaml").out


def test_control_characters_of_a_document_do_not_reach_the_terminal(prompt: Prompt) -> None:
    hostile: JsonObject = {
        "nodes": [{"id": "\x1b[2Jx", "type": "agent", "config": {}}],
        "edges": [{"source": "\x1b]0;y\x07"}],
    }
    printed = prompt("check", written("hostile.json", json.dumps(hostile, ensure_ascii=False)))
    assert printed.code in (1, 2)
    assert "\x1b" not in printed.out
    assert "\x07" not in printed.out


def test_a_long_source_line_is_cut_around_the_problem(prompt: Prompt) -> None:
    long = json.dumps({"pointsman": 1, "id": "x", "description": "y" * 5000, "nodes": [], "edges": [], "colour": 1})
    printed = prompt("check", written("long.json", long))
    assert "unknown-key" in printed.out
    assert max(map(len, printed.out.splitlines())) < 300


def test_convert_writes_dialects_and_diagrams(prompt: Prompt) -> None:
    file = written("chain.yaml", flows.CHAIN)
    assert json.loads(prompt("convert", file, "--to", "native").out)["id"] == "chain"
    assert "first" in prompt("convert", file, "--to", "native", "--yaml").out
    assert prompt("convert", file, "--to", "mermaid").out.startswith("flowchart")
    assert prompt("convert", file, "--to", "bpmn").out.lstrip().startswith("<")
    steps = prompt("convert", file, "--to", "steps")
    assert steps.code == 0
    assert prompt("check", "--json", written("steps.json", steps.out)).json["dialect"] == "steps"


def test_a_conversion_is_written_to_a_file(prompt: Prompt) -> None:
    printed = prompt("convert", written("chain.yaml", flows.CHAIN), "--to", "native", "--out", "made.json")
    assert (printed.code, printed.out) == (0, "")
    assert json.loads(Path("made.json").read_text(encoding="utf-8"))["id"] == "chain"


def test_schema_prints_a_json_schema(prompt: Prompt) -> None:
    schema = prompt("schema").json
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_schema_prints_the_openapi_document_without_a_server(prompt: Prompt) -> None:
    document = prompt("schema", "--openapi").json
    assert document["openapi"].startswith("3.1")
    assert document["paths"]["/api/workflows/{id}/execute"]["post"]["operationId"] == "executions_execute"


def test_saved_and_built_in_workflows_are_checked_and_converted_by_their_ids(prompt: Prompt) -> None:
    assert prompt("workflows", "save", written("letter.yaml", flows.APPROVAL)).code == 0
    Path("letter.yaml").unlink()
    several = prompt("check", "--json", "letter", "builtin:iterate", "letter@1")
    assert (several.code, [one["ok"] for one in several.json]) == (0, [True, True, True]), several.err
    for unknown in ("lettre", "builtin:nothing", "letter@9"):
        told = prompt("check", "--json", unknown)
        assert (told.code, told.json["ok"]) == (2, False)
        assert prompt("convert", unknown, "--to", "native").code == 2
    assert '"n0' not in prompt("convert", "builtin:iterate", "--to", "native").out
    drawn = prompt("convert", "letter", "--to", "mermaid")
    assert (drawn.code, drawn.out.startswith("flowchart")) == (0, True), drawn.err


def test_files_that_call_workflows_are_checked_with_one_open_store(prompt: Prompt) -> None:
    calling = "id: {}\nnodes:\n  - {{id: call, type: workflow, config: {{workflow: builtin:iterate}}}}\n"
    files = [written(f"{name}.yaml", calling.format(name)) for name in ("one", "two")]
    assert prompt("check", *files).code == 0


def test_a_disabled_workflow_is_not_reported_as_runnable(prompt: Prompt) -> None:
    graph: JsonObject = {"workflow_id": "x", "is_active": False, "entry_node_id": "a", "edges": []}
    node: JsonObject = {"id": "a", "type": "agent", "agent_id": "x"}
    file = written("off.json", json.dumps({**graph, "nodes": [node]}))
    checked = prompt("check", file)
    assert checked.out.endswith("cannot run while it is disabled\n")
    assert "`is_active`" in checked.out
    assert prompt("run", file).code == 2
