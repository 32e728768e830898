"""Named versions: the published revision runs by id, later ones are drafts; without one the newest revision runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.definition.problems import WorkflowInvalid
from pointsman.session import Session
from pointsman.values import Json, JsonObject
from pointsman.workflows.library import Disabled
from pointsman.workflows.revisions import NoSuchRevision, delete_workflow
from pointsman.workflows.tools import WorkflowTools
from pointsman.workflows.versions import VersionInvalid, VersionNameTaken
from tests.installation import HandClock, noting, opened
from tests.scenarios import installation, written

ADA = Caller(name="ada", role="editor", groups=("desk",))
OPERATOR = Caller(name="op", role="operator")


def word(text: str, **more: Json) -> Workflow:
    """A workflow that returns a word."""
    node: Json = {"id": "say", "type": "transform", "config": {"set": {"said": f"'{text}'"}}}
    return written({"id": "word", "nodes": [node], "edges": [], "output": {"said": "said"}, **more})


@pytest.fixture(params=["memory", "sqlite"])
async def app(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Pointsman, None]:
    async with installation(store="memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'a.db'}") as app:
        yield app


@pytest.fixture
def ada(app: Pointsman) -> Session:
    return app.acting_as(ADA)


async def said(app: Pointsman, reference: str = "word") -> Any:
    execution = await app.start(reference)
    await execution.settled()
    output: Any = await execution.output()
    return output["said"]


async def entry(session: Session, workflow: str = "word") -> Any:
    return next(one for one in (await session.workflows.list())["workflows"] if one["id"] == workflow)


async def test_a_workflow_that_was_never_published_runs_its_newest_revision(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.save(word("two"))
    assert await said(app) == "two"
    listed = await entry(ada)
    assert (listed["published"], listed["label"]) == (None, None)


async def test_later_revisions_are_drafts_until_one_is_published(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    made = await ada.workflows.publish("word", "First", note="It begins.")
    assert (made["revision"], made["name"], made["note"], made["namedBy"]) == (1, "First", "It begins.", "ada")
    await ada.workflows.save(word("two"))
    assert await said(app) == "one", "the draft does not run by id"
    assert await said(app, "word@2") == "two", "the draft can be tried"
    listed = await entry(ada)
    assert (listed["revision"], listed["published"]["name"], listed["label"]) == (2, "First", None)
    assert (await ada.workflows.source("word")).document.text.count("two"), "the editor reads the draft"
    await ada.workflows.publish("word", "Second")
    assert await said(app) == "two"
    names = [one["label"] and one["label"]["name"] for one in (await ada.workflows.versions("word"))["workflows"]]
    assert names == ["Second", "First"]


async def test_an_earlier_version_is_published_again_and_renamed_by_its_revision(app: Pointsman, ada: Session) -> None:
    for text, name in (("one", "First"), ("two", "Second")):
        await ada.workflows.save(word(text))
        await ada.workflows.publish("word", name)
    await ada.workflows.publish("word", "First, again", revision=1)
    assert await said(app) == "one"
    assert [one["label"] and one["label"]["name"] for one in (await ada.workflows.versions("word"))["workflows"]] == [
        "Second",
        "First, again",
    ]


async def test_unpublishing_lets_the_newest_revision_run_and_keeps_names(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.publish("word", "First")
    await ada.workflows.save(word("two"))
    await ada.workflows.unpublish("word")
    await ada.workflows.unpublish("word")
    assert await said(app) == "two"
    assert [one["label"] and one["label"]["name"] for one in (await ada.workflows.versions("word"))["workflows"]] == [
        None,
        "First",
    ]


async def test_sub_workflows_and_tools_use_the_published_version(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one", description="The first one."))
    await ada.workflows.publish("word", "First")
    await ada.workflows.save(word("two", description="The second one."))
    call: Json = {"id": "call", "type": "workflow", "config": {"workflow": "word"}}
    await ada.workflows.save(written({"id": "outer", "nodes": [call], "edges": [], "output": {"said": "call.said"}}))
    execution = await app.start("outer")
    await execution.settled()
    pins = execution.state.setup.options["pins"]
    assert isinstance(pins, dict)
    assert isinstance(pins["word"], dict)
    assert pins["word"]["revision"] == 1
    specs = await ada.workflows.tools(WorkflowTools(app.store.workflows, app.store.entries))
    assert {spec.description for spec in specs if spec.workflow == "word"} == {"The first one."}


async def test_operators_start_the_published_version_and_no_draft(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.publish("word", "First")
    await ada.workflows.save(word("two"))
    operator = app.acting_as(OPERATOR)
    assert (await operator.executions.start("word")).state.setup.options["revision"] == 1
    assert (await operator.executions.start("word@1")).state.setup.options["revision"] == 1
    with pytest.raises(NotAllowed, match="may not run revision 2 of 'word'"):
        await operator.executions.start("word@2")
    with pytest.raises(NotAllowed):
        await operator.workflows.publish("word", "Mine")


async def test_both_the_newest_and_the_published_revision_must_admit_a_caller(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one", allowedGroups=["desk"]))
    await ada.workflows.publish("word", "First")
    await ada.workflows.save(word("two"))
    operator = app.acting_as(OPERATOR)
    with pytest.raises(UnknownWorkflow):
        await operator.executions.start("word")
    assert (await operator.workflows.list(built_in=False))["workflows"] == []
    with pytest.raises(UnknownWorkflow):
        await app.acting_as(Caller(name="eve", role="editor")).workflows.publish("word", "Hers", revision=1)
    assert (await entry(ada))["published"]["name"] == "First"


async def test_what_cannot_run_is_not_published(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    call: Json = {"id": "call", "type": "workflow", "config": {"workflow": "missing"}}
    await ada.workflows.save(written({"id": "word", "nodes": [call], "edges": []}), draft=True)
    with pytest.raises(WorkflowInvalid):
        await ada.workflows.publish("word", "Broken")
    await ada.workflows.save(word("three", enabled=False))
    with pytest.raises(Disabled):
        await ada.workflows.publish("word", "Off")
    with pytest.raises(NoSuchRevision):
        await ada.workflows.publish("word", "Later", revision=9)
    with pytest.raises(UnknownWorkflow):
        await ada.workflows.publish("nobody", "First")


async def test_a_newest_revision_that_is_disabled_stops_the_published_one(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.publish("word", "First")
    await ada.workflows.patch("word", {"enabled": False})
    with pytest.raises(Disabled):
        await app.start("word")


@pytest.mark.parametrize("name", ["", " ", " First", "a\nb", "x" * 101])
async def test_names_of_versions_are_short_and_printable(app: Pointsman, ada: Session, name: str) -> None:
    await ada.workflows.save(word("one"))
    with pytest.raises(VersionInvalid):
        await ada.workflows.publish("word", name)


async def test_a_name_belongs_to_one_revision(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.publish("word", "First")
    await ada.workflows.save(word("two"))
    with pytest.raises(VersionNameTaken, match="revision 1 already has the name 'First'"):
        await ada.workflows.publish("word", "First")
    assert await said(app) == "one"


async def test_concurrent_publications_lose_no_name(app: Pointsman, ada: Session) -> None:
    for number in range(5):
        await ada.workflows.save(word(f"n{number}"))
    await asyncio.gather(*(ada.workflows.publish("word", f"v{n}", revision=n) for n in range(1, 6)))
    labels = [one["label"] for one in (await ada.workflows.versions("word"))["workflows"]]
    assert [label and label["name"] for label in labels] == ["v5", "v4", "v3", "v2", "v1"]


async def test_a_deleted_workflow_does_not_run_and_returns_unpublished(app: Pointsman, ada: Session) -> None:
    await ada.workflows.save(word("one"))
    await ada.workflows.publish("word", "First")
    await delete_workflow(app.context, "word")
    with pytest.raises(UnknownWorkflow):
        await app.start("word")
    await ada.workflows.save(word("two"))
    assert await said(app) == "two"


@pytest.mark.integration
async def test_triggers_of_a_draft_are_not_in_effect(tmp_path: Path) -> None:
    daily: JsonObject = {"id": "morning", "type": "schedule", "cron": "0 7 * * *"}
    async with opened(tmp_path, HandClock()) as app:
        local = app.acting_as(Caller(name="ada", role="admin", entrance="shell"))
        await app.save(noting(triggers=[daily]))
        await local.workflows.publish("report", "At seven")
        due = await app.triggers.scheduler.next_due()
        await app.save(noting(triggers=[{**daily, "cron": "0 9 * * *"}]))
        assert await app.triggers.scheduler.next_due() == due, "the draft changes no schedule"
        await local.workflows.publish("report", "At nine")
        later = await app.triggers.scheduler.next_due()
        assert later == (due or 0) + 7200
        await app.save(noting(triggers=[daily], enabled=False))
        assert await app.triggers.scheduler.next_due() is None, "switching it off works at once"
        await app.save(noting(triggers=[daily]))
        assert await app.triggers.scheduler.next_due() == later
        await local.workflows.unpublish("report")
        assert await app.triggers.scheduler.next_due() == due
