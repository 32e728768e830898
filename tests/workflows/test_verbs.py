"""Every verb of workflows, agents and tools: its role, its answers to strangers, and its audit entry."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.audit import AUDIT
from pointsman.auth.callers import ROLES, Caller, NotAllowed
from pointsman.auth.policy import IdTaken
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.auth.verbs import VerbRule, Verbs, rules_in
from pointsman.session import Session
from pointsman.settings import Settings
from pointsman.store.errors import RevisionMoved
from pointsman.values import JsonObject
from pointsman.workflows.agent_verbs import AgentVerbs
from pointsman.workflows.agents import AgentTaken, NoSuchAgent
from pointsman.workflows.formulas import Formula
from pointsman.workflows.revisions import etag_of_revision
from pointsman.workflows.tool_connection_changes import ToolConnectionRequest
from pointsman.workflows.tool_verbs import ToolVerbs, UnknownTool
from pointsman.workflows.tools import WorkflowTools
from pointsman.workflows.verbs import WorkflowVerbs

LETTER: Final = "pointsman: 1\nid: letter\nnodes: [{id: say, type: agent, config: {prompt: Say}}]\n"
WRITER: Final[JsonObject] = {"system": "You write."}
DENIED: Final = (NotAllowed, UnknownWorkflow, NoSuchAgent, UnknownTool, IdTaken, AgentTaken)
Call = Callable[[Session], Awaitable[Any]]

DOCUMENT: Final = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://links.example.invalid"}],
    "paths": {"/links": {"get": {"operationId": "follow", "summary": "Follow a link."}}},
}
LINKS: Final = ToolConnectionRequest(kind="openapi", document=json.dumps(DOCUMENT), tools=("follow",))
CALLS: Final[dict[str, Call]] = {
    "WorkflowVerbs.list": lambda s: s.workflows.list(),
    "WorkflowVerbs.ids": lambda s: s.workflows.ids(),
    "WorkflowVerbs.pipeline": lambda s: s.workflows.pipeline(),
    "WorkflowVerbs.versions": lambda s: s.workflows.versions("letter"),
    "WorkflowVerbs.source": lambda s: s.workflows.source("letter"),
    "WorkflowVerbs.read": lambda s: s.workflows.read("letter"),
    "WorkflowVerbs.convert_saved": lambda s: s.workflows.convert_saved("letter", "rows"),
    "WorkflowVerbs.diff": lambda s: s.workflows.diff("letter"),
    "WorkflowVerbs.check": lambda s: s.workflows.check(Workflow(LETTER)),
    "WorkflowVerbs.tools": lambda s: s.workflows.tools(
        WorkflowTools(s.workflows.app.store.workflows, s.workflows.app.store.entries)
    ),
    "WorkflowVerbs.convert": lambda s: s.workflows.convert(Workflow(LETTER), "rows"),
    "WorkflowVerbs.check_formula": lambda s: s.workflows.check_formula(Formula("1", "expression")),
    "WorkflowVerbs.evaluate_formula": lambda s: s.workflows.evaluate_formula(Formula("1", "expression"), {}),
    "WorkflowVerbs.save": lambda s: s.workflows.save(Workflow(LETTER.replace("Say", "Tell"))),
    "WorkflowVerbs.replace": lambda s: s.workflows.replace("letter", Workflow(LETTER)),
    "WorkflowVerbs.patch": lambda s: s.workflows.patch("letter", {"name": "Letter"}),
    "WorkflowVerbs.clone": lambda s: s.workflows.clone("letter", "copy"),
    "WorkflowVerbs.publish": lambda s: s.workflows.publish("letter", "First"),
    "WorkflowVerbs.unpublish": lambda s: s.workflows.unpublish("letter"),
    "WorkflowVerbs.delete": lambda s: s.workflows.delete("letter"),
    "AgentVerbs.list": lambda s: s.agents.list(limit=10),
    "AgentVerbs.versions": lambda s: s.agents.versions("writer", limit=10),
    "AgentVerbs.read": lambda s: s.agents.read("writer"),
    "AgentVerbs.uses": lambda s: s.agents.uses("writer"),
    "AgentVerbs.save": lambda s: s.agents.save("writer", {"system": "You write well."}),
    "AgentVerbs.replace": lambda s: s.agents.replace("writer", WRITER),
    "AgentVerbs.delete": lambda s: s.agents.delete("writer"),
    "ToolVerbs.list": lambda s: s.tools.list(limit=10),
    "ToolVerbs.read": lambda s: s.tools.read("workflow__letter"),
    "ToolVerbs.inspect": lambda s: s.tools.inspect(),
    "ToolVerbs.try_tool": lambda s: s.tools.try_tool("workflow__letter", {}),
    "ToolVerbs.connections": lambda s: s.tools.connections(),
    "ToolVerbs.try_connection": lambda s: s.tools.try_connection("links", LINKS),
    "ToolVerbs.connect": lambda s: s.tools.connect("links", LINKS),
    "ToolVerbs.disconnect": lambda s: s.tools.disconnect("posts"),
}
RULES: Final[dict[str, VerbRule]] = {
    rule.name: rule for verbs in (WorkflowVerbs, AgentVerbs, ToolVerbs) for rule in rules_in(verbs).values()
}
OPEN: Final = {
    "WorkflowVerbs.list",
    "WorkflowVerbs.pipeline",
    "WorkflowVerbs.tools",
    "WorkflowVerbs.check",
    "WorkflowVerbs.convert",
    "WorkflowVerbs.check_formula",
    "WorkflowVerbs.evaluate_formula",
    "AgentVerbs.list",
    "ToolVerbs.list",
}
"""Verbs without an object: a stranger may call them, and sees no object of the owner."""
ENTRIES: Final = {
    "WorkflowVerbs.save": "id=letter, revision=2",
    "WorkflowVerbs.replace": "workflow=letter",
    "WorkflowVerbs.patch": "workflow=letter",
    "WorkflowVerbs.clone": "workflow=letter, new=copy, revision=1",
    "WorkflowVerbs.publish": "workflow=letter, name=First",
    "WorkflowVerbs.unpublish": "workflow=letter",
    "WorkflowVerbs.delete": "workflow=letter",
    "AgentVerbs.save": "name=writer, revision=2",
    "AgentVerbs.replace": "name=writer",
    "AgentVerbs.delete": "name=writer",
    "ToolVerbs.try_tool": "name=workflow__letter",
    "ToolVerbs.try_connection": "name=links",
    "ToolVerbs.connect": "name=links",
    "ToolVerbs.disconnect": "name=posts",
}
"""Targets in the audit log."""


def person(name: str, role: Any = "editor") -> Caller:
    return Caller(name=name, role=role)


@pytest.fixture
async def app() -> AsyncGenerator[Pointsman, None]:
    """An app in which ann owns a private workflow and a private agent."""
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as made:
        ann = made.acting_as(person("ann"))
        await ann.workflows.save(Workflow(LETTER))
        await ann.sharing.share_workflow("letter", "private")
        await ann.agents.save("writer", {**WRITER})
        await ann.sharing.share_agent("writer", "private")
        await made.acting_as(person("chief", "admin")).tools.connect("posts", LINKS)
        yield made


async def entries(app: Pointsman, who: str) -> list[Any]:
    found, _ = await app.context[AUDIT].page(who=who, limit=100)
    return found


def test_each_verb_is_called_here() -> None:
    assert CALLS.keys() == RULES.keys()
    assert ENTRIES.keys() == {name for name, rule in RULES.items() if rule.audit}


@pytest.mark.parametrize("name", CALLS)
async def test_each_verb_requires_its_role_and_audits_a_refusal(app: Pointsman, name: str) -> None:
    rule = RULES[name]
    for role in ROLES[: ROLES.index(rule.role)]:
        with pytest.raises(NotAllowed, match=rule.what):
            await CALLS[name](app.acting_as(person("ann", role)))
    refused = [one["refused"] for one in await entries(app, "ann") if one["what"] == name and one["refused"]]
    assert refused == (["not-allowed"] * ROLES.index(rule.role) if rule.audit else [])


@pytest.mark.parametrize("name", CALLS)
async def test_each_verb_hides_its_object_from_other_users(app: Pointsman, name: str) -> None:
    stranger = app.acting_as(person("eve"))
    if name in OPEN:
        assert "ann" not in str(await CALLS[name](stranger))
        return
    with pytest.raises(DENIED) as refused:
        await CALLS[name](stranger)
    assert "ann" not in str(refused.value)
    recorded = [(one["what"], one["refused"]) for one in await entries(app, "eve")]
    assert recorded == ([(name, getattr(refused.value, "code", ""))] if RULES[name].audit else [])


@pytest.mark.parametrize("name", ENTRIES)
async def test_each_verb_writes_one_audit_entry(app: Pointsman, name: str) -> None:
    root = Caller(name="root", role="admin")
    await CALLS[name](app.acting_as(root))
    assert [(one["what"], one["target"], one["refused"]) for one in await entries(app, "root")] == [
        (name, ENTRIES[name], None)
    ]


async def test_the_audit_entry_names_the_operation_of_the_interface(app: Pointsman) -> None:
    root = Caller(name="root", role="admin")
    put = app.acting_as(root, via="PUT /api/workflows/{id}/sharing", target="id=letter", origin="10.0.0.7")
    await put.sharing.share_workflow("letter", "everyone")
    (found,) = await entries(app, "root")
    said = (found["what"], found["target"], found["origin"])
    assert said == ("PUT /api/workflows/{id}/sharing", "id=letter", "10.0.0.7")


async def test_only_the_owner_shares_and_deletes(app: Pointsman) -> None:
    await app.acting_as(person("ann")).sharing.share_workflow("letter", "everyone")
    ben = app.acting_as(person("ben"))
    for work in (ben.sharing.share_workflow("letter", "private"), ben.workflows.delete("letter")):
        with pytest.raises(NotAllowed, match="belongs to 'ann'"):
            await work
    saved = await ben.workflows.replace("letter", Workflow(LETTER.replace("Say", "Tell")))
    assert saved["revision"] == 2, "an editor of the audience changes it"


async def test_a_write_over_an_unread_revision_is_refused(app: Pointsman) -> None:
    ann = app.acting_as(person("ann"))
    read = etag_of_revision(await ann.workflows.read("letter"))
    await ann.workflows.replace("letter", Workflow(LETTER.replace("Say", "Tell")), match=read)
    for work in (
        ann.workflows.replace("letter", Workflow(LETTER), match=read),
        ann.workflows.patch("letter", {"name": "L"}, match=read),
        ann.workflows.delete("letter", match=read),
        ann.sharing.share_workflow("letter", "everyone", match='"other"'),
        ann.agents.replace("writer", {**WRITER}, match='"9"'),
    ):
        with pytest.raises(RevisionMoved):
            await work


def test_verbs_have_no_public_method_without_a_rule() -> None:
    for verbs in (WorkflowVerbs, AgentVerbs, ToolVerbs):
        assert issubclass(verbs, Verbs)
        assert {name for name in vars(verbs) if not name.startswith("_")} == set(rules_in(verbs))
