"""Built-in workflows: listed beside saved ones, marked, callable, clonable, and immutable."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.definition.problems import WorkflowInvalid
from pointsman.models.script import Script
from pointsman.models.scripted import sample
from pointsman.settings import Settings
from pointsman.store.records import ExecutionQuery, SavedWorkflow
from pointsman.workflows.builtin import BUILT_IN, IDS, TOOLS, BuiltIn, shipped, with_id
from pointsman.workflows.revisions import WorkflowExists, clone_of, list_workflows
from pointsman.workflows.scripts import load_script, parse_script
from tests.examples.example_runs import EXAMPLES

pytestmark = pytest.mark.integration

ITERATE = "builtin:iterate"
CALLING = """\
id: calling
output: {said: said}
nodes:
  - id: call
    type: workflow
    config: {workflow: builtin:iterate}
    inputs: {items: "[1, 2]", instruction: "'Say {item}'"}
    outputs: {said: result.results}
edges: []
"""
NODE = """\
id: node
output: said
nodes:
  - id: call
    type: tool
    config: {tool: iterate, parameters: {items: [1, 2], instruction: 'Say \\{item}'}}
    outputs: {said: result}
edges: []
"""
ROWS = """\
{"id": "rows-desk", "name": "Desk", "entrypointNodeId": "a",
 "nodes": [{"id": "a", "nodeType": "agent", "agentName": "one"}], "edges": []}
