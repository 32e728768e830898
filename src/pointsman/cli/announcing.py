"""What commands that stay say of themselves: lines for people, or in the form of the logs around them."""

from __future__ import annotations

import logging

from pointsman.app.observing.logs import say as log
from pointsman.cli.printing import say
from pointsman.settings.observing import LogSettings


def announce(logs: LogSettings, what: str, about: str = "") -> None:
    """As in "serving http://…"."""
    if logs.format == "text":
        say(f"{what} {about}".rstrip())
    else:
        log(logging.INFO, what, {"about": about} if about else {})
