"""Authorization policy: what callers may see. Only verbs and domains call it; faces call verbs.

    a workflow     its groups (from the document), its sharing (set by its owner) and the sharing of its folders all
                   admit the caller
    an execution   the person who started it, and everybody who may see its workflow, by the groups of the definition
                   that it runs on; a turn of a conversation: as its session
    a gate         as its execution; also the people it names, or members of a group it names: they read the execution
                   and answer, and no more
    a session      the person who started it
    a tool         a tool that is a workflow: as the workflow; every other tool: everybody
    an agent       its sharing admits the caller
    memory         as its owner: an execution, a session, a person, a workflow; shared memory: everybody

Admins see everything. Only admins see what cannot be read any more. A caller who may not see a thing gets the same
answer as for one that does not exist. An execution that acts for several people sees what all of them see.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final, NamedTuple

from msgspec import structs

from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.sharing import is_shared_with
from pointsman.auth.subjects import (
    DEFINITIONS,
    DefinitionMissing,
    UnknownWorkflow,
    check_session,
    is_conversational,
    unknown_session,
)
from pointsman.context import AppContext, Part
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.errors import AuthorError, CallerError
from pointsman.runtime.local import unknown_execution
from pointsman.store.records import ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.values import ExecutionId


class Nature(NamedTuple):
    """Properties of a definition that determine who may see its executions."""

    groups: tuple[str, ...]
    conversational: bool


class IdTaken(CallerError):
    """The id cannot be used: it belongs, or belonged, to something that the caller may not see."""

    code: ClassVar[str] = "id-taken"


UNKNOWN: Final = Nature(("\0",), conversational=True)
"""For definitions that cannot be read any more, so that their owner is unknown: no key has this group, and admins need
none."""
NATURES_MAX: Final = 10_000
INBOX_PAGE: Final = 200

NATURES: Final = Part[dict[str, Nature]]("natures", lambda _: {})
"""By `id@revision` or the digest of a definition, which never change."""


async def visible(app: AppContext, caller: Caller, reference: str) -> bool:
    """Return whether the caller may see and use a saved workflow; by id, both the newest and the published revision
    must admit the caller. Raises `UnknownWorkflow`."""
    if caller.role == "admin":
        return True
    if not await is_shared_with(app, caller, reference):
        return False
    if not caller.is_among((await _nature_of(app, reference)).groups):
        return False
    published = 0 if "@" in reference else await app[DEFINITIONS].published(reference)
    return not published or caller.is_among((await _nature_of(app, f"{reference}@{published}")).groups)


async def sees_entry(app: AppContext, caller: Caller, workflow: str, revisions: Collection[int]) -> bool:
    """Return whether a workflow is listed, of which the list shows these revisions: they never change, and so are read
    once."""
    return all([await visible(app, caller, f"{workflow}@{revision}") for revision in revisions])


async def sees_workflow(app: AppContext, caller: Caller, reference: str) -> bool:
    """Return whether there is such a workflow for the caller: False for a missing one and for a hidden one.

    The groups of the latest revision apply to earlier ones too, so that a restriction cannot be avoided by `id@1`.
    """
    try:
        if not await visible(app, caller, reference):
            return False
        await app[DEFINITIONS].found(reference)
        workflow, _, revision = reference.partition("@")
        latest = await _nature_of(app, workflow) if revision and caller.role != "admin" else UNKNOWN
    except UnknownWorkflow:
        return False
    return latest is UNKNOWN or caller.is_among(latest.groups)


async def must_see_workflow(app: AppContext, caller: Caller, reference: str) -> None:
    """Raise `UnknownWorkflow` for a workflow that does not exist and for one that the caller may not see."""
    if not await sees_workflow(app, caller, reference):
        raise app[DEFINITIONS].unknown(reference)


async def id_must_be_free(app: AppContext, caller: Caller, workflow: str) -> None:
    """Raise `IdTaken` where a workflow of this id exists, now or before it was deleted, that the caller may not see."""
    if caller.role == "admin":
        return
    try:
        if await visible(app, caller, workflow):
            return
    except UnknownWorkflow:  # It is shared with the caller, or new.
        return
    raise IdTaken(f"the id {workflow!r} is taken", hint="Choose another id.")


async def sees_agent(app: AppContext, caller: Caller, name: str) -> bool:
    """Return whether the caller may see and use a saved agent, where there is one of this name."""
    return caller.role == "admin" or await is_shared_with(app, caller, name, "agent")


async def sees_tool(app: AppContext, caller: Caller, name: str) -> bool:
    """Return whether there is such a tool for the caller. Tools other than workflows are there for everybody."""
    if app.tools.origin(name) == "function":
        return True  # Its schema is computed on access, and lists check every tool.
    spec = app.tools.find(name)
    return spec is None or not spec.workflow or await sees_workflow(app, caller, spec.workflow)


async def must_see(app: AppContext, caller: Caller, execution: str) -> None:
    """Raise `UnknownExecution` for an execution that does not exist and for one that the caller may not see.

    A person whom one of its open gates asks by name, or by a group, sees it too.
    """
    name = ExecutionId(execution)
    if caller.role == "admin":
        if not await app.runtime.journal.last(name):
            raise unknown_execution(execution)
        return
    summary = await app.store.executions.find(name)
    # The journal is not read for other callers: it may be long, and clients poll.
    if summary is None:
        raise unknown_execution(execution)
    if await sees(app, caller, summary):
        return
    if not caller.is_among((await _nature_of_execution(app, summary)).groups):
        raise unknown_execution(execution)
    if not await _is_asked(app, caller, name):
        raise unknown_execution(execution)


async def must_see_if_stored(app: AppContext, caller: Caller, execution: str) -> None:
    """Raise as `must_see` does, for a verb that reads the journal next, which itself raises `UnknownExecution` if the
    journal is empty. For admins, who see every execution, this reads nothing."""
    if caller.role != "admin":
        await must_see(app, caller, execution)


async def must_control(app: AppContext, caller: Caller, execution: str) -> None:
    """Raise as `must_see` does, and `NotAllowed` if the caller may not control, fork, stop or export an execution
    because the caller sees it only as a person whom one of its gates asks."""
    await must_see(app, caller, execution)
    if not await sees_execution(app, caller, execution):
        raise NotAllowed(
            f"{execution!r} may read and answer a gate of the execution {caller.name!r}, but has no "
            "access to the execution itself",
            hint="Ask the person who started it, or an admin.",
        )


async def must_run(app: AppContext, caller: Caller, execution: str) -> None:
    """Raise as `must_control` does, and `NotAllowed` if the workflow of the execution is not shared with the caller any
    more: the person who started an execution always sees it, but may not run further steps of it."""
    await must_control(app, caller, execution)
    summary = await app.store.executions.find(ExecutionId(execution))
    if summary is None or caller.role == "admin":
        return
    nature = await _nature_of_execution(app, summary)
    if not (caller.is_among(nature.groups) and await is_shared_with(app, caller, summary.workflow)):
        raise NotAllowed(
            f"the workflow {summary.workflow!r} of {execution!r} is not shared with {caller.name!r} any more",
            hint="Ask its owner, or an admin.",
        )


async def must_see_with_children(app: AppContext, caller: Caller, execution: str) -> None:
    """Raise as `must_control` does, and `NotAllowed` if a child execution is hidden from the caller."""
    await must_control(app, caller, execution)
    if not all([await sees_execution(app, caller, child) for child in await with_children(app, execution)]):
        raise NotAllowed(
            f"the execution {execution!r} called workflows that are not shared with {caller.name!r}",
            hint="Ask an admin to do it.",
        )


async def with_children(app: AppContext, execution: str) -> list[str]:
    """Return the id of an execution and of all its descendants."""
    executions = [execution]
    for one in executions:  # The list grows during the loop.
        query = ExecutionQuery(parent=ExecutionId(one), limit=INBOX_PAGE)
        while page := await app.store.executions.list(query):
            executions += [child.execution for child in page]
            query = structs.replace(query, before=(page[-1].started, page[-1].execution))
    return executions


async def sees(app: AppContext, caller: Caller, summary: Summary) -> bool:
    """Return whether an execution is listed. This depends on the definition it runs on, so it also holds after its
    workflow was changed or deleted. A child execution is visible to callers who see it and all its ancestors."""
    if caller.role == "admin":
        return True
    if caller.parties:
        return all([await sees(app, party, summary) for party in caller.parties])
    while True:
        if not await _sees_one(app, caller, summary):
            return False
        if summary.parent is None:
            return True
        above = await app.store.executions.find(summary.parent)
        if above is None:
            return False
        summary = above


async def sees_gate(app: AppContext, caller: Caller, summary: Summary, gate: GateEntry) -> bool:
    """Return whether an open gate is listed; `summary` is of the execution that a person started."""
    if await sees(app, caller, summary):
        return True
    return _names(gate, caller) and caller.is_among((await _nature_of_execution(app, summary)).groups)


async def sees_session(app: AppContext, caller: Caller, session: str) -> bool:
    """Return whether a session belongs to the caller or to no caller yet. A session without executions and messages
    belongs to no caller.

    Raises `InputInvalid` for a text that cannot be the name of a session.
    """
    check_session(session)
    if caller.role == "admin":
        return True
    if caller.parties:
        return all([await sees_session(app, party, session) for party in caller.parties])
    if await app.store.executions.list(ExecutionQuery(session=session, owner=caller.name, limit=1)):
        return True
    if await app.store.executions.list(ExecutionQuery(session=session, limit=1)):
        return False
    return not (await app.store.sessions.load(session)).messages


async def must_own_session(app: AppContext, caller: Caller, session: str) -> None:
    """Raise `NotAllowed` for a session that belongs to another person, and `InputInvalid` for an invalid name."""
    if not await sees_session(app, caller, session):
        raise NotAllowed(f"the session id {session!r} is taken", hint="Choose another session id.")


async def must_see_session(app: AppContext, caller: Caller, session: str) -> None:
    """Raise `UnknownSession` for a session that belongs to another person, and `InputInvalid` for an invalid name."""
    if not await sees_session(app, caller, session):
        raise unknown_session(session)


async def must_see_memory(app: AppContext, caller: Caller, scope: str, owner: str) -> None:
    """Raise `NotAllowed`, or the error for an owner that does not exist."""
    match scope:
        case "execution":
            await must_see(app, caller, owner)
        case "session":
            await must_own_session(app, caller, owner)
        case "workflow":
            await must_see_workflow(app, caller, owner)
        case "shared":
            pass
        case _ if not all(
            person.role == "admin" or (scope == "user" and owner == person.name) for person in caller.people
        ):
            raise NotAllowed(
                f"the memory of {owner!r} does not belong to {caller.name!r}",
                hint="Admins can see the memory of all owners.",
            )
        case _:
            pass


async def sees_memory(app: AppContext, caller: Caller, scope: str, owner: str) -> bool:
    """Return whether a memory is listed for the caller. Only admins see the memory of deleted owners."""
    if caller.role == "admin":
        return True
    try:
        await must_see_memory(app, caller, scope, owner)
    except CallerError:
        return False
    return True


async def sees_execution(app: AppContext, caller: Caller, execution: str) -> bool:
    """Return whether the caller may see an execution. Only admins see deleted ones."""
    if caller.role == "admin":
        return True
    summary = await app.store.executions.find(ExecutionId(execution))
    return summary is not None and await sees(app, caller, summary)


async def _sees_one(app: AppContext, caller: Caller, summary: Summary) -> bool:
    nature = await _nature_of_execution(app, summary)
    if not caller.is_among(nature.groups):
        return False
    if summary.owner == caller.name:
        return True
    if nature.conversational:
        return summary.session is not None and await sees_session(app, caller, summary.session)
    return await is_shared_with(app, caller, summary.workflow)


async def outermost(app: AppContext, name: ExecutionId) -> tuple[ExecutionId, Summary | None]:
    """Return the execution that a person started, to which the gates of its sub-workflows belong. None: it is not
    listed."""
    while (summary := await app.store.executions.find(name)) is not None and summary.parent is not None:
        name = summary.parent
    return name, summary


async def _is_asked(app: AppContext, caller: Caller, execution: ExecutionId) -> bool:
    """Return whether an open gate of an execution, or of its descendants, names the caller or one of the caller's
    groups."""
    query = InboxQuery(user=caller.name, groups=caller.groups, limit=INBOX_PAGE)
    while page := await app.store.executions.inbox(query):
        for gate in page:
            if _names(gate, caller) and execution in (gate.execution, (await outermost(app, gate.execution))[0]):
                return True
        if len(page) < INBOX_PAGE:
            break
        query = InboxQuery(
            user=caller.name,
            groups=caller.groups,
            after=(page[-1].opened, page[-1].execution, page[-1].gate),
            limit=INBOX_PAGE,
        )
    return False


def _names(gate: GateEntry, caller: Caller) -> bool:
    """Return whether a gate names the caller or one of the caller's groups; a gate open to everybody names none."""
    return caller.name in gate.users or not set(gate.groups).isdisjoint(caller.groups)


