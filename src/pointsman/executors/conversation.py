"""Conversation of an agent with its model: settings, system prompt, current task, and history within its limits.

    conversation ─▶ older than `window`, over `tokens` ─▶ a summary (kept in the conversation), or left out
    transcript   ─▶ over `tokens`, or refused as too long ─▶ old tool results cut short ─▶ still over: a summary

A tool call and its results stay or go together, and the current task always stays. Summaries are model calls like any
other: recorded, counted, charged. A summary of a part of the conversation is added to it, so the next turn does not pay
for it again; the conversation itself keeps every message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.executors.effect_ledger import EffectLedger, fingerprint
from pointsman.executors.failures import WorkRefused
from pointsman.models.transcript import (
    SUMMARY,
    as_seen_by,
    as_text,
    calls_of,
    content_of,
    role_of,
    text_of,
    user_message,
)
from pointsman.ports import ModelReply, ModelRequest, ReasoningEffort
from pointsman.redaction import masked
from pointsman.values import Json, JsonObject

ITERATIONS: Final = 10
"""Most rounds of model and tools if the agent sets no limit."""


class HistorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the earlier conversation an agent receives. The plan decides how far back it goes."""

    window: int | None = None
    summarize: bool | None = None
    tokens: int | None = None
    scopes: tuple[str, ...] | None = None


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of an agent's config that its loop needs. Other keys are ignored here."""

    model: str | None = None
    fallback: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    max_iterations: int | None = None
    output_schema: JsonObject | None = None
    result: Literal["text", "json", "auto"] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    key_index: int | None = None
    purpose: str | None = None
    thinking: ReasoningEffort | None = None
    memory: HistorySettings = HistorySettings()
    guardrails: JsonObject | None = None

    @property
    def iterations_max(self) -> int:
        return ITERATIONS if self.max_iterations is None else self.max_iterations


def agent_settings(spec: WorkSpec) -> AgentSettings:
    """Raises `WorkRefused` for a config that no check can have passed."""
    try:
        settings = msgspec.convert(spec.config, AgentSettings)
    except msgspec.ValidationError as why:
        message = f"the config of {spec.node!r} cannot be used: {why}"
        raise WorkRefused(Failure(code="config-invalid", message=message)) from why
    if settings.result is None and spec.settings.get("auto") is True:
        return msgspec.structs.replace(settings, result="auto")
    return settings


def model_of(spec: WorkSpec, settings: AgentSettings) -> str:
    """Return the agent's model, else the workflow's; empty: the installation chooses."""
    return settings.model or text_of(spec.settings.get("defaultModel"))


def system_of(command: Execute, added: str) -> str:
    """Return the agent's own system prompt, followed by the engine's texts."""
    own = text_of(command.input.get("system"))
    return "\n\n".join(part for part in (own, added) if part)


def messages_of(command: Execute, name: str, conversation: Sequence[Json]) -> list[Json]:
    """Return a conversation as the agent sees it, with its prompt; if both are empty, with its inputs."""
    messages = as_seen_by(name, conversation)
    prompt = command.input.get("prompt")
    if isinstance(prompt, str) and (messages or prompt.strip()):
        messages.insert(_before_own_exchange(messages), user_message(prompt))
    elif not messages:
        messages.append(user_message(_question_of(command, name, prompt)))
    if isinstance(correction := command.input.get("correction"), str):
        messages.append(user_message(correction))
    elif role_of(messages[-1]) == "assistant":
        # Providers treat a final assistant message as the beginning of the answer.
        messages.append(user_message("Go on."))
    return [*messages]


def with_value(prompt: str, value: Json) -> str:
    """Return a question followed by the value it is about."""
    return prompt if value is None else f"{prompt}\n\n{as_text(value)}"


def conversation_of(command: Execute) -> Sequence[Json]:
    """Return the messages that the node names, else the conversation it takes part in."""
    messages = command.input.get("messages")
    if isinstance(messages, list):
        return messages
    return command.messages if messages is None else [user_message(as_text(messages))]


def _before_own_exchange(messages: Sequence[JsonObject]) -> int:
    """Return where the prompt goes: last, but before the agent's own tool calls that were just answered."""
    at = len(messages)
    while at > 0 and role_of(messages[at - 1]) == "tool":
        while at > 0 and role_of(messages[at - 1]) == "tool":
            at -= 1
        if at > 0 and role_of(messages[at - 1]) == "assistant":
            at -= 1
    return at


def _question_of(command: Execute, name: str, prompt: Json) -> str:
    """Return the question of an agent without a prompt: `message` of its inputs, else the inputs as JSON."""
    inputs = command.input.get("inputs")
    if isinstance(inputs, dict) and isinstance(message := inputs.get("message"), str) and message.strip():
        return message
    if inputs not in (None, {}, "", []):
        return as_text(inputs)
    if command.input.get("files"):
        return "Read the attached files."
    about = "its prompt is empty" if isinstance(prompt, str) else "it has no prompt, and the execution has no input"
    raise WorkRefused(
        Failure(
            code="agent-without-prompt",
            message=f"the agent {name or command.step.node!r} has no prompt: {about}",
            hint="Give it a `prompt`, or start the execution with an input.",
        )
    )


