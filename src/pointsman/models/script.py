"""What the scripted model says: rules tried in order, and canned results of tools. Data, so it travels as JSON too.

rules:
  - {node: Router, visit: 1, next: RC2}
  - {node: RC2, contains: port, text: "Two ships wait."}
tools:
  web_search: {result: [{title: Harbour, url: "https://example.org"}]}
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct, field

from pointsman.engine.reports import Usage
from pointsman.expressions.failures import Spot
from pointsman.expressions.patterns import Pattern, compile_pattern
from pointsman.values import Json, JsonObject

Hints = dict[str, Json]
"""Where a call comes from: what `ModelRequest.hints` says, plus `purpose`."""


class Fail(Struct, frozen=True, kw_only=True):
    """The provider does not answer."""

    status: int | None = None
    """An HTTP status; None: the connection breaks as `how` says."""
    how: str = "status"
    """`status`, `timeout` or `connection`."""
    retry_after_s: float | None = None
    message: str = "scripted failure"


class ScriptedCall(Struct, frozen=True, kw_only=True):
    name: str
    arguments: JsonObject = {}


class ScriptedAnswer(Struct, frozen=True, kw_only=True):
    """One answer. Without any content the model answers from the prompt, after the delay."""

    text: str | None = None
    value: Json = None
    """`json` in the file; means something where `has_value`."""
    has_value: bool = False
    tool_calls: tuple[ScriptedCall, ...] = ()
    next: str | None = None
    end: bool = False
    fail: Fail | None = None
    delay_s: float = 0.0
    token_delay_s: float = 0.0
    usage: Usage | None = None

    @property
    def is_empty(self) -> bool:
        """It leaves the content to the model."""
        return not (self.text is not None or self.has_value or self.tool_calls or self.next is not None or self.end)


class ScriptRule(Struct, frozen=True, kw_only=True, dict=True):
    """When to say what. Everything named must hold."""

    nodes: tuple[str, ...] = ()
    """Ids or names of nodes; empty: any."""
    exact: dict[str, str] = field(default_factory=dict[str, str])
    """`agent`, `purpose`."""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """`visit`, `call`, `attempt` (from 1), `branch` (from 0)."""
    item: str | None = None
    contains: str | None = None
    matches: str | None = None
    times: int | None = None
    """Used this often at most, in each scope of each execution."""
    answers: tuple[ScriptedAnswer, ...] = (ScriptedAnswer(),)
    """One after another; the last one stays."""

    @cached_property
    def _pattern(self) -> Pattern | None:
        return None if self.matches is None else compile_pattern(self.matches, Spot(self.matches, 0, len(self.matches)))

    def fits(self, hints: Hints, last: str) -> bool:
        """Whether the rule speaks of this call, `last` being the text of the last message."""
        return (
            (not self.nodes or hints.get("node") in self.nodes or hints.get("name") in self.nodes)
            and all(hints.get(key) == value for key, value in self.exact.items())
            and all(hints.get(key) == value for key, value in self.counts.items())
            and (self.item is None or hints.get("item") == self.item)
            and (self.contains is None or self.contains in last)
            and (self._pattern is None or self._pattern.search(last) is not None)
        )


class Script(Struct, frozen=True, kw_only=True):
    """Everything a scripted model knows. The empty script answers every prompt by itself."""

    rules: tuple[ScriptRule, ...] = ()
    tools: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Tool name -> its `description`, `parameters`, `results` (see `pointsman.tools.scripted`)."""
