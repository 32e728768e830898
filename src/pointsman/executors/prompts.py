"""Prompts: puts together an agent's system prompt, the conversation and the current task."""

from __future__ import annotations

from collections.abc import Sequence

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.executors.failures import WorkRefused
from pointsman.models.transcript import as_seen_by, as_text, role_of, text_of, user_message
from pointsman.values import Json, JsonObject


def system_of(command: Execute, added: str) -> str:
    """Return the agent's own system prompt, followed by the engine's texts."""
    own = text_of(command.input.get("system"))
    return "\n\n".join(part for part in (own, added) if part)


def messages_of(command: Execute, name: str, conversation: Sequence[Json]) -> list[Json]:
    """Return a conversation as the agent sees it, with its prompt; if both are empty, with its inputs."""
    seen = as_seen_by(name, conversation)
    prompt = command.input.get("prompt")
    if isinstance(prompt, str) and (seen or prompt.strip()):
        seen.insert(_before_own_exchange(seen), user_message(prompt))
    elif not seen:
        seen.append(user_message(_question_of(command, name, prompt)))
    if isinstance(correction := command.input.get("correction"), str):
        seen.append(user_message(correction))
    elif role_of(seen[-1]) == "assistant":
        # Providers treat a final assistant message as the beginning of the answer.
        seen.append(user_message("Go on."))
    return [*seen]


def with_value(prompt: str, value: Json) -> str:
    """Return a question followed by the value it is about."""
    return prompt if value is None else f"{prompt}\n\n{as_text(value)}"


def conversation_of(command: Execute) -> Sequence[Json]:
    """Return the messages that the node names, else the conversation it takes part in."""
    named = command.input.get("messages")
    if isinstance(named, list):
        return named
    return command.messages if named is None else [user_message(as_text(named))]


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
            message=f"the agent {name or command.step.node!r} has nothing to ask the model: {about}",
            hint="Give it a `prompt`, or start the execution with an input.",
        )
    )
