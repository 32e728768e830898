"""References to executions: `last`, the beginning of an id, and completion with them."""

from __future__ import annotations

import pytest

from pointsman import Pointsman, Workflow
from pointsman.auth.callers import Caller
from pointsman.executions.lists import CANDIDATES_MAX, ExecutionAmbiguous
from pointsman.executions.start import start
from pointsman.runtime.local import UnknownExecution
from pointsman.values import ExecutionId, JsonObject
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

pytestmark = pytest.mark.integration
ADMIN = Caller(name="ann", role="admin")
WAITS: JsonObject = {
    "pointsman": 1,
    "id": "waits",
    "nodes": [{"id": "knock", "type": "wait", "config": {"event": {"name": "door"}}}],
}


def test_last_is_the_execution_that_started_last(prompt: Prompt) -> None:
    prompt("run", written("chain.yaml", flows.CHAIN))
    waits = prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x", "--json").json["executionId"]
    assert prompt("show", "last", "--json").json["executionId"] == waits
    answered = prompt("answer", "last", "review", "approve", "--json")
    assert (answered.code, answered.json["executionId"]) == (0, waits)


def test_last_without_executions_is_an_error(prompt: Prompt) -> None:
    shown = prompt("show", "last", "--json")
    assert (shown.code, shown.json["errors"][0]["code"]) == (2, "unknown-execution")


def test_the_store_may_be_named_after_the_reference(prompt: Prompt) -> None:
    there = ["--store", "sqlite:///other.db"]
    done = prompt("run", written("chain.yaml", flows.CHAIN), *there, "--json").json["executionId"]
    assert prompt("show", "last", "--json", *there).json["executionId"] == done
    assert prompt("show", "last").code == 2


def test_an_ambiguous_beginning_lists_the_candidates_and_does_nothing(prompt: Prompt) -> None:
    flow = written("letter.yaml", flows.APPROVAL)
    started = [prompt("run", flow, "-i", "goal=x", "--json").json["executionId"] for _ in range(2)]
    refused = prompt("cancel", "exec-0")
    assert refused.code == 2
    assert "[execution-ambiguous]" in refused.err
    assert all(one in refused.err for one in started)
    assert [one["status"] for one in prompt("list", "--json").json["executions"]] == ["waiting", "waiting"]


def test_several_references_are_looked_up_together(prompt: Prompt) -> None:
    flow = written("chain.yaml", flows.CHAIN)
    first, second = (prompt("run", flow, "--json").json["executionId"] for _ in range(2))
    assert sorted(prompt("delete", first.removeprefix("exec-"), "last", "--json").json["deleted"]) == sorted(
        [first, second]
    )


async def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        named = app.acting_as(ADMIN).executions.named
        for one in ("exec-aa1", "exec-aa2", "exec-ab1", "try-x1", "exec-exec-y", "aa"):
            execution = await start(app.context, Workflow.of(WAITS), {}, execution=ExecutionId(one))
            assert execution.id == one
        assert await named("exec-ab") == "exec-ab1"
        assert await named("ab") == "exec-ab1"
        assert await named("x1") == "try-x1"
        assert await named("aa") == "aa", "an exact id is never a beginning"
        assert await named("exec-aa1") == "exec-aa1"
        assert await named("last") == "aa"
        with pytest.raises(ExecutionAmbiguous) as why:
            await named("exec-aa")
        assert "exec-aa1" in why.value.hint
        assert "exec-aa2" in why.value.hint
        assert "exec-ab1" not in why.value.hint
        for unknown in ("", "zz", "exec-ab12", "exec-%", "LAST"):
            with pytest.raises(UnknownExecution):
                await named(unknown)


async def test_a_list_of_candidates_is_bounded() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        for number in range(CANDIDATES_MAX + 2):
            await start(app.context, Workflow.of(WAITS), {}, execution=ExecutionId(f"exec-a{number:02}"))
        with pytest.raises(ExecutionAmbiguous) as why:
            await app.acting_as(ADMIN).executions.named("exec-a")
        assert why.value.hint.count("exec-a") == CANDIDATES_MAX
        assert "… and more" in why.value.hint


async def test_a_reference_finds_no_execution_that_the_caller_may_not_see() -> None:
    ben = Caller(name="ben", role="operator")
    async with Pointsman("memory:", model="scripted") as app:
        admin = app.acting_as(ADMIN)
        await admin.workflows.save(Workflow.of(WAITS))
        carla = app.acting_as(Caller(name="carla", role="operator"))
        execution = await carla.executions.start("waits", {})
        assert await carla.executions.named("last") == execution.id
        await admin.sharing.share_workflow("waits", "private")
        for reference in ("last", execution.id[:12]):
            with pytest.raises(UnknownExecution):
                await app.acting_as(ben).executions.named(reference)


def completed(words: str, prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the completions of a command line whose last word is incomplete."""
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    monkeypatch.setenv("_POINTSMAN_COMPLETE", "bash_complete")
    return [line.partition(",")[2] for line in prompt().out.splitlines() if line]


def test_actions_of_a_gate_are_completed(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    prompt("run", written("letter.yaml", flows.APPROVAL), "-i", "goal=x")
    assert completed("pointsman answer last ", prompt, monkeypatch) == ["review"]
    assert completed("pointsman answer last review ", prompt, monkeypatch) == ["approve", "again"]
    assert completed("pointsman answer last review ag", prompt, monkeypatch) == ["again"]
    assert completed("pointsman answer nowhere review ", prompt, monkeypatch) == []
