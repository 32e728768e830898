"""The rows of the scorecard, and those that need parts which are not built yet."""

from __future__ import annotations

from typing import Final

from tests.reliability import killing, power_cut, simulation
from tests.reliability.findings import OpenRow, Row

ROWS: Final = (
    Row(
        "simulation",
        "random graphs × schedules × a crash before and after every append × duplicates × zombies × rivals × "
        "failing effects × time",
        "0 violations of the laws; every rare state reached",
        {"pr": 500, "long": 20_000},
        "seeds",
        simulation.examine,
    ),
    Row(
        "kill",
        "kill -9 of a process under load, on SQLite: chains, fan-outs, agents, gates",
        "nothing acknowledged lost; no step, no recorded effect repeated; unrecorded effects repeated per kill ≤ 0.1 "
        "sequential, ≤ 0.3 parallel",
        {"pr": 10, "long": 100},
        "kills",
        killing.on_sqlite,
    ),
    Row(
        "power-cut",
        "power cut on SQLite: any part of what was not synced is gone",
        "0 acknowledged rows lost; no corruption",
        {"pr": 100, "long": 1_000},
        "cuts",
        power_cut.examine,
    ),
)

OPEN: Final = (
    OpenRow("50 open streams at SIGTERM", "clean end < 2 s; everything continues after restart", "the server"),
    OpenRow("5 000 subscribers, stuck readers, reconnect storms", "0 gaps, 0 repeats; < 40 KB each", "the server"),
    OpenRow("the OpenAPI document, exercised with links", "0 5xx, 0 undocumented statuses", "the server"),
    OpenRow("routes × roles × groups × owners", "exactly the documented cells open", "the server"),
)
