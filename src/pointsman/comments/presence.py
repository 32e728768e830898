"""Who looks at a workflow or an execution now: in the memory of this process, and forgotten soon after the last sign.

    pages ── sign every few seconds ──▶ Viewers: subject ─▶ person ─▶ place, last sign
          ◀─ the other people ────────

Nothing is stored: several server processes have a list each, of the people whose requests they answer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from pointsman.comments.comments import CommentSubject
from pointsman.context import Part

PRESENT_S_MAX: Final = 20.0
"""A person is present for this time after a sign. Pages send one every 8 s, so a closed tab leaves within 30 s."""
SUBJECTS_MAX: Final = 2_000
"""The subject with the oldest sign is forgotten first."""
PEOPLE_MAX: Final = 50
"""People that are listed for one subject."""


class Sign(Struct, frozen=True):
    """The last sign of a person on a subject."""

    person: str
    place: str
    """The node of the workflow, or the step of the execution; empty: none."""
    at: float


class Viewers:
    """The people on each subject."""

    def __init__(self) -> None:
        self._signs: OrderedDict[CommentSubject, dict[str, Sign]] = OrderedDict()

    def note(self, subject: CommentSubject, sign: Sign) -> None:
        """Note that a person looks at a subject."""
        signs = self._signs.setdefault(subject, {})
        self._signs.move_to_end(subject)
        signs.pop(sign.person, None)
        signs[sign.person] = sign
        if len(signs) > PEOPLE_MAX:
            del signs[next(iter(signs))]
        if len(self._signs) > SUBJECTS_MAX:
            self._signs.popitem(last=False)

    def others(self, subject: CommentSubject, person: str, *, now: float) -> list[Sign]:
        """Return the other people on a subject, by name."""
        signs = self._signs.get(subject, {})
        for name in [one.person for one in signs.values() if now - one.at > PRESENT_S_MAX]:
            del signs[name]
        return sorted((one for one in signs.values() if one.person != person), key=lambda one: one.person)


PRESENCE: Final[Part[Viewers]] = Part("presence", lambda _: Viewers())
