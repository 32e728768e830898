"""Every verb of authoring: its role, its answers to strangers, and its audit entry."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.audit import AUDIT
from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.auth.verbs import VerbRule, rules_in
from pointsman.authoring.design import DesignModelMissing
from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.session import Session
from pointsman.settings import Settings
from pointsman.workflows.agents import NoSuchAgent

LETTER: Final = "pointsman: 1\nid: letter\nnodes: [{id: say, type: agent, config: {prompt: Say}}]\n"
CHANGE: Final = read_operations([{"op": "change_node", "node": "say", "set": {"/config/prompt": "Tell"}}])
Call = Callable[[Session], Awaitable[Any]]
CALLS: Final[dict[str, Call]] = {
    "describe": lambda s: s.authoring.describe("letter"),
    "compare": lambda s: s.authoring.compare("letter"),
    "design": lambda s: s.authoring.design("A letter.", name="letter"),
    "edit": lambda s: s.authoring.edit("letter", CHANGE, apply=True),
    "edit_by_words": lambda s: s.authoring.edit_by_words("letter", "Better."),
    "restore": lambda s: s.authoring.restore("letter", 1),
    "try_agent": lambda s: s.authoring.try_agent("writer", "Hello"),
    "try_workflow": lambda s: s.authoring.try_workflow("letter", {}, {"until": ["say"]}),
}
RULES: Final[dict[str, VerbRule]] = rules_in(AuthoringVerbs)
ENTRIES: Final = {
    "design": ("name=letter", "design-model-missing"),
    "edit": ("workflow=letter, revision=2", None),
    "edit_by_words": ("workflow=letter", "design-model-missing"),
    "restore": ("workflow=letter, revision=1", None),
    "try_agent": ("name=writer", None),
    "try_workflow": ("workflow=letter", None),
}
"""Target in the audit log, and the error code: this app has no model that designs."""


@pytest.fixture
async def app() -> AsyncGenerator[Pointsman, None]:
    """An app in which ann owns a private workflow and a private agent."""
    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as made:
        ann = made.acting_as(Caller(name="ann", role="editor"))
        await ann.workflows.save(Workflow(LETTER))
        await ann.sharing.share_workflow("letter", "private")
        await ann.agents.save("writer", {"system": "You write."})
        await ann.sharing.share_agent("writer", "private")
        yield made


async def entries(app: Pointsman, who: str) -> list[Any]:
    found, _ = await app.context[AUDIT].page(who=who, limit=100)
    return found


def test_each_verb_is_called_here() -> None:
    assert CALLS.keys() == RULES.keys()
    assert ENTRIES.keys() == {name for name, rule in RULES.items() if rule.audit}


@pytest.mark.parametrize("name", ENTRIES)
async def test_operators_may_not_write_and_their_attempt_is_audited(app: Pointsman, name: str) -> None:
    with pytest.raises(NotAllowed, match="may not write workflows"):
        await CALLS[name](app.acting_as(Caller(name="op", role="operator")))
    assert [(one["what"], one["refused"]) for one in await entries(app, "op")] == [(RULES[name].name, "not-allowed")]


@pytest.mark.parametrize("name", [name for name in CALLS if name != "design"])
async def test_each_verb_hides_its_object_from_other_users(app: Pointsman, name: str) -> None:
    with pytest.raises((UnknownWorkflow, NoSuchAgent)):
        await CALLS[name](app.acting_as(Caller(name="eve", role="editor")))


@pytest.mark.parametrize("name", ENTRIES)
async def test_each_verb_writes_one_audit_entry(app: Pointsman, name: str) -> None:
    with suppress(DesignModelMissing):
        await CALLS[name](app.acting_as(Caller(name="root", role="admin")))
    target, refused = ENTRIES[name]
    (found,) = await entries(app, "root")
    assert (found["what"], found["refused"]) == (RULES[name].name, refused)
    assert found["target"].startswith(target)


async def test_a_previewed_edit_is_not_audited(app: Pointsman) -> None:
    root = app.acting_as(Caller(name="root", role="admin"))
    assert not (await root.authoring.edit("letter", CHANGE))["applied"]
    assert await entries(app, "root") == []
