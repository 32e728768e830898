"""One exchange with a provider: the request out, the reply back, or the failure named. Slow to import, like `wire`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

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

from pointsman.engine.failures import Failure
from pointsman.models.failures import ModelFailed
from pointsman.models.wire import REFUSED_HINT, to_messages, to_parameters, to_reply, to_settings
from pointsman.ports import Hear, ModelReply, ModelRequest, Thought
from pointsman.values import JsonObject

_MESSAGE_CHARS_MAX: Final = 1_000

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
"""What went wrong -> the failure's code, and whether the same again could help. The first that fits."""

_WINDOW: Final = ("context size", "context length", "context window")
"""How servers say that a conversation does not fit, where they have no code for it: llama.cpp, LM Studio, TGI."""

_SERVER_ERRORS: Final = 500
_RETRIES_OFF: Final = frozenset({"bedrock"})
"""Whose client was told when it was opened, and warns of being told again."""

_HINTS: Final = {
    "model-rate-limited": "Add keys, pace the provider (`interval`), or name a `fallback`.",
    "model-quota-exceeded": "Raise the quota with the provider, add keys, or name a `fallback`.",
    "model-unavailable": "Try again later, or name a `fallback`.",
    "model-server-error": "Try again later, or name a `fallback`.",
    "model-timeout": "Try again, raise the node's time, or ask a faster model.",
    "model-unreachable": "Is the service at its address running? `pointsman models --ping` tries each.",
    "model-unauthorized": "Set a key that the provider accepts: `keys` in the settings, or its variable.",
    "model-not-found": "Correct the model's name; `pointsman models --ping` shows which answer.",
    "model-context-too-long": "Shorten the inputs or the conversation, or ask a model with a larger context.",
    "model-refused": REFUSED_HINT,
    "model-answer-unreadable": "Try again; if it stays so, the service does not speak this wire: check `kind`.",
}


async def exchange(
    model: Model, request: ModelRequest, *, headers: dict[str, str] | None, on_text: Hear | None
) -> ModelReply:
    """Ask once. Raises `ModelFailed`."""
    with _failures_named():
        messages = to_messages(request)
        settings = to_settings(
            request, system=model.system, headers=headers, client_retries=model.system not in _RETRIES_OFF
        )
        parameters = to_parameters(request, model)
        with _garbage_named():
            if on_text is None:
                answer = await model_request(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
            else:
                answer = await _streamed(model, messages, settings, parameters, on_text)
        return to_reply(answer, request)


async def _streamed(
    model: Model,
    messages: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: Hear,
) -> ModelResponse:
    async with model_request_stream(
        model, messages, model_settings=settings, model_request_parameters=parameters
    ) as stream:
        async for event in stream:
            if text := _heard_in(event):
                on_text(text)
        answer = stream.get()
    said_why = answer.finish_reason == "content_filter" or (answer.provider_details or {}).get("finish_reason")
    if not said_why:
        # Clients take the end of the connection for the end of the answer; every wire says why an answer ends.
        raise ModelFailed(_unreadable("the stream broke off before the answer had ended"))
    return answer


def _heard_in(event: ModelResponseStreamEvent) -> str:
    # The first words come with the start of their part, the rest as deltas.
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
def exchanging() -> Generator[None]:
    """What goes wrong while a provider is asked is named as a `ModelFailed`."""
    with _failures_named(), _garbage_named():
        yield


@contextmanager
def _garbage_named() -> Generator[None]:
    """What answers with anything but its wire makes clients stumble, each in its own way."""
    try:
        yield
    except (AgentRunError, UserError, ModelFailed):
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as why:
        message = f"the answer is none of this wire: {type(why).__name__}: {why}"
        raise ModelFailed(_unreadable(message[:_MESSAGE_CHARS_MAX])) from why
    except Exception as why:  # Clients are strangers' code; what one raises must not end an execution.
        message = f"the client of the provider failed: {type(why).__name__}: {why}"[:_MESSAGE_CHARS_MAX]
        raise ModelFailed(Failure(code="model-failed", message=message)) from why


def _unreadable(message: str) -> Failure:
    code = "model-answer-unreadable"
    return Failure(code=code, message=message, retryable=True, hint=_HINTS[code])


@contextmanager
def _failures_named() -> Generator[None]:
    try:
        yield
    except (AgentRunError, UserError) as why:
        raise ModelFailed(_failure(why)) from why


def _failure(why: Exception) -> Failure:
    code, retryable = next((code, again) for kind, code, again in _KNOWN if isinstance(why, kind))
    message, details = str(why)[:_MESSAGE_CHARS_MAX], JsonObject()
    if code == "model-rejected" and any(words in message.lower() for words in _WINDOW):
        code = "model-context-too-long"
    if isinstance(why, ModelHTTPError):
        details["status"] = why.status_code
        if why.status_code >= _SERVER_ERRORS:
            details["said"], message = message, f"LLM service error: {why.status_code}"
    return Failure(
        code=code,
        message=message,
        retryable=retryable,
        hint=_HINTS.get(code, ""),
        retry_after_s=why.retry_after if isinstance(why, ModelAPIError) else None,
        details=details or None,
    )
