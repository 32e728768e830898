"""Verbs of schedules, events and webhooks. See `auth.verbs` for how a verb is written."""

from __future__ import annotations

from pointsman.auth.policy import must_see_workflow, sees_workflow, visible
from pointsman.auth.verbs import Verbs, verb
from pointsman.etags import etag_of, match_etag, revision_moved
from pointsman.executions.lists import names_of_workflows
from pointsman.paging import has_words, page_by
from pointsman.triggers.answer_links import (
    ANSWER_LINKS,
    AnswerLink,
    LinkAnswerView,
    LinkedGateView,
    answer_by_link,
    linked_gate,
)
from pointsman.triggers.destinations import DestinationRequest, delete_destination, save_destination
from pointsman.triggers.notifications import (
    AddressView,
    NoticePage,
    NoticeState,
    Outbox,
    StoredNotice,
    TestedDestination,
    address_views,
    notice_view,
    try_destination,
)
from pointsman.triggers.publications import (
    Publication,
    PublicationRequest,
    PublicationView,
    StartedRun,
    publication_of,
    publish,
    start_run,
    unpublish,
)
from pointsman.triggers.schedules import (
    Fired,
    Missed,
    Overlap,
    Schedules,
    StoredSchedule,
    must_own,
    no_such_schedule,
    usual_id,
)
from pointsman.triggers.triggers import TRIGGERS
from pointsman.triggers.views import (
    DeliveryView,
    PublishedView,
    SchedulePage,
    TriedWebhookView,
    WebhookPage,
    WebhookView,
    called_view,
    delivery_views,
    published_view,
    schedule_view,
    try_webhook,
    webhook_views,
)
from pointsman.values import Json
from pointsman.workflows.calendar import Timing


def _started(fired: Fired) -> dict[str, str]:
    return {"executionId": fired.execution} if fired.execution else {}


class ScheduleVerbs(Verbs):
    """Actions of a caller on schedules. A schedule is visible to callers who see its workflow; it starts the
    workflow on behalf of its owner."""

    @property
    def _schedules(self) -> Schedules:
        return self.app[TRIGGERS].schedules

    @verb("viewer", "see schedules", audit=False)
    async def list(
        self, *, workflow: str | None = None, search: str = "", after: str | None = None, limit: int | None = None
    ) -> SchedulePage:
        """Return a page of the schedules, by id: those of one workflow, and those with all words of `search` in the id,
        or in the id or names of the workflow."""
        names = await names_of_workflows(self.app, search)
        schedules: dict[str, StoredSchedule] = {}
        for stored in await self._schedules.list():
            of = stored.schedule.workflow
            if workflow in (None, of.partition("@")[0]) and has_words(search, stored.id, of, names(of)):
                schedules[stored.id] = stored

        async def sees(entry: dict[str, str]) -> bool:
            return await sees_workflow(self.app, self.caller, schedules[entry["id"]].schedule.workflow)

        # The next due time takes long to compute: views are made of the entries of the page only.
        page = await page_by(
            "id",
            [{"id": id} for id in schedules],
            after=after,
            limit=len(schedules) if limit is None else limit,
            sees=sees,
        )
        return {"schedules": [schedule_view(schedules[entry["id"]]) for entry in page.entries], "next": page.next}

    @verb("viewer", "see schedules", audit=False)
    async def get(self, schedule: str) -> StoredSchedule:
        """Return a schedule. Raises `NoSuchSchedule`."""
        return await self._visible_schedule(schedule)

    @verb("viewer", "see schedules", audit=False)
    async def next_times(self, schedule: str, count: int = 5) -> list[float]:
        """Return the next due times, whether or not the schedule is paused. Raises `NoSuchSchedule`."""
        await self._visible_schedule(schedule)
        return await self._schedules.next_times(schedule, count)

    @verb("viewer", "see schedules", audit=False)
    async def times_of(self, timing: Timing, count: int = 5) -> list[float]:
        """Return the due times of a schedule that would be added now."""
        return self._schedules.times_of(timing, count)

    @verb("editor", "write workflows", target=("workflow", "id"), made=lambda stored: {"id": stored.id})
    async def add(
        self,
        workflow: str,
        timing: Timing,
        *,
        id: str | None = None,
        input: Json = None,
        missed: Missed = "once",
        overlap: Overlap = "skip",
    ) -> StoredSchedule:
        """Start a saved workflow at the given times, from now on, with the caller as owner. `id`: default is that of
        the workflow.

        Raises `UnknownWorkflow`, `ScheduleExists`, `ScheduleInvalid`, `TimingInvalid`.
        """
        await must_see_workflow(self.app, self.caller, workflow)
        schedule_id = usual_id(workflow) if id is None else id
        return await self._schedules.add(
            schedule_id, workflow, timing, input=input, missed=missed, overlap=overlap, caller=self.caller
        )

    @verb("editor", "write workflows", target=("schedule",))
    async def revise(
        self,
        schedule: str,
        workflow: str,
        timing: Timing,
        *,
        input: Json = None,
        missed: Missed = "once",
        overlap: Overlap = "skip",
        match: str | None = None,
    ) -> StoredSchedule:
        """Replace the configuration of a schedule, as its owner or an admin. `match`: see `etags.match_etag`.

        Raises `NoSuchSchedule`, `NotAllowed`, `UnknownWorkflow`, `RevisionMoved`, `ScheduleInvalid`, `TimingInvalid`.
        """
        stored = await self._visible_schedule(schedule)
        must_own(stored, self.caller, "change it")
        await must_see_workflow(self.app, self.caller, workflow)
        after = _match_version(stored, match)
        return await self._schedules.revise(
            schedule, workflow, timing, input=input, missed=missed, overlap=overlap, after=after
        )

    @verb("operator", "run workflows", target=("schedule",), made=_started)
    async def run(self, schedule: str) -> Fired:
        """Start a run now, for the caller and the owner, regardless of due times, pause and overlap policy. A run that
        cannot start is an outcome with an error. Raises `NoSuchSchedule`."""
        await self._visible_schedule(schedule)
        return await self.app[TRIGGERS].scheduler.run_now(schedule, caller=self.caller)

    @verb("operator", "run workflows", target=("schedule",))
    async def pause(self, schedule: str) -> StoredSchedule:
        """Pause a schedule. Runs that are due meanwhile are dropped. Raises `NoSuchSchedule`."""
        await self._visible_schedule(schedule)
        return await self._schedules.pause(schedule)

    @verb("operator", "run workflows", target=("schedule",))
    async def resume(self, schedule: str) -> StoredSchedule:
        """Resume a paused or stopped schedule from now on. Raises `NoSuchSchedule`."""
        await self._visible_schedule(schedule)
        return await self._schedules.resume(schedule)

    @verb("editor", "write workflows", target=("schedule",))
    async def delete(self, schedule: str, *, match: str | None = None) -> None:
        """Delete a schedule, as its owner or an admin. Its executions continue. `match`: see `etags.match_etag`.

        Raises `NoSuchSchedule`, `NotAllowed`, `RevisionMoved`, and `ScheduleInvalid` for a schedule that a document
        declares.
        """
        stored = await self._visible_schedule(schedule)
        if not stored.schedule.trigger:
            must_own(stored, self.caller, "delete it")
        after = _match_version(stored, match)
        await self._schedules.delete(schedule, after=after)

    async def _visible_schedule(self, schedule: str) -> StoredSchedule:
        """Return a schedule. Raises `NoSuchSchedule`, also if the caller may not see its workflow."""
        stored = await self._schedules.find(schedule)
        if stored is None or not await sees_workflow(self.app, self.caller, stored.schedule.workflow):
            raise no_such_schedule(schedule)
        return stored


