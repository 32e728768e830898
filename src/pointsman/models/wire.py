"""Conversion between neutral types and pydantic-ai's messages. Slow to import: imported at the first call."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, Literal, cast

from msgspec.structs import replace
from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, Usage
from pointsman.models.failures import HINTS, ModelFailed
from pointsman.models.prices import cost_usd
from pointsman.models.repair import read_json
from pointsman.models.transcript import as_text, calls_of, content_of, role_of, text_of
from pointsman.ports import ModelReply, ReasoningEffort, ToolSpec
from pointsman.ports import ModelRequest as Request
from pointsman.redaction import head
from pointsman.values import Json, JsonObject

_LEVELS: Final = (("low", 1_024), ("medium", 8_192))
"""Token budget -> level, for providers without budgets; larger budgets are `high`."""

Level = Literal["minimal", "low", "medium", "high"]


def thinking_settings(thinking: ReasoningEffort, system: str) -> ModelSettings:
    """Return the settings for reasoning. `system`: the provider. Providers without budgets get the nearest level."""
    settings = ModelSettings()
    if thinking.chat_template_kwargs is not None:
        settings["extra_body"] = {"chat_template_kwargs": thinking.chat_template_kwargs}
    if thinking.enabled is False:
        settings["thinking"] = False
    elif thinking.budget is not None and thinking.budget >= 0:
        settings |= _budgeted(thinking.budget, system)
    elif thinking.level is not None:
        settings["thinking"] = cast("Level", thinking.level.lower())
    elif thinking.enabled:
        settings["thinking"] = True
    return settings


def _budgeted(budget: int, system: str) -> ModelSettings:
    if not budget:
        return ModelSettings(thinking=False)
    match system:
        case "anthropic":
            own = {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
        case "google" | "google-gla" | "google-vertex" | "google-cloud":
            own = {"google_thinking_config": {"thinking_budget": budget, "include_thoughts": True}}
        case _:
            level = next((name for name, most in _LEVELS if budget <= most), "high")
            return ModelSettings(thinking=cast("Level", level))
    return cast("ModelSettings", own)


_REFUSAL_CHARS_MAX: Final = 500
OUTPUT_TOOL: Final = "final_result"
"""Tool that replaces an output schema for providers that do not accept one."""


def to_messages(request: Request) -> list[ModelMessage]:
    """Convert the conversation, with consecutive messages of the same side merged into one."""
    turns: list[ModelMessage] = []
    parts: list[ModelRequestPart] = [SystemPromptPart(request.system)] if request.system else []
    for message in request.messages:
        if role_of(message) == "assistant":
            if parts:
                turns.append(ModelRequest(parts=parts))
                parts = []
            turns.append(_response(message))
        else:
            parts.append(_request_part(message))
    if parts:
        turns.append(ModelRequest(parts=parts))
    return turns


def _request_part(message: Json) -> ModelRequestPart:
    match role_of(message), message:
        case "tool", dict():
            return ToolReturnPart(text_of(message.get("tool")), content_of(message), text_of(message.get("toolCallId")))
        case "system", _:
            return SystemPromptPart(content_of(message))
        case _, {"content": [*parts]}:
            return UserPromptPart([*map(_part, parts)])
        case _:
            return UserPromptPart(content_of(message))


def _part(part: Json) -> UserContent:
    match part:
        case {"type": "file", "mediaType": str(media_type), "data": str(data)}:
            return BinaryContent(base64.b64decode(data), media_type=media_type)
        case _:
            return content_of([part])


def _response(message: Json) -> ModelResponse:
    if isinstance(message, dict) and (echoed := _echoed(message.get("raw"))) is not None:
        return echoed
    parts: list[ModelResponsePart] = [TextPart(text)] if (text := content_of(message)) else []
    parts.extend(ToolCallPart(call.name, call.arguments, call.id) for call in calls_of(message))
    return ModelResponse(parts=parts)


def _echoed(raw: Json) -> ModelResponse | None:
    if raw is None:
        return None
    try:
        (message,) = ModelMessagesTypeAdapter.validate_python([raw])
    except ValidationError:
        return None  # A release with another format wrote it; the neutral message has the same content, unsigned.
    return message if isinstance(message, ModelResponse) else None


def to_parameters(request: Request, model: Model) -> ModelRequestParameters:
    """Convert tools and output schema. The schema is native if the provider supports it, else a required tool."""
    tools = [_definition(tool) for tool in request.tools]
    if (schema := request.output_schema) is None:
        return ModelRequestParameters(function_tools=tools)
    if model.profile.get("supports_json_schema_output"):
        shape = OutputObjectDefinition(json_schema=schema, name=OUTPUT_TOOL, strict=False)
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=shape)
    answer = _definition(ToolSpec(name=OUTPUT_TOOL, description="Give your answer.", parameters=schema))
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[answer], allow_text_output=False
    )


def _definition(tool: ToolSpec) -> ToolDefinition:
    # Strict mode would rewrite the schema; the model must see the same schema that validates its answer.
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters_json_schema=tool.parameters, strict=False
    )


def to_settings(request: Request, *, system: str, client_retries: bool = True) -> ModelSettings:
    """Convert the settings. Disables the retries of clients that have their own (`client_retries`)."""
    settings = ModelSettings(max_retries=0) if client_retries else ModelSettings()
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.max_tokens is not None:
        settings["max_tokens"] = request.max_tokens
    if request.thinking is not None:
        settings |= thinking_settings(request.thinking, system)
    return settings


def to_reply(response: ModelResponse, request: Request) -> ModelReply:
    """Convert the reply. Raises `ModelFailed` if it is unreadable, refused, or cut off before it began."""
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart))
    text, calls = without_output_tool(text, calls, request)
    if not text and not calls:
        _refuse_nothing(response)
    name, used = response.model_name or "", response.usage
    usage = usage_of(
        response.provider_name or "",
        name,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
    )
    warnings = cut_off(response.finish_reason, request)
    return ModelReply(text=text, tool_calls=calls, usage=usage, model=name, raw=_to_echo(response), warnings=warnings)


def cut_off(finish_reason: str | None, request: Request) -> tuple[str, ...]:
    """Return the warning about an answer that ends early, for its finish reason; empty: the answer is whole."""
    match finish_reason:
        case "length":
            limit = "its limit of tokens" if request.max_tokens is None else f"maxTokens ({request.max_tokens})"
            return (f"the model's answer was cut off at {limit}, its end is missing: raise maxTokens",)
        case "content_filter":
            return ("the provider's content filter cut the model's answer off, its end is missing: change the prompt",)
        case _:
            return ()


def without_output_tool(text: str, calls: tuple[ToolCall, ...], request: Request) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the reply with the call of the tool that replaces an output schema as its text."""
    if request.output_schema is None or any(tool.name == OUTPUT_TOOL for tool in request.tools):
        return text, calls
    outputs = [call for call in calls if call.name == OUTPUT_TOOL]
    text = as_text(outputs[-1].arguments) if outputs else text
    return text, tuple(call for call in calls if call.name != OUTPUT_TOOL)


