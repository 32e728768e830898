"""Operations on the content of workflows: generate, edit, compare revisions, roll back; check expressions.

    round … round … done       the stream of a design; the data is the answer of the operation without a stream
                  … problem    the work failed after a round; the data is the problem document

A failure before the first chunk gets an ordinary error response. A client that disconnects ends the work.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, Protocol, TypeAlias, cast

import msgspec
from fastapi import Depends, Header, Path, Query, Request, Response
from pydantic import Field

from pointsman.auth.rate_limiter import OpenStream
from pointsman.authoring.design import EarlierRequest
from pointsman.authoring.operations import operations_schema, read_operations
from pointsman.authoring.verbs import (
    AuthoringVerbs,
    DesignedWorkflow,
    EditedWorkflow,
    RestoredRevision,
    RevisionComparison,
)
from pointsman.definition.model.schema import native_schema
from pointsman.errors import PointsmanError
from pointsman.etags import revision_of
from pointsman.executions.public_events import HEARTBEAT_S
from pointsman.expressions.failures import TEMPLATE_CHARS_MAX
from pointsman.server.context import CallerSession, CurrentCaller, CurrentServer, ServerContext
from pointsman.server.operation import Operations
from pointsman.server.pages import accepted_encodings
from pointsman.server.problems import JsonReply, refusal
from pointsman.server.routes.parameters import IfMatch, Key, reply_once
from pointsman.server.schemas.answers import USAGE, Described, answers, example, json_answer, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, EventStream, server_sent, with_first_chunk
from pointsman.session import Session
from pointsman.values import JsonObject, JsonView
from pointsman.workflows.formulas import (
    CheckedFormula,
    EvaluatedFormula,
    Formula,
    FormulaProblem,
    FunctionView,
    LanguageFunctions,
    functions_of_language,
)
from pointsman.workflows.verbs import WorkflowVerbs

if TYPE_CHECKING:
    from pointsman.authoring.design import Round

router = Operations(prefix="/api/workflows", tags=["workflows"])
formulas_router = Operations(prefix="/api/expressions", tags=["workflows"])


Accept = Annotated[
    str | None,
    Header(max_length=1000, description="`text/event-stream`: send each round as it happens."),
]


class Work(Protocol):
    """Design work that reports its rounds to `listener`."""

    def __call__(self, *, listener: Callable[[Round], None] = ...) -> Awaitable[JsonView]: ...


class DesignRequestContext(NamedTuple):
    """Session, idempotency key and accepted media type of a design request."""

    server: ServerContext
    session: Session
    request: Request
    key: str | None
    accept: str | None

    async def told(self, work: Work) -> Response:
        """Answer as a stream if the client accepts one, else as a whole.

        With an idempotency key the work runs once: a client that lost the stream can repeat the request free of cost.
        """
        if MEDIA_TYPE not in (self.accept or "").lower():
            return await self.whole(work)
        return await streamed(partial(self._result_of, work), self.server.take_stream(self.session.caller))

    async def _result_of(self, work: Work, listener: Callable[[Round], None]) -> JsonView:
        if self.key is None:
            return await work(listener=listener)
        reply = await self.server.background.finish(self.whole(partial(work, listener=listener)))
        return cast("JsonObject", msgspec.json.decode(reply.body))

    async def whole(self, work: Callable[[], Awaitable[JsonView]]) -> Response:
        """Answer without a stream of rounds."""

        async def answered() -> Response:
            return JsonReply(await work())

        return await reply_once(self.session.acting, self.request, self.key, answered)


async def _request_context(
    request: Request, server: CurrentServer, session: CallerSession, key: Key = None, accept: Accept = None
) -> DesignRequestContext:
    return DesignRequestContext(server, session, request, key, accept)


Designing = Annotated[DesignRequestContext, Depends(_request_context)]


Name = Annotated[str, Path(min_length=1, max_length=200, description="The id of a saved workflow.")]
TEXT: Final[JsonObject] = {"type": "string"}
WORDS_MAX: Final = 20_000
EARLIER_MAX: Final = 20
EARLIER_CHARS_MAX: Final = 200_000
ROUNDS: Final = 'event: round\ndata: {"round": 1, "ok": true}\n\nevent: done\ndata: {"id": "letter", "ok": true}\n\n'
CHANGE: Final[JsonObject] = {"op": "change_node", "node": "write", "set": {"/config/prompt": "Write about {goal}."}}


class EarlierBody(Body):
    """EarlierRequest requests of the same conversation."""

    model_config = sample(words="Write a letter.", answer='{"nodes": []}', accepted=True)
    words: str = Field(max_length=WORDS_MAX)
    answer: str = Field(max_length=EARLIER_CHARS_MAX, description="The model's answer of the last round.")
    accepted: bool | None = Field(default=None, description="Whether the author accepted the result; absent: unknown.")


Conversation = Annotated[
    list[EarlierBody],
    Field(
        default_factory=list,
        max_length=EARLIER_MAX,
        description="EarlierRequest requests, oldest first, to which the new one may refer.",
    ),
]


class GenerateBody(Body):
    """A workflow to design."""

    model_config = sample(words="Write a letter, and let a person see it before it is sent.", id="letter")
    words: str = Field(min_length=1, max_length=WORDS_MAX, description="Description of the workflow.")
    earlier: Conversation
    id: str = Field(default="", max_length=200, description="The id of the workflow.")
    save: bool = Field(default=False, description="Save the workflow if it has no errors.")


class EditBody(Body):
    """A change of a saved workflow: operations, or a description from which a model makes them."""

    model_config = sample(operations=[CHANGE], apply=True)
    operations: list[JsonValue] | None = Field(
        default=None,
        max_length=2000,
        description="Operations as described by `/api/workflows/operations`; all are applied, or none. With `words`: "
        "earlier changes that are not saved yet.",
    )
    words: str = Field(default="", max_length=WORDS_MAX, description="Description of the change.")
    earlier: Conversation
    text: str | None = Field(
        default=None, max_length=20_000_000, description="The document to change, instead of the saved one."
    )
    native: bool = Field(default=False, description="Return also the document in the native dialect.")
    graph: bool = Field(default=False, description="Return also the regions of its graph, for a picture.")
    apply: bool = Field(default=False, description="Save the changes; otherwise they are only returned.")
    draft: bool = Field(default=False, description="Save it although it has errors; it cannot be run.")


class RollbackBody(Body):
    """A rollback."""

    model_config = sample(revision=1)
    revision: int = Field(ge=1, le=2**53, description="The revision whose document is restored.")


example(
    DesignedWorkflow,
    {
        "id": "letter",
        "ok": True,
        "saved": False,
        "document": {"pointsman": 1, "id": "letter", "nodes": [{"id": "write", "type": "agent"}]},
        "text": '{"pointsman": 1, "id": "letter"}',
        "problems": [],
        "rounds": [
            {
                "round": 1,
                "model": "openai:gpt-5",
                "ok": True,
                "answer": "{…}",
                "problems": [],
                "usage": USAGE,
                "scripted": False,
            }
        ],
        "scripted": False,
        "warnings": [],
    },
)
example(
    EditedWorkflow,
    {
        "id": "letter",
        "revision": 2,
        "applied": False,
        "ok": True,
        "document": {"pointsman": 1, "id": "letter", "nodes": [{"id": "write", "type": "agent"}]},
        "text": "pointsman: 1\nid: letter\n",
        "dialect": "native",
        "changes": [CHANGE],
        "problems": [],
        "new": [],
        "gone": [],
        "losses": [],
    },
)
example(RestoredRevision, {"id": "letter", "revision": 3, "digest": "9f86d081884c7d65", "of": 1})
example(RevisionComparison, {"from": 1, "to": 2, "changes": [CHANGE], "lines": "--- letter@1\n+++ letter@2\n"})


@router.get(
    "/operations",
    responses=json_answer({"title": "Operations on a workflow", "type": "array"}) | refusals(),
    summary="Describe operations",
)
async def operations(caller: CurrentCaller) -> Response:
    """JSON Schema of a list of operations."""
    return JsonReply(operations_schema())


@router.get(
    "/schema",
    responses=json_answer({"title": "Workflow", "type": "object", "properties": {}}) | refusals(),
    summary="Describe the language",
)
async def schema(request: Request, caller: CurrentCaller) -> Response:
    """JSON Schema of the native dialect: the node types and their settings."""
    headers = {"vary": "accept-encoding"}
    if "gzip" not in accepted_encodings(request.headers.get("accept-encoding", "")):
        return JsonReply(native_schema(), headers=headers)
    headers["content-encoding"] = "gzip"
    return Response(_compressed_schema(), headers=headers, media_type="application/json")


@lru_cache(maxsize=1)
def _compressed_schema() -> bytes:
    return gzip.compress(msgspec.json.encode(native_schema()), mtime=0)


def _earlier(bodies: Sequence[EarlierBody]) -> list[EarlierRequest]:
    return [EarlierRequest(body.words, body.answer, body.accepted) for body in bodies]


def _also_streamed(described: Described) -> Described:
    content = {**described[200]["content"], MEDIA_TYPE: {"schema": TEXT, "example": ROUNDS}}
    return described | {200: {**described[200], "content": content}}


@router.post(
    "/generate",
    verb=AuthoringVerbs.design,
    responses=_also_streamed(
        answers(
            DesignedWorkflow,
            "design-model-missing",
            "model-failed",
            "too-many-requests",
            "key-reused",
            "key-in-use",
            body=True,
        )
    ),
    summary="Design a workflow from a description",
)
async def generate(designing: Designing, body: GenerateBody) -> Response:
    """Let a model draft the workflow, check it, and let the model repair the problems, for a few rounds.

    With `Accept: text/event-stream` each round is sent as it happens: one event `round` each, then `done` with the
    answer, or `problem` if the design failed. With an `Idempotency-Key` the design continues if the stream is lost.
    Until it has finished, a repeated request is refused with `key-in-use`; afterwards it returns the answer without a
    further call of the model.
    """
    design = partial(
        designing.session.authoring.design, body.words, name=body.id, save=body.save, earlier=_earlier(body.earlier)
    )
    return await designing.told(design)


@router.post(
    "/{id}/edit",
    verb=AuthoringVerbs.edit,
    responses=_also_streamed(
        answers(
            EditedWorkflow,
            "unknown-workflow",
            "revision-moved",
            "operation-refused",
            "workflow-invalid",
            "design-failed",
            "design-model-missing",
            "model-failed",
            "too-many-requests",
            "key-reused",
            "key-in-use",
            body=True,
        )
    ),
    summary="Change a workflow by operations or a description",
)
async def edit(designing: Designing, id: Name, body: EditBody, if_match: IfMatch = None) -> Response:
    """Return the changes and the problems that they cause; with `apply`, save them as a new revision.

    With `words` a model makes the operations, in rounds that can be streamed like those of a design. The answer
    contains only these operations, not those of the request.
    """
    authoring, revision = designing.session.authoring, revision_of(if_match)
    if body.words:
        on = read_operations(body.operations or [])
        change = partial(
            authoring.edit_by_words, id, body.words, on=on, text=body.text, apply=body.apply, revision=revision
        )
        return await designing.told(partial(change, earlier=_earlier(body.earlier)))
    edits = read_operations([] if body.operations is None and body.text is not None else body.operations)
    return await designing.whole(
        partial(
            authoring.edit,
            id,
            edits,
            apply=body.apply,
            draft=body.draft,
            revision=revision,
            text=body.text,
            native=body.native,
            graph=body.graph,
        )
    )


@router.get(
    "/{id}/changes",
    verb=AuthoringVerbs.compare,
    responses=answers(RevisionComparison, "unknown-workflow", "no-such-revision", "document-too-expensive"),
    summary="Compare two revisions by operations",
)
async def changes(
    session: CallerSession,
    id: Name,
    old: Annotated[int | None, Query(alias="from", ge=1, le=2**53, description="The older revision.")] = None,
    new: Annotated[int | None, Query(alias="to", ge=1, le=2**53, description="The newer revision.")] = None,
) -> Response:
    """Operations that lead from one revision to the other (default: from the previous to the latest)."""
    return JsonReply(await session.authoring.compare(id, old, new))


@router.post(
    "/{id}/rollback",
    verb=AuthoringVerbs.restore,
    responses=answers(RestoredRevision, "unknown-workflow", "no-such-revision", "document-too-expensive", body=True),
    summary="Roll a workflow back",
)
async def rollback(session: CallerSession, id: Name, body: RollbackBody) -> Response:
    """Save the document of an old revision as a new one."""
    return JsonReply(await session.authoring.restore(id, body.revision))


DesignWork: TypeAlias = Callable[["Callable[[Round], None]"], Awaitable[JsonView]]
"""Design work; its argument is called with each round."""


async def streamed(work: DesignWork, stream: OpenStream) -> EventStream:
    """Start the stream with the first round or heartbeat; release the quota when the stream ends.

    Raises what the work raises before that.
    """
    chunks = _chunks(work)
    try:
        return EventStream(with_first_chunk(await anext(chunks), chunks), stream)
    except BaseException:
        stream.leave()
        raise


async def _chunks(work: DesignWork) -> AsyncGenerator[bytes, None]:
    rounds: asyncio.Queue[JsonView | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(lambda one: rounds.put_nowait(one.to_json())))
    task.add_done_callback(lambda _: rounds.put_nowait(None))
    silent, ended = True, False
    try:
        while not ended:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    note = await rounds.get()
            except TimeoutError:
                yield BEAT
            else:
                ended = note is None
                if note is not None:
                    yield server_sent("round", note, "")
            silent = silent and ended
        try:
            answer = task.result()
        except PointsmanError as why:
            if silent:
                raise
            yield server_sent("problem", msgspec.json.decode(refusal(why).body), "")
        else:
            yield server_sent("done", answer, "")
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, PointsmanError):
            await task


UNKNOWN: Final[FormulaProblem] = {
    "severity": "warning",
    "code": "unknown-path",
    "message": "'scor' does not exist: the value is always null",
    "hint": "Did you mean 'score'?",
    "offset": 0,
    "length": 4,
}
LEN: Final[FunctionView] = {
    "name": "len",
    "aliases": ["length"],
    "signature": "len(x)",
    "about": "Number of characters, elements or keys; 0 for null.",
}


class FormulaBody(Body):
    """An expression, and facts about its place in the workflow."""

    model_config = sample(text="scor >= 80", kind="condition", schemas={"state": {"properties": {"score": {}}}})
    text: str = Field(max_length=TEMPLATE_CHARS_MAX, description="The formula.")
    kind: Literal["expression", "condition", "template", "path", "jsonpath"] = Field(
        default="expression", description="Kind of expression; of a condition only the truth value is used."
    )
    dialect: Literal["native", "rows", "graph", "steps", "plan"] = Field(
        default="native", description="Dialect of the workflow: it determines how names and braces are read."
    )
    names: list[str] = Field(
        default_factory=list, max_length=100, description="`as` names of the enclosing parallels and loops."
    )
    schemas: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict[str, dict[str, JsonValue]],
        max_length=50,
        description="JSON Schemas of the data by root: `state`, `input`, `result` …",
    )

    def formula(self) -> Formula:
        return Formula(self.text, self.kind, self.dialect, frozenset(self.names), self.schemas)


class EvaluateBody(FormulaBody):
    """An expression, and sample data to evaluate it with."""

    model_config = sample(text="score >= 80", values={"score": 81})
    values: dict[str, JsonValue] = Field(
        default_factory=dict, description="Values of bare names: fields of the state, `result`, `nodes`, `item` …"
    )


example(
    CheckedFormula,
    {
        "ok": True,
        "problems": [UNKNOWN],
        "types": ["boolean"],
        "reads": [{"root": "state", "path": ["scor"], "offset": 0, "length": 4}],
    },
)
example(EvaluatedFormula, {"ok": True, "value": True, "missing": [], "failure": None})
example(FunctionView, LEN)
example(LanguageFunctions, {"functions": [LEN]})


@formulas_router.get("/functions", responses=answers(LanguageFunctions), summary="List functions")
async def list_functions(caller: CurrentCaller) -> Response:
    """Functions of the expression language: signatures and results."""
    return JsonReply(functions_of_language())


@formulas_router.post(
    "/check",
    verb=WorkflowVerbs.check_formula,
    responses=answers(CheckedFormula, "document-too-expensive", body=True),
    summary="Check an expression",
)
async def check_expression(session: CallerSession, body: FormulaBody) -> Response:
    """Problems of one expression with their positions, and the data that it reads."""
    return JsonReply(await session.workflows.check_formula(body.formula()))


@formulas_router.post(
    "/evaluate",
    verb=WorkflowVerbs.evaluate_formula,
    responses=answers(EvaluatedFormula, "document-too-expensive", body=True),
    summary="Evaluate an expression",
)
async def evaluate_expression(session: CallerSession, body: EvaluateBody) -> Response:
    """Evaluate one expression with the sent values, within the limits of the language."""
    return JsonReply(await session.workflows.evaluate_formula(body.formula(), body.values))