"""


def installation(folder: Path, *, script: Script | None = None, settings: Settings | None = None) -> Pointsman:
    url = f"sqlite:///{folder}/store.db"
    return Pointsman(url, model="scripted", script=script, settings=settings or Settings(delays=False))


def parsed(text: str, name: str = "flow") -> Workflow:
    return Workflow.parse(text, name=name)


@pytest.mark.requirement("S4-40")
async def test_built_in_workflows_are_listed_after_saved_ones_and_marked(tmp_path: Path) -> None:
    async with installation(tmp_path) as app:
        await app.save(parsed("id: zebra\nnodes: [{id: a, type: transform}]\nedges: []"))
        listed = await list_workflows(app.context)
        assert [(one["id"], one["builtIn"]) for one in listed] == [("zebra", False), *((one, True) for one in IDS)]
        assert [one["id"] for one in await list_workflows(app.context, built_in=False)] == ["zebra"]
        assert [one["id"] for one in await list_workflows(app.context, built_in=True)] == [*IDS]
        assert [one["revision"] for one in await list_workflows(app.context, ITERATE)] == [1]


@pytest.mark.parametrize("workflow", IDS)
async def test_built_in_workflows_have_no_problems_and_run_offline(workflow: str, tmp_path: Path) -> None:
    source = shipped(workflow)
    assert source is not None
    schema = source.definition.input_schema
    assert schema is not None
    async with installation(tmp_path) as app:
        checked = await app.check(await app.source(workflow))
        assert {problem.code for problem in checked.problems} <= {"tool-disabled", "cost-unknown"}
        execution = await app.start(workflow, sample(schema, "tides"))
        assert await execution.settled() == "completed"
        (summary,) = await app.executions(ExecutionQuery(parent=None))
        assert (summary.workflow, summary.revision) == (workflow, 1)


@pytest.mark.requirement("S4-56")
async def test_built_in_workflows_cannot_be_replaced_deleted_or_imitated(tmp_path: Path) -> None:
    async with installation(tmp_path) as app:
        source = await app.source(ITERATE)
        with pytest.raises(BuiltIn, match="read-only") as refused:
            await app.save(source)
        assert "workflows clone builtin:iterate" in refused.value.hint
        for imitated in (ITERATE, "builtin:mine"):
            fake = parsed(f"id: {imitated}\nnodes: [{{id: a, type: transform}}]\nedges: []")
            with pytest.raises(WorkflowInvalid, match="ids that begin with 'builtin:'"):
                await app.save(fake)
            with pytest.raises(WorkflowInvalid, match="ids that begin with 'builtin:'"):
                await app.start(fake, {})
            with pytest.raises(BuiltIn):
                await app.save(fake, draft=True)
        with pytest.raises(BuiltIn):
            await app.library.workflows.delete(source.definition.id)
        assert await app.workflows() == []
        with pytest.raises(UnknownWorkflow, match="no workflow 'builtin:nothing'") as unknown:
            await app.source("builtin:nothing")
        assert ITERATE in unknown.value.hint
        with pytest.raises(UnknownWorkflow):
            await app.source(f"{ITERATE}@2")
        assert (await app.source(f"{ITERATE}@1")).data == (await app.source(f"{ITERATE}@1.0.0")).data == source.data


async def cloned(app: Pointsman, workflow: str, new: str, *, author: str = "") -> SavedWorkflow:
    return await app.save(await clone_of(app.context, workflow, new), author=author, draft=True)


@pytest.mark.requirement("S4-56")
async def test_a_clone_has_the_same_document_its_own_id_and_survives_the_process(tmp_path: Path) -> None:
    async with installation(tmp_path) as app:
        saved = await cloned(app, ITERATE, "mine", author="ada")
        assert (saved.draft.id, saved.revision, saved.draft.author) == ("mine", 1, "ada")
        original = (await app.source(ITERATE)).document.text
        assert saved.draft.text == original.replace("id: builtin:iterate", "id: mine")
        assert saved.draft.text.startswith("# Process items in order"), "comments stay"
        with pytest.raises(WorkflowExists):
            await cloned(app, ITERATE, "mine")
        with pytest.raises(BuiltIn):
            await cloned(app, "mine", "builtin:theirs")
        with pytest.raises(WorkflowInvalid):
            await cloned(app, ITERATE, "../etc")
    async with installation(tmp_path) as app:
        changed = (await app.source("mine")).document.text.replace("name: {en: Iterate,", "name: {en: Mine,")
        assert (await app.save(parsed(changed))).revision == 2
        assert (await cloned(app, "mine@1", "older")).draft.name == "Iterate"
        output = await (await app.start("mine", {"items": ["x"], "instruction": "Say"})).output()
        assert isinstance(output, dict)
        assert output["results"] == ["Scripted answer of step to: Say x"]


def test_a_document_gets_another_id_in_any_spelling() -> None:
    for text in ("id: 'old'\nnodes: []", 'nodes: []\n"id": "old" # it', '{"nodes": [], "id": "old"}', "nodes: []"):
        renamed = with_id(parsed(text, "old"), "new")
        assert renamed.definition.id == "new"
        assert renamed.definition.nodes == ()
    numbers = with_id(parsed("id: old\nnodes: []"), "2nd")
    assert numbers.definition.id == "2nd"
    rows = with_id(parsed(ROWS, "desk"), "other")
    assert (rows.definition.id, rows.read.dialect, len(rows.definition.nodes)) == ("other", "rows", 1)


@pytest.mark.requirement("T4-10")
async def test_built_in_workflows_are_called_by_nodes_and_as_tools(tmp_path: Path) -> None:
    script = parse_script('rules: [{contains: "Say 1", text: one}, {contains: "Say 2", text: two}]')
    async with installation(tmp_path, script=script) as app:
        called = await app.start(parsed(CALLING), {})
        assert await called.output() == {"said": ["one", "two"]}
        used = await app.start(parsed(NODE), {})
        assert await used.output() == {"answer": "two", "results": ["one", "two"]}
        for parent in (called, used):
            (child,) = await app.executions(ExecutionQuery(parent=parent.id))
            assert (child.workflow, child.status) == (ITERATE, "completed")
        assert (await app.replay(used.id)).differences == []


async def test_a_registered_tool_takes_precedence_over_a_built_in_workflow(tmp_path: Path) -> None:
    @tool
    async def iterate(items: list[int], instruction: str) -> str:
        """Return my own result."""
        return f"{instruction}: {len(items)}"

    async with Pointsman("memory:", tools=[iterate], model="scripted") as app:
        assert await (await app.start(parsed(NODE), {})).output() == "Say {item}: 2"
        assert [app.tools.origin(name) for name in TOOLS] == ["builtin", "function", "builtin"]


async def test_research_as_a_tool_continues_after_its_process_ended(tmp_path: Path) -> None:
    """The first process ends once the sub-workflow has begun; the second one finishes both and starts no other."""
    script = load_script(EXAMPLES / "built-in" / "script.yaml")
    desk = Workflow.load(EXAMPLES / "built-in" / "desk.yaml")
    async with installation(tmp_path, script=script) as app:
        execution = await app.start(desk, {"question": "Is tidal power any good?"})
        async for event in execution.journal():
            if event["kind"] == "children_asked":
                break
        assert execution.status == "running"
        children = await app.executions(ExecutionQuery(parent=execution.id))
    async with installation(tmp_path) as app:
        again = await app.open(execution.id)
        assert await again.output() == {"answer": "The tides are high enough."}
        after = await app.executions(ExecutionQuery(parent=execution.id))
        assert {child.execution for child in after} >= {child.execution for child in children}
        assert len(after) == 1
        assert [child.workflow for child in after] == [BUILT_IN + "deep_research"]
