"""Templates: the catalogue, trials with their scripts, and copies."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.auth.audit import AUDIT
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.sharing import sharing_of
from pointsman.authoring.templates import UnknownTemplate, template, templates
from pointsman.workflows.builtin import BuiltIn, examples_directory
from pointsman.workflows.revisions import WorkflowExists

EDITOR = Caller(name="ada", role="editor")
VIEWER = Caller(name="vic", role="viewer")
README = Path("docs/cookbook/README.md")


@pytest.fixture
async def app() -> AsyncGenerator[Pointsman]:
    async with Pointsman(store="memory:") as opened:
        yield opened


def test_every_recipe_is_a_template_with_the_texts_of_the_cookbook() -> None:
    folders = {path.name for path in (examples_directory() / "cookbook").iterdir() if path.is_dir()}
    assert folders <= templates().keys()
    readme = README.read_text("utf-8")
    for name in sorted(folders):
        one = template(name)
        assert f"| [{one.name['en']}]({name}.md) | {one.description['en']} |" in readme, name


def test_every_template_has_texts_in_both_languages_and_tags() -> None:
    assert len(templates()) > 20
    for one in templates().values():
        assert {"en", "de"} == one.name.keys() == one.description.keys(), one.id
        assert one.tags, one.id
        assert all(needed in templates() for needed in one.needs), one.id


@pytest.mark.parametrize("name", templates())
async def test_a_template_ends_offline_with_its_script_and_sample(app: Pointsman, name: str) -> None:
    run = await app.acting_as(EDITOR).templates.try_out(name)
    assert (run.status, run.output is None) == ("completed", False)


async def test_a_trial_takes_another_input_and_stores_nothing(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    run = await session.templates.try_out("triage-support", {"request": "I want my money back"})
    assert run.path == ["classify", "route", "refund", "paid"]
    assert (await session.executions.list())["executions"] == []
    assert (await session.workflows.list(built_in=False))["workflows"] == []


async def test_a_copy_belongs_to_the_caller_and_gets_a_free_id(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    saved = [(await session.templates.use("triage-support"))["id"] for _ in range(2)]
    assert saved == ["triage-support", "triage-support-2"]
    assert (await sharing_of(app.context, "triage-support")).owner == "ada"
    text = (await session.workflows.source("triage-support-2")).document.text
    assert text == template("triage-support").source.document.text.replace("id: triage-support", "id: triage-support-2")
    entries, _ = await app.context[AUDIT].page(who="ada", limit=10)
    assert entries[0]["target"] == "name=triage-support, id=triage-support-2, revision=1"


async def test_a_copy_brings_the_workflows_that_it_calls(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    await session.templates.use("reuse-a-workflow", "digest")
    listed = (await session.workflows.list(built_in=False))["workflows"]
    assert [one["id"] for one in listed] == ["digest", "summarize-long-text"]


async def test_a_copy_under_a_taken_id_is_refused(app: Pointsman) -> None:
    session = app.acting_as(EDITOR)
    await session.templates.use("debate", "mine")
    with pytest.raises(WorkflowExists):
        await session.templates.use("debate", "mine")
    with pytest.raises(BuiltIn):
        await session.templates.use("debate", "builtin:mine")


async def test_a_viewer_sees_templates_but_copies_and_runs_none(app: Pointsman) -> None:
    session = app.acting_as(VIEWER)
    assert (await session.templates.read("debate"))["input"] == template("debate").input
    with pytest.raises(NotAllowed):
        await session.templates.try_out("debate")
    with pytest.raises(NotAllowed):
        await session.templates.use("debate")


async def test_an_unknown_template_suggests_a_similar_one(app: Pointsman) -> None:
    with pytest.raises(UnknownTemplate) as caught:
        await app.acting_as(VIEWER).templates.read("debatte")
    assert "debate" in (caught.value.hint or "")
