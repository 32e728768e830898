"""JSON views of notifications: the configured addresses, and the notices in the outbox."""

from __future__ import annotations

from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from pointsman.settings import Settings
from pointsman.triggers.notifications.outbox import StoredNotice

NoticeState: TypeAlias = Literal["pending", "sent", "dead"]


class AddressView(TypedDict):
    """An address from the settings, without its secret."""

    name: str
    url: str
    """Scheme and host: the rest is often a secret."""
    events: list[str]
    workflows: list[str]
    signed: bool


class NoticeView(TypedDict):
    """One notice to one address."""

    id: str
    to: str
    event: str
    executionId: str
    state: NoticeState
    """`dead`: given up; it is not sent again automatically."""
    at: float
    attempts: int
    due: float | None
    """When the next attempt is due; null: there is none."""
    error: str | None
    """Why the last attempt failed."""


class NoticePage(TypedDict):
    """The addresses, and the notices by id."""

    addresses: list[AddressView]
    notices: list[NoticeView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def notice_view(kept: StoredNotice) -> NoticeView:
    letter = kept.letter
    return {
        "id": kept.id,
        "to": letter.to,
        "event": str(letter.body["event"]),
        "executionId": str(letter.body["executionId"]),
        "state": letter.state,
        "at": letter.at,
        "attempts": letter.attempts,
        "due": letter.due if letter.state == "pending" else None,
        "error": letter.error or None,
    }


def address_views(settings: Settings) -> list[AddressView]:
    """Return the addresses of the settings, with only scheme and host of their URLs: the rest is often a secret."""
    return [
        {
            "name": name,
            "url": _public(one.url),
            "events": [*one.events],
            "workflows": [*one.workflows],
            "signed": bool(one.secret),
        }
        for name, one in settings.notifications.items()
    ]


def _public(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}/…" if parts.path.strip("/") or parts.query else f"{parts.scheme}://{host}"
