"""Verbs of conversations, commands and memory. See `auth.verbs` for how a verb is written.

A command is what a person types: "Write a proposal, send to john@example.com" is a goal and the address to which the
result is sent.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Final

from pointsman.auth.policy import must_see_memory, must_see_session, sees, sees_execution, sees_memory, sees_session
from pointsman.auth.subjects import UnknownWorkflow, unknown_session
from pointsman.auth.verbs import Verbs, verb
from pointsman.chat.adapter import ChatRequest, StreamedAnswer, begin
from pointsman.chat.conversations import (
    ConversationEntry,
    ConversationList,
    ConversationView,
    SessionRecords,
    conversation_view,
    conversations_page,
    found_conversations,
    free_session,
    records_of,
    set_title,
)
from pointsman.chat.memories import (
    HistoryPage,
    Memories,
    MemorySearchResult,
    OneMemory,
    OwnerPage,
    OwnerView,
    StoredMemory,
    ValuePage,
    history_page,
    memory_page,
    nothing_remembered,
    owner_view,
    writer_for,
)
from pointsman.chat.published import VisitorAnswer, send_message
from pointsman.chat.workflows import ChatWorkflowPage, ChatWorkflowView, chat_workflows, chat_workflows_page
from pointsman.errors import CallerError
from pointsman.executions import deletion
from pointsman.executions.execution import Execution
from pointsman.executions.opening import finish_last_turn, open_execution, open_turn, reach_execution
from pointsman.executions.start import start_as
from pointsman.paging import page_by
from pointsman.store.records import Conversation
from pointsman.tools.mail import MailAddressInvalid, address_of
from pointsman.triggers.publications import Publication
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import pipeline_of
from pointsman.workflows.offers import withheld

CHARS_MAX: Final = 100_000
PHRASE_CHARS_MAX: Final = 120
"""Maximum distance between an address and a phrase before it that asks to send something there."""

_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,10}")
_VERB: Final = r"(?:send|sent|e-?mail|mail|forward|deliver)"
_OPENING: Final = r"(?:^|(?P<stop>[.!?])\s|[,;:\n]|\s-\s|\b(?:and|then)\b)\s*(?:and\s+|then\s+|please\s+|also\s+)*"
_IT: Final = r"(?:it|this|that|them)"
_REQUEST_PHRASES: Final = (
    re.compile(
        rf"{_OPENING}{_VERB}(?:\s+(?!to\b|at\b)[\w'-]+){{0,5}}(?:\s+to(?:\s+\w+\s+at)?|\s+at)?\s*$", re.IGNORECASE
    ),
    re.compile(rf"\s(?:(?:send|forward|deliver)(?:\s+{_IT})?|e?-?mail\s+{_IT})\s+to\s*$", re.IGNORECASE),
    re.compile(r"\sto\s*:?\s*$", re.IGNORECASE),
)
"""A clause of its own; a clause without a comma; an address at the end ("… to ann@example.org")."""
_ANOTHER: Final = re.compile(r"\s*(?:,|;|&|\band\b|\bor\b)\s*[<(\"']*[\w.+-]{1,64}@", re.IGNORECASE)


class CommandInvalid(CallerError):
    """The command contains no task, or is ambiguous. Nothing was started."""

    code: ClassVar[str] = "command-invalid"


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed command."""

    goal: str
    email: str | None = None

    @property
    def input(self) -> JsonObject:
        return {"goal": self.goal, "email": self.email}


def parse_command(text: str) -> Command:
    """Parse a command. Raises `CommandInvalid`."""
    if len(text) > CHARS_MAX:
        hint = "Store the material where a tool of the workflow can read it, and send its address."
        raise CommandInvalid(f"the command has {len(text)} characters; the maximum is {CHARS_MAX}", hint=hint)
    for match in _ADDRESS.finditer(text):
        ends = not text[match.end() :].strip(" .!?>)\"'\n")
        goal = _without_phrase(text[: match.start()].rstrip("<(\"'"), at_the_end=ends)
        if goal is not None:
            if _ANOTHER.match(text, match.end()):
                raise CommandInvalid(
                    "the command contains several addresses", hint="Use one address; it can be that of a mailing list."
                )
            return command_of(_joined(goal, text[match.end() :]), match[0])
    return command_of(text)


