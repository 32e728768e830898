"""Gates at the command line: each command opens the store again, like another process."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Prompt
from tests.cli.flows import written

TWO_OF_THREE = """\
pointsman: 1
id: publish
input: {type: object, properties: {text: {type: string}}}
output: {text: text}
nodes:
  - id: review
    type: human
    config:
      message: "Publish it?"
      actions: [approve, edit, reject]
      editable: [text, title]
      approvers: {users: [ada, ben, cleo], quorum: 2}
  - {id: done, type: end}
edges:
  - {source: review, target: done, condition: {type: label, label: approve}}
  - {source: review, target: done, condition: {type: label, label: edit}}
"""

FORM = """\
pointsman: 1
id: budget
entry: ask
input: {type: object}
output: {amount: amount}
nodes:
  - id: ask
    type: human
    outputs: {amount: result.data.amount}
    config:
      options: [{value: approve}, {value: later}]
      form: {type: object, required: [amount], properties: {amount: {type: integer}}}
  - {id: done, type: end}
edges:
  - {source: ask, target: done, condition: {type: label, label: approve}}
  - {source: ask, target: ask, condition: {type: label, label: later}}
"""


def waiting(prompt: Prompt, flow: str, *options: str) -> str:
    return prompt("run", written("flow.yaml", flow), *options, "--json").json["executionId"]


def refused(prompt: Prompt, *line: str) -> str:
    """Return the code of the error; the output is one line."""
    printed = prompt(*line)
    assert (printed.code, "Traceback" in printed.err) == (2, False), printed.err
    return printed.err.partition("[")[2].partition("]")[0]


def test_two_of_three_approve_across_processes(prompt: Prompt) -> None:
    execution = waiting(prompt, TWO_OF_THREE, "-i", "text=old")
    assert refused(prompt, "answer", execution, "review", "approve", "--as", "eve") == "not-an-approver"
    edit = '{"action": "edit", "data": {"text": "new"}}'
    first = prompt("answer", execution, "review", edit, "--as", "ada", "--json")
    assert (first.code, [vote["by"] for vote in first.json["waiting"][0]["votes"]]) == (3, ["ada"])
    other = '{"action": "edit", "data": {"text": "mine"}}'
    assert refused(prompt, "answer", execution, "review", other, "--as", "ben") == "votes-differ"
    assert refused(prompt, "delegate", execution, "review", "ada", "--as", "ada") == "not-delegable"
    assert prompt("delegate", execution, "review", "dan", "--as", "cleo").code == 0
    assert refused(prompt, "answer", execution, "review", edit, "--as", "cleo") == "not-an-approver"
    last = prompt("answer", execution, "review", edit, "--as", "dan", "--json")
    assert (last.code, last.json["output"]) == (0, {"text": "new"})
    (answer,) = prompt("show", execution, "--json").json["answers"]
    assert answer["changes"] == [{"path": "text", "before": "old", "after": "new"}]
    assert (answer["by"], answer["cause"]) == ("dan", "answer")


def test_the_same_answer_with_the_same_key_counts_once(prompt: Prompt) -> None:
    execution = waiting(prompt, FORM)
    line = ("answer", execution, "ask", '{"action": "later", "data": {"amount": 1}}', "--as", "ada", "--key", "k1")
    assert prompt(*line).code == 3
    again = prompt(*line, "--json")
    assert (again.code, again.json["path"], len(again.json["waiting"])) == (3, ["ask"], 1)
    assert refused(prompt, "answer", execution, "ask", "approve", "--as", "ada", "--key", "k1") == "answer-differs"
    done = ("answer", execution, "ask", '{"action": "approve", "data": {"amount": 7}}', "--as", "ada", "--key", "k2")
    assert prompt(*done).code == 0
    assert prompt(*done, "--json").json["output"] == {"amount": 7}


def test_invalid_answers_are_refused(prompt: Prompt) -> None:
    execution = waiting(prompt, FORM)
    other = waiting(prompt, TWO_OF_THREE, "-i", "text=x")
    assert refused(prompt, "answer", execution, "ask", "maybe") == "action-not-offered"
    assert (
        refused(prompt, "answer", execution, "ask", '{"action": "approve", "data": {"amount": "x"}}')
        == "answer-invalid"
    )
    assert refused(prompt, "answer", execution, "nobody", "approve") == "no-such-gate"
    assert refused(prompt, "answer", execution, "gate-review", "approve", "--as", "ada") == "no-such-gate"
    assert refused(prompt, "answer", "exec-nothing", "ask", "approve") == "unknown-execution"
    edit = '{"action": "edit", "data": {"secret": 1}}'
    assert refused(prompt, "answer", other, "review", edit, "--as", "ada") == "answer-invalid"
    assert prompt("show", execution, "--json").json["waiting"][0]["gateId"] == "gate-ask"


INNER = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: publish, input: {text: "'t'"}}}]
edges: []
"""


