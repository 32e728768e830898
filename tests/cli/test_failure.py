"""Failures across processes: compensation, and raised limits. Each command opens the store again."""

from __future__ import annotations

import json

import pytest

from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

TRIP = """\
pointsman: 1
id: trip
input: {type: object}
nodes:
  - {id: flight, type: agent, config: {prompt: book a flight}, compensate: no_flight}
  - {id: hotel, type: agent, config: {prompt: book a hotel}, compensate: no_hotel}
  - {id: sure, type: human, config: {message: "Pay?", options: [{value: approve}]}}
  - {id: pay, type: agent, config: {prompt: pay}}
  - {id: no_flight, type: agent, config: {prompt: "Cancel {{compensated.node}}: {{result}}"}}
  - {id: no_hotel, type: agent, config: {prompt: "Cancel {{compensated.node}}: {{result}}"}}
edges:
  - {source: flight, target: hotel}
  - {source: hotel, target: sure}
  - {source: sure, target: pay, condition: {type: label, label: approve}}
"""

SCRIPT = """\
rules:
  - {node: flight, text: LH1}
  - {node: hotel, text: Ritz}
  - {node: pay, fail: 400}
"""


def begun(prompt: Prompt, script: str = SCRIPT) -> str:
    printed = prompt("run", written("trip.yaml", TRIP), "--script", written("s.yaml", script), "--json").json
    assert printed["status"] == "waiting", printed
    return printed["executionId"]


def undone(prompt: Prompt, execution: str) -> list[str]:
    events = [json.loads(line) for line in prompt("events", execution, "--jsonl").out.splitlines()]
    return [event["node"] for event in events if event["kind"] == "undo_ended"]


def test_a_failure_in_a_later_process_compensates_steps_of_an_earlier_one(prompt: Prompt) -> None:
    execution = begun(prompt)
    printed = prompt("answer", execution, "sure", "approve", "--json")
    assert (printed.code, printed.json["status"], printed.json["phase"]) == (1, "failed", None)
    assert undone(prompt, execution) == ["hotel", "flight"]
    asked = prompt("show", execution, "--json").json
    assert asked["path"] == ["flight", "hotel", "sure", "pay", "no_hotel", "no_flight"]
    refused = prompt("retry", execution)
    assert (refused.code, "it was compensated" in refused.err) == (2, True)


def test_cancel_compensates_and_cancel_now_does_not(prompt: Prompt) -> None:
    execution = begun(prompt)
    printed = prompt("cancel", execution, "--json")
    assert printed.json["status"] == "cancelled"
    assert undone(prompt, execution) == ["hotel", "flight"]
    other = begun(prompt)
    assert prompt("cancel", other, "--now", "--json").json["status"] == "cancelled"
    assert undone(prompt, other) == []


def test_a_failed_compensation_is_reported(prompt: Prompt) -> None:
    execution = begun(prompt, SCRIPT + "  - {node: no_hotel, fail: 400}\n")
    printed = prompt("answer", execution, "sure", "approve")
    assert "could not be undone: 'hotel'" in printed.err
    assert undone(prompt, execution) == ["hotel", "flight"]


TALKS = """\
pointsman: 1
id: talks
input: {type: object}
config: {limits: {modelCalls: 2}, budget: {policy: POLICY}}
nodes:
  - {id: one, type: agent, config: {prompt: one}}
  - {id: two, type: agent, config: {prompt: two, tools: [look]}}
  - {id: three, type: agent, config: {prompt: three}}
edges:
  - {source: one, target: two}
  - {source: two, target: three}
"""

TOOLS = """\
tools: {look: {result: found}}
rules:
  - {node: two, call: 1, toolCalls: [{name: look, arguments: {}}]}
  - {node: two, call: 2, text: done}
"""


def test_a_budget_stops_an_agent_between_calls_and_no_call_is_repeated(prompt: Prompt) -> None:
    flow = written("talks.yaml", TALKS.replace("POLICY", "stop"))
    stopped = prompt("run", flow, "--script", written("s.yaml", TOOLS), "--json")
    execution = stopped.json["executionId"]
    assert (stopped.code, stopped.json["status"]) == (4, "interrupted")
    assert (
        stopped.json["errors"][0]["message"]
        == "the budget of 2 model calls is spent (`modelCalls`, set by the workflow)"
    )
    assert "--limit modelCalls=NUMBER" in stopped.json["errors"][0]["hint"]
    again = prompt("resume", execution, "--json")
    assert again.json["status"] == "interrupted", "nothing was raised"
    done = prompt("resume", execution, "--limit", "modelCalls=9", "--json").json
    assert (done["status"], done["usage"]["modelCalls"], done["usage"]["toolCalls"]) == ("completed", 4, 1)


def test_a_pausing_budget_is_raised_in_another_process(prompt: Prompt) -> None:
    flow = written("talks.yaml", TALKS.replace("POLICY", "pause"))
    paused = prompt("run", flow, "--script", written("s.yaml", TOOLS))
    assert (paused.code, "the budget of 2 model calls is spent" in paused.err) == (3, True)
    execution = prompt("list", "--json").json["executions"][0]["executionId"]
    done = prompt("resume", execution, "--limit", "modelCalls=9", "--json").json
    assert (done["status"], done["usage"]["modelCalls"]) == ("completed", 4)


