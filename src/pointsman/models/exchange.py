"""One exchange with a provider: send the request, return the reply or a typed failure. Slow to import, like `wire`.

Raw responses are captured for failures whose exception lacks them: proxy pages, redirects, broken streams. A whole JSON
body in place of a stream is read as one answer.

    ModelRequest ─┬─ the wire of our own, where the provider has one ─▶ reply ───────────────────▶ ModelReply
                  │                                                       └─ any other response ─┐
                  └─ pydantic-ai ◀───────────────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, cast
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from pointsman.engine.failures import Failure, connection_problem, failure_by
from pointsman.errors import PointsmanError
from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.models.client_warnings import gathering_warnings
from pointsman.models.direct_wire import DirectWire
from pointsman.models.failures import (
    HINTS,
    MESSAGE_CHARS_MAX,
    ModelFailed,
    precise_code,
    status_failure,
    unreachable_failure,
)
from pointsman.models.provider_http import RawResponse, answering_with, as_received, capturing_responses, expect_stream
from pointsman.models.transcript import user_message
from pointsman.models.wire import to_messages, to_parameters, to_reply, to_settings
from pointsman.ports import ModelReply, ModelRequest, TextCallback, Thought
from pointsman.redaction import head
from pointsman.values import JsonObject

_KNOWN: Final[tuple[tuple[type[Exception], str, bool], ...]] = (
    (ModelRateLimitError, "model-rate-limited", True),
    (ModelQuotaExceededError, "model-quota-exceeded", False),
    (ModelUnavailableError, "model-unavailable", True),
    (ModelServerError, "model-server-error", True),
    (ModelTimeoutError, "model-timeout", True),
    (ModelRequestTimeout, "model-timeout", True),
    (ModelConnectionError, "model-unreachable", True),
    (ModelAuthenticationError, "model-unauthorized", False),
    (ModelNotFoundError, "model-not-found", False),
    (ModelContextWindowExceededError, "model-context-too-long", False),
    (ModelRequestRejectedError, "model-rejected", False),
    (ContentFilterError, "model-refused", False),
    (ModelAPIError, "model-failed", False),
    (UserError, "model-request-unsupported", False),
    (AgentRunError, "model-answer-unreadable", True),
)
"""Exception -> code of the failure, and whether a retry may succeed. The first match counts."""

_WRAPPED_MAX: Final = 10
_REDIRECT: Final = 300
_REFUSED: Final = 400
_UNREAD: Final = frozenset({"model-answer-unreadable", "model-failed"})
"""Failures of unreadable responses."""
_RETRIES_OFF: Final = frozenset({"bedrock"})
"""Providers whose client had its retries disabled when it was opened, and warns if they are disabled again."""


NO_MESSAGES: Final = (user_message("-"),)
"""Conversation of a request that is not sent, because its response is here."""


async def exchange(
    model: Model, request: ModelRequest, *, on_text: TextCallback | None, wire: DirectWire | None = None
) -> ModelReply:
    """Send one request and return the reply. Raises `ModelFailed`. `wire`: sends the requests of this model."""
    with _failures_named(model):
        if wire is None:
            return await _by_client(model, request, request, on_text)
        with _garbage_named():
            prepared = await wire.prepared(request, streams=on_text is not None)
            if prepared is None:
                return await _by_client(model, request, request, on_text)
            answer = await wire.send(prepared, on_text)
        if isinstance(answer, ModelReply):
            return answer
        with answering_with(answer.answer):
            # The response does not depend on the conversation, and converting a long one is expensive.
            return await _by_client(model, request, replace(request, messages=NO_MESSAGES), answer.resumed(on_text))


async def _by_client(
    model: Model, request: ModelRequest, sent: ModelRequest, on_text: TextCallback | None
) -> ModelReply:
    """Send a request by pydantic-ai and return the reply, which is read as that of `request`."""
    messages = to_messages(sent)
    settings = to_settings(request, system=model.system, client_retries=model.system not in _RETRIES_OFF)
    parameters = to_parameters(request, model)
    with _garbage_named(), gathering_warnings() as warnings:
        if on_text is None:
            answer = await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)
        else:
            answer = await _streamed(model, messages, settings, parameters, on_text)
    reply = to_reply(answer, request)
    return replace(reply, warnings=(*reply.warnings, *warnings)) if warnings else reply


async def _streamed(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: TextCallback,
) -> ModelResponse:
    """Return a streamed answer. An answer in one piece, from a service that ignores `stream`, is read as such."""
    sent, answer, has_text = expect_stream(), None, False
    try:
        async with model_request_stream(
            model, messages, model_settings=settings, model_request_parameters=parameters
        ) as stream:
            async for event in stream:
                if text := _text_in(event):
                    has_text = True
                    on_text(text)
            answer = stream.get()
    except Exception:  # A client may fail in any way on a body that is not a stream.
        if has_text or not sent.whole:
            raise
    if answer is not None and _has_ended(answer):
        return answer
    if has_text or not sent.whole:
        # Clients treat a lost connection as the end of the answer; every wire format reports why an answer ends.
        raise ModelFailed(_unreadable("the stream broke off before the answer had ended"))
    with answering_with(as_received(sent)):
        answer = await model_request(model, messages, model_settings=settings, model_request_parameters=parameters)
    for index, part in enumerate(answer.parts):
        if text := _text_in(PartStartEvent(index=index, part=part)):
            on_text(text)
    return answer


def _has_ended(answer: ModelResponse) -> bool:
    """Return whether the provider reported why the answer ends."""
    reason = (answer.provider_details or {}).get("finish_reason")
    return answer.finish_reason == "content_filter" or bool(reason)


def _text_in(event: ModelResponseStreamEvent) -> str:
    # A part's first words come with its start event, the rest as deltas.
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case (
            PartStartEvent(part=ThinkingPart(content=text))
            | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
        ):
            return Thought(text or "")
        case _:
            return ""


@contextmanager
def exchanging(model: object) -> Generator[None]:
    """Convert all errors of an exchange to `ModelFailed`."""
    with _failures_named(model), _garbage_named():
        yield


@contextmanager
def _garbage_named() -> Generator[None]:
    """Convert errors that clients raise on responses in a wrong format to `ModelFailed`."""
    try:
        yield
    except (AgentRunError, UserError, ModelFailed):
        raise
    except PointsmanError as why:  # The transport refused the address.
        raise ModelFailed(failure_by(why)) from why
    except (AttributeError, LookupError, TypeError, ValueError) as why:
        message = f"the answer does not have the format of this API: {type(why).__name__}: {why}"
        raise ModelFailed(_unreadable(head(message, MESSAGE_CHARS_MAX))) from why
    except Exception as why:  # Third-party code: none of its errors may end an execution.
        message = head(f"the client of the provider failed: {type(why).__name__}: {why}", MESSAGE_CHARS_MAX)
        raise ModelFailed(Failure(code="model-failed", message=message)) from why


def _unreadable(message: str) -> Failure:
    code = "model-answer-unreadable"
    return Failure(code=code, message=message, retryable=True, hint=HINTS[code])


@contextmanager
def _failures_named(model: object) -> Generator[None]:
    with capturing_responses() as sent:
        try:
            yield
        except (AgentRunError, UserError) as why:
            if (refusal := _refusal_in(why)) is not None:
                raise ModelFailed(failure_by(refusal)) from why
            raise ModelFailed(_with_evidence(_failure(why, model), model, sent)) from why
        except ModelFailed as why:
            raise ModelFailed(_with_evidence(why.failure, model, sent)) from why


def _refusal_in(why: BaseException | None) -> PointsmanError | None:
    """Return the error of the transport that a client wrapped into its own, such as a refused address."""
    for _ in range(_WRAPPED_MAX):
        if why is None or isinstance(why, PointsmanError):
            return why
        why = why.__cause__
    return None


def _with_evidence(failure: Failure, model: object, response: RawResponse) -> Failure:
    """Return the failure of an unreadable response, with the response as evidence."""
    if not response.status or failure.details is not None or failure.code not in _UNREAD:
        return failure
    code, hint, retryable = failure.code, failure.hint, failure.retryable
    if _REDIRECT <= response.status < _REFUSED:
        reason, hint = f"it redirects to {response.location!r}", "Set the address to which it redirects as `base_url`."
    else:
        code, retryable, hint = "model-answer-unreadable", True, HINTS["model-answer-unreadable"]
        reason = _reported_error(response.text) or failure.message.removeprefix(f"{_model_and_address(model)}: ")
        reason += f". It sent {response.text!r}" if response.body else ". It sent nothing"
    details: JsonObject = {"status": response.status, "address": _address(model), "body": response.text}
    message = head(f"{response.status} from {_model_and_address(model)}: {reason}", MESSAGE_CHARS_MAX)
    return replace(failure, code=code, message=message, hint=hint, retryable=retryable, details=details)


def _reported_error(body: str) -> str:
    """Return the error message in a response that has the status of a success; empty: it has none."""
    try:
        error = cast("dict[str, object]", decode_json(body))["error"]
    except (JsonUnreadable, LookupError, TypeError):
        return ""
    return f"the service reports an error: {_error_message(error)}" if error else ""


def _model_and_address(model: object) -> str:
    """Return model and address for messages."""
    address = _address(model)
    return f"the model {getattr(model, 'model_name', '')!r}" + (f" at {address}" if address else "")


def _failure(why: Exception, model: object) -> Failure:
    code, retryable = next((code, again) for kind, code, again in _KNOWN if isinstance(why, kind))
    source, address = _model_and_address(model), _address(model)
    retry_after_s = why.retry_after if isinstance(why, ModelAPIError) else None
    if isinstance(why, ModelHTTPError):
        reason, body = _error_message(why.body) or "it says nothing", _excerpt(why.body)
        return status_failure(
            code,
            why.status_code,
            source,
            reason,
            body=body,
            retryable=retryable,
            address=address,
            retry_after_s=retry_after_s,
        )
    if isinstance(why, ModelConnectionError):
        return unreachable_failure(code, source, *connection_problem(why), address=address)
    message = f"{source}: {_sentence(why)}"
    code = precise_code(code, message)
    return Failure(
        code=code,
        message=head(message, MESSAGE_CHARS_MAX),
        retryable=retryable,
        hint=HINTS.get(code, ""),
        retry_after_s=retry_after_s,
    )


def _address(model: object) -> str:
    """Return the provider's address without the parts that may contain secrets: user, query and fragment."""
    url = getattr(model, "base_url", None)
    if not isinstance(url, str) or not url:
        return ""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")).rstrip("/")


