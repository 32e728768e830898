"""The people who look at a workflow or an execution now.

    pages ── sign every few seconds ──▶ Viewers: subject ─▶ person ─▶ place, last sign
          ◀─ the other people ────────     ▲ │
                                           │ ▼ where several processes serve one store
                                          one entry of the store for each subject ◀─▶ Viewers of other processes

A person without a sign for 20 s is absent. The clocks of processes may differ: a process notes by its own clock when
the sign of a person in another process has changed.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import Final, TypeAlias, cast

from msgspec import Struct

from pointsman.comments.comments import CommentSubject
from pointsman.context import AppContext, Part
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.values import JsonObject

PRESENT_S_MAX: Final = 20.0
"""A person is present for this time after a sign. Pages send one every 8 s, so a closed tab leaves within 30 s."""
SUBJECTS_MAX: Final = 2_000
"""The subject with the oldest sign is forgotten first."""
PEOPLE_MAX: Final = 50
"""People that are listed for one subject."""
KIND: Final = "presence"
WRITES_MAX: Final = 4
"""Attempts to write an entry that other processes write too."""
CLEANED_EVERY_S: Final = 600.0
ENTRY_S_MAX: Final = 3_600.0
"""An entry without a newer sign is deleted. Clocks may differ by less than this."""

StoredSigns: TypeAlias = "dict[str, tuple[str, float]]"
"""The place of each person, and when that person's process got the sign."""


class Sign(Struct, frozen=True):
    """The last sign of a person on a subject."""

    person: str
    place: str
    """The node of the workflow, or the step of the execution; empty: none."""
    at: float
    sent: float
    """`at`, by the clock of the process that got the sign."""


class Viewers:
    """The people on each subject."""

    def __init__(self) -> None:
        self._signs: OrderedDict[CommentSubject, dict[str, Sign]] = OrderedDict()
        self.cleaned_at = 0.0

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

    def note_stored(self, subject: CommentSubject, stored: StoredSigns, *, now: float) -> None:
        """Note the signs that other processes have stored."""
        for person, (place, sent) in stored.items():
            known = self._signs.get(subject, {}).get(person)
            if known is None or known.sent != sent:
                self.note(subject, Sign(person, place, sent if known is None else now, sent))

    def present(self, subject: CommentSubject, *, now: float) -> list[Sign]:
        """Return the people on a subject, by name."""
        signs = self._signs.get(subject, {}).values()
        return sorted((one for one in signs if abs(now - one.at) <= PRESENT_S_MAX), key=lambda one: one.person)


PRESENCE: Final[Part[Viewers]] = Part("presence", lambda _: Viewers())


async def others_on(app: AppContext, subject: CommentSubject, person: str, place: str) -> list[Sign]:
    """Note that a person looks at a subject, and return the other people on it, by name."""
    viewers, now = app[PRESENCE], app.clock.now()
    sign = Sign(person, place, now, now)
    if app.store.claims is None or app.store.read_only:
        viewers.note(subject, sign)
    else:
        await _exchange(app.store.entries, viewers, subject, sign)
    return [one for one in viewers.present(subject, now=now) if one.person != person]


async def _exchange(entries: ConfigStore, viewers: Viewers, subject: CommentSubject, sign: Sign) -> None:
    """Note a sign here and in the store, and note what other processes have stored."""
    if sign.at - viewers.cleaned_at > CLEANED_EVERY_S:
        viewers.cleaned_at = sign.at
        await _clean(entries, now=sign.at)
    key = f"{subject.kind}/{subject.id}"
    # If others are always faster, the next sign of this person is written instead.
    for _ in range(WRITES_MAX):
        entry = await entries.find(KIND, key)
        if entry is not None:
            viewers.note_stored(subject, cast("StoredSigns", entry.value), now=sign.at)
        viewers.note(subject, sign)
        signs = {one.person: (one.place, one.sent) for one in viewers.present(subject, now=sign.at)}
        with suppress(EntryMoved):
            await entries.put(KIND, key, cast("JsonObject", signs), after=0 if entry is None else entry.version)
            return


async def _clean(entries: ConfigStore, *, now: float) -> None:
    for entry in await entries.list(KIND):
        if all(abs(now - sent) > ENTRY_S_MAX for _, sent in cast("StoredSigns", entry.value).values()):
            with suppress(EntryMoved):
                await entries.delete(KIND, entry.key, after=entry.version)
