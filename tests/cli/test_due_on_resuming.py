"""Deadlines, timers and retries that became due while no process ran; each command opens the store in its own
process."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointsman.values import JsonObject
from tests.cli.conftest import Prompt
from tests.cli.test_processes import started

STORE = ["--store", "sqlite:///store.db"]
DUE_S = 0.4
SOON = f"{int(DUE_S * 1000)}ms"
WAITS_S = 60


def gate(id: str, on_timeout: str = "approve") -> JsonObject:
    return {"id": id, "type": "human", "config": {"message": "Go on?", "timeout": SOON, "onTimeout": on_timeout}}


def noting(id: str) -> JsonObject:
    return {"id": id, "type": "transform", "config": {"set": {id: "1"}}}


def document(id: str, nodes: Sequence[JsonObject], *edges: tuple[str, str]) -> str:
    linked = [{"source": source, "target": target} for source, target in edges]
    Path(f"{id}.json").write_text(json.dumps({"pointsman": 1, "id": id, "nodes": nodes, "edges": linked}))
    return f"{id}.json"


def left(prompt: Prompt, file: str, *more: str) -> str:
    """Return an execution whose process has ended, with a due wait."""
    begun = prompt("run", file, "--model", "scripted", "--json", *more, *STORE)
    time.sleep(DUE_S)
    return str(begun.json["executionId"])


def three_gates() -> str:
    nodes: list[JsonObject] = [
        {"id": "start", "type": "start"},
        gate("a"),
        gate("b"),
        gate("c"),
        noting("x"),
        noting("y"),
        noting("z"),
    ]
    fan = [("start", "a"), ("start", "b"), ("start", "c"), ("a", "x"), ("b", "y"), ("c", "z")]
    return document("several", nodes, *fan)


def test_resume_carries_out_due_deadlines_and_their_consequences(prompt: Prompt) -> None:
    execution = left(prompt, three_gates())
    with started("resume", execution, "--model", "scripted", "--json", *STORE) as process:
        out, err = process.communicate(timeout=WAITS_S)
    shown = json.loads(out)
    assert (process.returncode, shown["status"], shown["waiting"]) == (0, "completed", []), err
    assert {"x", "y", "z"} <= {*shown["path"]}
    assert prompt("show", execution, "--json", *STORE).json["status"] == "completed"


@pytest.mark.parametrize(
    ("on_timeout", "code", "status", "errors"),
    [("approve", 0, "completed", []), ("reject", 130, "cancelled", []), ("fail", 1, "failed", ["gate-timeout"])],
)
def test_the_exit_code_of_resume_reflects_the_result_of_a_deadline(
    prompt: Prompt, on_timeout: str, code: int, status: str, errors: list[str]
) -> None:
    execution = left(prompt, document("one", [gate("ask", on_timeout), noting("after")], ("ask", "after")))
    told = prompt("resume", execution, "--model", "scripted", "--json", *STORE)
    assert (told.code, told.json["status"]) == (code, status)
    assert [one["code"] for one in told.json["errors"]] == errors
    assert prompt("show", execution, "--json", *STORE).json["status"] == status


def test_resume_continues_a_wait_in_a_nested_sub_workflow(prompt: Prompt) -> None:
    inner: list[JsonObject] = [
        gate("ask"),
        {"id": "rest", "type": "wait", "config": {"duration": "0s"}},
        noting("after"),
    ]
    prompt("workflows", "save", document("inner", inner, ("ask", "rest"), ("rest", "after")), *STORE)
    calls: JsonObject = {"id": "call", "type": "workflow", "config": {"workflow": "inner"}}
    prompt("workflows", "save", document("middle", [calls]), *STORE)
    outer: list[JsonObject] = [{"id": "call", "type": "workflow", "config": {"workflow": "middle"}}, noting("done")]
    execution = left(prompt, document("outer", outer, ("call", "done")))
    told = prompt("resume", execution, "--model", "scripted", "--json", *STORE)
    assert (told.code, told.json["status"], told.json["path"]) == (0, "completed", ["call", "done"])


def test_a_gate_that_opens_after_a_deadline_is_reported_as_waiting(prompt: Prompt) -> None:
    asks: JsonObject = {"id": "second", "type": "human", "config": {"message": "And now?"}}
    execution = left(prompt, document("row", [gate("first"), asks], ("first", "second")))
    told = prompt("resume", execution, "--model", "scripted", "--json", *STORE)
    assert (told.code, told.json["status"]) == (3, "waiting")
    assert [one["nodeId"] for one in told.json["waiting"]] == ["second"]


@pytest.mark.parametrize("verb", [("retry",), ("retry", "--from", "ask_model"), ("fork",)])
def test_retry_and_fork_carry_out_due_deadlines_of_other_steps(prompt: Prompt, verb: tuple[str, ...]) -> None:
    Path("bad.json").write_text('{"rules": [{"node": "ask_model", "fail": 400}]}')
    Path("good.json").write_text('{"rules": [{"node": "ask_model", "text": "fine"}]}')
    agent: JsonObject = {"id": "ask_model", "type": "agent", "config": {"prompt": "Think."}}
    nodes: list[JsonObject] = [{"id": "start", "type": "start"}, gate("ask"), agent, noting("x"), noting("y")]
    edges = [("start", "ask"), ("start", "ask_model"), ("ask", "x"), ("ask_model", "y")]
    begun = prompt("run", document("both", nodes, *edges), "--script", "bad.json", "--json", *STORE)
    assert begun.json["status"] == "failed"
    time.sleep(DUE_S)
    name, *more = verb
    told = prompt(name, begun.json["executionId"], *more, "--script", "good.json", "--json", *STORE)
    assert (told.code, told.json["status"]) == (0, "completed"), told.err
    assert {"x", "y"} <= {*told.json["path"]}