def _error_message(body: object) -> str:
    """Return the error message in a provider's JSON. Some clients pass it as text, that of Bedrock as its own
    dictionary."""
    if isinstance(body, str | bytes):
        with suppress(JsonUnreadable):
            body = decode_json(body)
    for key in ("Error", "Message", "error", "message", "detail"):
        if isinstance(body, dict):
            fields = cast("dict[str, object]", body)
            body = fields.get(key, fields)
    if isinstance(body, dict | list):
        return _excerpt(cast("object", body))
    return "" if body is None else head(str(body), MESSAGE_CHARS_MAX)


def _excerpt(body: object) -> str:
    if body is None:
        return ""
    if isinstance(body, str | bytes):
        text = body if isinstance(body, str) else body.decode(errors="replace")
    else:
        text = json.dumps(body, ensure_ascii=False, default=str)
    return head(text, MESSAGE_CHARS_MAX)


def _sentence(why: Exception) -> str:
    """Return the message of an exception; of a schema validation error, the fields that do not fit."""
    first, _, rest = str(why).partition("\n")
    if "validation error" not in first:
        return str(why)
    fields = [line for line in rest.splitlines() if line and not line[0].isspace()]
    return f"the answer lacks fields, or has them in a wrong form: {', '.join(dict.fromkeys(fields))}"