def _refuse_nothing(response: ModelResponse) -> None:
    match response.finish_reason:
        case "length":
            why = "the model reached its token limit before it answered"
            raise ModelFailed(Failure(code="model-answer-truncated", message=why, hint="Raise maxTokens."))
        case "content_filter":
            refusal = text_of((response.provider_details or {}).get("refusal"))
            why = "the model, or the provider's content filter, refused to answer" + (f": {refusal}" if refusal else "")
            raise ModelFailed(
                Failure(code="model-refused", message=head(why, _REFUSAL_CHARS_MAX), hint=HINTS["model-refused"])
            )
        case _:
            return


def _call(part: ToolCallPart) -> ToolCall:
    arguments: object = part.args if part.args is not None else {}
    if isinstance(arguments, str):
        read = read_json(arguments or "{}")
        arguments = read.value if read is not None else None
    if not isinstance(arguments, dict):
        shown = head(str(part.args), 500)
        message = f"the model called the tool {part.tool_name!r} with arguments that are not a JSON object: {shown}"
        raise ModelFailed(
            Failure(
                code="model-answer-unreadable",
                message=message,
                hint="Retry it (`execution.retries`), simplify the tool's parameters, or use a stronger model.",
                retryable=True,
                details={"tool": part.tool_name, "arguments": shown},
            )
        )
    return ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments)


def usage_of(
    provider: str,
    model: str,
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
) -> Usage:
    """Return the usage of one call, with its price if the list has the model."""
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cache_write_tokens=cache_write_tokens,
        model_calls=1,
    )
    cost = cost_usd(
        provider,
        model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cache_write_tokens=cache_write_tokens,
    )
    return usage if cost is None else replace(usage, cost_usd=cost)


def _to_echo(response: ModelResponse) -> JsonObject | None:
    """Return the provider's own message if it has signatures, without which the provider refuses the next turn."""
    if not any(isinstance(part, ThinkingPart) and part.signature for part in response.parts):
        return None
    dumped: Iterable[JsonObject] = ModelMessagesTypeAdapter.dump_python([response], mode="json")
    return next(iter(dumped))
