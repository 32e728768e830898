"""A dry run shows path and cost, and has no effects."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from pointsman import tool
from pointsman.tools import registry
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

LOOP = """\
pointsman: 1
id: polish
entry: again
input: {type: object}
nodes:
  - {id: again, type: loop, config: {maxIterations: 4, while: "(score ?? 0) < 8"}}
  - id: rate
    type: agent
    config: {prompt: "Rate it", outputSchema: {type: integer, maximum: 10}}
    outputs: {score: result}
  - {id: mail, type: tool, config: {tool: send_mail, parameters: {to: "'a'"}}, outputs: {sent: result}}
edges:
  - {source: again, target: rate, mark: body}
  - {source: rate, target: again}
  - {source: again, target: mail}
"""

PAUSE = """\
pointsman: 1
id: later
input: {type: object}
nodes:
  - {id: sleep, type: wait, config: {duration: 30d}}
  - {id: knock, type: wait, config: {event: {name: door}}}
edges: [{source: sleep, target: knock}]
"""

OUTER = """\
pointsman: 1
id: outer
nodes: [{id: call, type: workflow, config: {workflow: letter, input: {goal: "'x'"}}}]
edges: []
"""


def test_a_dry_run_prints_path_calls_and_cost_range(prompt: Prompt) -> None:
    script = written("s.yaml", "tools: {send_mail: {result: sent}}")
    printed = prompt(
        "run", written("p.yaml", LOOP), "--dry-run", "--model", "openai:gpt-4o", "--script", script, "--json"
    )
    found = printed.json
    assert (printed.code, found["dryRun"], found["status"]) == (0, True, "completed"), found
    assert found["path"] == ["again", "rate", "again", "mail"]
    rate, mail = found["calls"]
    assert (rate["kind"], rate["name"], rate["calls"], rate["callsMax"]) == ("model", "openai:gpt-4o", 1, 4)
    assert (mail["kind"], mail["name"], mail["calls"]) == ("tool", "send_mail", 1)
    assert rate["inputTokens"] > 0
    assert 0 < found["cost"]["lowUsd"] < found["cost"]["highUsd"]
    assert found["cost"]["highUsd"] == pytest.approx(4 * found["cost"]["lowUsd"])


def test_an_unknown_price_is_not_zero(prompt: Prompt) -> None:
    chain = written("chain.yaml", flows.CHAIN)
    printed = prompt("run", chain, "--dry-run", "--model", "openai:never-heard-of", "--json").json
    assert printed["cost"] == {"lowUsd": None, "highUsd": None, "unpriced": ["openai:never-heard-of"]}


def test_a_dry_run_stores_nothing(prompt: Prompt) -> None:
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--dry-run")
    assert prompt("list", "--json").json["executions"] == []


def test_gates_of_a_dry_run_take_the_given_answer_or_their_first_option(prompt: Prompt) -> None:
    file = written("letter.yaml", flows.APPROVAL)
    first = prompt("run", file, "-i", "goal=x", "--dry-run", "--json").json
    assert (first["path"], first["waits"][0]["answered"]) == (["write", "review", "send"], "approve")
    other = prompt("run", file, "-i", "goal=x", "--dry-run", "--answer", "review=again", "--json").json
    assert other["path"] == ["write", "review", "write", "review", "send"]


def test_a_dry_run_skips_waits_and_assumes_events(prompt: Prompt) -> None:
    found = prompt("run", written("later.yaml", PAUSE), "--dry-run", "--json").json
    assert (found["status"], found["path"]) == ("completed", ["sleep", "knock"])
    assert {one["kind"] for one in found["waits"]} == {"timer", "event"}


def test_a_dry_run_includes_sub_workflows(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.APPROVAL))
    found = prompt("run", written("outer.yaml", OUTER), "--dry-run", "--json").json
    assert (found["status"], [one["nodeId"] for one in found["calls"]]) == ("completed", ["write"])


def test_a_dry_run_prints_lines_for_people(prompt: Prompt) -> None:
    out = prompt("run", written("chain.yaml", flows.CHAIN), "--dry-run", "--model", "openai:gpt-4o").out
    assert "path: first → second → third" in out
    assert "first: 1× model openai:gpt-4o" in out
    assert "nothing was called; cost: $" in out


def test_a_dry_run_includes_calls_of_workflows_used_as_tools(prompt: Prompt) -> None:
    prompt("workflows", "save", written("letter.yaml", flows.CHAIN))
    document = """\
id: caller
output: said
nodes:
  - {id: call, type: tool, config: {tool: workflow__chain}, outputs: {said: result}}
  - {id: more, type: tool, config: {tool: iterate, parameters: {items: [1, 2], instruction: Say}}}
edges: [{source: call, target: more}]
"""
    printed = prompt("run", written("caller.yaml", document), "--dry-run", "--model", "openai:gpt-4o", "--json")
    found = printed.json
    assert (printed.code, found["status"], found["path"]) == (0, "completed", ["call", "more"]), found
    asked = {(one["nodeId"], one["kind"]): one["calls"] for one in found["calls"]}
    assert asked == {("first", "model"): 1, ("second", "model"): 1, ("third", "model"): 1, ("step", "model"): 2}
    assert "(result of" not in str(found["output"])
    assert [one["id"] for one in prompt("workflows", "list", "--saved", "--json").json["workflows"]] == ["chain"]
    assert prompt("list", "--json").json["executions"] == [], "nothing is kept"


CALLED: list[str] = []


@tool
async def act() -> str:
    """Act."""
    CALLED.append("act")
    return "done"


def test_a_dry_run_calls_no_tool_of_an_installed_package(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(**_: str) -> list[EntryPoint]:
        return [EntryPoint("act", f"{__name__}:act", registry.GROUP)]

    monkeypatch.setattr(registry, "entry_points", announced)
    CALLED.clear()
    flow = "pointsman: 1\nid: acts\nnodes: [{id: work, type: tool, config: {tool: act}}]\nedges: []\n"
    printed = prompt("run", written("p.yaml", flow), "--dry-run", "--model", "scripted", "--json")
    assert (printed.code, [call["name"] for call in printed.json["calls"]]) == (0, ["act"]), printed
    assert CALLED == []
    prompt("run", written("p.yaml", flow), "--model", "scripted", "--json")
    assert CALLED == ["act"]
