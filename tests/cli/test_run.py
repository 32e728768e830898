"""`pointsman run`: input, output, answers of gates, exit codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from pointsman.tools.scripted import CannedTool, canned_tools
from pointsman.values import JsonObject
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

FIELDS = {
    "executionId", "workflowId", "status", "output", "state", "path", "steps", "waiting", "errors", "usage",
    "durationMs",
}  # fmt: skip


def test_json_output_is_one_object_with_all_results(prompt: Prompt) -> None:
    printed = prompt("run", written("chain.yaml", flows.CHAIN), "--json")
    told = printed.json
    assert printed.code == 0
    assert set(told) >= FIELDS
    assert (told["workflowId"], told["status"], told["steps"]) == ("chain", "completed", 3)
    assert told["path"] == ["first", "second", "third"]
    assert told["executionId"].startswith("exec-")
    assert set(told["usage"]) >= {"inputTokens", "outputTokens", "costUsd", "modelCalls"}
    assert told["usage"]["modelCalls"] == 3
    assert told["model"] == "scripted"


def test_tokens_are_printed_as_lines_of_json_where_asked(prompt: Prompt) -> None:
    flow, script = (
        written("chain.yaml", flows.CHAIN),
        written("s.yaml", "rules: [{node: third, text: Done and dusted.}]"),
    )
    printed = prompt("run", flow, "--script", script, "--json", "--tokens")
    assert printed.json["status"] == "completed"
    events = [json.loads(line) for line in printed.err.splitlines() if line.startswith("{")]
    assert {one["event"] for one in events} == {"workflow.node.delta"}
    assert "".join(one["delta"].get("text", "") for one in events if one["nodeId"] == "third") == "Done and dusted."
    assert "workflow.node.delta" not in prompt("run", flow, "--script", script, "--json").err


def test_output_goes_to_standard_output_and_the_summary_to_standard_error(prompt: Prompt) -> None:
    script = written("s.yaml", "rules: [{node: third, text: Done and dusted.}]")
    printed = prompt("run", written("chain.yaml", flows.CHAIN), "--script", script)
    assert printed.out == "Done and dusted.\n"
    assert "completed" in printed.err
    assert "scripted" in printed.err


def test_an_open_gate_exits_with_code_3_and_prints_the_answer_command(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships")
    assert printed.code == 3
    assert "'review': Send it?" in printed.err
    assert "pointsman answer exec-" in printed.err
    assert "review approve|again" in printed.err


def test_waiting_gates_are_listed_as_json(prompt: Prompt) -> None:
    gate = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", "--json").json["waiting"][0]
    assert set(gate) >= {"gateId", "nodeId", "message", "options", "form", "shown"}
    assert (gate["nodeId"], gate["message"]) == ("review", "Send it?")
    assert [option["value"] for option in gate["options"]] == ["approve", "again"]


def test_each_answer_is_used_once_in_order(prompt: Prompt) -> None:
    answers = ["--answer", "review=again", "--answer", 'review={"action": "approve", "comment": "better"}']
    told = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", *answers, "--json").json
    assert told["status"] == "completed"
    assert told["path"] == ["write", "review", "write", "review", "send"]


def test_an_unused_answer_is_reported(prompt: Prompt) -> None:
    printed = prompt("run", written("chain.yaml", flows.CHAIN), "--answer", "review=approve")
    assert printed.code == 0
    assert "no gate of 'review' opened" in printed.err


def test_a_refused_answer_leaves_the_gate_open(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--answer", "review=burn", "--json")
    assert printed.code == 2
    assert "approve, again" in printed.err
    assert printed.json["status"] == "waiting"


@pytest.mark.parametrize(
    ("given", "goal"),
    [
        (["--input", '{"goal": "ships"}'], "ships"),
        (["--input", "ships"], "ships"),
        (["--input", "@in.json"], "from a file"),
        (["--input", "-"], "from a pipe"),
        (["-i", "goal=ships"], "ships"),
        (["-i", 'goal="7"'], "7"),
        (["--input", '{"goal": "ships"}', "-i", "goal=trains"], "trains"),
        (["-i", "goal=a=b"], "a=b"),
        (["-i", "goal={not json"], "{not json"),
    ],
)
def test_input_is_read_from_options_files_and_standard_input(prompt: Prompt, given: list[str], goal: str) -> None:
    written("in.json", '{"goal": "from a file"}')
    printed = prompt(
        "run", written("letter.yaml", flows.APPROVAL), *given, "--json", "--quiet", stdin='{"goal": "from a pipe"}'
    )
    assert printed.json["state"]["goal"] == goal


def test_fields_are_parsed_as_json_or_kept_as_text(prompt: Prompt) -> None:
    file = written("letter.yaml", flows.APPROVAL)

    def tone(text: str) -> object:
        return prompt("run", file, "-i", "goal=x", "-i", f"tone={text}", "--json").json["state"]["tone"]

    assert [tone(text) for text in ("3", "true", "null", '[1, "a"]', "warm", "NaN", "1e999")] == [
        3,
        True,
        None,
        [1, "a"],
        "warm",
        "NaN",
        "1e999",
    ]


def test_invalid_input_is_refused_before_the_start(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL), "--input", '{"goal": 7}')
    assert printed.code == 2
    assert "goal" in printed.err
    assert prompt("list", "--json").json == {"executions": []}


def test_a_workflow_with_errors_is_not_run(prompt: Prompt) -> None:
    printed = prompt("run", written("broken.yaml", flows.BROKEN), "--json")
    assert printed.code == 1
    assert printed.json["executionId"] is None
    assert printed.json["errors"][0]["code"] == "workflow-invalid"
    assert [one["code"] for one in printed.json["problems"]] == ["dangling-edge"]
    assert "broken.yaml:6:21: error [dangling-edge]" in printed.err


def test_lenient_runs_a_workflow_with_dangling_edges(prompt: Prompt) -> None:
    assert prompt("run", written("broken.yaml", flows.BROKEN), "--lenient", "--json").json["status"] == "completed"


def test_a_failure_exits_with_code_1_and_names_node_and_next_command(prompt: Prompt) -> None:
    script = written("s.yaml", "rules: [{node: second, fail: 400}]")
    printed = prompt("run", written("chain.yaml", flows.CHAIN), "--script", script)
    assert printed.code == 1
    assert "in 'second'" in printed.err
    assert "pointsman retry exec-" in printed.err
    told = prompt("run", "chain.yaml", "--script", script, "--json").json
    assert (told["status"], told["errors"][-1]["nodeId"]) == ("failed", "second")


def test_a_limit_exits_with_code_4(prompt: Prompt) -> None:
    printed = prompt("run", written("rounds.yaml", flows.ROUNDS), "--json")
    assert (printed.code, printed.json["status"]) == (4, "interrupted")


def test_a_reject_without_an_edge_exits_with_code_130(prompt: Prompt) -> None:
    text = flows.APPROVAL.replace("{value: again}", "{value: reject}").replace("label: again", "label: other")
    printed = prompt("run", written("letter.yaml", text), "-i", "goal=x", "--answer", "review=reject", "--json")
    assert (printed.code, printed.json["status"]) == (130, "cancelled")


def test_a_saved_workflow_runs_by_its_id(prompt: Prompt) -> None:
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    Path("chain.yaml").unlink()
    assert prompt("run", "chain", "--json").json["status"] == "completed"
    assert prompt("run", "chain@1", "--json").json["status"] == "completed"


def test_an_unknown_id_gets_the_nearest_known_one(prompt: Prompt) -> None:
    prompt("workflows", "save", written("chain.yaml", flows.CHAIN))
    printed = prompt("run", "chian")
    assert printed.code == 2
    assert "Did you mean 'chain'?" in printed.err


def test_progress_is_not_shown_without_a_terminal(prompt: Prompt) -> None:
    printed = prompt("run", written("chain.yaml", flows.CHAIN))
    assert "\x1b" not in printed.err + printed.out
    warned, ended = printed.err.splitlines()
    assert warned == "warning: the scripted model or a scripted tool answers here: its answers are made up"
    assert ended.endswith("answers are made up)")


def test_a_session_continues_a_conversation(prompt: Prompt) -> None:
    text = """\
