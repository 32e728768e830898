"""A frozen history: a workflow, and the rows of one execution as a store of that release held them.

line 1   {"shape": 0, "definition": {…}, "status": "completed", "output": …} line n   [seq, at, [event, …]], or since
rows store their cause [seq, at, {"events": [event, …], "cause": {…}}]

Histories are written once (`python -m tests.histories.freeze RELEASE`) and never change: stores of users contain such
rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from pointsman.engine.events.steps import Event
from pointsman.engine.plan import Plan
from pointsman.engine.reports import AdmissionGranted, ResumeRequested, WorkerOffered
from pointsman.engine.state import ENDED
from pointsman.ports import Row
from pointsman.store.codec import UPCASTERS, Codec, RowContent
from pointsman.testing.graphs import perform
from pointsman.testing.simulation import Simulation
from pointsman.values import Json, JsonObject
from tests.engine.laws import compiled
from tests.reliability.human_actions import vote

FOLDER: Final = Path(__file__).parent
CODEC: Final = Codec[Event](Event, UPCASTERS)
RESUMES_MAX: Final = 2
STEPS_MORE: Final = 100.0


class Head(msgspec.Struct, frozen=True):
    """The first line."""

    shape: int
    definition: JsonObject
    status: str
    output: Json


class History(NamedTuple):
    """One file."""

    head: Head
    rows: tuple[Row, ...]

    @property
    def plan(self) -> Plan:
        plan = compiled(self.head.definition)
        assert plan is not None, "its definition does not compile any more"
        return plan


def histories(release: str = "*") -> list[Path]:
    """Return the histories of a release, or all of them in order of releases."""
    return sorted(FOLDER.glob(f"{release}/*.jsonl"))


def read_history(path: Path) -> History:
    """Read a history with the present codec."""
    first, *lines = path.read_bytes().splitlines()
    head = msgspec.json.decode(first, type=Head)
    raw = [msgspec.json.decode(line, type=tuple[int, float, msgspec.Raw]) for line in lines]
    return History(head, tuple(_row(seq, at, CODEC.decode(bytes(events), head.shape)) for seq, at, events in raw))


def _row(seq: int, at: float, content: RowContent[Event]) -> Row:
    return Row(seq, at, content.events, content.cause)


def write_history(path: Path, definition: JsonObject, rows: Iterable[Row], *, status: str, output: Json) -> None:
    lines = [msgspec.json.encode(Head(CODEC.shape, definition, status, output))]
    lines += [msgspec.json.encode((row.seq, row.at, msgspec.Raw(CODEC.encode(row.events, row.cause)))) for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")


def taken_up(plan: Plan, rows: tuple[Row, ...]) -> Simulation:
    """Continue the execution of these rows until it ends or nothing can end it."""
    world = Simulation(plan, seed=1, work=perform, answer=vote)
    world.rows = list(rows)
    world.crash()
    world.now = rows[-1].at
    world.tell(AdmissionGranted())
    for step in [*world.state.steps_without_worker]:
        world.tell(WorkerOffered(step=step, attempt=world.state.steps[step].attempt))
    world.go_on()
    for _ in range(RESUMES_MAX):
        if world.state.status in ENDED:
            break
        limits = {"steps": world.state.counters.steps + STEPS_MORE} if world.state.status == "interrupted" else {}
        world.tell(ResumeRequested(limits=limits))
        world.go_on()
    return world
