"""Agents: a model with a role, tools and bounds. Named in the workflow's `agents`, or inline in a node."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pointsman.definition.shape import AnyObject, Count, Expression, Many, Name, Path, Shape, Spelled
from pointsman.definition.text import Text


class Thinking(Shape):
    """How much a model may think before it answers."""

    enabled: bool | None = None
    level: Literal["minimal", "low", "medium", "high", "MINIMAL", "LOW", "MEDIUM", "HIGH"] | None = None
    budget: int | None = None
    """Most tokens of thought; -1 leaves it to the model."""
    thoughts: bool | None = None
    """Whether the thoughts are returned."""
    chat_template_kwargs: AnyObject | None = None
    """Passed to the chat template of local models."""


class AgentMemory(Shape):
    """What an agent remembers of earlier messages."""

    scope: Literal["none", "execution", "session", "long_term"] | None = None
    """How far back memory reaches."""
    window: Count | None = None
    """Most messages kept word for word."""
    summarize: bool | None = None
    """Whether older messages are summarised instead of dropped."""


class AgentConfig(Shape):
    """The model/tool loop. With `agent`, what is said here goes before what the named agent says."""

    agent: Annotated[Name | None, Spelled("agent")] = None
    """The name of an agent of the workflow, or of one registered with the installation."""
    model: Annotated[Name | None, Spelled("model")] = None
    """`provider:model`; absent: the workflow's default model, else the installation's."""
    fallback: Many[Annotated[Name, Spelled("model")]] | None = None
    """Models to ask instead where the first cannot answer, in order; absent: those of the installation."""
    system: Annotated[Text | None, Spelled("template")] = None
    """Who the agent is."""
    prompt: Annotated[Text | None, Spelled("template")] = None
    """What to do now. Absent: the conversation, else the inputs as JSON."""
    messages: Expression | None = None
    """The messages before the prompt. Absent: the conversation where there is no prompt."""
    tools: Many[Annotated[Name, Spelled("tool")]] | None = None
    """The only tools it may call. Absent or empty: none."""
    max_iterations: Count | None = None
    """Most rounds of model and tools (10)."""
    output_schema: AnyObject | None = None
    """JSON Schema the answer must satisfy."""
    result: Literal["text", "json", "auto"] | None = None
    """Without a schema: the text, its JSON, or its JSON where the whole text is one object or list."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Count | None = None
    """Most tokens of one answer."""
    thinking: Thinking | None = None
    key_index: Annotated[int, Field(ge=0)] | None = None
    """Which of the provider's keys to use; absent: the pool decides."""
    handoffs: Many[Name] | None = None
    """Nodes or agents it may hand the conversation to."""
    memory: AgentMemory | None = None
    purpose: str | None = None
    """What kind of work this is (`generation`, `validation` …); settings may choose model and temperature by it."""
    input_files: Many[Path] | None = None
    """State paths whose files are attached."""
