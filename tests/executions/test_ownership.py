"""Two servers at one store on PostgreSQL: the owner of an execution drives it, the other one sends it requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import psycopg
import pytest
from msgspec.structs import replace

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.callers import LOCAL
from pointsman.engine.decide.lifecycle import NotSteerable, WrongStatus
from pointsman.engine.reports import EventReceived, Start
from pointsman.errors import PointsmanError
from pointsman.operations.readiness import Lifecycle
from pointsman.ports import Row
from pointsman.runtime import leader, ownership
from pointsman.runtime.follower import Follower
from pointsman.runtime.local import UnknownExecution
from pointsman.runtime.ownership import OwnerRefusal, SharedOwnership, error_of
from pointsman.server.serving import ServerMessages, leading_store
from pointsman.session import Session
from pointsman.settings import Settings
from pointsman.store.coordination import MailOutcome, ReleasedClaim
from pointsman.store.errors import JournalMoved, LeaderSuperseded, StoreUnreachable
from pointsman.store.postgres import write_batcher
from pointsman.store.postgres.connections import Connection, Connections, address_of
from pointsman.store.records import ExecutionQuery
from pointsman.values import ExecutionId, JsonObject
from tests import postgres
from tests.patience import PATIENCE_S

CHARGE: Final[JsonObject] = {"id": "work", "type": "tool", "config": {"tool": "charge"}}
SLOW: Final = Workflow.of({"id": "slow", "nodes": [CHARGE], "edges": []})
ASKS: Final = Workflow.of(
    {
        "id": "asks",
        "nodes": [
            {"id": "begin", "type": "start"},
            {"id": "work", "type": "tool", "config": {"tool": "charge"}},
            {"id": "ask", "type": "human", "config": {"message": "Go on?"}},
        ],
        "edges": [{"source": "begin", "target": "work"}, {"source": "begin", "target": "ask"}],
    }
)


class Charges:
    """A tool with an effect, which is counted when it begins; it takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun = Counter[str]()
        self.go_on = asyncio.Event()

    @asynccontextmanager
    async def server(self, url: str, name: str) -> AsyncGenerator[Pointsman, None]:
        @tool
        async def charge() -> str:
            """Charge a card."""
            self.begun[name] += 1
            await self.go_on.wait()
            return name

        async with Pointsman(url, tools=[charge], model="scripted", settings=Settings()) as app:
            yield app

    async def until_begun(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.begun:  # noqa: ASYNC110 - the tool is called in a server
                await asyncio.sleep(0.01)


@pytest.fixture
def charges() -> Charges:
    return Charges()


class Looks:
    """Counts how often the servers have looked for mail and for rows of other servers; they look without delay."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._made = Counter[SharedOwnership]()
        look: Callable[[SharedOwnership], Awaitable[None]] = vars(SharedOwnership)["_turn"]

        async def counted(server: SharedOwnership) -> None:
            await look(server)
            self._made[server] += 1

        monkeypatch.setattr(SharedOwnership, "_turn", counted)
        monkeypatch.setattr(ownership, "LOOK_S", 0.02)

    async def of(self, *servers: Pointsman) -> None:
        """Return when each server, which has claims or sends a report, has looked twice."""
        for server in map(ownership_of, servers):
            enough = self._made[server] + 2
            async with asyncio.timeout(PATIENCE_S):
                while self._made[server] < enough:  # noqa: ASYNC110 - the server looks by itself
                    await asyncio.sleep(0.01)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


@asynccontextmanager
async def two(charges: Charges, url: str) -> AsyncGenerator[tuple[Pointsman, Pointsman], None]:
    async with charges.server(url, "first") as first, charges.server(url, "second") as second:
        yield first, second


async def through(session: Session, execution: str, verb: str) -> None:
    """Send one request that changes nothing about the running step."""
    verbs = session.executions
    if verb == "pause":
        await verbs.pause(execution)
    elif verb == "signal":
        await verbs.signal(execution, "news")
    elif verb == "steer":
        with pytest.raises(NotSteerable):
            await verbs.steer(execution, set={"note": 1})
    elif verb == "resume":
        await verbs.resume(execution)
    else:
        with pytest.raises(PointsmanError) as refused:
            await verbs.answer(execution, "nothing", "ok")
        assert refused.value.code == "no-such-gate"


@pytest.mark.parametrize("verb", ["pause", "signal", "steer", "resume", "answer"])
async def test_a_request_through_another_server_does_not_begin_the_running_step_again(
    charges: Charges, looks: Looks, postgres_url: str, verb: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        await through(second.acting_as(LOCAL), execution.id, verb)
        await looks.of(*(server for server in (first, second) if ownership_of(server).tasks))
        assert charges.begun == {"first": 1}
        charges.go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            if verb == "pause":
                await execution.drained()
                await second.acting_as(LOCAL).executions.resume(execution.id)
            assert await execution.output() == "first"
        assert charges.begun == {"first": 1}


async def test_a_refusal_and_a_cancel_by_the_owner_reach_the_sender(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        away = second.acting_as(LOCAL).executions
        with pytest.raises(WrongStatus):
            await away.retry(execution.id)
        with pytest.raises(WrongStatus):
            await away.resume(execution.id, limits={"steps": 5})
        assert (await away.cancel(execution.id, reason="enough")).status == "cancelled"
        assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "cancelled"
        assert charges.begun == {"first": 1}
        assert not second.runtime.drivers


async def test_a_start_with_the_same_key_through_another_server_returns_the_execution_and_its_end(
    charges: Charges, postgres_url: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW, key="order 7")
        await charges.until_begun()
        again = await second.start(SLOW, key="order 7")
        assert again.id == execution.id
        waits = asyncio.create_task((await second.open(execution.id)).output())
        charges.go_on.set()
        assert await asyncio.wait_for(again.output(), PATIENCE_S) == "first"
        assert await asyncio.wait_for(waits, PATIENCE_S) == "first"
        assert charges.begun == {"first": 1}


async def test_an_answer_through_another_server_is_decided_by_the_owner(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(ASKS)
        await charges.until_begun()
        away = second.acting_as(LOCAL).executions
        with pytest.raises(PointsmanError) as refused:
            await away.answer(execution.id, "ask", "perhaps")
        with pytest.raises(type(refused.value)) as at_owner:
            await first.acting_as(LOCAL).executions.answer(execution.id, "ask", "perhaps")
        assert (refused.value.code, str(refused.value)) == (at_owner.value.code, str(at_owner.value))
        await away.answer(execution.id, "ask", "approve", key="one")
        await away.answer(execution.id, "ask", "approve", key="one")
        with pytest.raises(PointsmanError) as closed:
            await away.answer(execution.id, "ask", "reject")
        assert closed.value.code == "gate-closed"
        charges.go_on.set()
        async with asyncio.timeout(PATIENCE_S):
            assert await execution.settled() == "completed"
        assert charges.begun == {"first": 1}


async def test_a_closed_server_leaves_its_executions_to_the_leader_at_once(charges: Charges, postgres_url: str) -> None:
    async with charges.server(postgres_url, "second") as second, second.leading():
        async with charges.server(postgres_url, "first") as first:
            execution = (await first.start(SLOW)).id
            await charges.until_begun()
        charges.go_on.set()
        await until(lambda: _completed(second, execution))
    assert charges.begun == {"first": 1, "second": 1}


async def test_a_new_leader_leaves_executions_to_the_live_server_that_owns_them(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "LOOKS_S", 0.05)
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        assert second.store.claims is not None
        orphans, looked = second.store.claims.orphans, 0

        async def counted() -> list[ExecutionId]:
            nonlocal looked
            looked += 1
            return await orphans()

        async def looked_twice() -> bool:
            return looked > 2  # The third look begins when the second one has ended.

        monkeypatch.setattr(second.store.claims, "orphans", counted)
        async with second.leading():
            await until(looked_twice)
            assert charges.begun == {"first": 1}
            charges.go_on.set()
            assert await asyncio.wait_for(execution.output(), PATIENCE_S) == "first"
    assert charges.begun == {"first": 1}


async def _completed(app: Pointsman, execution: str) -> bool:
    return (await app.view(execution))["status"] == "completed"


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - another server changes it
            await asyncio.sleep(0.05)


ABOVE: Final = Workflow.of(
    {"id": "above", "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "slow"}}], "edges": []}
)
GATED: Final = Workflow.of(
    {
        "id": "gated",
        "nodes": [{"id": "ask", "type": "human", "config": {"message": "Go on?"}}, {**CHARGE, "id": "work"}],
        "edges": [{"source": "ask", "target": "work"}],
    }
)


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_a_request_for_a_parent_reaches_the_owner_of_its_sub_workflow(
    charges: Charges, postgres_url: str, verb: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        await first.save(SLOW)
        execution = await first.start(ABOVE)
        await charges.until_begun()
        away = second.acting_as(LOCAL).executions
        await (away.pause(execution.id) if verb == "pause" else away.cancel(execution.id))
        (child,) = await second.executions(ExecutionQuery(parent=execution.id))
        await until(lambda: _has_status(second, child.execution, "paused" if verb == "pause" else "cancelled"))
        charges.go_on.set()
        if verb == "pause":
            await execution.drained()
            await away.resume(execution.id)
            assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "completed"
        assert charges.begun == {"first": 1}


async def test_an_event_of_another_server_reaches_the_owner_of_a_waiting_execution(
    charges: Charges, postgres_url: str
) -> None:
    waits = Workflow.of(
        {"id": "waits", "nodes": [{"id": "wait", "type": "wait", "config": {"event": {"name": "end"}}}], "edges": []}
    )
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(waits)
        await execution.settled()
        await second.publish("end")
        assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "completed"
        assert not second.runtime.drivers


async def test_a_request_takes_over_from_a_silent_owner_whose_rows_and_effects_are_then_refused(
    charges: Charges, looks: Looks, postgres_url: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        assert first.runtime.ownership.held(execution.id) is not None
        deaf(first)
        answer = asyncio.create_task(second.acting_as(LOCAL).executions.answer(execution.id, "ask", "approve"))
        await looks.of(second)
        assert not answer.done(), "it waits for the owner"
        await silence(first)
        taken = await asyncio.wait_for(answer, PATIENCE_S)
        assert execution.id in second.runtime.drivers
        await charges.until_begun()
        row = (await taken.rows())[-1]
        with pytest.raises(JournalMoved):
            await first.store.journal.append(execution.id, Row(row.seq + 1, row.at, row.events))
        with pytest.raises(JournalMoved):
            await first.store.effects.record(execution.id, "work|1", 1, "paid")
        assert await second.store.effects.recorded(execution.id, "work|1") == {}
        charges.go_on.set()
        assert await taken.settled() == "completed"
        assert charges.begun == {"second": 1}


async def test_a_report_with_a_key_is_decided_once(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        report = EventReceived(name="news", keeps=True)
        rows = {await ownership_of(second).wake(execution.id, report, "one") for _ in range(3)}
        assert len(rows) == 1
        assert rows != {0}


def deaf(app: Pointsman) -> None:
    """Stop the tasks of a server that keep its claims, as if its process had been stopped."""
    for task in ownership_of(app).tasks:
        task.cancel()


async def silence(app: Pointsman) -> None:
    """Let the claims of a server end, as if its beat had not been renewed for long."""
    deaf(app)
    assert app.store.claims is not None
    await app.store.claims.retire()


async def _has_status(app: Pointsman, execution: str, status: str) -> bool:
    return (await app.view(execution))["status"] == status


async def test_a_connection_that_never_answers_is_given_up(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_batcher, "STATEMENT_S_MAX", 0.3)
    given_up, connect = asyncio.Event(), Connections.open

    async def again(connections: Connections) -> Connection:
        given_up.set()
        return await connect(connections)

    async with (
        charges.server(postgres_url, "first") as app,
        await psycopg.AsyncConnection.connect(conninfo_of(postgres_url)) as other,
    ):
        execution = await app.start(GATED)
        await execution.settled()
        await other.execute("SELECT * FROM executions FOR UPDATE")  # Every append waits.
        monkeypatch.setattr(Connections, "open", again)
        answer = asyncio.create_task(execution.answer("ask", "approve"))
        await asyncio.wait_for(given_up.wait(), PATIENCE_S)
        assert not answer.done()
        await other.rollback()
        charges.go_on.set()
        await asyncio.wait_for(answer, PATIENCE_S)
        assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "completed"
        assert charges.begun == {"first": 1}


async def supersede(url: str) -> None:
    """Raise the epoch, as another leader does."""
    async with await psycopg.AsyncConnection.connect(conninfo_of(url), autocommit=True) as other:
        await other.execute("UPDATE leader SET epoch = epoch + 1")


def conninfo_of(url: str) -> str:
    address = address_of(url)
    return address.within(address.schema)


async def test_an_owner_that_dies_behind_the_row_of_a_report_has_decided_it(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        assert first.store.claims is not None

        async def dies(mail: int, outcome: MailOutcome) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(first.store.claims, "answer", dies)
        before = await second.store.journal.last(execution.id)
        await asyncio.wait_for(second.acting_as(LOCAL).executions.signal(execution.id, "news"), PATIENCE_S)
        await silence(first)
        await (await second.open(execution.id)).signal("other news")
        assert await second.store.journal.last(execution.id) == before + 2


async def test_a_former_leader_keeps_driving_executions_that_it_owns(charges: Charges, postgres_url: str) -> None:
    async with charges.server(postgres_url, "first") as first:
        execution = await first.start(SLOW)
        await charges.until_begun()

        async def lead() -> None:
            async with first.leading():
                await supersede(postgres_url)
                charges.go_on.set()
                assert await asyncio.wait_for(execution.output(), PATIENCE_S) == "first"
                await asyncio.wait_for(asyncio.Event().wait(), PATIENCE_S)

        with pytest.raises(ExceptionGroup) as ended:
            await lead()
        assert ended.group_contains(LeaderSuperseded)
        again = await first.start(SLOW)
        assert await asyncio.wait_for(again.output(), PATIENCE_S) == "first"
        assert charges.begun == {"first": 2}


CHAIN: Final = Workflow.of(
    {"id": "chain", "nodes": [CHARGE, {**CHARGE, "id": "next"}], "edges": [{"source": "work", "target": "next"}]}
)


def ownership_of(app: Pointsman) -> SharedOwnership:
    found = app.runtime.ownership
    assert isinstance(found, SharedOwnership)
    return found


async def test_a_server_begins_no_step_while_its_claims_are_in_doubt(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(CHAIN)
        await charges.until_begun()
        deaf(first)
        slept, waits, confirmed = ownership.since_boot() + 60, asyncio.Event(), SharedOwnership.confirmed

        async def noticed(server: SharedOwnership) -> None:
            waits.set()
            await confirmed(server)

        monkeypatch.setattr(ownership, "since_boot", lambda: slept)
        monkeypatch.setattr(SharedOwnership, "confirmed", noticed)
        charges.go_on.set()
        await asyncio.wait_for(waits.wait(), PATIENCE_S)
        assert charges.begun == {"first": 1}
        monkeypatch.undo()
        await silence(first)
        taken = await second.open(execution.id)
        assert await asyncio.wait_for(taken.settled(), PATIENCE_S) == "completed"
        assert charges.begun == {"first": 1, "second": 1}


async def test_a_server_stops_the_work_of_executions_that_it_lost(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "CLAIM_BEAT_S", 0.05)
    monkeypatch.setattr(ownership, "LATE_S", 0.0)
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        driver = first.runtime.drivers[execution.id]
        assert first.store.claims is not None
        assert second.store.claims is not None
        await first.store.claims.retire()
        while await second.runtime.ownership.claim(execution.id) is None:
            await first.store.claims.retire()  # Its beat was faster.
        async with asyncio.timeout(PATIENCE_S):
            while driver.failure is None or driver.tasks:  # noqa: ASYNC110 - the beat of the server finds it
                await asyncio.sleep(0.01)
        assert isinstance(driver.failure, JournalMoved)
        assert first.runtime.ownership.held(execution.id) is None


async def test_a_waiting_caller_continues_an_execution_whose_owner_died(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        waits = asyncio.create_task((await second.open(execution.id)).output())
        await silence(first)
        async with asyncio.timeout(PATIENCE_S):
            while not charges.begun["second"]:  # noqa: ASYNC110 - the waiting caller begins it
                await asyncio.sleep(0.01)
        charges.go_on.set()
        assert await asyncio.wait_for(waits, PATIENCE_S) == "second"


async def test_a_standby_releases_what_only_waits(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        second.runtime.stands_by = True
        execution = (await second.start(GATED)).id
        async with asyncio.timeout(PATIENCE_S):
            while second.runtime.drivers:  # noqa: ASYNC110 - the server looks by itself
                await asyncio.sleep(0.01)
        charges.go_on.set()
        answered = await first.acting_as(LOCAL).executions.answer(execution, "ask", "approve")
        assert await asyncio.wait_for(answered.settled(), PATIENCE_S) == "completed"
        assert charges.begun == {"first": 1}


async def test_a_former_owner_does_not_change_the_list(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        entry = await first.store.executions.find(execution.id)
        assert entry is not None
        last = await first.store.journal.last(execution.id)
        deaf(first)
        assert first.store.claims is not None
        await first.store.claims.retire()
        await second.open(execution.id)
        await first.store.executions.put(replace(entry, worker="former"), seq=last)
        assert await second.store.executions.find(execution.id) == entry
        await second.store.executions.put(replace(entry, worker="present"), seq=last)
        changed = await first.store.executions.find(execution.id)
        assert changed is not None
        assert changed.worker == "present"


async def test_the_end_of_a_sub_workflow_reaches_a_parent_without_an_owner(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        await first.save(SLOW)
        parent = (await first.start(ABOVE)).id
        await charges.until_begun()
        held = first.runtime.ownership.held(parent)
        assert held is not None
        assert first.store.claims is not None
        deaf(first)
        await first.store.claims.release([ReleasedClaim(parent, held.token, None)])
        await first.store.claims.retire()
        (child,) = await second.executions(ExecutionQuery(parent=parent))
        charges.go_on.set()
        ended = await second.open(child.execution)
        assert await asyncio.wait_for(ended.settled(), PATIENCE_S) == "completed"
        async with second.leading():
            await until(lambda: _completed(second, parent))


async def test_orphans_are_listed_in_the_order_of_their_starts(charges: Charges, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        started = [(await first.start(GATED)).id for _ in range(5)]
        await silence(first)
        assert await second.runtime.ownership.granted() == started
        assert second.store.claims is not None
        await second.store.claims.forget()  # The row of the ended runtime is deleted.
        assert await second.runtime.ownership.granted() == started


async def test_a_request_for_a_deleted_execution_is_refused(charges: Charges, looks: Looks, postgres_url: str) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        deaf(first)
        request = asyncio.create_task(ownership_of(second).wake(execution.id, EventReceived(name="news")))
        await looks.of(second)
        await second.store.removal.remove(execution.id, at=await second.store.journal.last(execution.id))
        with pytest.raises(UnknownExecution):
            await asyncio.wait_for(request, PATIENCE_S)


async def test_a_request_that_is_posted_after_the_deletion_of_its_execution_is_refused(
    charges: Charges, looks: Looks, postgres_url: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        await second.store.removal.remove(execution.id, at=await second.store.journal.last(execution.id))
        request = asyncio.create_task(ownership_of(second).wake(execution.id, EventReceived(name="news")))
        with pytest.raises(UnknownExecution):
            await asyncio.wait_for(request, PATIENCE_S)


async def test_an_execution_whose_first_row_is_not_stored_is_not_lost(charges: Charges, postgres_url: str) -> None:
    """The beat may look for lost claims between the claim and the first row."""
    async with two(charges, postgres_url) as (first, _):
        assert first.store.claims is not None
        begins = ExecutionId("begins")
        assert await first.runtime.ownership.claim(begins, begins=True) is not None
        assert await first.store.claims.lost() == []


@asynccontextmanager
async def locked_rows(url: str) -> AsyncGenerator[None, None]:
    """Let every append wait until the end of the block."""
    address = address_of(url)
    connection = await psycopg.AsyncConnection.connect(address.within(address.schema))
    async with connection, connection.transaction():
        await connection.execute("LOCK TABLE rows IN EXCLUSIVE MODE")
        yield


async def until_waiting(url: str) -> None:
    """Return when a statement waits for a lock."""
    address = address_of(url)
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rows'::regclass"
    connection = await psycopg.AsyncConnection.connect(address.within(address.schema), autocommit=True)
    async with connection, asyncio.timeout(PATIENCE_S):
        while await (await connection.execute(query)).fetchone() == (0,):  # noqa: ASYNC110 - the server has no event
            await asyncio.sleep(0.01)


async def test_the_leader_continues_an_execution_whose_caller_left_while_its_first_row_was_written(
    charges: Charges, looks: Looks, postgres_url: str
) -> None:
    charges.go_on.set()
    async with two(charges, postgres_url) as (first, second):
        await first.save(SLOW)
        async with locked_rows(postgres_url):
            starting = asyncio.create_task(first.start(SLOW))
            await until_waiting(postgres_url)
            starting.cancel()
            await asyncio.wait({starting})
            await looks.of(first)  # It cannot give the execution back yet.
        async with second.leading():
            async with asyncio.timeout(PATIENCE_S):
                while not charges.begun:  # noqa: ASYNC110 - the leader looks by itself
                    await asyncio.sleep(0.01)
            (summary,) = await second.store.executions.list(ExecutionQuery())
            await until(lambda: _completed(second, summary.execution))
        assert charges.begun == {"second": 1}


async def test_a_server_that_begins_an_execution_of_another_one_writes_nothing_to_it(
    charges: Charges, postgres_url: str
) -> None:
    """Both begin under the token 1."""
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        driver = await first.runtime.open(execution.id)
        start = Start(input={}, definition=driver.state.setup.definition)
        with pytest.raises(JournalMoved):
            await second.runtime.start(execution.id, driver.plan, start)
        assert await second.runtime.ownership.claim(execution.id) is None, "its owner is alive"
        assert isinstance(await second.runtime.open(execution.id), Follower)
        charges.go_on.set()
        await asyncio.wait_for(execution.settled(), PATIENCE_S)
        assert charges.begun == {"first": 1}


async def test_the_store_refuses_rows_and_effects_under_the_token_of_another_owner(
    charges: Charges, postgres_url: str
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(SLOW)
        await charges.until_begun()
        owner, claims = first.store.claims, second.store.claims
        assert owner is not None
        assert claims is not None
        await claims.register("second")
        assert claims.begin(execution.id) == owner.token(execution.id)
        last = await second.store.journal.last(execution.id)
        with pytest.raises(JournalMoved):
            await second.store.journal.append(execution.id, Row(last + 1, 0.0, ()))
        with pytest.raises(JournalMoved):
            await second.store.effects.record(execution.id, "work#1", 9, "paid twice")


def test_every_error_can_be_sent_as_a_refusal() -> None:
    known, waiting = set[str](), [PointsmanError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        known.add(kind.__dict__.get("code", "pointsman"))
    for code in known:
        assert error_of(OwnerRefusal(code, "it is so", "do that")).code == code


async def test_a_superseded_leader_stands_by_and_leads_again(charges: Charges, postgres_url: str) -> None:
    again, troubles, lifecycle = asyncio.Event(), list[str](), Lifecycle()

    def report(execution: ExecutionId | None, why: BaseException) -> None:
        troubles.append(getattr(why, "code", ""))

    messages = ServerMessages(serving=lambda _: None, leading=again.set, trouble=report)
    async with charges.server(postgres_url, "first") as first:
        async with leading_store(first, lifecycle, messages, standby=False):
            assert lifecycle.leader == "here"
            await supersede(postgres_url)
            await asyncio.wait_for(again.wait(), PATIENCE_S)
            assert troubles == [LeaderSuperseded.code]
        charges.go_on.set()
        execution = await first.start(SLOW)
        assert await asyncio.wait_for(execution.output(), PATIENCE_S) == "first"


async def test_a_restart_of_the_database_takes_no_execution_from_its_owner(
    charges: Charges, cluster: postgres.Cluster
) -> None:
    async with two(charges, cluster.url()) as (first, second):
        execution = await first.start(GATED)
        await execution.settled()
        deaf(first)
        cluster.stop()
        cluster.start()
        cluster.sql("UPDATE runtimes SET beat = beat - interval '1 hour'")
        assert await second.runtime.ownership.claim(execution.id) is None
        await silence(first)
        assert await second.runtime.ownership.claim(execution.id) is not None


async def test_an_execution_that_an_outage_stopped_continues_in_the_leader(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(charges, postgres_url) as (first, second):
        execution = await first.start(CHAIN)
        await charges.until_begun()
        append = first.store.journal.append

        async def fails(*_: object, **__: object) -> None:
            raise StoreUnreachable("the server is away")

        monkeypatch.setattr(first.store.journal, "append", fails)
        charges.go_on.set()
        with pytest.raises(StoreUnreachable):
            await asyncio.wait_for(execution.settled(), PATIENCE_S)
        monkeypatch.setattr(first.store.journal, "append", append)
        async with second.leading():
            await until(lambda: _completed(second, execution.id))
        assert charges.begun == {"first": 1, "second": 2}


async def test_a_release_that_fails_is_repeated(
    charges: Charges, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(charges, postgres_url) as (first, second):
        assert first.store.claims is not None
        release, failed = first.store.claims.release, 0

        async def fails_once(claims: Sequence[ReleasedClaim]) -> list[ReleasedClaim]:
            nonlocal failed
            failed += 1
            if failed == 1:
                raise StoreUnreachable("the server is away")
            return await release(claims)

        monkeypatch.setattr(first.store.claims, "release", fails_once)
        charges.go_on.set()
        execution = await first.start(SLOW)
        await asyncio.wait_for(execution.settled(), PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while await second.runtime.ownership.claim(execution.id) is None:  # noqa: ASYNC110 - the first server gives it back
                await asyncio.sleep(0.05)
        assert failed == 2
