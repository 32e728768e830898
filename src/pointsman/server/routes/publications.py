"""Operations on publications: for owners, and for visitors without a key; and the pages for frames of other sites."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from pointsman.chat.published import (
    ChatPageView,
    VisitorAnswer,
    VisitorConversation,
    chat_page_view,
    conversation_for_visitor,
)
from pointsman.server.context import CallerSession, CurrentServer, ServerContext, address_of, caller_of
from pointsman.server.operation import LazyRoute, Operations
from pointsman.server.pages import POLICY, app_page
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import Id, IfMatch, Match
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, EventStream, server_sent
from pointsman.triggers.publications import (
    NOT_PUBLISHED,
    ORIGINS_MAX,
    STARTS,
    SUGGESTION_CHARS_MAX,
    SUGGESTIONS_MAX,
    TEXT_CHARS_MAX,
    TITLE_CHARS_MAX,
    FormRunView,
    FormView,
    NotPublished,
    Publication,
    PublicationRequest,
    PublicationView,
    StartedRun,
    find_publication,
    form_view,
    publisher_of,
    run_view,
)
from pointsman.triggers.verbs import PublicationVerbs

router = Operations(tags=["publications"])
frames_router = APIRouter(include_in_schema=False, route_class=LazyRoute)

Token = Annotated[str, Path(min_length=1, max_length=100, description="The token of the link.")]
Conversation = Annotated[str, Path(min_length=1, max_length=400, description="`conversation` of the stream.")]
Run = Annotated[str, Path(min_length=1, max_length=400, description="`run` of the start.")]
NO_STORE: Final = {"cache-control": "no-store"}
WIDGET: Final = """(() => {
  const script = document.currentScript;
  const server = new URL(script.src).origin;
  const frame = document.createElement("iframe");
  const { form, chat, title } = script.dataset;
  frame.src = `${server}/embed/${chat ? "chat/" : ""}${encodeURIComponent(chat || form)}`;
  frame.title = title || (chat ? "Chat" : "Form");
  frame.style.cssText = "border: 0; width: 100%; height: 24rem";
  window.addEventListener("message", ({ source, origin, data }) => {
    if (source === frame.contentWindow && origin === server && typeof data?.height === "number")
      frame.style.height = `${Math.min(Math.max(data.height, 100), 8000)}px`;
  });
  script.after(frame);
})();
"""
"""Puts a published form or chat behind its script element, and lets the form set its own height."""
MESSAGE_CHARS_MAX: Final = 8_000


class PublicationBody(Body):
    """How a workflow is published."""

    model_config = sample(title="Order a letter", text="We answer within a day.", origins=["https://www.example.com"])
    form: bool = Field(default=True, description="Publish the form.")
    chat: bool = Field(default=False, description="Publish the chat. Requires a workflow that a text can start.")
    mcp: bool = Field(default=True, description="Offer the workflow to callers with a key as an MCP tool.")
    model: bool = Field(default=True, description="Offer the workflow to callers with a key as an OpenAI model.")
    title: str = Field(default="", max_length=TITLE_CHARS_MAX, description="Empty: the name of the workflow.")
    text: str = Field(default="", max_length=TEXT_CHARS_MAX, description="Text above the fields, or above the chat.")
    thanks: str = Field(
        default="", max_length=TEXT_CHARS_MAX, description="Text of the form after the execution has completed."
    )
    greeting: str = Field(default="", max_length=TEXT_CHARS_MAX, description="First message of the chat.")
    suggestions: list[Annotated[str, Field(max_length=SUGGESTION_CHARS_MAX)]] = Field(
        default_factory=list, max_length=SUGGESTIONS_MAX, description="Messages to send in the chat with one click."
    )
    login: bool = Field(default=False, description="Whether visitors must be logged in to this server.")
    output: bool = Field(default=True, description="Whether visitors see the output.")
    origins: list[Annotated[str, Field(max_length=300)]] = Field(
        default_factory=list,
        max_length=ORIGINS_MAX,
        description="Sites whose pages may contain the form or the chat in a frame.",
    )
    new_link: bool = Field(default=False, description="Replace the link: the former one is refused from now on.")


class FormBody(Body):
    """The input of a visitor."""

    model_config = sample(input={"goal": "harbour strike"}, key="0badcafe")
    input: JsonValue = Field(default=None, description="The input, as `input` of the form describes it.")
    key: str = Field(min_length=1, max_length=100, description="Repeated requests with one key start one execution.")


class VisitorMessageBody(Body):
    """A message of a visitor."""

    model_config = sample(message="When do you open?", conversation=None, key="0badcafe")
    message: str = Field(min_length=1, max_length=MESSAGE_CHARS_MAX)
    conversation: str | None = Field(
        default=None, max_length=400, description="`conversation` of an earlier stream; null: a new conversation."
    )
    key: str = Field(min_length=1, max_length=100, description="Repeated requests with one key start one turn.")


PUBLISHED: Final[PublicationView] = {
    **NOT_PUBLISHED,
    "published": True,
    "form": True,
    "path": "/form/0badcafe0badcafe0badcafe",
    "title": "Order a letter",
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "etag": '"0b1f6c0ad1e2c3d4"',
}
example(PublicationView, PUBLISHED)
example(
    FormView,
    {
        "title": "Order a letter",
        "text": "",
        "thanks": "",
        "login": False,
        "output": True,
        "input": {"type": "object", "properties": {"goal": {"type": "string"}}},
    },
)
example(
    ChatPageView,
    {
        "title": "Ask the harbour",
        "text": "",
        "greeting": "Good day.",
        "suggestions": ["When do you open?"],
        "login": False,
    },
)
example(
    VisitorConversation,
    {"turns": [{"message": "When do you open?", "answer": "At nine.", "status": "completed", "waiting": False}]},
)
STREAMED: Final = (
    'event: begun\ndata: {"conversation": "visitor-0badcafe.9f86d081884c7d65"}\n\n'
    'event: words\ndata: {"text": "At nine."}\n\nevent: end\ndata: {}\n\n'
)
example(StartedRun, {"run": "exec-06f0c2k8.9f86d081884c7d65"})
example(FormRunView, {"status": "completed", "waiting": False, "output": "Dear Ada"})


@router.get(
    "/api/workflows/{id}/publication",
    verb=PublicationVerbs.read,
    responses=answers(PublicationView, "unknown-workflow"),
    summary="Read the publication of a workflow",
)
async def read(session: CallerSession, id: Id) -> Response:
    """Whether and how a workflow is published. For its owner and admins."""
    view = await session.publications.read(id)
    return JsonReply(view, headers={"etag": view["etag"]} if view["etag"] else {})


@router.put(
    "/api/workflows/{id}/publication",
    verb=PublicationVerbs.publish,
    responses=answers(PublicationView, "unknown-workflow", "publication-invalid", "revision-moved", body=True),
    summary="Publish a workflow",
)
async def publish(session: CallerSession, id: Id, body: PublicationBody, match: Match = None) -> Response:
    """Let people without an account start the workflow on pages that only those with the link find: a form, a chat, or
    both. `mcp` and `model` decide what callers with a key are offered.

    Executions belong to the caller, whose rights are checked at each start.
    """
    request = PublicationRequest(
        form=body.form,
        chat=body.chat,
        mcp=body.mcp,
        model=body.model,
        title=body.title,
        text=body.text,
        thanks=body.thanks,
        greeting=body.greeting,
        suggestions=tuple(body.suggestions),
        login=body.login,
        output=body.output,
        origins=tuple(body.origins),
    )
    view = await session.publications.publish(id, request, new_link=body.new_link, match=match)
    return JsonReply(view, headers={"etag": view["etag"]})


@router.delete(
    "/api/workflows/{id}/publication",
    verb=PublicationVerbs.unpublish,
    status_code=204,
    responses=refusals("unknown-workflow", "revision-moved"),
    summary="Unpublish a workflow",
)
async def unpublish(session: CallerSession, id: Id, if_match: IfMatch = None) -> Response:
    """Withdraw the links. They and the runs of their visitors are refused from the next request on. What callers with
    a key are offered stays as it is."""
    await session.publications.unpublish(id, match=if_match)
    return Response(status_code=204)


VISITOR_ERRORS: Final = ("not-published", "not-signed-in", "too-many-requests")


async def visited(server: ServerContext, request: Request, token: str) -> Publication:
    """Return the publication that a visitor may use. Raises `NotPublished`, `NotSignedIn`, `TooManyRequests`."""
    publication = await find_publication(server.app.context, token, address_of(request))
    if publication.login:
        await caller_of(request)
    return publication


@router.get(
    "/api/published/{token}",
    responses=answers(FormView, *VISITOR_ERRORS, asks=False),
    summary="Read a published form",
)
async def read_form(server: CurrentServer, request: Request, token: Token) -> Response:
    """Texts and input fields of a published workflow. Requires no key, unless the publisher requires a login."""
    publication = await visited(server, request, token)
    return JsonReply(await form_view(server.app.context, publication), headers=NO_STORE)


@router.post(
    "/api/published/{token}/runs",
    status_code=201,
    responses=answers(
        StartedRun, *VISITOR_ERRORS, "input-invalid", "trigger-stopped", status=201, body=True, asks=False
    ),
    summary="Start a published workflow",
)
async def start(server: CurrentServer, request: Request, token: Token, body: FormBody) -> Response:
    """Start an execution, which belongs to the publisher. At most ten per minute from one network address."""
    app, address = server.app.context, address_of(request)
    publication = await visited(server, request, token)
    app[STARTS].take(f"{publication.token} {address}")
    await form_view(app, publication)
    publisher = await publisher_of(app, publication)
    target = f"workflow={publication.workflow}"
    session = server.app.acting_as(publisher, via="POST /api/published/{token}/runs", target=target, origin=address)
    return JsonReply(await session.publications.start(publication, body.input, body.key), status=201, headers=NO_STORE)


@router.get(
    "/api/published/{token}/runs/{run}",
    responses=answers(FormRunView, *VISITOR_ERRORS, asks=False),
    summary="Read a run of a published workflow",
)
async def read_run(server: CurrentServer, request: Request, token: Token, run: Run) -> Response:
    """Status of a run, and its output once it has completed, if the publisher shows it. Requires the name from its
    start."""
    publication = await visited(server, request, token)
    return JsonReply(await run_view(server.app.context, publication, run), headers=NO_STORE)


@router.get(
    "/api/published/{token}/chat",
    responses=answers(ChatPageView, *VISITOR_ERRORS, asks=False),
    summary="Read a published chat",
)
async def read_chat(server: CurrentServer, request: Request, token: Token) -> Response:
    """Texts of a published chat. Requires no key, unless the publisher requires a login."""
    publication = await visited(server, request, token)
    return JsonReply(await chat_page_view(server.app.context, publication), headers=NO_STORE)


@router.post(
    "/api/published/{token}/chat",
    responses={
        200: {
            "description": "The answer, in pieces.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": STREAMED}},
        },
    }
    | refusals(*VISITOR_ERRORS, "input-invalid", "trigger-stopped", "session-busy", body=True, asks=False),
    response_class=Response,
    summary="Send a message to a published chat",
)
async def send(server: CurrentServer, request: Request, token: Token, body: VisitorMessageBody) -> Response:
    """Start a turn, which belongs to the publisher, and stream its answer: `begun` with the signed name of the
    conversation, `words`, `end`. At most ten messages per minute from one network address.

    A question to a person is not part of the answer: the conversation shows that the turn waits.
    """
    app, address = server.app.context, address_of(request)
    publication = await visited(server, request, token)
    await chat_page_view(app, publication)
    visitor = f"{publication.token} {address}"
    app[STARTS].take(visitor)
    publisher = await publisher_of(app, publication)
    stream = server.take_visitor_stream(publisher, visitor)
    try:
        target = f"workflow={publication.workflow}"
        session = server.app.acting_as(publisher, via="POST /api/published/{token}/chat", target=target, origin=address)
        answer = await session.conversations.visit(publication, body.message, body.conversation, body.key)
    except BaseException:
        stream.leave()
        raise
    return EventStream(_streamed(answer), stream)


async def _streamed(answer: VisitorAnswer) -> AsyncGenerator[bytes, None]:
    yield server_sent("begun", {"conversation": answer.conversation}, "")
    async for piece in answer.pieces():
        yield BEAT if piece.kind == "silence" else server_sent("words", {"text": piece.text}, "")
    yield server_sent("end", {}, "")


@router.get(
    "/api/published/{token}/chat/{conversation}",
    responses=answers(VisitorConversation, *VISITOR_ERRORS, asks=False),
    summary="Read a conversation of a published chat",
)
async def read_conversation(
    server: CurrentServer, request: Request, token: Token, conversation: Conversation
) -> Response:
    """The messages of a visitor and their answers. Requires the signed name from the stream of a message."""
    app, publication = server.app.context, await visited(server, request, token)
    await chat_page_view(app, publication)
    return JsonReply(await conversation_for_visitor(app, publication, conversation), headers=NO_STORE)


@frames_router.get("/embed.js")
async def widget() -> Response:
    """The script that puts a published form or chat into a page of another site."""
    headers = {"cache-control": "public, max-age=3600", "cross-origin-resource-policy": "cross-origin"}
    return Response(WIDGET, media_type="text/javascript; charset=utf-8", headers=headers)


@frames_router.get("/form/{token}")
async def form_page(request: Request) -> Response:
    """The page of a published form. It loads the form itself."""
    return app_page(request)


@frames_router.get("/embed/chat/{token}")
@frames_router.get("/embed/{token}")
async def frame_page(server: CurrentServer, request: Request, token: str) -> Response:
    """The page of a published form or chat for frames of the sites that its publisher chose; for no frame otherwise."""
    try:
        publication = await find_publication(server.app.context, token, address_of(request))
    except NotPublished:
        return app_page(request, status=404)
    origins = " ".join(publication.origins) or "'none'"
    policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {origins}")
    return app_page(request, policy=policy)