def inbox_of(prompt: Prompt, *options: str) -> list[tuple[str, str]]:
    return [(one["executionId"], one["gateId"]) for one in prompt("inbox", *options, "--json").json["gates"]]


def test_the_inbox_lists_open_gates_of_a_person_until_the_answer(prompt: Prompt) -> None:
    first = waiting(prompt, FORM)
    second = waiting(prompt, TWO_OF_THREE, "-i", "text=x")
    assert inbox_of(prompt) == [(first, "gate-ask"), (second, "gate-review")]
    assert inbox_of(prompt, "--as", "eve") == [(first, "gate-ask")]
    assert inbox_of(prompt, "--as", "ada", "--workflow", "publish") == [(second, "gate-review")]
    prompt("answer", second, "review", "approve", "--as", "ada")
    assert (inbox_of(prompt, "--as", "ada"), len(inbox_of(prompt, "--as", "ben"))) == ([(first, "gate-ask")], 2)
    prompt("delegate", second, "review", "eve", "--as", "cleo")
    assert len(inbox_of(prompt, "--as", "eve")) == 2
    (cursor,) = [one["cursor"] for one in prompt("inbox", "--limit", "1", "--json").json["gates"]]
    assert inbox_of(prompt, "--after", cursor) == [(second, "gate-review")]
    prompt("cancel", second)
    assert inbox_of(prompt) == [(first, "gate-ask")]
    assert refused(prompt, "inbox", "--after", "here") == "cursor-invalid"


def test_answers_are_listed_by_person_newest_first(prompt: Prompt) -> None:
    first = waiting(prompt, TWO_OF_THREE, "-i", "text=x")
    second = waiting(prompt, FORM)
    for name in ("ada", "ben"):
        prompt("answer", first, "review", "approve", "--as", name)
    prompt("answer", second, "ask", '{"action": "approve", "data": {"amount": 1}}', "--as", "ada")

    def listed(*options: str) -> list[tuple[str, str, bool]]:
        page = prompt("inbox", "--answered", *options, "--json").json
        return [(one["executionId"], one["by"], one["closed"]) for one in page["answers"]]

    assert listed() == [(second, "ada", True), (first, "ben", True), (first, "ada", False)]
    assert listed("--as", "ada") == [(second, "ada", True), (first, "ada", False)]
    cursor = prompt("inbox", "--answered", "--limit", "1", "--json").json["next"]
    assert listed("--limit", "1", "--after", cursor) == [(first, "ben", True)]
    assert "ada: approve" in prompt("inbox", "--answered", "--as", "ada").out
    assert "no answers" in prompt("inbox", "--answered", "--as", "eve").err
    assert refused(prompt, "inbox", "--answered", "--after", "here") == "cursor-invalid"


def test_a_gate_of_a_sub_workflow_is_answered_at_the_outermost_execution(prompt: Prompt) -> None:
    prompt("workflows", "save", written("publish.yaml", TWO_OF_THREE))
    execution = waiting(prompt, INNER)
    (found,) = prompt("inbox", "--as", "ada", "--json").json["gates"]
    assert (found["executionId"], found["inside"] is None) == (execution, False)
    assert prompt("answer", execution, found["gateId"], "reject", "--as", "ada", "--json").json["status"] == "failed"
    assert inbox_of(prompt) == []
    assert refused(prompt, "answer", execution, found["gateId"], "approve", "--as", "ben") == "gate-closed"


@pytest.mark.parametrize(
    ("line", "how"),
    [
        (
            ("answer", "EXEC", "ask", '{"action": "approve", "data": {"amount": 1}}', "--as", "ada"),
            "'approve' by 'ada'",
        ),
        (("cancel", "EXEC"), "cancelled"),
    ],
)
def test_show_prints_how_a_gate_was_closed(prompt: Prompt, line: tuple[str, ...], how: str) -> None:
    execution = waiting(prompt, FORM)
    prompt(*[execution if word == "EXEC" else word for word in line])
    late = prompt("answer", execution, "gate-ask", '{"action": "approve", "data": {"amount": 2}}')
    assert late.code == 2
    assert "[gate-closed]" in late.err
    assert how in late.err