def command_of(goal: str, email: str | None = None) -> Command:
    """Return a command from its parts. Raises `CommandInvalid`."""
    goal, email = goal.strip(), (email or "").strip()
    if not goal:
        raise CommandInvalid("the command contains no task", hint="Write, for example: Write a proposal for …")
    try:
        return Command(goal, address_of(email) if email else None)
    except MailAddressInvalid as why:
        raise CommandInvalid(str(why), hint=why.hint) from None


def _without_phrase(before: str, *, at_the_end: bool) -> str | None:
    """Return the text before a phrase that asks to send the result; None if no such phrase precedes the address."""
    begins = max(0, len(before) - PHRASE_CHARS_MAX)
    for pattern in _REQUEST_PHRASES if at_the_end else _REQUEST_PHRASES[:2]:
        match = pattern.search(before, begins)
        if match is not None:
            stop = match.groupdict().get("stop") or ""
            return before[: match.start()].rstrip(" ,;:-\n\t") + stop
    return None


def _joined(goal: str, after: str) -> str:
    """Return the goal with the text after the address."""
    rest = after.lstrip(" .,;!?>)\"'\n\t")
    if not rest:
        return goal.rstrip(".")
    return f"{goal} {rest}" if goal else rest


def _no_model(workflow: str) -> UnknownWorkflow:
    return UnknownWorkflow(
        f"there is no model {workflow!r} here", hint="GET /v1/models lists the workflows that you may use as models."
    )


