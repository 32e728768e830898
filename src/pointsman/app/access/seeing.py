"""What callers may see. Every face asks here, and nowhere else.

    a workflow     its groups (as the document says) and its sharing (as its owner says) let the caller in
    an execution   whoever began it, and whoever may see its workflow, by the groups of the definition that it runs on;
                   a turn of a conversation: as its session
    a gate         as its execution; also whoever it asks by name, or by a group
    a session      whoever began it
    a tool         one that is a workflow: as that; every other is everybody's
    memory         as what owns it: an execution, a session, a person, a workflow; shared memory is everybody's

Admins see everything. What cannot be read any more is theirs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from pointsman.app.access.callers import Caller, NotAllowed
from pointsman.app.access.sharing import sharing_of
from pointsman.app.inbox import InboxQuery, outermost
from pointsman.app.inputs import check_session, is_conversational
from pointsman.app.library import DefinitionGone, Library, UnknownWorkflow
from pointsman.definition.workflow import Workflow
from pointsman.errors import AuthorError, CallerError
from pointsman.journal.records import ExecutionQuery, GateEntry, Summary
from pointsman.values import ExecutionId, JsonObject

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


class Nature(NamedTuple):
    """What a definition says of who may see what runs on it."""

    groups: tuple[str, ...]
    conversational: bool


UNKNOWN: Final = Nature(("\0",), conversational=True)
"""Of what cannot be read any more, so that nobody knows whose it is: no key has the group, admins need none."""
NATURES_MAX: Final = 10_000
ASKED_PAGE: Final = 200

_natures: WeakKeyDictionary[Library, dict[str, Nature]] = WeakKeyDictionary()
"""By `id@revision` or the digest of a definition, which never change."""


async def visible(app: Pointsman, caller: Caller, reference: str) -> bool:
    """Whether a saved workflow is there for the caller. Raises `UnknownWorkflow`."""
    if caller.role == "admin":
        return True
    shared = (await sharing_of(app, reference)).lets_in(caller)
    return shared and caller.is_among((await _nature_of(app, reference)).groups)


async def sees_entry(app: Pointsman, caller: Caller, entry: JsonObject) -> bool:
    """Whether a workflow is listed: by the revision that the list tells of, which never changes and is read once."""
    return await visible(app, caller, f"{entry['id']}@{entry['revision']}")


async def must_see_workflow(app: Pointsman, caller: Caller, reference: str) -> None:
    """Raises `UnknownWorkflow`, `NotAllowed`."""
    name = reference.partition("@")[0]
    sharing = await sharing_of(app, name)
    if not (caller.role == "admin" or sharing.lets_in(caller)):
        raise NotAllowed(
            f"the workflow {name!r} is not shared with {caller.name!r}", hint="Ask its owner, or an admin."
        )
    caller.must_be_among((await _nature_of(app, reference)).groups, f"the workflow {name!r}")


async def sees_tool(app: Pointsman, caller: Caller, name: str) -> bool:
    """Whether a tool is there for the caller; of a name that is none nothing is said."""
    if app.tools.origin(name) == "function":
        return True  # What it takes is worked out when it is looked at, and whoever lists tools asks of all of them.
    spec = app.tools.find(name)
    if spec is None or not spec.workflow:
        return True
    try:
        return await visible(app, caller, spec.workflow)
    except UnknownWorkflow:
        return False


async def must_see(app: Pointsman, caller: Caller, execution: str) -> None:
    """Raises `UnknownExecution`, `NotAllowed`."""
    name = ExecutionId(execution)
    # Its journal is not read: it may be long, and whoever polls asks again and again.
    summary = await app.store.executions.find(name)
    if summary is None:
        await app.runtime.load(name)
    if caller.role == "admin":
        return
    if summary is not None:
        nature = await _nature_of_execution(app, summary)
        caller.must_be_among(nature.groups, f"the execution {execution!r}")
    if summary is None or not (await sees(app, caller, summary) or await _is_asked(app, caller, name)):
        raise NotAllowed(
            f"the execution {execution!r} is not {caller.name!r}'s to see", hint="Ask who began it, or an admin."
        )


async def sees(app: Pointsman, caller: Caller, summary: Summary) -> bool:
    """Whether an execution is listed: by the definition it runs on, as it was when it began; so also after its workflow
    was changed or deleted. One that another one called is seen by whoever sees both."""
    if caller.role == "admin":
        return True
    while True:
        if not await _sees_one(app, caller, summary):
            return False
        if summary.parent is None:
            return True
        above = await app.store.executions.find(summary.parent)
        if above is None:
            return False
        summary = above


async def sees_gate(app: Pointsman, caller: Caller, summary: Summary, gate: GateEntry) -> bool:
    """Whether an open gate is listed; `summary` is of the execution that people started."""
    if await sees(app, caller, summary):
        return True
    return _names(gate, caller) and caller.is_among((await _nature_of_execution(app, summary)).groups)


async def sees_session(app: Pointsman, caller: Caller, session: str) -> bool:
    """Whether it is the caller's, or nobody's yet. One of which no execution is left is nobody's any more.

    Raises `InputInvalid` for what cannot be the name of one.
    """
    check_session(session)
    if caller.role == "admin":
        return True
    if await app.executions(ExecutionQuery(session=session, owner=caller.name, limit=1)):
        return True
    if await app.executions(ExecutionQuery(session=session, limit=1)):
        return False
    return not (await app.store.sessions.load(session)).messages


async def must_own_session(app: Pointsman, caller: Caller, session: str) -> None:
    """Raises `NotAllowed` for a conversation that somebody else began, and `InputInvalid`."""
    if not await sees_session(app, caller, session):
        raise NotAllowed(f"the session {session!r} is not {caller.name!r}'s", hint="Begin one under another name.")


async def must_see_memory(app: Pointsman, caller: Caller, scope: str, owner: str) -> None:
    """Raises `NotAllowed`, and what says that there is no such owner."""
    match scope:
        case "execution":
            await must_see(app, caller, owner)
        case "session":
            await must_own_session(app, caller, owner)
        case "workflow":
            await must_see_workflow(app, caller, owner)
        case "shared":
            pass
        case _ if caller.role != "admin" and (scope != "user" or owner != caller.name):
            raise NotAllowed(f"the memory of {owner!r} is not {caller.name!r}'s", hint="Admins see that of all.")
        case _:
            pass


async def sees_memory(app: Pointsman, caller: Caller, scope: str, owner: str) -> bool:
    """Whether it is listed for the caller. The memory of what is gone is for admins."""
    if caller.role == "admin":
        return True
    try:
        await must_see_memory(app, caller, scope, owner)
    except CallerError:
        return False
    return True


async def sees_execution(app: Pointsman, caller: Caller, execution: str) -> bool:
    """Whether the caller may be told that it did something. What is gone is for admins."""
    if caller.role == "admin":
        return True
    summary = await app.store.executions.find(ExecutionId(execution))
    return summary is not None and await sees(app, caller, summary)


async def _sees_one(app: Pointsman, caller: Caller, summary: Summary) -> bool:
    nature = await _nature_of_execution(app, summary)
    if not caller.is_among(nature.groups):
        return False
    if summary.owner == caller.name:
        return True
    if nature.conversational:
        return summary.session is not None and await sees_session(app, caller, summary.session)
    return (await sharing_of(app, summary.workflow)).lets_in(caller)


async def _is_asked(app: Pointsman, caller: Caller, execution: ExecutionId) -> bool:
    """Whether an open gate of it, or of what it called, names the caller or a group of the caller's."""
    query = InboxQuery(user=caller.name, groups=caller.groups, limit=ASKED_PAGE)
    while page := await app.store.executions.inbox(query):
        for gate in page:
            if _names(gate, caller) and execution in (gate.execution, (await outermost(app, gate))[0]):
                return True
        if len(page) < ASKED_PAGE:
            break
        query = InboxQuery(
            user=caller.name,
            groups=caller.groups,
            after=(page[-1].opened, page[-1].execution, page[-1].gate),
            limit=ASKED_PAGE,
        )
    return False