def test_show_prints_that_a_gate_timed_out(prompt: Prompt) -> None:
    flow = FORM.replace("message", "message").replace("options:", "timeout: 1ms\n      options:")
    printed = prompt("run", written("flow.yaml", flow), "--json")
    execution = printed.json["executionId"]
    prompt("resume", execution)
    late = prompt("answer", execution, "ask", '{"action": "approve", "data": {"amount": 2}}')
    assert "its deadline passed" in late.err


STEERED = """\
pointsman: 1
id: steered
entry: ask
config: {humanInLoop: real_time}
output: {n: n}
nodes:
  - {id: ask, type: human, config: {message: Wait}}
  - {id: other, type: transform, config: {set: {n: n + 1}}}
edges:
  - {source: ask, target: other, condition: {type: label, label: approve}}
"""


def test_steer_changes_an_execution_of_another_process(prompt: Prompt) -> None:
    execution = waiting(prompt, STEERED, "-i", "n=1")
    assert refused(prompt, "steer", execution, "--goto", "nowhere") == "not-steerable"
    line = ("steer", execution, "--set", "n=41", "--goto", "other", "--as", "ada", "--reason", "stuck")
    assert prompt(*line, "--json").json["output"] == {"n": 42}
    assert inbox_of(prompt) == []
    assert refused(prompt, *line) == "wrong-status"
    plain = waiting(prompt, FORM)
    assert refused(prompt, "steer", plain, "--goto", "done") == "not-steerable"


EACH = """\
pointsman: 1
id: many
input: {type: object}
nodes:
  - {id: each, type: parallel, config: {items: input.texts}}
  - {id: call, type: workflow, config: {workflow: publish, input: {text: item}}}
  - {id: together, type: join}
edges: [{source: each, target: call}, {source: call, target: together}]
"""


def test_gates_of_the_same_name_are_answered_in_their_sub_workflows(prompt: Prompt) -> None:
    plain = TWO_OF_THREE.replace("approvers: {users: [ada, ben, cleo], quorum: 2}", "show: [text]")
    prompt("workflows", "save", written("publish.yaml", plain))
    started = prompt("run", written("each.yaml", EACH), "--input", '{"texts": ["a", "b"]}', "--json")
    root, gates = started.json["executionId"], started.json["waiting"]
    inside = [gate["executionId"] for gate in gates]
    unclear = prompt("answer", root, "gate-review", "approve")
    assert "[gate-ambiguous]" in unclear.err
    assert all(child in unclear.err for child in inside)
    assert {line.split()[0] for line in prompt("inbox").out.splitlines()} == {*inside}
    assert all(
        f"pointsman answer {child} gate-review approve|edit|reject" in prompt("show", root).out for child in inside
    )
    first = prompt("answer", inside[0], "gate-review", "approve", "--json")
    assert (first.code, first.json["executionId"]) == (3, root)
    last = prompt("answer", inside[1], "gate-review", "approve", "--json")
    assert (last.code, last.json["executionId"], last.json["output"]) == (0, root, [{"text": "a"}, {"text": "b"}])


def test_answers_given_in_advance_reach_gates_of_sub_workflows(prompt: Prompt) -> None:
    plain = TWO_OF_THREE.replace("approvers: {users: [ada, ben, cleo], quorum: 2}", "show: [text]")
    prompt("workflows", "save", written("publish.yaml", plain))
    ran = prompt(
        "run", written("each.yaml", EACH), "--input", '{"texts": ["a", "b"]}', "--json",
        *("--answer", "review=approve", "--answer", "review=approve"),
    )  # fmt: skip
    assert (ran.code, ran.json["output"]) == (0, [{"text": "a"}, {"text": "b"}])


def test_a_deadline_missed_by_all_processes_precedes_a_late_answer(prompt: Prompt) -> None:
    flow = FORM.replace("options:", "timeout: 1ms\n      onTimeout: approve\n      options:")
    execution = waiting(prompt, flow)
    late = prompt("answer", execution, "ask", '{"action": "later", "data": {"amount": 2}}')
    assert "[gate-closed]" in late.err
    assert "its deadline passed" in late.err
    assert [one["cause"] for one in prompt("show", execution, "--json").json["answers"]] == ["timeout"]