class ConversationVerbs(Verbs):
    """Actions of a caller on conversations. A conversation belongs to the person who started it; admins see all."""

    @verb("viewer", "see workflows", audit=False)
    async def workflows(
        self, *, search: str = "", ids: Collection[str] | None = None, after: str | None = None, limit: int = 50
    ) -> ChatWorkflowPage:
        """Return a page of the workflows that the caller can chat with, see `chat_workflows_page`."""
        page = await chat_workflows_page(self.app, self.caller, words=search, ids=ids, after=after, limit=limit)
        return {"workflows": page.entries, "next": page.next}

    @verb("viewer", "see workflows", audit=False)
    async def models(self) -> builtins.list[ChatWorkflowView]:
        """Return all workflows that the caller can chat with and that are offered as OpenAI models."""
        hidden = await withheld(self.app.store.entries, "model")
        return [one for one in await chat_workflows(self.app, self.caller) if one["id"] not in hidden]

    @verb("viewer", "see workflows", audit=False)
    async def model(self, id: str) -> ChatWorkflowView:
        """Return one of the `models`. Raises `UnknownWorkflow`."""
        hidden = await withheld(self.app.store.entries, "model")
        page = await chat_workflows_page(self.app, self.caller, ids=[id], limit=1)
        if id in hidden or not page.entries:
            raise _no_model(id)
        return page.entries[0]

    @verb("operator", "run workflows", made=lambda dialogue: {"executionId": dialogue.execution.id})
    async def begin(self, request: ChatRequest) -> StreamedAnswer:
        """Process the last message of a chat: start a turn, or answer the gate that asked. See `adapter.begin`. Raises
        `UnknownWorkflow` also if the workflow is not offered as an OpenAI model."""
        if request.workflow.partition("@")[0] in await withheld(self.app.store.entries, "model"):
            raise _no_model(request.workflow)
        return await begin(self.app, self.caller, request)

    @verb("operator", "run workflows", made=lambda answer: {"executionId": answer.execution})
    async def visit(self, publication: Publication, message: str, conversation: str | None, key: str) -> VisitorAnswer:
        """Start a turn for a visitor of a published chat, as the publisher. See `published.send_message`."""
        return await send_message(self.app, self.caller, publication, message, conversation=conversation, key=key)

    @verb("operator", "run workflows", made=lambda execution: {"executionId": execution.id})
    async def run_pipeline(self, command: Command) -> Execution:
        """Start the workflow that the setting `pipeline` names, in a session of its own."""
        session = await free_session(self.app)
        return await start_as(self.app, self.caller, await pipeline_of(self.app), command.input, session=session)

    @verb("viewer", "see conversations", audit=False)
    async def records(self, session: str) -> SessionRecords:
        """Return the records of a session, of the executions that the caller may see. Raises `UnknownSession`."""
        if not await sees_session(self.app, self.caller, session):
            raise unknown_session(session)
        return await records_of(self.app, session, sees=lambda one: sees(self.app, self.caller, one))

    @verb("viewer", "see conversations", audit=False)
    async def list(
        self, *, everyone: bool = False, workflow: str | None = None, before: str | None = None, limit: int = 50
    ) -> ConversationList:
        """Return a page of the caller's conversations, or for admins everyone's, see `conversations_page`."""
        self._may_see(everyone=everyone)
        return await conversations_page(
            self.app, self.caller, everyone=everyone, workflow=workflow, before=before, limit=limit
        )

    @verb("viewer", "see conversations", audit=False)
    async def search(self, words: str, *, everyone: bool = False, limit: int = 50) -> builtins.list[ConversationEntry]:
        """Return the conversations with all these words in a turn or in the title, see `found_conversations`."""
        self._may_see(everyone=everyone)
        return await found_conversations(self.app, self.caller, words, everyone=everyone, limit=limit)

    @verb("viewer", "see conversations", audit=False)
    async def get(self, session: str) -> ConversationView:
        """Return the messages and turns of a conversation. Raises `UnknownSession`, `InputInvalid`."""
        await must_see_session(self.app, self.caller, session)
        return await conversation_view(self.app, session)

    @verb("viewer", "see conversations", audit=False)
    async def stored(self, session: str) -> Conversation:
        """Return the messages of a conversation, and whether an agent closed it; empty and open if it is new."""
        await self._must_see_known(session)
        await finish_last_turn(self.app.runtime, session)
        return await self.app.store.sessions.load(session)

    @verb("operator", "run workflows", audit=False)
    async def unused_name(self) -> str:
        """Return the name of a conversation that does not exist yet."""
        return await free_session(self.app)

    @verb("operator", "run workflows", audit=False)
    async def open_turn(self, session: str, *, run: bool) -> Execution | None:
        """Return the turn of a conversation that runs or waits: opened for execution (`run`), or only to send it
        requests."""
        await self._must_see_known(session)
        turn = await open_turn(self.app.runtime, session)
        if turn is None:
            return None
        return await (open_execution(self.app, turn) if run else reach_execution(self.app, turn))

    @verb("operator", "run workflows", target=("session",))
    async def rename(self, session: str, title: str, *, match: str | None = None) -> ConversationEntry:
        """Set the title of a conversation; an empty title removes it. `match`: see `etags.match_etag`.

        Raises the errors of `set_title`."""
        return await set_title(self.app, self.caller, session, title, match=match)

    @verb("operator", "run workflows", target=("session",))
    async def reopen(self, session: str) -> None:
        """Reopen a conversation that an agent closed. Raises `UnknownSession`."""
        await must_see_session(self.app, self.caller, session)
        await self.app.store.sessions.close(session, closed=False)

    @verb("operator", "run workflows", target=("session",))
    async def delete(self, session: str) -> builtins.list[ExecutionId]:
        """Delete a conversation for good, with its executions and memory. Return the ids of the executions.

        Raises `UnknownSession`, `ExecutionUnfinished`.
        """
        await must_see_session(self.app, self.caller, session)
        return await deletion.delete_session(self.app, session)

    async def _must_see_known(self, session: str) -> None:
        """Raise `UnknownSession` if the caller may not see the conversation. At the machine, it may also be new."""
        if not self.caller.is_machine:
            await must_see_session(self.app, self.caller, session)

    def _may_see(self, *, everyone: bool) -> None:
        if everyone:
            self.caller.must_have("admin", "see the conversations of others")


