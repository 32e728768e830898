"""Failure across processes: what was done is undone, limits are raised. Each command opens the store anew."""

from __future__ import annotations

import json

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


def test_a_failure_in_a_later_process_undoes_what_an_earlier_one_did(prompt: Prompt) -> None:
    execution = begun(prompt)
    printed = prompt("answer", execution, "sure", "approve", "--json")
    assert (printed.code, printed.json["status"], printed.json["phase"]) == (1, "failed", None)
    assert undone(prompt, execution) == ["hotel", "flight"]
    asked = prompt("show", execution, "--json").json
    assert asked["path"] == ["flight", "hotel", "sure", "pay", "no_hotel", "no_flight"]
    refused = prompt("retry", execution)
    assert (refused.code, "was undone" in refused.err) == (2, True)


def test_cancel_undoes_what_an_earlier_process_did_and_now_does_not(prompt: Prompt) -> None:
    execution = begun(prompt)
    printed = prompt("cancel", execution, "--json")
    assert printed.json["status"] == "cancelled"
    assert undone(prompt, execution) == ["hotel", "flight"]
    other = begun(prompt)
    assert prompt("cancel", other, "--now", "--json").json["status"] == "cancelled"
    assert undone(prompt, other) == []


def test_people_are_told_what_could_not_be_undone(prompt: Prompt) -> None:
    execution = begun(prompt, SCRIPT + "  - {node: no_hotel, fail: 400}\n")
    printed = prompt("answer", execution, "sure", "approve")
    assert "could not be undone: 'hotel'" in printed.err
    assert undone(prompt, execution) == ["hotel", "flight"]