def test_show_prints_votes_and_changes_of_an_edit(prompt: Prompt) -> None:
    execution = waiting(prompt, TWO_OF_THREE, "-i", "text=old")
    edit = '{"action": "edit", "data": {"text": "new"}, "comment": "shorter"}'
    prompt("answer", execution, "review", edit, "--as", "ada")
    shown = prompt("show", execution).out
    assert "approvers: ada, ben, cleo; votes needed: 2" in shown
    assert "voted: ada edit" in shown
    prompt("answer", execution, "review", edit, "--as", "ben")
    shown = prompt("show", execution).out
    assert "review: edit: shorter (ben, " in shown
    assert "text: old → new" in shown


def test_an_edit_takes_only_fields_of_the_form(prompt: Prompt) -> None:
    form = "form: {properties: {text: {type: string, minLength: 2}}}\n      approvers:"
    execution = waiting(prompt, TWO_OF_THREE.replace("approvers:", form), "-i", "text=old")
    for data in ('"junk"', "[1]", '{"text": "x"}', '{"text": 5}'):
        line = f'{{"action": "edit", "data": {data}}}'
        assert refused(prompt, "answer", execution, "review", line, "--as", "ada") == "answer-invalid"
    assert prompt("show", execution, "--json").json["waiting"][0]["votes"] == []


PAYING = """\
pointsman: 1
id: cashier
config: {approval: {approvers: {groups: [finance]}}}
nodes: [{id: agent, type: agent, config: {prompt: "Pay {who}", tools: [pay]}}]
edges: []
"""
PAY_SCRIPT = """\
rules:
  - {node: agent, call: 1, toolCalls: [{name: pay, arguments: {amount: 9}}]}
  - {node: agent, text: paid}
tools:
  pay: {requiresApproval: true, results: [{when: {amount: 1}, result: {paid: true}}]}
"""


def test_a_tool_call_waits_for_approval_across_processes(prompt: Prompt) -> None:
    execution = waiting(prompt, PAYING, "-i", "who=ben", "--script", written("script.yaml", PAY_SCRIPT))
    (gate,) = prompt("show", execution, "--json").json["waiting"]
    assert (gate["about"], gate["shown"]) == ("calls", {"2": {"tool": "pay", "arguments": {"amount": 9}}})
    shown = prompt("show", execution).out
    assert '  2: pay {"amount": 9}\n  to decide each call: {"action": "edit", "data": {"2": true}}' in shown
    edit = '{"action": "edit", "data": {"2": {"amount": 1}}}'
    assert refused(prompt, "answer", execution, "agent", edit, "--as", "ada") == "not-an-approver"
    refusals = [f'{{"action": "edit", "data": {data}}}' for data in ('"2"', "{}", '{"9": true}', '{"2": 5}')]
    for line in refusals:
        assert refused(prompt, "answer", execution, "agent", line, "--group", "finance") == "answer-invalid"
    done = prompt("answer", execution, "agent", edit, "--group", "finance", "--json")
    assert (done.code, done.json["output"], done.json["usage"]["modelCalls"]) == (0, "paid", 2)


def test_steer_without_a_change_is_wrong_usage(prompt: Prompt) -> None:
    execution = waiting(prompt, STEERED, "-i", "n=1")
    printed = prompt("steer", execution)
    assert (printed.code, "--goto" in printed.err) == (2, True)


@pytest.mark.parametrize("wrong", [["", "is empty"], ["00000000", "not the digest in JSON"]])
def test_an_empty_or_second_digest_is_refused(prompt: Prompt, wrong: list[str]) -> None:
    flow = "id: ask\nnodes: [{id: ask, type: human, config: {message: Go on?}}]\nedges: []\n"
    view = prompt("run", written("ask.yaml", flow), "--json").json
    [gate] = view["waiting"]
    said = json.dumps({"action": "approve", "digest": gate["digest"]}) if wrong[0] else "approve"
    refused = prompt("answer", view["executionId"], "ask", said, "--digest", wrong[0])
    assert refused.code == 2
    assert wrong[1] in refused.err
    assert prompt("show", view["executionId"], "--json").json["status"] == "waiting"