async def _nature_of(app: AppContext, reference: str) -> Nature:
    """Return the nature of a saved workflow. Raises `UnknownWorkflow`."""
    natures = app[NATURES]
    if reference in natures:
        return natures[reference]
    try:
        workflow, _ = await app[DEFINITIONS].saved(reference)
    except AuthorError:
        return UNKNOWN
    nature = _nature(workflow)
    if reference.partition("@")[2].isdecimal():
        _remember(natures, reference, nature)
    return nature


async def _nature_of_execution(app: AppContext, summary: Summary) -> Nature:
    if summary.revision:
        return await _nature_of(app, f"{summary.workflow}@{summary.revision}")
    return await _cached_nature(app, (await app.runtime.load(summary.execution)).setup.definition)


async def _cached_nature(app: AppContext, definition: str) -> Nature:
    natures = app[NATURES]
    if definition not in natures:
        try:
            _remember(natures, definition, _nature(await app[DEFINITIONS].kept(definition)))
        except DefinitionMissing:
            return UNKNOWN
    return natures[definition]


def _nature(workflow: WorkflowDefinition) -> Nature:
    return Nature(tuple(workflow.allowed_groups or ()), is_conversational(workflow))


def _remember(natures: dict[str, Nature], name: str, nature: Nature) -> None:
    if len(natures) >= NATURES_MAX:
        natures.clear()
    natures[name] = nature
