"""Agents: a model with a role, tools and bounds. Named in the workflow's `agents`, or inline in a node."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from pointsman.definition.model.base import AnyObject, Count, Expression, Many, Model, Name, Path, Spelled, Text

MEMORY_TOOLS: Final = ("memory_get", "memory_set", "memory_append", "memory_delete", "memory_search")
"""By which agents remember, where their `tools` name them."""


class Thinking(Model):
    """How much a model may think before it answers."""

    enabled: bool | None = None
    level: Literal["minimal", "low", "medium", "high", "MINIMAL", "LOW", "MEDIUM", "HIGH"] | None = None
    budget: int | None = None
    """Maximum number of reasoning tokens; -1: the model decides."""
    thoughts: bool | None = None
    """Whether the thoughts are returned."""
    chat_template_kwargs: AnyObject | None = None
    """Passed to the chat template of local models."""


class AgentMemory(Model):
    """The part of the earlier messages that an agent receives. The conversation itself keeps them all."""

    scope: Literal["none", "execution", "session", "long_term"] | None = None
    """Which earlier messages the agent receives. `none`: only its prompt; otherwise all of the scope."""
    window: Count | None = None
    """Maximum number of messages that are kept unchanged."""
    tokens: Count | None = None
    """Maximum tokens of a request (estimated); old tool results are shortened first, then messages omitted."""
    summarize: bool | None = None
    """Whether removed messages are summarised (true) or dropped."""
    scopes: Many[Literal["execution", "session", "user", "workflow", "shared"]] | None = None
    """Scopes of memory that its memory tools can access. Default: the session only."""
    namespace: Name | None = None
    """The scope that its memory tools can access; with `shared`, the name of that memory."""


class Guardrail(Model):
    """One thing that must hold of what an agent is asked, or of its answer. Says `schema`, `expression` or `prompt`."""

    name: str | None = None
    schema_: Annotated[AnyObject | None, Field(alias="schema")] = None
    """Of the inputs, or of the answer."""
    expression: Expression | None = None
    """Expression over the data and the inputs; of an answer also over `result` and its whole `text`."""
    prompt: Annotated[Text | None, Spelled("template")] = None
    """A question to a model, which answers yes or no: the rule in words."""
    model: Annotated[Name | None, Spelled("model")] = None
    """The model that judges. Default: the agent's model."""
    message: str | None = None
    """Message of the failure when the check does not hold."""
    on_fail: Literal["retry", "fail"] | None = None
    """For an answer: the agent gets the message and answers again (the default; at most twice), or the step fails."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(one is not None for one in (self.schema_, self.expression, self.prompt)) != 1:
            raise ValueError("must have one of `schema`, `expression` and `prompt`")
        return self


class Guardrails(Model):
    """Checks that no prompt can disable."""

    before: Many[Guardrail] | None = None
    """Condition on the input of the agent; if it does not hold, no model is called and the step fails."""
    after: Many[Guardrail] | None = None
    """Condition on its answer."""


class AgentConfig(Model):
    """The model/tool loop. With `agent`, fields set here override those of the named agent."""

    agent: Annotated[Name | None, Spelled("agent")] = None
    """The name of an agent of the workflow, or of one registered with the installation."""
    model: Annotated[Name | None, Spelled("model")] = None
    """`provider:model`. Defaults to the workflow's default model, then to the configured one."""
    fallback: Many[Annotated[Name, Spelled("model")]] | None = None
    """Fallback models, in order, used if the first one cannot answer. Default: those of the settings."""
    system: Annotated[Text | None, Spelled("template")] = None
    """The role of the agent: its system prompt."""
    prompt: Annotated[Text | None, Spelled("template")] = None
    """The user message. Defaults to the conversation, or to the inputs as JSON."""
    messages: Expression | None = None
    """The messages before the prompt. Defaults to the conversation if there is no prompt."""
    tools: Many[Annotated[Name, Spelled("tool")]] | None = None
    """Tools that the agent can use. Default: none."""
    max_iterations: Count | None = None
    """Maximum number of rounds of model and tools (10)."""
    output_schema: AnyObject | None = None
    """Structured output: a JSON Schema that the answer must satisfy."""
    result: Literal["text", "json", "auto"] | None = None
    """Without a schema: the text, its JSON, or its JSON if the whole text is one object or list."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Count | None = None
    """Maximum number of tokens of one answer."""
    thinking: Thinking | None = None
    key_index: Annotated[int, Field(ge=0)] | None = None
    """Index of the provider's API key. Default: the pool decides."""
    handoffs: Many[Name] | None = None
    """Nodes, by id or agent, to which it can hand over control. Default: the nodes that its edges lead to."""
    memory: AgentMemory | None = None
    guardrails: Guardrails | None = None
    purpose: str | None = None
    """The kind of work (`generation`, `validation` …); settings may choose model and temperature by it."""
    input_files: Many[Path] | None = None
    """State paths of files to attach."""
