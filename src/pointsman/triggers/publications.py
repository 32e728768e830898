"""Publications: workflows that people without an account start by a link, on a page or in a frame of another site.

    publish ─▶ a random token ─▶ https://…/form/TOKEN   (the form)     https://…/embed/TOKEN        (in frames of
                                 https://…/talk/TOKEN   (the chat)     https://…/embed/chat/TOKEN    `origins`)
    visitor ─▶ the input ─▶ an execution of the publisher ─▶ a signed name of the run ─▶ its status and its output

The chat of visitors is in `chat.published`. A publication also states whether callers with a key are offered the
workflow as an MCP tool and as an OpenAI model, see `workflows.offers`.

Nothing is published unless its owner does so. Executions belong to the publisher, whose rights are checked at each
start. A visitor who knows the token sees the texts and the input fields of the form; one who also has the signed name
of a run, its status and, if the publisher allows it, its output. Unpublishing deletes token and signing key, so that
both are refused by the next request, in every process.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import ClassVar, Final, Literal, cast

import msgspec
from msgspec import Struct, field
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.rate_limiter import RateLimiter
from pointsman.auth.sharing import must_own
from pointsman.auth.subjects import DEFINITIONS, InputInvalid
from pointsman.context import AppContext, Part
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.errors import AuthorError, CallerError
from pointsman.etags import content_etag, delete_after, etag_of, matched_entry, put_after
from pointsman.executions.children import view_of
from pointsman.executions.inputs import text_field
from pointsman.executions.start import start_as
from pointsman.triggers.starts import owner_for
from pointsman.values import ExecutionId, Instant, Json, JsonObject
from pointsman.workflows.authors import Party, owner_of
from pointsman.workflows.library import LIBRARY, read_saved_beside
from pointsman.workflows.offers import PUBLICATION

TOKEN: Final = "publication-token"
"""Kind of the entries that name the workflow of a token."""
TRIGGER: Final = "form"
"""Kind of the trigger of its executions."""
ORIGIN: Final = re.compile(r"https?://[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
"""An origin without wildcards: it becomes a part of a content security policy."""
ORIGINS_MAX: Final = 20
TITLE_CHARS_MAX: Final = 200
TEXT_CHARS_MAX: Final = 4_000
SUGGESTIONS_MAX: Final = 6
SUGGESTION_CHARS_MAX: Final = 200
STARTS_PER_MINUTE: Final = 10
"""For each publication and network address."""
READS_PER_S: Final = 5.0
READS_AT_ONCE: Final = 60
ENDED: Final = frozenset({"completed", "failed", "cancelled"})

RunStatus = Literal["running", "completed", "failed", "cancelled"]


class NotPublished(CallerError):
    """No publication has this token, or it was withdrawn."""

    code: ClassVar[str] = "not-published"


class PublicationInvalid(CallerError):
    """A part of a publication cannot be used."""

    code: ClassVar[str] = "publication-invalid"


class PublicationRequest(Struct, frozen=True, kw_only=True):
    """What the owner of a workflow chooses for its pages, and for callers with a key."""

    form: bool = True
    """Whether the form is published."""
    chat: bool = False
    """Whether the chat is published."""
    mcp: bool = True
    """Whether callers with a key are offered the workflow as an MCP tool."""
    model: bool = True
    """Whether callers with a key are offered the workflow as an OpenAI model."""
    title: str = ""
    """Empty: the name of the workflow."""
    text: str = ""
    thanks: str = ""
    """What a visitor reads when the execution has completed; empty: a usual text."""
    greeting: str = ""
    """The first message of the chat; empty: a usual text."""
    suggestions: tuple[str, ...] = ()
    """Messages that a visitor of the chat can send with one click."""
    login: bool = False
    """Whether visitors must be logged in to this server."""
    output: bool = True
    """Whether visitors see the output."""
    origins: tuple[str, ...] = ()
    """Sites whose pages may contain the form or the chat in a frame."""

    @property
    def is_published(self) -> bool:
        """Whether visitors can use the workflow."""
        return self.form or self.chat


class Publication(PublicationRequest, frozen=True, kw_only=True):
    """A stored publication."""

    workflow: str
    token: str
    signing_key: str
    owners: list[Party] = field(default_factory=list[Party])
    """The people in whose name it starts executions."""
    changed: Instant = Instant(0.0)
    by: str = ""


class PublicationView(TypedDict):
    """The publication of a workflow, for its owner."""

    published: bool
    """Whether visitors can use the form or the chat."""
    form: bool
    chat: bool
    mcp: bool
    """Whether callers with a key are offered the workflow as an MCP tool."""
    model: bool
    """Whether callers with a key are offered the workflow as an OpenAI model."""
    path: str | None
    """Path of the form; null: it is not published."""
    embedPath: str | None
    """Path of the form for frames; null: no other site may contain it."""
    chatPath: str | None
    """Path of the chat; null: it is not published."""
    chatEmbedPath: str | None
    """Path of the chat for frames; null: no other site may contain it."""
    title: str
    text: str
    thanks: str
    greeting: str
    suggestions: list[str]
    login: bool
    output: bool
    origins: list[str]
    changedAt: float | None
    changedBy: str
    etag: str
    """ETag of the present version, for `If-Match`; empty: nothing was saved."""


class FormView(TypedDict):
    """A published form, for visitors."""

    title: str
    text: str
    thanks: str
    login: bool
    """Whether visitors must be logged in."""
    output: bool
    input: Json
    """JSON Schema of the input."""


class StartedRun(TypedDict):
    """A started execution, for the visitor who started it."""

    run: str
    """Signed name of the run. Whoever has it and the token can read the run."""


class FormRunView(TypedDict):
    """The state of a run, for the visitor who started it."""

    status: RunStatus
    waiting: bool
    """Whether it waits for a person."""
    output: Json
    """null, unless it has completed and the publisher shows it."""


NOT_PUBLISHED: Final[PublicationView] = {
    "published": False,
    "form": False,
    "chat": False,
    "mcp": True,
    "model": True,
    "path": None,
    "embedPath": None,
    "chatPath": None,
    "chatEmbedPath": None,
    "title": "",
    "text": "",
    "thanks": "",
    "greeting": "",
    "suggestions": [],
    "login": False,
    "output": True,
    "origins": [],
    "changedAt": None,
    "changedBy": "",
    "etag": "",
}


def _start_limiter(app: AppContext) -> RateLimiter:
    says = f"starts more than {STARTS_PER_MINUTE} runs of a form per minute"
    return RateLimiter(app.clock, per_s=STARTS_PER_MINUTE / 60, burst=STARTS_PER_MINUTE, says=says)


def _read_limiter(app: AppContext) -> RateLimiter:
    says = f"reads a form more than {READS_PER_S:g} times per second"
    return RateLimiter(app.clock, per_s=READS_PER_S, burst=READS_AT_ONCE, says=says)


STARTS: Final = Part[RateLimiter]("starts of forms", _start_limiter)
READS: Final = Part[RateLimiter]("reads of forms", _read_limiter)


async def publication_of(app: AppContext, caller: Caller, workflow: str) -> PublicationView:
    """Return the publication of a workflow to its owner or an admin. Raises `NotAllowed`."""
    await must_own(app, caller, workflow, "see its publication")
    entry = await app.store.entries.find(PUBLICATION, workflow)
    return NOT_PUBLISHED if entry is None else publication_view(msgspec.convert(entry.value, Publication))


async def publish(
    app: AppContext,
    caller: Caller,
    workflow: str,
    request: PublicationRequest,
    *,
    new_link: bool,
    match: str | None = None,
) -> PublicationView:
    """Publish a workflow, or change its publication. The link stays unless `new_link` is set. `match`: see
    `etags.match_etag`.

    Raises `NotAllowed` unless the caller owns the workflow, `UnknownWorkflow`, `PublicationInvalid`, `RevisionMoved`.
    """
    await must_own(app, caller, workflow, "publish it")
    definition, _ = await app[DEFINITIONS].saved(workflow)
    _check(request)
    if request.chat:
        _check_chat(definition)
    what = f"the publication of {workflow!r}"
    after = await matched_entry(app.store.entries, PUBLICATION, workflow, match, what)
    entry = await app.store.entries.find(PUBLICATION, workflow)
    before = None if entry is None else msgspec.convert(entry.value, Publication)
    keeps = before is not None and not new_link
    publication = _signed(app, caller, workflow, request, before if keeps else None)
    value = msgspec.to_builtins(publication)
    await put_after(app.store.entries, PUBLICATION, workflow, value, after=after, what=what)
    if before is not None and not keeps:
        await app.store.entries.delete(TOKEN, before.token)
    await app.store.entries.put(TOKEN, publication.token, workflow)
    return publication_view(publication)


async def unpublish(app: AppContext, caller: Caller, workflow: str, *, match: str | None = None) -> None:
    """Withdraw a publication. Its links and the runs that were started by them are refused from now on. What callers
    with a key are offered stays as it is. Idempotent without `match`: see `etags.match_etag`. Raises
    `RevisionMoved`."""
    await must_own(app, caller, workflow, "unpublish it")
    entry = await app.store.entries.find(PUBLICATION, workflow)
    before = None if entry is None else msgspec.convert(entry.value, Publication)
    if before is None or (before.mcp and before.model):
        await drop_publication(app, workflow, match=match)
        return
    what = f"the publication of {workflow!r}"
    after = await matched_entry(app.store.entries, PUBLICATION, workflow, match, what)
    request = PublicationRequest(form=False, mcp=before.mcp, model=before.model)
    rest = _signed(app, caller, workflow, request, None)
    await put_after(app.store.entries, PUBLICATION, workflow, msgspec.to_builtins(rest), after=after, what=what)
    await app.store.entries.delete(TOKEN, before.token)


def _signed(
    app: AppContext, caller: Caller, workflow: str, request: PublicationRequest, before: Publication | None
) -> Publication:
    """Return the publication with the link of `before`, or with a new one."""
    return Publication(
        **msgspec.structs.asdict(request),
        workflow=workflow,
        token=secrets.token_urlsafe(18) if before is None else before.token,
        signing_key=secrets.token_hex(32) if before is None else before.signing_key,
        owners=owner_of(caller),
        changed=Instant(app.clock.now()),
        by=caller.name,
    )


async def drop_publication(app: AppContext, workflow: str, *, match: str | None = None) -> None:
    """Delete the publication of a workflow, if there is one. Raises `RevisionMoved`."""
    what = f"the publication of {workflow!r}"
    after = await matched_entry(app.store.entries, PUBLICATION, workflow, match, what)
    entry = await app.store.entries.find(PUBLICATION, workflow)
    if entry is not None:
        await delete_after(app.store.entries, PUBLICATION, workflow, after=after, what=what)
        await app.store.entries.delete(TOKEN, msgspec.convert(entry.value, Publication).token)


async def find_publication(app: AppContext, token: str, address: str) -> Publication:
    """Return the publication with a token, for a visitor from this network address. Raises `NotPublished`,
    `TooManyRequests`."""
    app[READS].take(address)
    entries = app.store.entries
    named = await entries.find(TOKEN, token) if token.isprintable() else None
    entry = None if named is None else await entries.find(PUBLICATION, str(named.value))
    publication = None if entry is None else msgspec.convert(entry.value, Publication)
    if publication is None or not hmac.compare_digest(publication.token.encode(), token.encode()):
        raise not_published()
    return publication


def not_published() -> NotPublished:
    return NotPublished("nothing is published at this address", hint="Ask for a new link.")


async def startable_definition(app: AppContext, publication: Publication) -> WorkflowDefinition:
    """Return the definition that a visitor starts. Raises `NotPublished` if it is gone or switched off."""
    try:
        return await read_saved_beside(await app[LIBRARY].startable(publication.workflow))
    except (CallerError, AuthorError):
        raise not_published() from None


async def form_view(app: AppContext, publication: Publication) -> FormView:
    """Return the form for visitors. Raises `NotPublished` if it is not published, or if the workflow is gone or
    switched off."""
    if not publication.form:
        raise not_published()
    workflow = await startable_definition(app, publication)
    return {
        "title": publication.title or str(workflow.name or workflow.id),
        "text": publication.text,
        "thanks": publication.thanks,
        "login": publication.login,
        "output": publication.output,
        "input": workflow.input_schema or {"type": "object"},
    }


async def publisher_of(app: AppContext, publication: Publication) -> Caller:
    """Return the publisher with present rights. Raises `TriggerStopped`."""
    return await owner_for(app, publication.owners, publication.workflow)


async def start_run(app: AppContext, publisher: Caller, publication: Publication, input: Json, key: str) -> StartedRun:
    """Start an execution for a visitor. Repeated calls with one `key` start one. Raises the errors of `start_as`."""
    trigger: JsonObject = {"kind": TRIGGER, "id": publication.workflow}
    execution = await start_as(
        app, publisher, publication.workflow, input, key=f"form {publication.token} {key}", trigger=trigger
    )
    return {"run": signed_name(publication, execution.id)}


async def run_view(app: AppContext, publication: Publication, run: str) -> FormRunView:
    """Return the state of a run. Raises `NotPublished` for a name that this publication did not sign."""
    execution = signed_part(publication, run)
    if execution is None:
        raise NotPublished("this run was not started here", hint="Fill in the form again.")
    view = await view_of(app, ExecutionId(execution))
    status = cast("RunStatus", view["status"] if view["status"] in ENDED else "running")
    shows = status == "completed" and publication.output
    return {"status": status, "waiting": bool(view["waiting"]), "output": view["output"] if shows else None}


def publication_view(publication: Publication) -> PublicationView:
    token = publication.token
    return {
        "published": publication.is_published,
        "form": publication.form,
        "chat": publication.chat,
        "mcp": publication.mcp,
        "model": publication.model,
        "path": f"/form/{token}" if publication.form else None,
        "embedPath": f"/embed/{token}" if publication.form and publication.origins else None,
        "chatPath": f"/talk/{token}" if publication.chat else None,
        "chatEmbedPath": f"/embed/chat/{token}" if publication.chat and publication.origins else None,
        "title": publication.title,
        "text": publication.text,
        "thanks": publication.thanks,
        "greeting": publication.greeting,
        "suggestions": [*publication.suggestions],
        "login": publication.login,
        "output": publication.output,
        "origins": [*publication.origins],
        "changedAt": publication.changed,
        "changedBy": publication.by,
        "etag": etag_of(content_etag(msgspec.to_builtins(publication))),
    }


def _check(request: PublicationRequest) -> None:
    texts = (request.text, request.thanks, request.greeting)
    if len(request.title) > TITLE_CHARS_MAX or any(len(text) > TEXT_CHARS_MAX for text in texts):
        raise PublicationInvalid("a text of the page is too long", hint=f"At most {TEXT_CHARS_MAX} characters.")
    if len(request.suggestions) > SUGGESTIONS_MAX:
        raise PublicationInvalid("there are too many suggestions", hint=f"At most {SUGGESTIONS_MAX}.")
    if any(not 0 < len(text.strip()) <= SUGGESTION_CHARS_MAX for text in request.suggestions):
        raise PublicationInvalid(
            "a suggestion is empty or too long", hint=f"Each has 1 to {SUGGESTION_CHARS_MAX} characters."
        )
    if len(request.origins) > ORIGINS_MAX:
        raise PublicationInvalid("there are too many sites", hint=f"At most {ORIGINS_MAX}.")
    for origin in request.origins:
        if ORIGIN.fullmatch(origin) is None:
            raise PublicationInvalid(f"{origin[:100]!r} is not an origin", hint="Write https://www.example.com.")


def _check_chat(definition: WorkflowDefinition) -> None:
    """Raise `PublicationInvalid` for a workflow that cannot be started by a text."""
    try:
        text_field(definition, definition.input_schema)
    except InputInvalid as why:
        message = f"{definition.id!r} cannot be published as a chat: it does not accept a text as its input"
        raise PublicationInvalid(message, hint=why.hint) from None


def signed_name(publication: Publication, name: str) -> str:
    """Return a name with the signature of the publication: its holder may read what the name stands for."""
    return f"{name}.{_signature(publication, name)}"


def signed_part(publication: Publication, signed: str) -> str | None:
    """Return the name in a signed name; None: this publication did not sign it."""
    name, _, signature = signed.rpartition(".")
    return name if hmac.compare_digest(_signature(publication, name).encode(), signature.encode()) else None


def _signature(publication: Publication, name: str) -> str:
    return hmac.new(publication.signing_key.encode(), name.encode(), hashlib.sha256).hexdigest()
