"""The rows of the scorecard, and those that need parts which are not built yet."""

from __future__ import annotations

from typing import Final

from tests.reliability import (
    canaries,
    cancelling,
    disk_faults,
    flipped_bits,
    fuzzing,
    gates,
    killing,
    long_loop,
    odd_values,
    old_journals,
    power_cut,
    restarts,
    simulation,
    stopping,
    takeover,
)
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
        test_size=200,
    ),
    Row(
        "kill",
        "kill -9 of a process under load, on SQLite: chains, fan-outs, agents, gates",
        "nothing acknowledged lost; no step, no recorded effect repeated; unrecorded effects repeated per kill ≤ 0.1 "
        "sequential, ≤ 0.3 parallel",
        {"pr": 10, "long": 100},
        "kills",
        killing.on_sqlite,
        test_size=4,
    ),
    Row(
        "kill-postgres",
        "kill -9 of a process under load, on PostgreSQL: chains, fan-outs, agents, gates",
        "nothing acknowledged lost; no step, no recorded effect repeated; unrecorded effects repeated per kill ≤ 0.1 "
        "sequential, ≤ 0.3 parallel",
        {"pr": 10, "long": 100},
        "kills",
        killing.on_postgres,
        test_size=4,
    ),
    Row(
        "restart",
        "PostgreSQL crashes under load and comes back",
        "0 lost, doubled, left out; the same process goes on",
        {"pr": 2, "long": 10},
        "crashes",
        restarts.examine,
    ),
    Row(
        "power-cut",
        "power cut on SQLite: any part of what was not synced is gone",
        "0 acknowledged rows lost; no corruption",
        {"pr": 100, "long": 1_000},
        "cuts",
        power_cut.examine,
    ),
    Row(
        "takeover",
        "an owner that was thought dead goes on beside the new one",
        "0 rows by the old owner after the new one's first; no step twice",
        {"pr": 20, "long": 100},
        "takeovers",
        takeover.examine,
    ),
    Row(
        "disk",
        "the disk is full, refuses to be written, the file is gone: in the middle of work",
        "an error for the operator, reads go on, 0 lost, recovers without restart",
        {"pr": 3, "long": 50},
        "rounds",
        disk_faults.examine,
    ),
    Row(
        "bits",
        "flipped bits in the store",
        "whatever reads differently is told by `verify`, or refused",
        {"pr": 40, "long": 300},
        "flips",
        flipped_bits.examine,
    ),
    Row(
        "gates",
        "20 people answer one gate at once, some from another process; clocks and cancellations race them",
        "exactly one wins, all others are told `gate-closed`",
        {"pr": 100, "long": 1_000},
        "gates",
        gates.examine,
        test_size=40,
    ),
    Row(
        "cancel",
        "cancelled behind every row of chains, fan-outs, agents, gates, timers, retries",
        "over when it is acknowledged; nothing afterwards in an hour of virtual time",
        {"pr": 1, "long": 1},
        "run",
        cancelling.examine,
    ),
    Row(
        "values",
        "64 levels, NaN, 30-digit integers, lone surrogates, megabytes: out of a tool, through the store, and back",
        "exact, or refused by name",
        {"pr": 1, "long": 1},
        "run",
        odd_values.examine,
    ),
    Row(
        "loop",
        "a very long loop, then the resume of its execution, in processes of their own",
        "bounded memory; no recursion; no recorded step again",
        {"pr": 10_000, "long": 100_000},
        "rounds",
        long_loop.examine,
        test_size=3_000,
    ),
    Row(
        "stop",
        "SIGTERM to a keeper with running steps",
        "a clean end at once; the next one finishes everything, nothing twice",
        {"pr": 1, "long": 10},
        "stops",
        stopping.examine,
    ),
    Row(
        "canaries",
        "secret canaries in keys of providers, handles and webhooks; a provider that repeats the key it was given",
        "never in what is stored, shown, logged, exported or raised",
        {"pr": 1, "long": 1},
        "run",
        canaries.examine,
    ),
    Row(
        "fuzz",
        "broken documents and formulas",
        "typed problems with places only; no crash; nothing hangs",
        {"pr": 20_000, "long": 1_000_000},
        "inputs",
        fuzzing.examine,
        test_size=6_000,
    ),
    Row(
        "histories",
        "frozen histories of every release",
        "each folds, means what it meant, and is finished from any of its rows",
        {"pr": 1, "long": 1},
        "run",
        old_journals.examine,
    ),
)

OPEN: Final = (
    OpenRow("50 open streams at SIGTERM", "clean end < 2 s; everything continues after restart", "the server"),
    OpenRow("5 000 subscribers, stuck readers, reconnect storms", "0 gaps, 0 repeats; < 40 KB each", "the server"),
    OpenRow("the OpenAPI document, exercised with links", "0 5xx, 0 undocumented statuses", "the server"),
    OpenRow("routes × roles × groups × owners", "exactly the documented cells open", "the server"),
)
