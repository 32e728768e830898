"""Readiness of a serving process: its store answers and has room, and the process is not shutting down."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.errors import PointsmanError
from pointsman.models.transport import is_scripted
from pointsman.operations.health import store_answers
from pointsman.operations.model_connections import connected_records
from pointsman.store.sqlite.connection import path_of
from pointsman.version import VERSION

LeaderRole: TypeAlias = Literal["here", "standby"]
Model: TypeAlias = Literal["configured", "scripted", "none"]
"""`none`: neither a provider nor the scripted model is configured."""
ROOM_BYTES_MIN: Final = 16 * 1024 * 1024
"""Below this much free space, writes are about to fail."""
ANSWERS_WITHIN_S: Final = 5.0


@dataclass(slots=True)
class Lifecycle:
    """Lifecycle state of a serving process."""

    leader: LeaderRole = "standby"
    stopping: bool = False


class HealthView(TypedDict):
    """Whether the process runs."""

    status: str
    version: str


class ReadyView(HealthView):
    """Whether the process takes requests."""

    stopping: bool
    store: bool
    """Whether the store answers."""
    writable: bool
    """False: the store is read-only, and so is this server."""
    room: bool
    """Whether its disk has room."""
    leader: LeaderRole
    """Whether this process is the leader of its store, or stands by to become it."""
    keeper: LeaderRole
    """Deprecated: the same as `leader`."""
    model: Model
    """Whether a model provider is configured. `none`: workflows that call a model are refused. Has no effect on the
    status."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Result of the readiness check."""

    stopping: bool
    store: bool
    writable: bool
    """False: the store is read-only."""
    room: bool
    leader: LeaderRole
    model: Model = "none"
    """Whether workflows that call a model can start. Other workflows can in any case, so it does not affect `ready`."""

    @property
    def ready(self) -> bool:
        return self.store and self.writable and self.room and not self.stopping

    def to_json(self) -> ReadyView:
        return {
            "status": "ready" if self.ready else "unready",
            "version": VERSION,
            "stopping": self.stopping,
            "store": self.store,
            "writable": self.writable,
            "room": self.room,
            "leader": self.leader,
            "keeper": self.leader,
            "model": self.model,
        }


async def readiness(app: AppContext, life: Lifecycle) -> Readiness:
    """Check readiness. A store that does not answer within 5 s is not ready."""
    answers, writable = False, not app.store.read_only
    with suppress(TimeoutError, PointsmanError):
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            answers = await store_answers(app)
            if answers:
                writable = await app.store.is_writable()
    room = has_room(app.settings.store_url)
    return Readiness(life.stopping, answers, writable, room, life.leader, model_state(app))


def model_state(app: AppContext) -> Model:
    """Return whether a model is configured. No provider is called."""
    if app.services.model is not None and is_scripted(app.services.model):
        return "scripted"
    return "configured" if app.settings.has_provider() or connected_records(app) else "none"


def has_room(store_url: str) -> bool:
    """Return whether the disk of an SQLite store has room. True for other stores, whose disk cannot be checked."""
    if not store_url.startswith("sqlite:"):
        return True
    try:
        return shutil.disk_usage(path_of(store_url).parent).free >= ROOM_BYTES_MIN
    except OSError:
        return False
