"""Status messages of long-running commands: plain lines, or log records if the logs are not plain text."""

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
    """Print or log a status message, such as "serving http://…"."""
    if logs.format == "text":
        say(f"{what} {about}".rstrip())
    else:
        log(logging.INFO, what, {"about": about} if about else {})


def warn_of_scripted(app: Pointsman) -> None:
    """Log a warning, and print it beside text logs, if the scripted model answers every agent of this process."""
    if model_state(app.context) != "scripted":
        return
    if app.settings.logs.format == "text":
        say_scripted()
    log(logging.WARNING, "model.scripted", {"message": SCRIPTED["message"]})