pointsman: 1
id: talk
config: {conversational: true}
nodes: [{id: speak, type: agent, config: {}}]
edges: []
"""
    file = written("talk.yaml", text)
    first = prompt("run", file, "--input", "Hello", "--session", "s1", "--json").json
    second = prompt("run", file, "--input", "Again", "--session", "s1", "--json").json
    assert first["sessionId"] == second["sessionId"] == "s1"
    assert [message["content"] for message in second["state"]["messages"][:3:2]] == ["Hello", "Again"]


def test_a_chat_answers_line_by_line_and_stores_messages(prompt: Prompt) -> None:
    text = (
        "pointsman: 1\nid: talk\nconfig: {conversational: true}\nnodes: [{id: a, type: agent, config: {}}]\nedges: []\n"
    )
    script = written(
        "s.yaml", "rules: [{node: a, contains: One, text: First.}, {node: a, contains: Two, text: Second.}]"
    )
    printed = prompt("chat", written("talk.yaml", text), "--session", "s", "--script", script, stdin="One\n\nTwo\n")
    assert (printed.code, printed.out) == (0, "First.\nSecond.\n")


@pytest.mark.parametrize("durability", ["step", "async", "exit"])
def test_the_durability_option_is_applied(prompt: Prompt, durability: str) -> None:
    printed = prompt("run", written("chain.yaml", flows.CHAIN), "--durability", durability, "--json")
    assert printed.json["status"] == "completed"
    rows = prompt("events", printed.json["executionId"], "--jsonl").out.splitlines()
    assert json.loads(rows[0])["options"]["durability"] == durability


def not_twice(tools: Mapping[str, JsonObject]) -> list[CannedTool]:
    """Return scripted tools that must not be called twice."""
    made = [*canned_tools(tools)]
    for one in made:
        one.spec = replace(one.spec, idempotent=False)
    return made


def test_a_durability_option_warns_about_tools_that_may_run_twice(
    prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointsman.wiring.canned_tools", not_twice)
    send = "id: mail\nnodes: [{id: a, type: tool, config: {tool: send}}]\nedges: []\n"
    given = ["run", written("mail.yaml", send), "--script", written("s.yaml", "tools: {send: {result: sent}}\n")]
    assert "may be called again" not in prompt(*given).err
    printed = prompt(*given, "--durability", "exit")
    assert printed.code == 0
    assert "tool 'send' may be called again after a crash: `durability: exit`" in printed.err


def test_a_run_warns_about_calls_without_a_scripted_answer(prompt: Prompt) -> None:
    document = """\
pointsman: 1
id: mixed
nodes:
  - {id: fetch, type: http, config: {url: "http://127.0.0.1:9/"}, execution: {retries: 0}}
  - {id: add, type: tool, config: {tool: calculator, parameters: {expression: "1 + 1"}}}
  - {id: shop, type: tool, config: {tool: shop, parameters: {}}}
edges: [{source: fetch, target: add}, {source: add, target: shop}]
"""
    script = written("script.yaml", "tools: {shop: {result: sold}}")
    ran = prompt("run", written("mixed.yaml", document), "--script", script)
    line = "warning: the script has no answers for the http node 'fetch': these calls are real"
    assert line in ran.err.splitlines()
