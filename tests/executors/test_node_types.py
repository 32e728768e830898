"""Every type of node: a rule of the core, or an executor."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final, cast, get_args

import pytest

from pointsman.app import Pointsman
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import Action, WorkAction, WorkflowAction, WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.migrate import KINDS
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors import registry
from pointsman.executors.effect_ledger import ExecutorDeps
from pointsman.ports import ExecutionPort
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from tests.scenarios import installation, play, written

CONFIGS: Final[dict[str, JsonObject]] = {
    "agent": {"prompt": "x"},
    "tool": {"tool": "calculator"},
    "decision": {"expression": "true"},
    "loop": {"maxIterations": 1},
    "memory": {"scope": "execution", "operation": "get", "key": "k"},
    "workflow": {"workflow": "other"},
    "code": {"language": "python", "source": "1"},
    "wait": {"duration": "1s"},
    "emit": {"event": "told"},
    "note": {"text": "x"},
    "http": {"url": "https://example.org"},
    "progress": {"message": "x"},
    "template-render": {"template": "x"},
    "human": {"message": "x"},
    "planner": {"goal": "x"},
    "verifier": {"criteria": "x"},
    "structured-record": {"schema": {"type": "object"}, "input": "x", "records": "records"},
}
OF_THE_CORE: Final = {
    "start": "StartAction",
    "end": "EndAction",
    "decision": "DecisionAction",
    "parallel": "ParallelAction",
    "join": "JoinAction",
    "loop": "LoopAction",
    "human": "HumanTaskAction",
    "transform": "TransformAction",
    "workflow": "WorkflowAction",
    "wait": "WaitAction",
    "emit": "EmitAction",
    "progress": "EmitAction",
    "template-render": "TransformAction",
}


async def kinds_of_work() -> tuple[str, ...]:
    """Return the kinds of work of an app without settings."""
    async with Pointsman("memory:", settings=Settings(), clock=VirtualClock()) as app:
        return app.context.services.executors.kinds()


@pytest.mark.requirement("T1-8", "S1-72", "S1-45")
@pytest.mark.parametrize("kind", CONFIG_OF)
async def test_every_type_of_node_has_a_rule_in_the_core_or_an_executor(kind: str) -> None:
    nodes: list[Json] = [{"id": "it", "type": kind, "config": CONFIGS.get(kind, {})}]
    edges: list[Json] = []
    if kind == "loop":
        nodes.append({"id": "body", "type": "transform", "config": {}})
        edges = [{"source": "it", "target": "body", "mark": "body"}, {"source": "body", "target": "it"}]
    workflow, problems = WorkflowDefinition.from_document({"id": "one", "entry": "it", "nodes": nodes, "edges": edges})
    assert workflow is not None, problems
    plan = compile_workflow(workflow)
    if kind == "note":
        assert "it" not in plan.nodes, "a comment never runs"
        return
    does = plan.nodes["it"].action
    if isinstance(does, WorkAction):
        assert kind not in OF_THE_CORE, f"compile {kind!r} in NodeCompiler._does of engine/compile/nodes.py"
        assert does.spec.kind in await kinds_of_work(), "compile it in engine/compile/nodes.py, or list its executor"
    else:
        assert type(does).__name__ == OF_THE_CORE.get(kind), f"name the action of {kind!r} in OF_THE_CORE"


def test_every_action_has_a_kind_for_messages_of_a_migration() -> None:
    named_otherwise = {WorkAction, WorkflowAction}
    assert {*get_args(Action)} - named_otherwise == KINDS.keys(), "add it to KINDS in engine/decide/migrate.py"


@pytest.mark.parametrize("kind", CONFIG_OF)
def test_every_type_of_node_is_in_the_language_reference(kind: str) -> None:
    for page in ("docs/reference/language.md", "docs/design/language.md"):
        rows = (Path(__file__).parents[2] / page).read_text(encoding="utf-8").splitlines()
        assert any(row.startswith(f"| `{kind}`") for row in rows), f"add a row to the table of node types in {page}"


class Shout:
    """Executes nodes of the type `shout`: inputs, one result, or a failure."""

    def __init__(self, world: ExecutorDeps) -> None:
        self.world = world

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        inputs = cast(JsonObject, command.input["inputs"])
        text = str(inputs["text"])
        if not text:
            failure = Failure(code="nothing-to-shout", message="there is no text")
            return WorkFailed(step=command.step, attempt=command.attempt, failure=failure)
        mark = cast(JsonObject, command.input["config"]).get("mark", "!")
        return WorkDone(step=command.step, attempt=command.attempt, result=f"{text.upper()}{mark}")


DOCUMENT: JsonObject = {
    "id": "loud",
    "input": {"type": "object", "properties": {"text": {"type": "string"}, "done": {"type": "boolean"}}},
    "nodes": [
        {
            "id": "loud",
            "type": "shout",
            "inputs": {"text": "input.text"},
            "outputs": {"said.loudly": "result"},
            "config": {"mark": "?"},
        },
        {"id": "after", "type": "transform", "config": {"set": {"copy": "said.loudly"}}},
    ],
    "edges": [{"source": "loud", "target": "after"}],
}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    def announced(**_: str) -> list[EntryPoint]:
        return [EntryPoint("shout", f"{__name__}:Shout", registry.GROUP)]

    monkeypatch.setattr(registry, "entry_points", announced)


@pytest.mark.requirement("S3-74", "S3-75", "S3-76", "S3-97")
@pytest.mark.usefixtures("registered")
def test_a_registered_type_reads_its_inputs_runs_and_writes_its_outputs() -> None:
    played = play(DOCUMENT, {"text": "hello"}, lenient=True)
    assert (played.status, played.path) == ("completed", ["loud", "after"])
    assert (played.data["said"], played.data["copy"]) == ({"loudly": "HELLO?"}, "HELLO?")


@pytest.mark.requirement("S3-77")
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("given", "skip", "kind"),
    [("hello", None, "step_succeeded"), ("", None, "step_failed"), ("", "true", "step_passed")],
)
def test_a_step_succeeds_fails_with_a_reason_or_is_skipped(given: str, skip: Json, kind: str) -> None:
    loud = {**cast("list[JsonObject]", DOCUMENT["nodes"])[0], **({"skipWhen": skip} if skip is not None else {})}
    played = play({**DOCUMENT, "nodes": [loud], "edges": []}, {"text": given}, lenient=True)
    assert bool(played.told(kind))
    assert [error["code"] for error in played.errors] == (["nothing-to-shout"] if kind == "step_failed" else [])


@pytest.mark.requirement("S3-74")
def test_an_unregistered_type_is_refused_by_name_before_the_start() -> None:
    async def check() -> list[tuple[str, str]]:
        async with installation() as app:
            return [(p.code, p.pointer) for p in (await app.check(written(DOCUMENT))).problems if p.severity == "error"]

    assert run_virtually(check()) == [("unbound-node-type", "/nodes/0/type")]
