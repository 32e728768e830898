"""Edits of documents in their authors' format: texts, dialects, new problems."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import LOCAL, Caller, NotAllowed
from pointsman.auth.policy import IdTaken
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.authoring.edits import Edited, edit
from pointsman.authoring.operations import OperationRefused, read_operations
from pointsman.authoring.tools import Workbench
from pointsman.definition.problems import WorkflowInvalid
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.revisions import NoSuchRevision, RevisionMoved
from tests.dialects.corpus_files import CORPUS

LETTER = """\
# A letter, seen by a person.
id: letter
name: "Letter"   # shown in lists
entry: write
input: {type: object, required: [goal], properties: {goal: {type: string}}}

nodes:
  - {id: write, type: agent, config: {prompt: "Write about {goal}"}, outputs: {text: result}}
  # Nobody sends what nobody saw.
  - id: review
    type: human
    config:
      message: 'Send it? {nodes.write.text}'
      options: [{value: approve}, {value: again}]
  - {id: send, type: end}   # done

edges:
  - {source: write, target: review}
  - {source: review, target: send, condition: {type: label, label: approve}}
  - {source: review, target: write, condition: {type: label, label: again}}   # once more
"""


@pytest.fixture
async def app() -> AsyncGenerator[Pointsman, None]:
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as one:
        yield one


async def edited(app: Pointsman, text: str | JsonObject, *operations: JsonObject, name: str = "") -> Edited:
    given = text if isinstance(text, str) else json.dumps(text)
    return await edit(app.context, Workflow.parse(given, name=name), read_operations([*operations]))


async def test_an_edit_of_yaml_keeps_comments_quotes_and_layout(app: Pointsman) -> None:
    made = await edited(
        app,
        LETTER,
        {"op": "change_node", "node": "review", "set": {"/config/message": "Send this?"}},
        {
            "op": "add_node",
            "node": {"id": "stamp", "type": "transform", "config": {"operations": []}},
            "on": "review->send",
        },
    )
    text = made.source.document.text
    was, now = LETTER.splitlines(), text.splitlines()
    gone = [line for line in was if line not in now]
    assert gone == [
        "      message: 'Send it? {nodes.write.text}'",
        "  - {source: review, target: send, condition: {type: label, label: approve}}",
    ]
    for kept in ("# A letter, seen by a person.", "# shown in lists", "# Nobody sends what nobody saw.", "# once more"):
        assert kept in text
    assert "  - {source: review, target: stamp, condition: {type: label, label: approve}}" in now
    assert made.losses == ()
    assert made.source.definition.nodes_by_id.keys() == {"write", "review", "send", "stamp"}


async def test_an_edit_without_changes_keeps_the_text(app: Pointsman) -> None:
    for text in (LETTER, '{"id":"x","nodes":[{"id":"a","type":"end"}]}', '{\n    "id": "x",\n    "nodes": []\n}'):
        made = await edited(app, text)
        assert made.source.document.text == text
        assert made.changes == ()


async def test_json_keeps_its_indentation(app: Pointsman) -> None:
    before = {"id": "x", "nodes": [{"id": "a", "type": "end"}]}
    change: JsonObject = {"op": "change_workflow", "set": {"/name": "N"}}
    for shown in (
        json.dumps(before, indent=4),
        json.dumps(before, indent="\t"),
        json.dumps(before),
        json.dumps(before, separators=(",", ":")),
    ):
        made = await edited(app, shown, change)
        text = made.source.document.text
        assert text.startswith(shown[:20])
        assert json.loads(text) == {**before, "name": "N"}
        assert ("\n" in shown) == ("\n" in text.strip())


@pytest.mark.requirement("S4-43")
async def test_an_edit_lists_new_and_resolved_problems(app: Pointsman) -> None:
    broken = LETTER.replace("target: send", "target: sned")
    made = await edited(app, broken, {"op": "remove_node", "node": "write"})
    assert not made.ok
    assert {problem.code for problem in made.new} >= {"unknown-node-read"}
    assert "dangling-edge" not in {problem.code for problem in made.new}, "it was there before"
    mended = await edited(
        app,
        broken,
        {"op": "disconnect", "edge": "review->sned"},
        {"op": "connect", "edge": {"source": "review", "target": "send"}},
    )
    assert {problem.code for problem in mended.gone} >= {"dangling-edge"}
    assert mended.ok


@pytest.mark.parametrize("dialect", ["rows", "graph", "steps"])
async def test_a_document_stays_in_its_dialect_if_the_dialect_can_express_the_change(
    app: Pointsman, dialect: str
) -> None:
    path = next(iter(sorted((CORPUS / dialect).glob("*.json"))))
    original = json.loads(path.read_text(encoding="utf-8"))
    source = Workflow.parse(path.read_bytes(), name=path.stem)
    node = next(one for one in source.definition.nodes if one.type == "agent")
    made = await edit(
        app.context, source, read_operations([{"op": "change_node", "node": node.id, "set": {"/name": "Another name"}}])
    )
    assert made.source.read.dialect == dialect
    assert made.losses == ()
    assert made.source.definition.nodes_by_id[node.id].label == "Another name"
    assert _differences(original, made.source.original) <= 2


def _differences(one: Json, other: Json) -> int:
    if isinstance(one, dict) and isinstance(other, dict):
        return sum(_differences(one.get(key), other.get(key)) for key in {**one, **other})
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return sum(map(_differences, one, other))
    return int(one != other)


async def test_a_document_leaves_a_dialect_that_cannot_express_the_change_with_a_warning(app: Pointsman) -> None:
    path = next(iter(sorted((CORPUS / "plan").glob("*.json"))))
    source = Workflow.parse(path.read_bytes(), name="plan")
    first = source.definition.nodes[0].id
    wait: JsonObject = {"id": "rest", "type": "wait", "config": {"duration": "1h"}}
    made = await edit(app.context, source, read_operations([{"op": "add_node", "node": wait, "after": first}]))
    assert made.source.read.dialect == "native"
    assert "dialect-left" in {loss.code for loss in made.losses}
    assert made.source.definition.nodes_by_id.keys() >= {"rest", first}


async def test_json_loses_its_comments_with_a_warning(app: Pointsman) -> None:
    nodes = '"nodes": [{"id": "a", "type": "prompt", "config": {"prompt": "http://x // no comment"}}]'
    text = f'{{\n  "pointsman": 1, "id": "talk",\n  // Asks once.\n  {nodes},\n  "edges": [] /* none */\n}}\n'
    made = await edited(app, text, {"op": "change_workflow", "set": {"/name": "New"}})
    assert "Asks once" not in made.source.document.text
    assert [(one.code, one.line) for one in made.losses if one.code == "comments-lost"] == [("comments-lost", 3)]
    same = await edited(app, text)
    assert (same.source.document.text, same.losses) == (text, ())
    plain = await edited(app, made.source.document.text, {"op": "change_workflow", "set": {"/name": "Newer"}})
    assert plain.losses == (), "it has none any more"


async def test_older_keys_become_present_ones_with_a_warning(app: Pointsman) -> None:
    old: JsonObject = {
        "id": "old",
        "config": {"maxNodes": 5},
        "nodes": [{"id": "a", "type": "prompt", "config": {"prompt": "Hi"}}],
        "edges": [],
    }
    made = await edited(app, old, {"op": "change_workflow", "set": {"/name": "New"}})
    assert [loss.code for loss in made.losses] == ["rewritten-today"]
    assert made.source.definition.config is not None
    assert made.source.definition.config.limits is not None
    assert made.source.definition.config.limits.nodes == 5


async def test_an_unreadable_document_is_not_edited(app: Pointsman) -> None:
    with pytest.raises(WorkflowInvalid):
        await edited(app, "{broken", {"op": "remove_node", "node": "a"})


def bench(app: Pointsman, caller: Caller = LOCAL) -> Workbench:
    return Workbench(app.context, caller)


@pytest.mark.integration
@pytest.mark.requirement("S4-36", "S4-39", "S4-55")
async def test_revisions_are_edited_compared_and_reverted_across_restarts(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    change = read_operations([{"op": "change_node", "node": "review", "set": {"/config/message": "Fine?"}}])
    async with Pointsman(store, settings=Settings(delays=False), model="scripted") as app:
        await app.save(Workflow.parse(LETTER))
        shown = await bench(app).authoring.edit("letter", change)
        assert (shown["applied"], shown["revision"]) == (False, 1)
        assert len(await app.workflows("letter")) == 1, "showing saves nothing"
        applied = await bench(app).authoring.edit("letter", change, apply=True, revision=1)
        assert (applied["applied"], applied["revision"]) == (True, 2)
        with pytest.raises(RevisionMoved, match="revision 2"):
            await bench(app).authoring.edit("letter", change, apply=True, revision=1)
    async with Pointsman(store, settings=Settings(delays=False), model="scripted") as app:
        told = await bench(app).authoring.compare("letter")
        assert told["changes"] == [
            {"op": "change_node", "node": "review", "set": {"/config/message": "Fine?"}},
        ]
        assert "-      message: 'Send it? {nodes.write.text}'" in str(told["lines"])
        back = await bench(app).authoring.restore("letter", 1)
        assert back["revision"] == 3
        assert (await app.source("letter")).document.text == LETTER
        with pytest.raises(NoSuchRevision, match="no revision 9"):
            await bench(app).authoring.restore("letter", 9)


async def test_an_edit_with_errors_is_saved_only_as_a_draft(app: Pointsman) -> None:
    await app.save(Workflow.parse(LETTER))
    gone = read_operations([{"op": "remove_node", "node": "write"}])
    with pytest.raises(WorkflowInvalid):
        await bench(app).authoring.edit("letter", gone, apply=True)
    assert len(await app.workflows("letter")) == 1
    saved = await bench(app).authoring.edit("letter", gone, apply=True, draft=True)
    assert saved["revision"] == 2
    with pytest.raises(OperationRefused):
        await bench(app).authoring.edit("letter", gone, apply=True, draft=True)


async def test_authoring_verbs_require_their_role(app: Pointsman) -> None:
    await app.save(Workflow.parse(LETTER + "allowedGroups: [desk]\n"))
    viewer, stranger = Caller(name="vi", role="viewer", groups=("desk",)), Caller(name="st", role="editor")
    gone = read_operations([{"op": "remove_node", "node": "write"}])
    for caller, seen in ((viewer, ["letter"]), (stranger, [])):
        page = await bench(app, caller).workflows.list(built_in=False)
        assert [entry["id"] for entry in page["workflows"]] == seen
    refused = (
        bench(app, viewer).workflows.save(Workflow.parse(LETTER)),
        bench(app, viewer).authoring.edit("letter", gone, apply=True),
        bench(app, viewer).workflows.delete("letter"),
        bench(app, viewer).authoring.restore("letter", 1),
        bench(app, viewer).start("letter", {"goal": "x"}),
    )
    for work in refused:
        with pytest.raises(NotAllowed):
            await work
    hidden = (
        bench(app, stranger).authoring.describe("letter"),
        bench(app, stranger).authoring.edit("letter", gone),
        bench(app, stranger).workflows.delete("letter"),
        bench(app, stranger).start("letter", {"goal": "x"}),
    )
    for work in hidden:
        with pytest.raises(UnknownWorkflow):
            await work
    with pytest.raises(IdTaken):
        await bench(app, stranger).workflows.save(Workflow.parse(LETTER))
    assert len(await app.workflows("letter")) == 1
