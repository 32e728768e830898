"""Logs: one line per event, as text or JSON, without secrets, and without content unless a workflow's level is `full`.

rows ─▶ public events of the workflow's level ─┐
requests ──────────────────────────────────────┼─▶ redacted ─▶ standard error
log records of libraries ──────────────────────┘

{"time": "2026-11-21T21:00:00.000Z", "level": "info", "event": "workflow.complete", "executionId": "exec-…", …}
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.context import AppContext
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.executions.public_events import public_events
from pointsman.executions.views import observability_of
from pointsman.ports import Row
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.values import ExecutionId, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.engine.state import ExecutionState
    from pointsman.settings.sections import LogSettings

LOGGER: Final = logging.getLogger("pointsman")
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
EVENTS: Final = {
    "workflow.start": logging.INFO,
    "workflow.complete": logging.INFO,
    "workflow.cancelled": logging.INFO,
    "workflow.paused": logging.INFO,
    "workflow.resumed": logging.INFO,
    "workflow.human.required": logging.INFO,
    "workflow.human.answered": logging.INFO,
    "workflow.node.retry": logging.WARNING,
    "workflow.node.error": logging.WARNING,
    "workflow.interrupted": logging.WARNING,
    "workflow.failed": logging.ERROR,
}
"""Levels of events; every other event is logged at `debug`."""
RARE: Final = frozenset(
    {
        *(kind for kind in life_events.LifecycleEvent.__args__),
        events.StepFailed,
        events.ExitFailed,
        wait_events.GateOpened,
        wait_events.GateChanged,
        wait_events.GateEscalated,
        wait_events.GateClosed,
    }
)
"""Rows with none of these events are skipped unless the level is `debug`: for most rows, logging costs only a check of
their types."""
HEAD: Final = frozenset({"id", "event", "at"})
GATE_FIELDS: Final = frozenset({"message", "options", "approvers"})
"""Fields with the content of a gate."""


class LogFormatter(logging.Formatter):
    """Formatter that writes each record as one line."""

    def __init__(self, redact: Redactor, *, as_json: bool) -> None:
        super().__init__()
        self._redact = redact
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: JsonObject = {"time": at, "level": record.levelname.lower(), **self._entry_of(record)}
        if self._as_json:
            return msgspec.json.encode(fields).decode()
        head = f"{fields.pop('time')} {fields.pop('level')!s:7} {fields.pop('event')}"
        return "  ".join((head, *(f"{name}={_word(value)}" for name, value in fields.items() if value is not None)))

    def _entry_of(self, record: logging.LogRecord) -> JsonObject:
        fields: JsonObject | None = getattr(record, "told", None)
        result: JsonObject = (
            {"event": record.getMessage(), **fields}
            if fields is not None
            else {"event": "log", "logger": record.name, "message": record.getMessage()}
        )
        if record.exc_info:
            result["stack"] = self.formatException(record.exc_info)
        return self._redact(result)


def _word(value: Json) -> str:
    """Return a value as one word of a text line; quoted as JSON if it contains separators or line breaks."""
    if isinstance(value, str) and value.isprintable() and value and not set(value) & {" ", '"', "="}:
        return value
    return msgspec.json.encode(value).decode()


def log_event(level: int, event: str, fields: JsonObject) -> None:
    """Log an event."""
    if LOGGER.isEnabledFor(level):
        # `LOGGER.log` would search the stack for the caller, which no line shows.
        LOGGER.handle(LOGGER.makeRecord(LOGGER.name, level, "", 0, event, (), None, extra={"told": fields}))


@dataclass(slots=True)
class LogThrottle:
    """Throttle for log lines that outsiders can cause. Of each kind it logs the first few per period; the first line of
    the next period has the number of suppressed lines, as `omitted`."""

    each: int
    period_s: float
    clock: Callable[[], float] = time.monotonic
    kinds_max: int = 1_000
    _kinds: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    """Kind -> start of its period, and number of lines since."""

    def say(self, level: int, event: str, fields: JsonObject, *, kind: str = "") -> None:
        """Log the event, or only count it. Lines of the same `kind` are counted together; default: the event and its
        code."""
        name = kind or f"{event} {fields.get('code', '')}"
        now = self.clock()
        began, count = self._kinds.get(name, (now, 0))
        if now - began >= self.period_s:
            omitted, began, count = max(0, count - self.each), now, 0
        else:
            omitted = 0
        if len(self._kinds) >= self.kinds_max and name not in self._kinds:
            self._kinds.pop(next(iter(self._kinds)))
        self._kinds[name] = (began, count + 1)
        if count < self.each:
            log_event(level, event, fields | {"omitted": omitted} if omitted else fields)


@contextmanager
def logging_to(app: AppContext, settings: LogSettings, stream: TextIO | None = None) -> Generator[None, None, None]:
    """Log the events of this app, and warnings of libraries, until the block ends."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LogFormatter(redactor_for(app.settings), as_json=settings.format == "json"))
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(LEVELS[settings.level])
    leave = app.feed.watch(logged(debug=settings.level == "debug"))
    try:
        yield
    finally:
        leave()
        root.removeHandler(handler)
        root.setLevel(before)
        LOGGER.setLevel(logging.NOTSET)


def logged(*, debug: bool) -> Callable[[Committed | Delta], None]:
    """Return a watcher of the feed that logs rows."""

    def see(update: Committed | Delta) -> None:
        if isinstance(update, Delta) or not (debug or any(type(event) in RARE for event in update.row.events)):
            return
        log_row(update.execution, update.row, update.state)

    return see


def log_row(execution: ExecutionId, row: Row, state: ExecutionState) -> None:
    """Log the public events of a row, at the redaction level of its workflow."""
    level = observability_of(state.setup.options)
    for public in public_events(execution, row, level):
        name = str(public["event"])
        if not LOGGER.isEnabledFor(weight := EVENTS.get(name, logging.DEBUG)):
            continue
        fields = {key: value for key, value in public.items() if key not in HEAD}
        if name == "workflow.human.required" and level != "full":
            fields = {key: value for key, value in fields.items() if key not in GATE_FIELDS}
        fields["workflowId"] = state.setup.workflow
        if name == "workflow.start" and "trigger" in state.setup.options:
            fields["trigger"] = state.setup.options["trigger"]
        log_event(weight, name, fields)