def test_unknown_limits_and_limits_of_the_operator_cannot_be_raised(prompt: Prompt) -> None:
    written("pointsman.toml", "[limits]\nmodelCalls = 3\n")
    flow = written("talks.yaml", TALKS.replace("POLICY", "stop"))
    execution = prompt("run", flow, "--script", written("s.yaml", TOOLS), "--json").json["executionId"]
    unknown = prompt("resume", execution, "--limit", "calls=9")
    assert (unknown.code, "unknown-limit" in unknown.err) == (2, True)
    capped = prompt("resume", execution, "--limit", "modelCalls=9")
    assert (capped.code, "the operator allows 3" in capped.err) == (2, True)
    last = prompt("resume", execution, "--limit", "modelCalls=3", "--json").json
    assert (last["status"], last["path"]) == ("interrupted", ["one", "two"])


WATCHED = """\
pointsman: 1
id: watched
entry: count
input: {type: object}
config: {limits: {steps: 4}, onLimit: ask}
nodes:
  - {id: count, type: agent, config: {prompt: "count {{n}}"}, outputs: {n: "(n ?? 0) + 1"}}
  - id: ask
    type: human
    config: {message: "{{result}}. Go on?", options: [{value: continue, more: {steps: 4}}, {value: stop}]}
  - {id: last, type: agent, config: {prompt: sum up}}
edges:
  - {source: count, target: count, condition: {type: expression, expression: "n < 6"}}
  - {source: count, target: last, condition: {type: default}}
"""


def test_an_answer_at_a_limit_continues_the_execution_in_another_process(prompt: Prompt) -> None:
    asked = prompt("run", written("watched.yaml", WATCHED), "--json")
    execution = asked.json["executionId"]
    assert (asked.code, asked.json["status"]) == (3, "waiting")
    (gate,) = asked.json["waiting"]
    assert gate["message"] == "the limit of 4 steps is reached (`steps`, set by the workflow). Go on?"
    assert [one["gateId"] for one in prompt("inbox", "--json").json["gates"]] == [gate["gateId"]]
    done = prompt("answer", execution, "ask", "continue", "--json").json
    assert (done["status"], done["path"].count("count"), done["state"]["n"]) == ("completed", 6, 6)
    again = prompt("replay", execution)
    assert again.code == 0, again.out


def test_resume_can_raise_a_limit_without_answering_its_gate(prompt: Prompt) -> None:
    execution = prompt("run", written("watched.yaml", WATCHED), "--json").json["executionId"]
    done = prompt("resume", execution, "--limit", "steps=50", "--json").json
    assert (done["status"], done["waiting"], done["path"].count("count")) == ("completed", [], 6)
    stopped = prompt("run", "watched.yaml", "--answer", "ask=stop", "--json").json
    assert (stopped["status"], stopped["path"].count("count")) == ("completed", 4)


BOUND = """\
pointsman: 1
id: bound
entry: one
input: {type: object}
config: {limits: {LIMITS}}
nodes:
  - {id: one, type: agent, config: {prompt: one, tools: [look]}, outputs: {one: result}}
  - {id: two, type: agent, config: {prompt: two, tools: [look]}, outputs: {n: "(n ?? 0) + 1"}}
  - {id: end, type: end}
edges:
  - {source: one, target: two}
  - {source: two, target: one, condition: {type: expression, expression: "n < 2"}}
  - {source: two, target: end, condition: {type: default}}
"""

SPENDS = """\
tools: {look: {result: found}}
rules:
  - {node: one, call: 1, toolCalls: [{name: look, arguments: {}}], usage: {inputTokens: 50, outputTokens: 10}}
  - {node: one, text: done, delay: 20ms}
  - {node: two, text: done}
"""


@pytest.mark.parametrize(
    ("limit", "at", "more"),
    [
        ("steps", "2", "20"),
        ("visits", "1", "9"),
        ("tokens", "30", "100000"),
        ("modelCalls", "2", "20"),
        ("toolCalls", "1", "9"),
        ("executionTime", "5ms", "600"),
        ("deadline", "5ms", "600"),
    ],
)
def test_each_interrupting_limit_is_raised_in_another_process(prompt: Prompt, limit: str, at: str, more: str) -> None:
    flow = written("bound.yaml", BOUND.replace("LIMITS", f"{limit}: {at}"))
    stopped = prompt("run", flow, "--script", written("s.yaml", SPENDS), "--json")
    assert (stopped.code, stopped.json["status"]) == (4, "interrupted")
    assert f"(`{limit}`, set by the workflow)" in stopped.json["errors"][0]["message"]
    done = prompt("resume", stopped.json["executionId"], "--limit", f"{limit}={more}", "--json").json
    assert (done["status"], done["path"]) == ("completed", ["one", "two", "one", "two", "end"])


