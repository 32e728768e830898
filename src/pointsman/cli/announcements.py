"""What commands that stay say of themselves: lines for people, or in the form of the logs around them."""

from __future__ import annotations

import logging

from pointsman.app import Pointsman
from pointsman.cli.printing import say
from pointsman.cli.results import say_scripted
from pointsman.executions.views import SCRIPTED
from pointsman.operations.logs import say as log
from pointsman.operations.readiness import model_state
from pointsman.settings.observability import LogSettings


def announce(logs: LogSettings, what: str, about: str = "") -> None:
    """As in "serving http://…"."""
    if logs.format == "text":
        say(f"{what} {about}".rstrip())
    else:
        log(logging.INFO, what, {"about": about} if about else {})


def warn_of_scripted(app: Pointsman) -> None:
    """Print and log that the scripted model answers every agent of this process, where it does."""
    if model_state(app.context) != "scripted":
        return
    if app.settings.logs.format == "text":
        say_scripted()
    log(logging.WARNING, "model.scripted", {"message": SCRIPTED["message"]})
