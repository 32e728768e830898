"""Verbs of the executions domain. `auth.verbs` describes how a verb is written, `auth.policy` who has which right.

see       the starter, everybody who may see its workflow, and the people whom its open gates ask
answer    operators who see it; the engine then checks whether the gate asks this person
control   operators who see it otherwise than by a gate: pause, resume, cancel, signal
run       control, while its workflow is shared with them: retry, fork, steer, migrate
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Unpack

from typing_extensions import TypedDict

from pointsman.auth.policy import (
    must_control,
    must_run,
    must_see,
    must_see_if_stored,
    must_see_workflow,
    sees,
    sees_gate,
)
from pointsman.auth.redaction import REDACTOR
from pointsman.auth.verbs import Verbs, verb
from pointsman.engine.replay import Replay
from pointsman.errors import CallerError
from pointsman.executions.authority import join
from pointsman.executions.bulk import BulkResult, BulkSelection, apply_to_each, fitting, named_executions, runnable
from pointsman.executions.bulk import Verb as BulkAction
from pointsman.executions.children import rows_and_view
from pointsman.executions.concurrency_limits import QueuePosition
from pointsman.executions.deletion import delete
from pointsman.executions.dry_run import DryRun, dry_run
from pointsman.executions.execution import Execution, Signalled
from pointsman.executions.fork_migrate_replay import (
    ForkOptions,
    MigrationView,
    fork_execution,
    migration_view,
    move_execution,
    replay_execution,
)
from pointsman.executions.inputs import artifact, artifacts_of
from pointsman.executions.lists import (
    AnsweredPage,
    ExecutionEntry,
    InboxEntry,
    Relations,
    Sees,
    answered,
    execution_named,
    found_executions,
    inbox,
    relations_of,
)
from pointsman.executions.opening import CONCURRENCY, open_execution, outermost, reach_execution
from pointsman.executions.pages import (
    EventPage,
    ExecutionDefinition,
    ExecutionPage,
    conversation_of,
    definition_of,
    events_page,
    executions_page,
    state_at,
)
from pointsman.executions.public_events import Dialect, follow_events, redacted_view
from pointsman.executions.start import CallerOptions, StartOptions, start, start_as
from pointsman.executions.timeline import StepCallView, TimelineView, calls_of, timeline
from pointsman.executions.views import ArtifactView, ExecutionView
from pointsman.store.records import GateEntry, Summary
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.sources import Workflow

if TYPE_CHECKING:
    from pointsman.executions.opening import GivenAnswer

ALWAYS_SHOWN: tuple[str, ...] = ("output", "waiting")
"""Fields of a view that its caller asked for: they are shown at every redaction level."""


class NoConversation(CallerError):
    """The execution that received a message does not belong to a session."""

    code: ClassVar[str] = "no-conversation"


class ExecutionFilters(TypedDict, total=False):
    """Which executions a list contains; an absent filter admits all."""

    statuses: Collection[str]
    workflow: str | None
    session: str | None
    since: float | None
    """Started at or after, unix seconds."""
    until: float | None
    """Started before, unix seconds."""
    trials: bool
    """Also partial runs."""
    limit: int


def _execution_id(execution: Execution) -> Mapping[str, object]:
    return {"executionId": execution.id}


class ExecutionVerbs(Verbs):
    """Actions of a caller on executions.

    `by` and `groups` name the person who acts at the machine of the store, see `Verbs.name_for`; other callers act
    under their own name.
    """

    # Reading -------------------------------------------------------------------------------------------------------

    @verb("viewer", "list executions", audit=False)
    async def list(
        self, *, before: str | None = None, oldest_first: bool = False, **filters: Unpack[ExecutionFilters]
    ) -> ExecutionPage:
        """Return one page of the executions that the caller may see, see `pages.executions_page`."""
        return await executions_page(self.app, sees=self._sees, before=before, oldest_first=oldest_first, **filters)

    @verb("viewer", "list executions", audit=False)
    async def last_of(self, workflow: str) -> ExecutionEntry | None:
        """Return the execution of a workflow that started last, of those that the caller may see."""
        page = await executions_page(self.app, sees=self._sees, workflow=workflow, limit=1)
        return page["executions"][0] if page["executions"] else None

    @verb("viewer", "list executions", audit=False)
    async def named(self, reference: str) -> ExecutionId:
        """Return the id of the execution that a person means, see `lists.execution_named`."""
        return await execution_named(self.app, reference, sees=self._sees)

    @verb("viewer", "search executions", audit=False)
    async def search(self, words: str, **filters: Unpack[ExecutionFilters]) -> ExecutionPage:
        """Return the executions whose inputs, outputs or errors contain all these words, see
        `lists.found_executions`."""
        return {"executions": await found_executions(self.app, words, sees=self._sees, **filters), "next": None}

    @verb("viewer", "list executions", audit=False)
    async def watch(self, *, workflow: str | None = None, session: str | None = None) -> Sees:
        """Return the test for a live list: whether an execution matches, and the caller may see it at that moment."""

        async def fits(summary: Summary) -> bool:
            return (
                workflow in (None, summary.workflow)
                and session in (None, summary.session)
                and await self._sees(summary)
            )

        return fits

    @verb("viewer", "read executions", audit=False)
    async def check(self, execution: str) -> None:
        """Raise `UnknownExecution` unless the caller may see the execution; a stream asks it again and again."""
        await must_see(self.app, self.caller, execution)

    @verb("viewer", "read executions", audit=False)
    async def read(self, execution: str) -> ExecutionView:
        """Return the view of an execution, at its redaction level and without secrets. It is not resumed."""
        await must_see_if_stored(self.app, self.caller, execution)
        return self.shown((await rows_and_view(self.app.runtime, self.app.settings, execution))[1])

    @verb("admin", "read executions without redaction", audit=False)
    async def inspect(self, execution: str) -> ExecutionView:
        """Return the view of an execution with everything in it, for people at the machine. It is not resumed."""
        await must_see_if_stored(self.app, self.caller, execution)
        return (await rows_and_view(self.app.runtime, self.app.settings, execution))[1]

    @verb("viewer", "read executions", audit=False)
    async def read_at(self, execution: str, row: int | None) -> ExecutionView:
        """Return the view of an execution as of a row of its journal; None: the last one."""
        await must_see(self.app, self.caller, execution)
        return redacted_view(await state_at(self.app, execution, row), self.app[REDACTOR])

    @verb("viewer", "read executions", audit=False)
    async def events(self, execution: str, *, after: str | None = None, limit: int = 200) -> EventPage:
        """Return one page of the events of an execution, see `pages.events_page`."""
        await must_see(self.app, self.caller, execution)
        redact = self.app[REDACTOR]
        return await events_page(self.app, execution, redact=redact, after=after, limit=limit)

    @verb("admin", "read executions without redaction", audit=False)
    async def follow(
        self, execution: str, *, after: int = 0, follow: bool = False, words: Dialect | None = None
    ) -> AsyncIterator[JsonObject]:
        """Return the events of an execution with everything in them, for people at the machine, see `follow_events`."""
        await must_see(self.app, self.caller, execution)
        return follow_events(self.app, execution, after=after, follow=follow, words=words)

    @verb("viewer", "read executions", audit=False)
    async def definition(self, execution: str) -> ExecutionDefinition:
        """Return the definition that an execution runs on, in the native dialect, with its regions."""
        await must_see(self.app, self.caller, execution)
        return await definition_of(self.app, execution)

    @verb("viewer", "read executions", audit=False)
    async def timeline(self, execution: str) -> TimelineView:
        """Return when each step ran, waited and failed, and the usage of each node."""
        await must_see(self.app, self.caller, execution)
        return await timeline(self.app, execution)

    @verb("viewer", "read executions", audit=False)
    async def calls(self, execution: str, step: str) -> builtins.list[StepCallView]:
        """Return the calls of models and tools that a step made."""
        await must_see(self.app, self.caller, execution)
        return await calls_of(self.app, execution, step)

    @verb("viewer", "read executions", audit=False)
    async def relations(self, execution: str) -> Relations:
        """Return what called an execution, what it called, and its forks, as far as the caller may see them."""
        await must_see(self.app, self.caller, execution)
        return await relations_of(self.app, execution, sees=self._sees)

    @verb("viewer", "read executions", audit=False)
    async def artifacts(self, execution: str) -> builtins.list[ArtifactView]:
        """Return name and size of the files that an execution keeps."""
        await must_see(self.app, self.caller, execution)
        return await artifacts_of(self.app.settings, execution)

    @verb("viewer", "read executions", audit=False)
    async def artifact(self, execution: str, name: str) -> bytes:
        """Return a file that an execution keeps. Raises `NoSuchArtifact`."""
        await must_see(self.app, self.caller, execution)
        return await artifact(self.app, execution, name)

    @verb("viewer", "read the inbox", audit=False)
    async def inbox(
        self,
        *,
        everyone: bool = False,
        workflow: str | None = None,
        after: str | None = None,
        limit: int = 50,
        by: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> builtins.list[InboxEntry]:
        """Return one page of the open gates that ask the caller, oldest first; `everyone`: all of them, for admins."""
        if everyone:
            self.caller.must_have("admin", "see the inboxes of others")
        person, among = self._person(by, groups)
        if everyone:
            person, among = None, ()
        return await inbox(self.app, person, among, workflow=workflow, after=after, limit=limit, sees=self._sees_gate)

    @verb("viewer", "read the inbox", audit=False)
    async def answered(
        self,
        *,
        everyone: bool = False,
        workflow: str | None = None,
        after: str | None = None,
        limit: int = 50,
        by: str | None = None,
    ) -> AnsweredPage:
        """Return one page of the answers that the caller gave to gates, newest first; `everyone`: those of all people
        in executions that the caller may see."""
        person = None if everyone else self.name_for(by)
        return await answered(self.app, person, workflow=workflow, after=after, limit=limit, sees=self._sees)

    @verb("operator", "replay executions", audit=False)
    async def replay(self, execution: str, *, against: Workflow | str | None = None) -> Replay:
        """Decide the journal of an execution again, with its own definition or another one. Nothing changes."""
        await must_see(self.app, self.caller, execution)
        if isinstance(against, str):
            await must_see_workflow(self.app, self.caller, against)
        return await replay_execution(self.app, execution, against=against, caller=self.caller)

    # Starting ------------------------------------------------------------------------------------------------------

    @verb("operator", "run workflows", target=("workflow",), made=_execution_id)
    async def start(
        self,
        workflow: str,
        input: Json = None,
        *,
        session: str | None = None,
        key: str | None = None,
        trigger: JsonObject | None = None,
        **options: Unpack[CallerOptions],
    ) -> Execution:
        """Start an execution of a saved workflow, which belongs to the caller. See `start.start_as`."""
        return await start_as(
            self.app, self.caller, workflow, input, session=session, key=key, trigger=trigger, **options
        )

    @verb("admin", "run documents", made=_execution_id)
    async def run(self, workflow: Workflow | str, input: Json = None, **requested: Unpack[StartOptions]) -> Execution:
        """Start an execution of a document or a saved workflow, with all options; for people at the machine."""
        options: StartOptions = {**requested, "by": self.name_for(requested.get("by")), "caller": self.caller}
        return await start(self.app, workflow, input, **options)

    @verb("operator", "run workflows", audit=False)
    async def drive(self, execution: str) -> Execution:
        """Open an execution that is already started, so that this process runs it. Raises `UnknownExecution`."""
        await must_see(self.app, self.caller, execution)
        return await open_execution(self.app, execution)

    @verb("operator", "run workflows", audit=False)
    async def outermost(self, execution: Execution) -> Execution:
        """Open the outermost execution that waits for an opened sub-workflow, see `opening.outermost`."""
        return await outermost(self.app, execution)

    @verb("viewer", "read executions", audit=False)
    async def queue_position(self, execution: Execution) -> QueuePosition | None:
        """Return the position of an opened execution in its queue; None: it is not queued."""
        return await self.app[CONCURRENCY].standing(execution.state)

    @verb("operator", "run workflows", audit=False)
    async def dry_run(
        self, workflow: Workflow | str, input: Json = None, *, answers: Sequence[GivenAnswer] = ()
    ) -> DryRun:
        """Return the path that an execution would take, its calls and its cost. Nothing is called or stored. `answers`
        are given as the caller; people at the machine may answer for everybody. A document needs the role admin."""
        if isinstance(workflow, str):
            await must_see_workflow(self.app, self.caller, workflow)
        else:
            self.caller.must_have("admin", "run documents")
        own_answers = answers
        if not self.caller.is_machine:
            own_answers = [replace(answer, by=self.caller.name, groups=self.caller.groups) for answer in answers]
        return await dry_run(self.app, workflow, input, answers=own_answers, caller=self.caller)

    @verb("operator", "run workflows", target=("execution",), made=_execution_id)
    async def say(self, execution: str, message: Json, *, key: str | None = None) -> Execution:
        """Start the next turn of the conversation that an execution is a turn of. Raises `NoConversation`."""
        await must_see(self.app, self.caller, execution)
        workflow, session = await conversation_of(self.app, execution)
        if session is None:
            raise NoConversation(
                f"{execution!r} does not belong to a conversation", hint="Start it with a `sessionId`."
            )
        return await start_as(self.app, self.caller, workflow, message, session=session, key=key)

    # Answering -----------------------------------------------------------------------------------------------------

    @verb("operator", "answer gates", target=("execution", "gate", "by"))
    async def answer(
        self,
        execution: str,
        gate: str,
        action: str,
        data: Json = None,
        *,
        comment: str = "",
        key: str = "",
        digest: str = "",
        by: str | None = None,
        groups: Sequence[str] | None = None,
        reopens: bool = False,
    ) -> Execution:
        """Answer an open gate as the caller, see `Execution.answer`. `reopens`: first wait until sub-workflows that a
        stopped process left open have opened their gates again."""
        await must_see(self.app, self.caller, execution)
        opened = await open_execution(self.app, execution)
        if reopens and not opened.gates and not opened.state.ended:
            await opened.settled()
        person, among = self._person(by, groups)
        await opened.answer(gate, action, data, comment=comment, by=person, groups=among, key=key, digest=digest)
        return opened

    @verb("operator", "answer gates", target=("execution", "gate", "to", "by"))
    async def delegate(
        self,
        execution: str,
        gate: str,
        to: str,
        *,
        comment: str = "",
        by: str | None = None,
        groups: Sequence[str] | None = None,
        resumes: bool = True,
    ) -> Execution:
        """Pass the right to answer an open gate on to another person. `resumes`: whether steps that a stopped process
        left running run again in this one."""
        await must_see(self.app, self.caller, execution)
        opened = await (open_execution if resumes else reach_execution)(self.app, execution)
        person, among = self._person(by, groups)
        await opened.delegate(gate, to, by=person, groups=among, comment=comment)
        return opened

    # Controlling ---------------------------------------------------------------------------------------------------

    @verb("operator", "pause executions", target=("execution", "by"))
    async def pause(self, execution: str, *, by: str | None = None) -> Execution:
        """Start no further step of an execution and of its sub-workflows."""
        await must_control(self.app, self.caller, execution)
        opened = await reach_execution(self.app, execution)
        await opened.pause(by=self.name_for(by))
        return opened

    @verb("operator", "resume executions", target=("execution",))
    async def resume(
        self, execution: str, *, limits: dict[str, float] | None = None, step: bool = False, by: str | None = None
    ) -> Execution:
        """Resume an execution that is paused, stopped or interrupted, see `Execution.resume`."""
        await must_control(self.app, self.caller, execution)
        opened = await open_execution(self.app, execution)
        await opened.resume(limits=limits, by=self.name_for(by), step=step)
        return opened

    @verb("operator", "cancel executions", target=("execution", "by"))
    async def cancel(self, execution: str, *, reason: str = "", now: bool = False, by: str | None = None) -> Execution:
        """Cancel an execution and its sub-workflows for good. A second call has no effect.

        Compensation runs first, in this process; `now`: skip it, or what is left of it.
        """
        await must_control(self.app, self.caller, execution)
        opened = await reach_execution(self.app, execution)
        await opened.cancel(reason=reason, by=self.name_for(by), now=now)
        return opened

    @verb("operator", "send events to executions", target=("execution", "name"))
    async def signal(
        self, execution: str, name: str, data: Json = None, *, key: str = "", by: str | None = None
    ) -> tuple[Execution, Signalled]:
        """Send an event to an execution, see `Execution.signal`."""
        await must_control(self.app, self.caller, execution)
        opened = await open_execution(self.app, execution)
        return opened, await opened.signal(name, data, key=key, by=self.name_for(by))

    # Running again -------------------------------------------------------------------------------------------------

    @verb("operator", "retry executions", target=("execution", "by"))
    async def retry(
        self, execution: str, *, limits: dict[str, float] | None = None, by: str | None = None
    ) -> Execution:
        """Retry the step that failed an execution. From now on it acts on behalf of the caller too."""
        await must_run(self.app, self.caller, execution)
        await join(self.app, self.caller, execution)
        opened = await open_execution(self.app, execution)
        await opened.retry(limits=limits, by=self.name_for(by))
        return opened

    @verb("operator", "steer executions", target=("execution", "goto", "by"))
    async def steer(
        self,
        execution: str,
        messages: Sequence[Json] = (),
        *,
        set: Mapping[str, Json] | None = None,
        goto: str | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> Execution:
        """Intervene between two steps, see `Execution.steer`. From now on it acts on behalf of the caller too."""
        await must_run(self.app, self.caller, execution)
        await join(self.app, self.caller, execution)
        opened = await open_execution(self.app, execution)
        await opened.steer(messages, set=set, goto=goto, reason=reason, by=self.name_for(by))
        return opened

    @verb("operator", "fork executions", target=("execution",), made=_execution_id)
    async def fork(self, execution: str, **requested: Unpack[ForkOptions]) -> Execution:
        """Start a new execution as a copy of another one, see `fork_execution`. It belongs to the caller."""
        await must_run(self.app, self.caller, execution)
        if isinstance(to := requested.get("to"), str):
            await must_see_workflow(self.app, self.caller, to)
        options: ForkOptions = {**requested, "by": self.name_for(requested.get("by")), "caller": self.caller}
        return await fork_execution(self.app, execution, **options)

    @verb("operator", "migrate executions", target=("execution", "by"), unless="check_only")
    async def migrate(
        self, execution: str, to: Workflow | str, *, check_only: bool = False, by: str | None = None
    ) -> MigrationView:
        """Continue an execution that stands still with another definition, if everything in progress fits."""
        await must_run(self.app, self.caller, execution)
        if isinstance(to, str):
            await must_see_workflow(self.app, self.caller, to)
        if not check_only:
            await join(self.app, self.caller, execution)
        name = self.name_for(by)
        misfits = await move_execution(self.app, execution, to, check_only=check_only, by=name, caller=self.caller)
        return migration_view(execution, misfits, check_only=check_only)

    # Many at once, and deleting ------------------------------------------------------------------------------------

    @verb("operator", "act on many executions", target=("action", "by"), unless="dry_run")
    async def bulk(
        self,
        action: BulkAction,
        which: BulkSelection | None = None,
        *,
        executions: Iterable[str] = (),
        dry_run: bool = False,
        by: str | None = None,
    ) -> builtins.list[BulkResult]:
        """Apply one action to all executions that match and that the caller sees, or to the named ones. A refusal of
        one does not stop the others. Deleting is for admins. `dry_run`: only return which match."""
        if action == "delete":
            self.caller.must_have("admin", "delete data")
        others: builtins.list[BulkResult] = []
        if which is None:
            summaries, others = await named_executions(self.app, action, executions, self._sees)
        else:
            summaries = [one for one in await fitting(self.app, action, which) if await self._sees(one)]
        if dry_run:
            return [*(BulkResult(summary.execution, summary.status) for summary in summaries), *others]
        if action == "retry":
            summaries, refused = await runnable(self.app, self.caller, summaries)
            others += refused
        return [*await apply_to_each(self.app, action, summaries, by=self.name_for(by)), *others]

    @verb("admin", "delete data", target=("executions",))
    async def delete(self, *executions: str) -> builtins.list[ExecutionId]:
        """Delete executions that have ended, with their sub-workflows and everything that only they used. Return the
        ids of all that were deleted. All are deleted, or none if one is unknown or has not ended."""
        for execution in executions:
            await must_see(self.app, self.caller, execution)
        return await delete(self.app, executions)

    # -----------------------------------------------------------------------------------------------------------------

    async def view(self, execution: Execution) -> ExecutionView:
        """Return the view of an execution that a verb returned, as `read` does."""
        return self.shown(await execution.view())

    def shown(self, view: ExecutionView) -> ExecutionView:
        """Return a view at the redaction level of its execution and without secrets; `ALWAYS_SHOWN` is always shown."""
        return redacted_view(view, self.app[REDACTOR], keeps=ALWAYS_SHOWN)

    async def _sees(self, summary: Summary) -> bool:
        return await sees(self.app, self.caller, summary)

    async def _sees_gate(self, summary: Summary, gate: GateEntry) -> bool:
        return await sees_gate(self.app, self.caller, summary, gate)

    def _person(self, by: str | None, groups: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
        """Return name and groups of the person who answers."""
        name = self.name_for(by)
        return name, self.caller.groups if by is None and groups is None else tuple(groups or ())