def _names(gate: GateEntry, caller: Caller) -> bool:
    """Not only as one of everybody."""
    return caller.name in gate.users or not set(gate.groups).isdisjoint(caller.groups)


async def _nature_of(app: Pointsman, reference: str) -> Nature:
    """Of a saved workflow. Raises `UnknownWorkflow`."""
    known = _natures.setdefault(app.library, {})
    if reference in known:
        return known[reference]
    try:
        workflow, _ = await app.library.saved(reference)
    except AuthorError:
        return UNKNOWN
    except UnknownWorkflow as why:
        # Its hint lists all there are, and the caller may not see all.
        raise UnknownWorkflow(str(why), hint="GET /api/workflows lists those you may see.") from None
    nature = _nature(workflow)
    if reference.partition("@")[2].isdecimal():
        _remember(known, reference, nature)
    return nature


async def _nature_of_execution(app: Pointsman, summary: Summary) -> Nature:
    if summary.revision:
        return await _nature_of(app, f"{summary.workflow}@{summary.revision}")
    return await _kept(app, (await app.runtime.load(summary.execution)).definition)


async def _kept(app: Pointsman, definition: str) -> Nature:
    known = _natures.setdefault(app.library, {})
    if definition not in known:
        try:
            _remember(known, definition, _nature(await app.library.kept(definition)))
        except DefinitionGone:
            return UNKNOWN
    return known[definition]


def _nature(workflow: Workflow) -> Nature:
    return Nature(tuple(workflow.allowed_groups or ()), is_conversational(workflow))


def _remember(known: dict[str, Nature], name: str, nature: Nature) -> None:
    if len(known) >= NATURES_MAX:
        known.clear()
    known[name] = nature
