"""Rounds of a design, and the history of its conversation.

With the history the model can resolve references, and does not repeat rejected changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from typing_extensions import TypedDict

from pointsman.definition.problems import Problem, ProblemView
from pointsman.engine.reports import Usage
from pointsman.executions.views import SCRIPTED, UsageView, WarningView, usage_view
from pointsman.values import Json, JsonObject

VERDICTS: Final = {
    True: "(That was accepted.)\n\n",
    False: "(That was refused: the workflow is without it.)\n\n",
    None: "",
}


class RoundView(TypedDict):
    """One answer of the model, and its problems."""

    round: int
    model: str
    ok: bool
    """Whether its result has no errors."""
    answer: str
    problems: list[ProblemView]
    usage: UsageView
    scripted: bool
    """Whether the scripted model answered: its answer is made up."""


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model, and its problems."""

    number: int
    model: str
    answer: str
    problems: tuple[Problem, ...]
    usage: Usage = field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> RoundView:
        return {
            "round": self.number,
            "model": self.model,
            "ok": self.ok,
            "answer": self.answer,
            "problems": [problem.to_json() for problem in self.problems],
            "usage": usage_view(self.usage),
            "scripted": self.usage.scripted,
        }


class Evidence(TypedDict):
    """How a model made a result."""

    rounds: list[RoundView]
    """Each answer of the model, and its problems."""
    scripted: bool
    """Whether the scripted model answered: the result is made up, no provider was asked."""
    warnings: list[WarningView]
    """`scripted-answers` if `scripted`."""


def evidence_of(rounds: Sequence[Round]) -> Evidence:
    """Return the rounds of a design, with the warning if the scripted model made it up."""
    scripted = any(one.usage.scripted for one in rounds)
    return {
        "rounds": [one.to_json() for one in rounds],
        "scripted": scripted,
        "warnings": [SCRIPTED] if scripted else [],
    }


class Earlier(NamedTuple):
    """An earlier request of the same conversation, and its result."""

    words: str
    answer: str
    """The model's answer of the last round."""
    accepted: bool | None = None
    """Whether the author accepted the result; None: unknown."""


def told(earlier: Sequence[Earlier], words: str, *, name: str) -> list[Json]:
    """Return the conversation up to the present request as messages. `name`: the name of the assistant."""
    said: list[JsonObject] = []
    verdict = ""
    for one in earlier:
        said.append({"role": "user", "content": verdict + one.words})
        said.append({"role": "assistant", "content": one.answer, "name": name})
        verdict = VERDICTS[one.accepted]
    return [*said, {"role": "user", "content": verdict + words}]