def _match_version(stored: StoredSchedule, match: str | None) -> str | None:
    mark = stored.schedule.mark
    return match_etag(match, etag_of(mark), mark, revision_moved(f"the schedule {stored.id!r}"))


class TriggerVerbs(Verbs):
    """Actions of a caller on events and webhooks. A call of a webhook by its sender has no caller, see
    `triggers.webhooks`."""

    @verb("operator", "run workflows", target=("name",))
    async def publish(self, name: str, data: Json = None, *, key: str = "") -> PublishedView:
        """Publish an event to the waiting executions that the caller sees, and start the workflows it triggers that the
        caller may execute. Return the outcome as far as the caller may see it. Idempotent for one `key` of one caller.
        Raises `EventTooLarge`."""
        published = await self.app[TRIGGERS].events.publish_for(self.caller, name, data, key=key)
        return await published_view(self.app, self.caller, published)

    @verb("editor", "write workflows", audit=False)
    async def webhooks(self, *, search: str = "", after: str | None = None, limit: int = 50) -> WebhookPage:
        """Return a page of the webhooks in effect, by path, of workflows that the caller sees; with all words of
        `search` in path, workflow, trigger or event."""

        async def sees(webhook: WebhookView) -> bool:
            return await visible(self.app, self.caller, webhook["workflowId"])

        names = await names_of_workflows(self.app, search)
        matching = (
            one
            for one in await webhook_views(self.app)
            if has_words(search, one["path"], one["workflowId"], one["trigger"], one["event"], names(one["workflowId"]))
        )
        page = await page_by("path", matching, after=after, limit=limit, sees=sees)
        return {"webhooks": page.entries, "next": page.next}

    @verb("editor", "write workflows", audit=False)
    async def deliveries(self, workflow: str, trigger: str) -> list[DeliveryView]:
        """Return the outcomes of the latest calls of a webhook, the newest first. Raises `UnknownWorkflow`,
        `NoSuchTrigger`."""
        await must_see_workflow(self.app, self.caller, workflow)
        return await delivery_views(self.app, self.caller, workflow, trigger)

    @verb("operator", "run workflows", target=("workflow", "trigger"))
    async def try_webhook(self, workflow: str, trigger: str, data: Json = None) -> TriedWebhookView:
        """Call a webhook for real, signed as by its sender. Return the outcome as far as the caller may see it.

        Raises `UnknownWorkflow`, `NoSuchTrigger`, and the errors of a call.
        """
        await must_see_workflow(self.app, self.caller, workflow)
        received = await try_webhook(self.app, self.caller, workflow, trigger, data)
        delivered: list[str] = []
        if received.published is not None:
            delivered = (await published_view(self.app, self.caller, received.published))["delivered"]
        return {**called_view(received), "started": received.started, "delivered": delivered}