def test_an_agent_without_progress_gets_more_tries_in_another_process(prompt: Prompt) -> None:
    flow = written("bound.yaml", BOUND.replace("LIMITS", "steps: 50").replace("(n ?? 0) + 1", "1"))
    stopped = prompt("run", flow, "--script", written("s.yaml", "rules: [{text: done}]"), "--json")
    assert (stopped.code, stopped.json["path"].count("two")) == (4, 2)
    assert "no data changed in between" in stopped.json["errors"][0]["message"]
    again = prompt("resume", stopped.json["executionId"], "--limit", "no-progress=6", "--json").json
    assert (again["status"], again["path"].count("two")) == ("interrupted", 5)


@pytest.mark.parametrize(
    ("limit", "at", "more", "code"),
    [("stateSize", "40B", "100000", "state-too-large"), ("nodeTime", "5ms", "60", "model-timeout")],
)
def test_a_step_failed_by_a_limit_is_retried_with_a_higher_limit(
    prompt: Prompt, limit: str, at: str, more: str, code: str
) -> None:
    flow = written("bound.yaml", BOUND.replace("LIMITS", f"{limit}: {at}"))
    script = "rules: [{node: one, text: a text that is longer than allowed, delay: 20ms}, {text: done}]"
    failed = prompt("run", flow, "--script", written("s.yaml", script), "--json")
    execution = failed.json["executionId"]
    assert (failed.json["status"], failed.json["errors"][0]["code"]) == ("failed", code)
    assert prompt("retry", execution, "--json").json["status"] == "failed", "nothing was raised"
    done = prompt("retry", execution, "--limit", f"{limit}={more}", "--json").json
    assert (done["status"], done["path"].count("two")) == ("completed", 2)


BELOW = """\
pointsman: 1
id: below
input: {type: object}
nodes:
  - {id: one, type: agent, config: {prompt: one}}
  - {id: two, type: agent, config: {prompt: two}}
  - {id: three, type: agent, config: {prompt: three}}
  - {id: four, type: agent, config: {prompt: four}}
  - {id: five, type: agent, config: {prompt: five}}
edges:
  - {source: one, target: two}
  - {source: two, target: three}
  - {source: three, target: four}
  - {source: four, target: five}
"""

ABOVE = """\
pointsman: 1
id: above
entry: call
input: {type: object}
config: CONFIG
nodes:
  - {id: call, type: workflow, config: {workflow: below}}
  - {id: ask, type: human, config: {options: [{value: continue, more: {modelCalls: 9}}]}}
edges: []
"""

SLOWLY = "rules: [{node: three, text: done, delay: 500ms}, {text: done}]"
"""Its third step exceeds the budget, and the refusal arrives while that step is running."""


@pytest.mark.parametrize(
    ("config", "status", "go_on"),
    [
        ("{limits: {modelCalls: 1}}", "interrupted", ["resume", "EXEC", "--limit", "modelCalls=9"]),
        ("{limits: {modelCalls: 1}, budget: {policy: pause}}", "paused", ["resume", "EXEC", "--limit", "modelCalls=9"]),
        ("{limits: {modelCalls: 1}, onLimit: ask}", "waiting", ["answer", "EXEC", "ask", "continue"]),
    ],
)
def test_a_sub_workflow_pauses_and_continues_with_its_parent(
    prompt: Prompt, config: str, status: str, go_on: list[str]
) -> None:
    script = written("s.yaml", SLOWLY)
    prompt("workflows", "save", written("below.yaml", BELOW))
    stopped = prompt("run", written("above.yaml", ABOVE.replace("CONFIG", config)), "--script", script, "--json").json
    found = {one["workflowId"]: one for one in prompt("list", "--json").json["executions"]}
    assert (found["above"]["status"], found["below"]["status"]) == (status, "paused")
    spent = prompt("show", found["below"]["executionId"], "--json").json["usage"]["modelCalls"]
    assert 2 <= spent < 5, "it did not go on to its own end"
    command = [stopped["executionId"] if word == "EXEC" else word for word in go_on]
    done = prompt(*command, "--script", script, "--json").json
    assert (done["status"], done["usage"]["modelCalls"]) == ("completed", 5)


def test_a_refusal_names_the_displayed_status(prompt: Prompt) -> None:
    printed = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=ships", "--json")
    refused = prompt("retry", printed.json["executionId"])
    assert refused.code == 2
    assert f"{printed.json['executionId']!r} is waiting: it cannot be retried" in refused.err


def test_a_limit_must_exceed_the_used_amount(prompt: Prompt) -> None:
    stopped = prompt("run", written("rounds.yaml", flows.ROUNDS), "--json")
    assert stopped.code == 4
    execution, used = stopped.json["executionId"], stopped.json["steps"]
    refused = prompt("resume", execution, "--limit", f"steps={used}", "--json")
    assert (refused.code, refused.json["errors"][0]["code"]) == (2, "limit-used")
    assert prompt("show", execution, "--json").json["status"] == "interrupted"
    assert prompt("resume", execution, "--limit", "steps=500").code == 0
