"""The outbox as JSON for people and programs."""

from __future__ import annotations

from pointsman.triggers.notifications.outbox import StoredNotice
from pointsman.values import JsonObject


def letter_view(kept: StoredNotice) -> JsonObject:
    """`due`: when it is tried next; null where it is not tried any more."""
    letter = kept.letter
    return {
        "id": kept.id,
        "to": letter.to,
        "event": letter.body["event"],
        "executionId": letter.body["executionId"],
        "state": letter.state,
        "at": letter.at,
        "attempts": letter.attempts,
        "due": letter.due if letter.state == "pending" else None,
        "error": letter.error or None,
    }
