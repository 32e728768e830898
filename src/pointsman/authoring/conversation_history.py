"""What was said before to a model that designs: so that it knows what "it" is, and what was not wanted."""

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
    """What was asked before in the same conversation, and what became of the answer."""

    words: str
    answer: str
    """The model's, of its last round."""
    accepted: bool | None = None
    """Whether the author took it; None: they have not said."""


def told(earlier: Sequence[Earlier], words: str, *, name: str) -> list[Json]:
    """The conversation up to what is asked now, as messages. `name`: of whom was answering."""
    said: list[JsonObject] = []
    verdict = ""
    for one in earlier:
        said.append({"role": "user", "content": verdict + one.words})
        said.append({"role": "assistant", "content": one.answer, "name": name})
        verdict = VERDICTS[one.accepted]
    return [*said, {"role": "user", "content": verdict + words}]
