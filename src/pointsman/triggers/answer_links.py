"""Answer links: signed links in notices, with which a recipient answers one gate without an account.

    notice ─▶ sign(question, recipient) ─▶ https://…/answer#TOKEN ─▶ read(token) ─▶ AnswerLink ─▶ page, answer

A token names the question (execution, gate, the time at which it was asked, digest), the recipient and the expiry, and
is signed by HMAC with a key of the store. It opens the gate only while the gate asks the same question, its approvers
allow links (`byLink`), and the settings still have the recipient. An answer is recorded under a key that derives from
question and recipient, so that all links of a question to a recipient together take one answer.

The token is in the fragment of the link, which browsers do not send: programs that fetch links in messages neither
answer a gate nor write the token to logs of servers and proxies.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from typing import ClassVar, Final, NamedTuple

import msgspec
from msgspec import Struct
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see
from pointsman.context import AppContext, Part
from pointsman.engine.decide.human_tasks import AnswerDiffers, GateChangedMeanwhile, GateClosedAlready
from pointsman.errors import CallerError
from pointsman.executions.children import rows_and_view
from pointsman.executions.opening import open_execution
from pointsman.executions.views import GateView
from pointsman.settings.sections import RecipientSettings
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ANYONE, GateEntry, InboxQuery
from pointsman.triggers.destinations import DESTINATIONS
from pointsman.values import ExecutionId, Json

KIND: Final = "answer-links"
"""Kind of the single entry with the signing key."""
KEY: Final = "key"
TOKEN_CHARS_MAX: Final = 4_000
KEY_BYTES: Final = 32
FORGED: Final = "Open the link exactly as it stands in the message."
OPEN_APP: Final = "The web app shows the open gates to people with an account."


class AnswerLinkInvalid(CallerError):
    """The link was not made by this server, was damaged or revoked, or its workflow does not allow links."""

    code: ClassVar[str] = "answer-link-invalid"


class AnswerLinkExpired(CallerError):
    """The lifetime of the link has ended."""

    code: ClassVar[str] = "answer-link-expired"


class AnswerLinkUsed(CallerError):
    """The recipient has answered the question already."""

    code: ClassVar[str] = "answer-link-used"


class Question(Struct, frozen=True, array_like=True):
    """One state of an open gate: what it asks and shows since a moment."""

    execution: str
    gate: str
    asked: float
    """When the gate opened, or changed."""
    digest: str


class LinkClaims(Struct, frozen=True, array_like=True):
    """What a token contains."""

    question: Question
    to: str
    """The destination in the settings."""
    recipient: str
    """The name of the recipient."""
    expires: int
    """Unix seconds."""


class AnswerLink(NamedTuple):
    """A verified link."""

    question: Question
    caller: Caller
    """The recipient."""
    expires: int

    @property
    def target(self) -> str:
        """The target in audit entries."""
        return f"execution={self.question.execution}, gate={self.question.gate}"

    @property
    def answer_key(self) -> str:
        """Idempotency key of the answer: the same for every link of this question to this recipient."""
        named = msgspec.json.encode((self.question, self.caller.name))
        return f"link-{hashlib.sha256(named).hexdigest()[:40]}"


class LinkedGateView(TypedDict):
    """The gate that a link opens."""

    workflowId: str
    recipient: str
    """The name under which the answer is recorded."""
    expiresAt: float
    scripted: bool
    """The scripted model answered in the execution: the content may be made up."""
    gate: GateView


class LinkAnswerView(TypedDict):
    """The outcome of an answer by a link."""

    closed: bool
    """Whether the gate is closed; false: it waits for the answers of other people."""


class AnswerLinks:
    """Answer links of one store."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def sign(self, question: Question, to: str, recipient: str, expires: float) -> str:
        """Return a token. Raises the errors of the store."""
        claims = msgspec.json.encode(LinkClaims(question, to, recipient, int(expires)))
        return f"{_text(claims)}.{_text(_signature(await self._key(), claims))}"

    async def read(self, token: str) -> AnswerLink:
        """Verify a token. Raises `AnswerLinkInvalid`, `AnswerLinkExpired`."""
        claims = await self._claims(token)
        settings = (await self._app[DESTINATIONS].read()).settings.get(claims.to)
        recipient = None
        if settings is not None and settings.answer_links:
            recipient = next((one for one in settings.recipients if one.name == claims.recipient), None)
        if recipient is None:
            raise AnswerLinkInvalid("this link was revoked", hint=OPEN_APP)
        if claims.expires <= self._app.clock.now():
            raise AnswerLinkExpired("this link has expired", hint=OPEN_APP)
        return AnswerLink(claims.question, caller_of(recipient), claims.expires)

    async def revoke(self) -> None:
        """Replace the signing key: all links that were sent are invalid from now on, in every process."""
        await self._app.store.entries.put(KIND, KEY, os.urandom(KEY_BYTES).hex())

    async def _claims(self, token: str) -> LinkClaims:
        body, _, signature = token.partition(".")
        try:
            claims, signed = urlsafe_b64decode(body.encode("ascii")), urlsafe_b64decode(signature.encode("ascii"))
        except ValueError:
            claims, signed = b"", b""
        if not hmac.compare_digest(_signature(await self._key(), claims), signed):
            raise AnswerLinkInvalid("this link is not valid", hint=FORGED)
        return msgspec.json.decode(claims, type=LinkClaims)

    async def _key(self) -> bytes:
        """Return the signing key; make it if the store has none."""
        entries = self._app.store.entries
        while (entry := await entries.find(KIND, KEY)) is None:
            try:
                await entries.put(KIND, KEY, os.urandom(KEY_BYTES).hex(), after=0)
            except EntryMoved:
                continue  # Another process made it.
        return bytes.fromhex(str(entry.value))


