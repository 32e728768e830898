"""Access matrix: every operation, called without a key, with a wrong key, and by callers of every role, in a group and
in none, owners and without_valid_key, on workflows, executions, conversations, memory and schedules of every kind.

Access must match the documentation cell by cell, and no answer may contain a word of an object that its caller may not
see.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import httpx2

from pointsman.server.application import openapi_document
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from tests.patience import PATIENCE_S
from tests.reliability.example_requests import ExampleAnswer, ExampleClient
from tests.reliability.findings import Finding
from tests.reliability.servers import server
from tests.reliability.tenants import KINDS, ROLES, Kind, Tenant, Thing, create_keys, create_object
from tests.server.conftest import serving

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "access.md"
ROW: Final = re.compile(r"^\| `(\w+ [^`]+)` \|(.*)\|$", re.MULTILINE)
SETTINGS: Final = Settings(
    delays=False,
    access=AccessSettings(
        new_workflows="private",
        wrong_keys_per_minute=1_000_000,
        requests_per_s=1_000_000,
        burst=1_000_000,
        starts_per_minute=1_000_000,
    ),
)
STRANGERS: Final[dict[str, dict[str, str]]] = {"no key": {}, "a wrong key": {"authorization": "Bearer pm_wrong"}}
OF_THINGS: Final = (
    "{eid}",
    "/api/workflows/{id}",
    "{sid}",
    "{scope}",
    "/v1/models/{id}",
    "/session/{id}",
    "/sessions/{id}",
    "/api/tools/{name}",
)
OF_EVALUATIONS: Final = "GET /api/evaluations/{eid}"
"""No object is an evaluation run: tests/evaluations call it as callers with and without access."""
BY_BODY: Final = frozenset({"POST /api/schedules", "POST /v1/chat/completions", "POST /v1/responses"})
"""Operations that name a workflow in the request body."""
MISSING: Final = frozenset(
    {
        "unknown-workflow",
        "unknown-execution",
        "unknown-session",
        "no-such-schedule",
        "no-such-tool",
    }
)
"""A hidden object is answered like one that does not exist."""
OF_OTHERS: Final = frozenset({"GET /v1/models/{id}", "POST /v1/chat/completions", "POST /v1/responses"})
MARKS: Final = re.compile(r"(word|thing)(\d+)")
SHOWN_MAX: Final = 20


class Cell(NamedTuple):
    """A caller, an operation and an object."""

    operation: str
    one: Tenant
    thing: Thing | None
    has_role: bool
    is_open: bool
    scope: str = ""

    @property
    def weight(self) -> int:
        """Order: operations that change nothing come first, deletions last."""
        return ("GET", "POST", "PUT", "PATCH", "DELETE").index(self.operation.split()[0])

    def __str__(self) -> str:
        at = "" if self.thing is None else f" at {described(self.thing)}"
        return f"{self.operation} as {self.one.name}{at}"


def documented() -> dict[str, str | None]:
    """Return the minimum role of each operation as documented; None: no key is required."""
    found: dict[str, str | None] = {}
    for operation, cells in ROW.findall(PAGE.read_text(encoding="utf-8")):
        open_to = [cell.strip() for cell in cells.split("|")]
        found[operation] = None if open_to[0] == "no key" else ROLES[open_to.index("yes")]
    return found


class AccessExperiment:
    """One server, all callers, and the deviations from the documentation."""

    def __init__(self, knocker: ExampleClient, tenants: list[Tenant], seed: int) -> None:
        self.knocker = knocker
        self.tenants = tenants
        self.least = documented()
        self.random = Random(seed)
        self.things: list[Thing] = []
        self.wrong: list[str] = []

    async def create_object(self, kinds: Iterable[Kind]) -> None:
        """Create one object of each kind."""
        for number, kind in enumerate(kinds, len(self.things) + 1):
            self.things.append(await create_object(self.knocker.client, self.tenants, self.random, kind, number))

    async def without_valid_key(self) -> None:
        """Call every operation without a key and with a wrong one."""
        for operation, least in self.least.items():
            for name, headers in STRANGERS.items():
                told = await self.knocker.ask(operation, headers)
                expected = told.status not in (401, 403) if least is None else told.status == 401 and told.asks_for_key
                if not expected or told.status >= 500:
                    self.wrong.append(f"{operation} with {name}: {told.status}")

    async def roles(self, method: str = "") -> None:
        """Call every operation as every role, on no object and on objects that do not exist. `method`: only those."""
        alone = [one for one in self.tenants if not one.groups]
        for operation, least in self.least.items():
            for one in alone if least is not None and operation.startswith(method) else ():
                is_open = least is not None and one.has(least)
                cell = Cell(operation, one, None, has_role=is_open, is_open=is_open)
                self._judge(cell, await self.knocker.ask(operation, one.headers))

    async def visits(self) -> None:
        """Call every operation as every caller on every object. Callers without access come first, while the object is
        unchanged, then reads, and deletions last.
        """
        for thing in self.things:
            for cell in sorted(self._cells(thing), key=lambda cell: (cell.is_open, cell.weight)):
                self._judge(cell, await self.knocker.ask(cell.operation, cell.one.headers, thing, cell.scope))

    def _cells(self, thing: Thing) -> Iterator[Cell]:
        for operation, least in self.least.items():
            if least is None or not is_of_things(operation) or ("/session" in operation and not thing.kind.talks):
                continue
            for scope in thing.scopes if "{scope}" in operation else ("",):
                for one in self.tenants:
                    is_open = one.has(least) and thing.opens(operation, one, scope)
                    yield Cell(operation, one, thing, has_role=one.has(least), is_open=is_open, scope=scope)

    def _judge(self, cell: Cell, told: ExampleAnswer) -> None:
        is_shut = (told.status, told.code) == (403, "not-allowed")
        if cell.thing is not None and cell.has_role:
            # Clients of chats receive the code of another system.
            missing = told.status == 404 and (told.code in MISSING or cell.operation in OF_OTHERS)
            # A caller who may delete it may find that another caller already did.
            is_shut = is_shut or (missing and not (cell.is_open and cell.operation.startswith("DELETE")))
        if told.status in (401, 429) or told.status >= 500 or is_shut == cell.is_open:
            self.wrong.append(f"{cell}: {told.status} {told.code}, and it is {'open' if cell.is_open else 'shut'}")
        for mark, number in sorted(set(MARKS.findall(told.text))):
            if int(number) > len(self.things):  # In a backup, another digit may follow the name.
                continue
            spoken = self.things[int(number) - 1]
            named = mark == "thing" and spoken is cell.thing
            if not (named or spoken.is_seen_by(cell.one) or spoken.runs_for(cell.one)):
                self.wrong.append(f"{cell}: told of {mark}{number}, {described(spoken)}")


def is_of_things(operation: str) -> bool:
    is_of_one = operation in BY_BODY or any(part in operation for part in OF_THINGS)
    return is_of_one and operation != OF_EVALUATIONS


def described(thing: Thing) -> str:
    kind = thing.kind
    groups = f" within {', '.join(kind.groups)}" if kind.groups else ""
    talk = "a conversation" if kind.talks else "a workflow"
    return f"{talk} for {kind.audience}{groups}, of {thing.owner.name}, begun by {thing.starter.name}"


@asynccontextmanager
async def experiment(seed: int, store: str = "memory:") -> AsyncGenerator[AccessExperiment, None]:
    """Start a server on a socket in this process, and make the first keys."""
    async with (
        serving(store, settings=SETTINGS) as served,
        httpx2.AsyncClient(base_url=served.client.base_url, timeout=PATIENCE_S) as client,
    ):
        yield AccessExperiment(ExampleClient(client, openapi_document()), await create_keys(client), seed)


async def check_cells(size: int, seed: int, store: str = "memory:") -> tuple[list[str], str]:
    """Call all cells for `size` kinds of objects, whose owners and starters the seed selects. On another
    store than that in memory, only cells that read objects are called.
    """
    async with experiment(seed, store) as trial:
        there, written = set(trial.knocker.shown), set(trial.least)
        trial.wrong += [f"{operation} is not documented" for operation in sorted(there - written)]
        trial.wrong += [f"{operation} is documented, and not there" for operation in sorted(written - there)]
        await trial.create_object(KINDS[(seed - 1 + number) % len(KINDS)] for number in range(size))
        if store == "memory:":
            await trial.without_valid_key()
            await trial.roles()
        else:
            await trial.roles("GET")
        await trial.visits()
        figure = f"{len(there)} operations, {len(trial.tenants)} callers, {len(trial.things)} things"
        return trial.wrong, f"{figure}, {trial.knocker.asked} requests, {len(trial.wrong)} wrong"


def examine(size: int, seed: int) -> Finding:
    """Test `size` kinds of objects one after the other."""
    return _finding(check_cells(size, seed))


def on_postgres(size: int, seed: int) -> Finding:
    """Test what reads the store, on a PostgreSQL server of this experiment."""
    with server() as cluster:
        return _finding(check_cells(size, seed, cluster.url(schema="doors")))


def _finding(trial: Coroutine[None, None, tuple[list[str], str]]) -> Finding:
    wrong, figure = asyncio.run(trial)
    return Finding(figure, tuple(wrong[:SHOWN_MAX]))