CHARS_PER_TOKEN: Final = 4.0
"""An estimate, used until the provider reports how many tokens it counted."""
CHUNK_TOKENS: Final = 16_000
"""Most tokens summarised in one call if no budget is known."""
RESULT_CHARS: Final = 400
"""Characters left of an old tool result that is cut short."""

_SUMMARY_SYSTEM: Final = (
    "Summarise the conversation for who goes on with it and has not read it. Keep goals, facts, names, numbers, "
    "decisions, what was tried and what is open. No judgement, nothing that was not said."
)
_LEFT_OUT: Final = "[Earlier messages are left out.]"
_SUMMARISED: Final = "[What was said and done before, in short]\n"


class Recalled(NamedTuple):
    """A conversation as the model receives it."""

    opening: tuple[Json, ...]
    """A message that replaces the messages left out."""
    messages: tuple[Json, ...]
    added: tuple[JsonObject, ...] = ()
    """The new summary, to be added to the conversation."""


class TranscriptWindow:
    """Keeps one agent's transcript within its budget. One per attempt: it learns the length of a token here."""

    def __init__(self, ledger: EffectLedger, memory: HistorySettings, asks: ModelRequest, *, name: str) -> None:
        """`asks`: the agent's model request, without messages."""
        self._ledger = ledger
        self._memory = memory
        self._asks = asks
        self._name = name
        self._ratio = CHARS_PER_TOKEN
        self._sizes: dict[int, tuple[Json, int]] = {}
        """Characters of messages, by the identity of the message."""
        self._counted: tuple[Sequence[Json], int, int] | None = None
        """A transcript, how many of its messages were sent, and their tokens as the provider counted them."""
        self._budget = memory.tokens
        self._replacement: Json = None
        """The message that replaces the older part of the transcript."""

    async def recalled(self, conversation: Sequence[Json]) -> Recalled:
        """Return the conversation within the agent's memory settings. Raises `ModelFailed`."""
        past, covered = _past(conversation, self._name)
        left = [(at, one) for at, one in enumerate(conversation) if at >= covered and role_of(one) != SUMMARY]
        messages = [one for _, one in left]
        cut = _whole(messages, self._beyond(messages))
        older, recent = messages[:cut], (*messages[cut:],)
        if not older:
            return Recalled((_summary_message(past),) if past else (), recent)
        if not self._summarises:
            return Recalled((user_message(_LEFT_OUT),), recent)
        text = await self._summary(past, older)
        last, message = left[cut - 1]
        summary: JsonObject = {
            "role": SUMMARY,
            "content": text,
            "name": self._name,
            "covers": last + 1,
            "upTo": fingerprint(message),
        }
        return Recalled((_summary_message(text),), recent, (summary,))

    async def fitted(self, transcript: list[Json], now: Json) -> list[Json]:
        """Return the transcript within the budget, if there is one; `now` stays. Raises `ModelFailed`."""
        if self._budget is None or self.tokens(transcript) <= self._budget:
            return transcript
        return await self._within(transcript, now, self._budget)

    async def shortened(self, transcript: list[Json], now: Json) -> list[Json] | None:
        """Return a shorter transcript for a model that refused it as too long; None if nothing can be shortened."""
        self._budget = max(self.tokens(transcript) // 2, 1)
        shorter = await self._within(transcript, now, self._budget)
        return shorter if self._chars(shorter) < self._chars(transcript) else None

    def learn(self, transcript: Sequence[Json], reply: ModelReply) -> None:
        """Keep the provider's count of the tokens of this transcript, to which messages may be appended later."""
        if reply.usage.input_tokens > 0:
            self._counted = transcript, len(transcript), reply.usage.input_tokens

    def tokens(self, transcript: Sequence[Json]) -> int:
        """Estimate the tokens of the agent's request with this transcript."""
        return round((self._fixed + self._chars(transcript)) / self._chars_per_token)

    @property
    def _chars_per_token(self) -> float:
        """The characters per token as the provider counted them last, computed when a budget needs them."""
        if self._counted is not None:
            transcript, sent, tokens = self._counted
            self._ratio = min(max((self._fixed + self._chars(transcript[:sent])) / tokens, 1.0), 2 * CHARS_PER_TOKEN)
            self._counted = None
        return self._ratio

    def _chars(self, messages: Sequence[Json]) -> int:
        """Return the characters of messages. Each message is counted once."""
        total = 0
        for message in messages:
            cached = self._sizes.get(id(message))
            if cached is None:
                size = len(content_of(message)) + sum(len(as_text(call.arguments)) for call in calls_of(message))
                cached = self._sizes[id(message)] = message, size
            total += cached[1]
        return total

    @cached_property
    def _fixed(self) -> int:
        """Characters of the request apart from its messages."""
        asks = self._asks
        tools = sum(len(tool.name) + len(tool.description) + len(as_text(tool.parameters)) for tool in asks.tools)
        return len(asks.system) + tools + (0 if asks.output_schema is None else len(as_text(asks.output_schema)))

    @property
    def _summarises(self) -> bool:
        return self._memory.summarize is not False

    def _beyond(self, messages: Sequence[Json]) -> int:
        """Return how many messages at the beginning are too many. A summary covers more at once, so that the next
        message does not require another one."""
        window, most = self._memory.window, self._memory.tokens
        cut = 0
        if window is not None and len(messages) > window:
            cut = len(messages) - (max(window // 2, 1) if self._summarises else window)
        if most is not None and self.tokens(messages) > most:
            cut = max(cut, self._cut(messages, most // 2))
        return cut

    def _cut(self, messages: Sequence[Json], tokens: int) -> int:
        """Return the index from which the newest messages fit into this many tokens; the last message always counts."""
        room = tokens * self._chars_per_token - self._fixed
        at = len(messages) - 1
        room -= self._chars(messages[at:])
        while at > 0 and (room := room - self._chars(messages[at - 1 : at])) >= 0:
            at -= 1
        return max(at, 0)

    async def _within(self, transcript: list[Json], now: Json, tokens: int) -> list[Json]:
        messages = [*transcript]
        last = _whole(messages, len(messages) - 1)
        for at in range(last):
            if self.tokens(messages) <= tokens:
                return messages
            messages[at] = _cut_short(messages[at])
        if self.tokens(messages) <= tokens:
            return messages
        cut = _whole(messages, self._cut(messages, tokens // 2))
        older = [message for message in transcript[:cut] if message is not now]
        if not older or (len(older) == 1 and older[0] is self._replacement):
            return messages
        replacement = _summary_message(await self._summary("", older)) if self._summarises else user_message(_LEFT_OUT)
        self._replacement = replacement
        return [replacement, *([now] if any(message is now for message in transcript[:cut]) else []), *messages[cut:]]

    async def _summary(self, past: str, messages: Sequence[Json]) -> str:
        """Summarise in several calls if one is too small: each continues from the previous summary."""
        size = round((self._budget or CHUNK_TOKENS) * self._chars_per_token / 2)
        summary = past
        for chunk in _chunks("\n\n".join(map(_as_line, messages)), max(size, RESULT_CHARS)):
            prompt = f"{_SUMMARISED}{summary}\n\n{chunk}" if summary else chunk
            request = replace(
                self._asks,
                system=_SUMMARY_SYSTEM,
                messages=[user_message(prompt)],
                tools=(),
                output_schema=None,
                purpose="summary",
            )
            summary = (await self._ledger.ask(request)).text
        return summary


def _past(conversation: Sequence[Json], name: str) -> tuple[str, int]:
    """Return the agent's latest summary that still matches the beginning of this conversation, and how many messages it
    covers."""
    for at in range(len(conversation) - 1, -1, -1):
        message = conversation[at]
        if not isinstance(message, dict) or role_of(message) != SUMMARY or message.get("name") != name:
            continue
        covers = message.get("covers")
        if (
            isinstance(covers, int)
            and 0 < covers <= at
            and fingerprint(conversation[covers - 1]) == message.get("upTo")
        ):
            return content_of(message), covers
    return "", 0


def _summary_message(summary: str) -> JsonObject:
    return user_message(f"{_SUMMARISED}{summary}")


def _whole(messages: Sequence[Json], cut: int) -> int:
    """Move the cut to before a tool call whose results would lie behind it."""
    cut = min(max(cut, 0), max(len(messages) - 1, 0))
    while cut > 0 and role_of(messages[cut]) == "tool":
        cut -= 1
    call_ids = {text_of(message.get("toolCallId")) for message in messages[cut:] if isinstance(message, dict)} - {""}
    for at in range(cut):
        if any(call.id in call_ids for call in calls_of(messages[at])):
            return at
    return cut


def _cut_short(message: Json) -> Json:
    if not isinstance(message, dict) or role_of(message) != "tool":
        return message
    text = masked(content_of(message))
    if len(text) <= RESULT_CHARS:
        return message
    return {**message, "content": f"{text[:RESULT_CHARS]}… [{len(text) - RESULT_CHARS} more characters were cut off]"}


def _as_line(message: Json) -> str:
    author = "" if not isinstance(message, dict) else text_of(message.get("name")) or role_of(message)
    calls = "".join(f"\n[calls {call.name}: {as_text(call.arguments)}]" for call in calls_of(message))
    tool = f" ({text_of(message.get('tool'))})" if isinstance(message, dict) and role_of(message) == "tool" else ""
    return f"{author}{tool}: {content_of(message)}{calls}"


def _chunks(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