ANSWER_LINKS: Final = Part[AnswerLinks]("answer links", AnswerLinks)


def caller_of(recipient: RecipientSettings) -> Caller:
    """Return the caller who answers by a link: the recipient, with the groups of the settings."""
    return Caller(name=recipient.name, role="operator", groups=recipient.groups, entrance="link")


def question_of(entry: GateEntry) -> Question:
    return Question(entry.execution, entry.gate, entry.opened, entry.digest)


def asks(entry: GateEntry, recipient: RecipientSettings) -> bool:
    """Return whether a gate waits for the answer of a recipient."""
    return is_asked(recipient, entry.users, entry.groups) and recipient.name not in entry.without


def is_asked(recipient: RecipientSettings, users: Collection[str], groups: Collection[str]) -> bool:
    """Return whether a recipient is among the users and groups that a gate asks."""
    return ANYONE in users or recipient.name in users or not {*recipient.groups}.isdisjoint(groups)


async def open_gate(app: AppContext, question: Question) -> GateEntry | None:
    """Return the gate while it asks this question; None: it was closed or changed."""
    after = question.asked, ExecutionId(question.execution), ""
    while page := await app.store.executions.inbox(InboxQuery(after=after, limit=20)):
        for entry in page:
            if (entry.opened, entry.execution) != (question.asked, question.execution):
                return None
            if entry.gate == question.gate:
                return entry if entry.digest == question.digest else None
        after = page[-1].opened, page[-1].execution, page[-1].gate
    return None


async def linked_gate(app: AppContext, link: AnswerLink) -> LinkedGateView:
    """Return the gate of a link. Raises `GateClosedAlready`, `GateChangedMeanwhile`, `AnswerLinkUsed`,
    `AnswerLinkInvalid`, and `UnknownExecution` if the recipient may not see the execution."""
    question = link.question
    view = (await rows_and_view(app.runtime, app.settings, question.execution))[1]
    own = (one for one in view["waiting"] if "executionId" not in one)
    gate = next((one for one in own if one["gateId"] == question.gate), None)
    if gate is None:
        raise GateClosedAlready("this question was answered already, or its time is over", hint=OPEN_APP)
    if (gate["digest"], gate["openedAt"]) != (question.digest, question.asked):
        raise GateChangedMeanwhile(
            "the data of this question have changed since the message was sent", hint="Another message was sent."
        )
    _must_allow(by_link=isinstance(gate["approvers"], dict) and bool(gate["approvers"].get("byLink")))
    await must_see(app, link.caller, question.execution)
    if any(vote["by"] == link.caller.name for vote in gate["votes"]):
        raise AnswerLinkUsed("you have answered this question already", hint=OPEN_APP)
    return {
        "workflowId": view["workflowId"],
        "recipient": link.caller.name,
        "expiresAt": link.expires,
        "scripted": view["scripted"],
        "gate": gate,
    }


async def answer_by_link(app: AppContext, link: AnswerLink, action: str, data: Json, comment: str) -> LinkAnswerView:
    """Answer the gate of a link as its recipient. The same answer twice succeeds twice and counts once.

    Raises as `linked_gate` does, and the errors of an answer that the gate does not accept.
    """
    question, caller = link.question, link.caller
    execution = await open_execution(app, question.execution)
    try:
        if await execution.has_answer(question.gate, action, data, by=caller.name, key=link.answer_key):
            return {"closed": await open_gate(app, question) is None}
        entry = await open_gate(app, question)
        if entry is None:
            await linked_gate(app, link)  # Raises how the gate differs.
            raise GateClosedAlready("this question was answered already", hint=OPEN_APP)
        _must_allow(by_link=entry.by_link)
        await must_see(app, caller, question.execution)
        await execution.answer(
            question.gate,
            action,
            data,
            comment=comment,
            by=caller.name,
            groups=caller.groups,
            key=link.answer_key,
            digest=question.digest,
        )
    except AnswerDiffers as why:
        raise AnswerLinkUsed("you have answered this question already", hint=OPEN_APP) from why
    return {"closed": await open_gate(app, question) is None}


def _must_allow(*, by_link: bool) -> None:
    if not by_link:
        raise AnswerLinkInvalid("this workflow does not allow answers by links", hint=OPEN_APP)


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


def _signature(key: bytes, claims: bytes) -> bytes:
    return hmac.digest(key, b"answer-link 1\n" + claims, hashlib.sha256)