class MemoryVerbs(Verbs):
    """Actions of a caller on memory. A memory is visible to callers who see its owner: an execution, a session, a
    person, a workflow; shared memory to all callers."""

    @verb("viewer", "see memory", audit=False)
    async def owners(self, *, after: str | None = None, limit: int | None = None) -> OwnerPage:
        """Return a page of the owners whose memory the caller sees, by scope and name, with their sizes."""

        async def sees(owner: OwnerView) -> bool:
            return await sees_memory(self.app, self.caller, owner["scope"], owner["owner"])

        views = [owner_view(one) for one in await Memories(self.app).owners()]
        page = await page_by("id", views, after=after, limit=len(views) if limit is None else limit, sees=sees)
        return {"owners": page.entries, "next": page.next}

    @verb("viewer", "see memory", audit=False)
    async def page(
        self,
        scope: str,
        owner: str,
        *,
        namespace: str = "",
        search: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> ValuePage:
        """Return a page of values, or of those that match a search, see `memory_page`."""
        memory = await self._of(scope, owner, namespace)
        return await memory_page(memory, search=search, after=after, limit=limit)

    @verb("viewer", "see memory", audit=False)
    async def values(self, scope: str, owner: str, *, namespace: str = "", limit: int) -> list[StoredMemory]:
        """Return the first values by namespace and key."""
        return await (await self._of(scope, owner, namespace)).list(limit=limit)

    @verb("viewer", "see memory", audit=False)
    async def search(
        self, scope: str, owner: str, words: str, *, namespace: str = "", limit: int
    ) -> MemorySearchResult:
        """Return the values that share words with a text or have a similar meaning, the best match first."""
        return await (await self._of(scope, owner, namespace)).find(words, limit=limit)

    @verb("viewer", "see memory", audit=False)
    async def get(self, scope: str, owner: str, key: str, *, namespace: str = "") -> Json:
        """Return the value of a key. Raises `NoSuchMemory`."""
        value = await (await self._of(scope, owner, namespace)).get(key)
        if value is None:
            raise nothing_remembered(key)
        return value

    @verb("viewer", "see memory", audit=False)
    async def history(
        self, scope: str, owner: str, key: str, *, namespace: str = "", after: str | None = None, limit: int = 50
    ) -> HistoryPage:
        """Return a page of the values that a key has and had, see `history_page`. Writers that are executions which the
        caller does not see are hidden. Raises `NoSuchMemory`, `PositionInvalid`."""

        async def sees(execution: str) -> bool:
            return await sees_execution(self.app, self.caller, execution)

        return await history_page(await self._of(scope, owner, namespace), key, sees=sees, after=after, limit=limit)

    @verb("operator", "run workflows", target=("key", "scope", "owner", "namespace"))
    async def set(
        self, scope: str, owner: str, key: str, value: Json, *, ttl: float | None = None, namespace: str = ""
    ) -> Json:
        """Set a value, for `ttl` seconds or for ever. Raises `MemoryFull`, `MemoryKeyInvalid`."""
        memory = await self._of(scope, owner, namespace)
        return await memory.set(key, value, ttl=ttl, by=writer_for(self.caller))

    @verb("operator", "run workflows", target=("key", "scope", "owner", "namespace"))
    async def append(
        self, scope: str, owner: str, key: str, value: Json, *, ttl: float | None = None, namespace: str = ""
    ) -> Json:
        """Append to a list and return all of it. Raises as `set`, and `MemoryNotAList`."""
        memory = await self._of(scope, owner, namespace)
        return await memory.append(key, value, ttl=ttl, by=writer_for(self.caller))

    @verb("operator", "run workflows", target=("key", "number", "scope", "owner", "namespace"))
    async def restore(self, scope: str, owner: str, key: str, number: int, *, namespace: str = "") -> Json:
        """Restore a former value of a key, with its original expiry. Raises `NoSuchMemory`."""
        memory = await self._of(scope, owner, namespace)
        return await memory.put_back(key, number, by=writer_for(self.caller))

    @verb("operator", "run workflows", target=("key", "scope", "owner", "namespace"))
    async def delete(self, scope: str, owner: str, key: str, *, namespace: str = "") -> None:
        """Delete a value and its history. Raises `NoSuchMemory`."""
        if not await (await self._of(scope, owner, namespace)).delete(key):
            raise nothing_remembered(key)

    @verb("operator", "run workflows", target=("scope", "owner", "namespace"))
    async def clear(self, scope: str, owner: str, *, namespace: str = "") -> int:
        """Delete all values and their history. Return the number of values."""
        return await (await self._of(scope, owner, namespace)).clear()

    @verb("admin", "compute embeddings")
    async def reindex(self) -> int:
        """Compute all embeddings again and return their number, see `Memories.reindex`."""
        return await Memories(self.app).reindex()

    async def _of(self, scope: str, owner: str, namespace: str) -> OneMemory:
        """Return a memory. Raises `UnknownMemory`, `MemoryKeyInvalid`, `NotAllowed`, and the errors for an owner that
        does not exist."""
        memory = Memories(self.app).of(scope, owner, namespace=namespace)
        # At the command line a workflow that is not saved has memory too, and so has a deleted owner.
        if self.caller.entrance != "shell":
            await must_see_memory(self.app, self.caller, scope, owner)
        return memory
