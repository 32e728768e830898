"""History of a design conversation, so that the model can resolve references and does not repeat rejected changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pointsman.values import Json, JsonObject

VERDICTS: Final = {
    True: "(That was accepted.)\n\n",
    False: "(That was refused: the workflow is without it.)\n\n",
    None: "",
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
