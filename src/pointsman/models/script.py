"""Scripts of the scripted model: rules tried in order, and results of tools. Plain data that can be stored as JSON.

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
"""Origin of a call: `ModelRequest.hints` and `purpose`."""


class Fail(Struct, frozen=True, kw_only=True):
    """Simulated failure of the provider."""

    status: int | None = None
    """HTTP status; None: the connection breaks in the way of `how`."""
    how: str = "status"
    """`status`, `timeout` or `connection`."""
    retry_after_s: float | None = None
    message: str = "scripted failure"


class ScriptedCall(Struct, frozen=True, kw_only=True):
    name: str
    arguments: JsonObject = {}


class ScriptedAnswer(Struct, frozen=True, kw_only=True):
    """One answer. Without content, the model answers from the prompt after the delay."""

    text: str | None = None
    value: Json = None
    """`json` in the file; valid only if `has_value`."""
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
        """Whether the answer has no content of its own."""
        return not (self.text is not None or self.has_value or self.tool_calls or self.next is not None or self.end)


class ScriptRule(Struct, frozen=True, kw_only=True, dict=True):
    """Conditions, all of which must hold, and the answers for them."""

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
    """Maximum number of uses, in each scope of each execution."""
    answers: tuple[ScriptedAnswer, ...] = (ScriptedAnswer(),)
    """Used one after another; the last one is repeated."""

    @cached_property
    def _pattern(self) -> Pattern | None:
        return None if self.matches is None else compile_pattern(self.matches, Spot(self.matches, 0, len(self.matches)))

    def fits(self, hints: Hints, last: str) -> bool:
        """Return whether the rule applies to a call; `last`: the text of the last message."""
        return (
            (not self.nodes or hints.get("node") in self.nodes or hints.get("name") in self.nodes)
            and all(hints.get(key) == value for key, value in self.exact.items())
            and all(hints.get(key) == value for key, value in self.counts.items())
            and (self.item is None or hints.get("item") == self.item)
            and (self.contains is None or self.contains in last)
            and (self._pattern is None or self._pattern.search(last) is not None)
        )


class Script(Struct, frozen=True, kw_only=True):
    """Rules and tools of a scripted model. With an empty script it answers every prompt by itself."""

    rules: tuple[ScriptRule, ...] = ()
    tools: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Tool name -> its `description`, `parameters`, `results` (see `pointsman.tools.scripted`)."""
