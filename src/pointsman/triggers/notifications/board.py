"""What people see of notifications: the addresses that are told, and the outbox."""

from __future__ import annotations

from urllib.parse import urlsplit

from pointsman.context import AppContext
from pointsman.settings import Settings
from pointsman.triggers.notifications.outbox import Outbox
from pointsman.triggers.notifications.views import letter_view
from pointsman.values import JsonObject


async def letters_view(app: AppContext, *, state: str | None = None) -> list[JsonObject]:
    """The outbox, or what is in that state."""
    found = await Outbox(app).list()
    return [letter_view(kept) for kept in found if state in (None, kept.letter.state)]


def addresses_view(settings: Settings) -> list[JsonObject]:
    """The addresses of the settings. Of their URLs scheme and host alone: in the rest services put secrets."""
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