class NotificationVerbs(Verbs):
    """Actions of a caller on notices to the configured addresses."""

    @verb("admin", "see or send notices", audit=False)
    async def list(
        self, *, state: NoticeState | None = None, after: str | None = None, limit: int | None = None
    ) -> NoticePage:
        """Return the addresses, and a page of the notices in the outbox, by id; `state`: only these."""
        found = [
            notice_view(notice) for notice in await Outbox(self.app).list() if state in (None, notice.letter.state)
        ]
        page = await page_by("id", found, after=after, limit=len(found) if limit is None else limit)
        return {"addresses": await address_views(self.app), "notices": page.entries, "next": page.next}

    @verb("admin", "see or send notices", target=("notice",))
    async def retry(self, notice: str) -> StoredNotice:
        """Send a notice again that was given up, from the first attempt on. Raises `NoSuchNotice`."""
        return await Outbox(self.app).try_again(notice)

    @verb("admin", "change notifications", target=("name",))
    async def try_address(self, name: str, request: DestinationRequest) -> TestedDestination:
        """Send a test message to a destination, see `try_destination`."""
        return await try_destination(self.app, name, request, by=self.caller.name)

    @verb("admin", "change notifications", target=("name",))
    async def save_address(self, name: str, request: DestinationRequest, *, match: str | None = None) -> AddressView:
        """Add or change a destination, see `save_destination`."""
        await save_destination(self.app, name, request, by=self.caller.name, match=match)
        return next(one for one in await address_views(self.app) if one["name"] == name)

    @verb("admin", "change notifications", target=("name",))
    async def delete_address(self, name: str, *, match: str | None = None) -> None:
        """Delete a destination that was added. Raises `NoSuchNotification`, `RevisionMoved`."""
        await delete_destination(self.app, name, match=match)

    @verb("admin", "see or send notices")
    async def revoke_links(self) -> None:
        """Make all answer links that were sent invalid. Notices sent from now on contain valid ones."""
        await self.app[ANSWER_LINKS].revoke()


class PublicationVerbs(Verbs):
    """Actions of a caller on published workflows, and of their visitors in the name of the publisher."""

    @verb("editor", "publish workflows", audit=False)
    async def read(self, workflow: str) -> PublicationView:
        """Return the publication of a workflow. Raises `UnknownWorkflow`, `NotAllowed`."""
        await must_see_workflow(self.app, self.caller, workflow)
        return await publication_of(self.app, self.caller, workflow)

    @verb("editor", "publish workflows", target=("workflow",))
    async def publish(
        self, workflow: str, request: PublicationRequest, *, new_link: bool = False, match: str | None = None
    ) -> PublicationView:
        """Publish a workflow, as its owner or an admin. See `publications.publish`."""
        await must_see_workflow(self.app, self.caller, workflow)
        return await publish(self.app, self.caller, workflow, request, new_link=new_link, match=match)

    @verb("editor", "publish workflows", target=("workflow",))
    async def unpublish(self, workflow: str, *, match: str | None = None) -> None:
        """Withdraw the publication of a workflow, as its owner or an admin. Idempotent without `match`."""
        await must_see_workflow(self.app, self.caller, workflow)
        await unpublish(self.app, self.caller, workflow, match=match)

    @verb("operator", "run workflows")
    async def start(self, publication: Publication, input: Json, key: str) -> StartedRun:
        """Start an execution for a visitor, as the publisher. See `publications.start_run`."""
        return await start_run(self.app, self.caller, publication, input, key)


class AnswerLinkVerbs(Verbs):
    """Actions of the recipient of a notice, who has no account, by its verified link."""

    @verb("operator", "answer gates", audit=False)
    async def gate(self, link: AnswerLink) -> LinkedGateView:
        """Return the gate of a link. It is not answered by that. Raises as `linked_gate` does."""
        return await linked_gate(self.app, link)

    @verb("operator", "answer gates")
    async def answer(self, link: AnswerLink, action: str, data: Json = None, *, comment: str = "") -> LinkAnswerView:
        """Answer the gate of a link as its recipient. Raises as `answer_by_link` does."""
        return await answer_by_link(self.app, link, action, data, comment)
