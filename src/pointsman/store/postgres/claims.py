"""Claims of executions in PostgreSQL: which runtime owns an execution, under which token; and the mailboxes.

    runtimes    one row per open runtime, renewed by its beat; alive: renewed within 12 s, by the server's clock
    executions  owner: the runtime that drives the execution; token: grows with each claim
    mailbox     reports for the owner, and the outcome of each: the row that it caused, or the owner's refusal

Every statement is one round trip. A claim locks the row of its execution, and so does each append (shared): a claim
waits for a running append, and every later append of the former owner finds another token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2s
from typing import Final, LiteralString

import msgspec
import psycopg
from msgspec.structs import replace
from psycopg import sql
from psycopg.rows import TupleRow

from pointsman.store.coordination import (
    ClaimCounts,
    Mail,
    MailOutcome,
    OwnPlacedStep,
    PlacedStep,
    QueueEntry,
    ReleasedClaim,
    RuntimeEntry,
    RuntimeFacts,
)
from pointsman.store.postgres.connections import STATEMENT_S_MAX, Connections, limited
from pointsman.store.postgres.write_batcher import StatementSender
from pointsman.store.sql.executions import names_text
from pointsman.values import ExecutionId
from pointsman.version import VERSION

IDENTITY: Final = """
    SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '/' || current_schema() FROM pg_control_system()
"""
"""Of a copy that `pg_restore` made it is another one; of a physical copy of the server it is the same."""
CHANNEL: Final[LiteralString] = "'pointsman_mail_' || md5(current_schema()) || '_' || "
BEATS: Final[LiteralString] = (
    "(r.beat > clock_timestamp() - interval '12 s'"
    " OR (r.beat > '-infinity' AND pg_postmaster_start_time() > clock_timestamp() - interval '15 s'))"
)
"""A runtime renews its row every `CLAIM_BEAT_S`. While the server was down none could; each gets 15 s."""
ALIVE: Final[LiteralString] = f"SELECT FROM runtimes AS r WHERE r.no = e.owner AND {BEATS}"
REGISTER: Final = """
    INSERT INTO runtimes (name, beat, queues, facts)
    VALUES (%b::text, clock_timestamp(), %b::text[], %b::text) RETURNING no
"""
RENEW: Final = """
    INSERT INTO runtimes (no, name, beat, queues, facts) OVERRIDING SYSTEM VALUE
    VALUES (%b::int8, %b::text, clock_timestamp(), %b::text[], %b::text)
    ON CONFLICT (no) DO UPDATE SET beat = excluded.beat, queues = excluded.queues, facts = excluded.facts RETURNING no
"""
"""A runtime that was stopped for days finds its row deleted."""
RETIRE: Final = "UPDATE runtimes SET beat = '-infinity' WHERE no = %b::int8 RETURNING no"
RUNTIMES: Final = f"""
    SELECT r.name, r.facts, extract(epoch FROM r.started)::float8,
        extract(epoch FROM clock_timestamp() - r.beat)::float8,
        (SELECT count(*) FROM executions AS e WHERE e.owner = r.no),
        (SELECT count(*) FROM placed_steps AS p WHERE p.owner = r.no)
    FROM runtimes AS r WHERE {BEATS} ORDER BY r.no
"""
OWNED: Final = f"""
    SELECT e.id, r.name FROM executions AS e JOIN runtimes AS r ON r.no = e.owner
    WHERE e.owner IS NOT NULL AND {BEATS} ORDER BY e.no DESC LIMIT %b::int8
"""
CLAIM: Final = f"""
    UPDATE executions AS e SET owner = %b::int8, token = token + 1
    FROM (SELECT no, owner FROM executions WHERE id = %b::text) AS former
    WHERE e.no = former.no AND (e.owner IS NULL OR e.owner = %b::int8 OR NOT EXISTS ({ALIVE}))
    RETURNING token, former.owner
"""
RELEASE: Final = """
    WITH released AS (
        UPDATE executions AS e SET owner = NULL FROM unnest(%b::text[], %b::int8[]) AS g (id, token)
        WHERE e.id = g.id AND e.token = g.token AND e.owner = %b::int8 RETURNING e.id
    )
    UPDATE summaries AS s SET wakes = g.wakes, awaits = g.awaits::jsonb
    FROM unnest(%b::text[], %b::float8[], %b::text[]) AS g (id, wakes, awaits) JOIN released USING (id)
    WHERE s.execution = g.id RETURNING s.execution
"""
LOST: Final = """
    SELECT g.id FROM unnest(%b::text[], %b::int8[]) AS g (id, token) LEFT JOIN executions AS e USING (id)
    WHERE (e.token, e.owner) IS DISTINCT FROM (g.token, %b::int8) AND (e.id IS NOT NULL OR g.token > 1)
"""
"""An execution that begins has token 1 before its first row is stored: it is not lost."""
OWNER: Final = "SELECT r.no, r.name FROM executions AS e JOIN runtimes AS r ON r.no = e.owner WHERE e.id = %b::text"
ORPHANS: Final = f"""
    SELECT id FROM (
        SELECT e.no, e.id FROM executions AS e WHERE owner IS NOT NULL AND NOT EXISTS ({ALIVE})
        UNION SELECT e.no, e.id FROM mailbox AS m JOIN executions AS e ON e.id = m.execution
        WHERE m.seq IS NULL AND e.owner IS NULL
    ) AS orphan ORDER BY no LIMIT 200
"""
SHARES: Final = "SELECT execution, owner || '/' || workflow FROM summaries WHERE execution = ANY (%b::text[])"
POST: Final = f"""
    WITH posted AS (
        INSERT INTO mailbox (execution, key, report, sender) VALUES (%b::text, %b::text, %b::bytea, %b::int8)
        ON CONFLICT (execution, key) DO UPDATE SET sender = excluded.sender RETURNING no
    ), told AS (SELECT pg_notify({CHANNEL} owner, '')::text FROM executions WHERE id = %b::text AND owner IS NOT NULL)
    SELECT no FROM posted LEFT JOIN told ON true
"""
MAIL: Final = """
    SELECT m.no, m.execution, m.report FROM mailbox AS m JOIN executions AS e ON e.id = m.execution
    WHERE m.seq IS NULL AND e.owner = %b::int8 ORDER BY m.no LIMIT 200
"""
ANSWER: Final = f"""
    WITH answered AS (UPDATE mailbox SET seq = %b::int4, refusal = %b::bytea WHERE no = %b::int8 RETURNING no, sender)
    SELECT pg_notify({CHANNEL} sender, '')::text FROM answered
"""
OUTCOMES: Final = """
    SELECT g.no, m.seq, m.refusal FROM unnest(%b::int8[]) AS g (no) LEFT JOIN mailbox AS m USING (no)
    WHERE m.seq IS NOT NULL OR NOT EXISTS (SELECT FROM executions AS e WHERE e.id = m.execution)
"""
"""A report about an execution that was deleted, before or after it was posted, has no outcome."""
FORGET: Final = """
    WITH silent AS (DELETE FROM runtimes WHERE beat < clock_timestamp() - interval '1 day')
    DELETE FROM mailbox AS m WHERE sent < clock_timestamp() - interval '1 day'
        AND (seq IS NOT NULL OR NOT EXISTS (SELECT FROM executions AS e WHERE e.id = m.execution)) RETURNING no
"""
AGAIN_S: Final = 0.5


class PostgresClaims:
    """The claims of one opened store; implements `Claims`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._sender = StatementSender(connections)
        self._turn = asyncio.Lock()
        """The beat has a connection of its own: long reads must not delay it."""
        self._registering = asyncio.Lock()
        self._name = ""
        self._facts = RuntimeFacts(version=VERSION)
        self.steps = PostgresStepQueues(self)
        self.me: int | None = None
        """The number of this runtime; None: it has no row yet."""
        self.tokens: dict[ExecutionId, int] = {}
        """Held by this process."""
        self._beginning: set[ExecutionId] = set()
        """Executions whose first row is being written."""
        self.counts = ClaimCounts()

    @property
    def held(self) -> int:
        return len(self.tokens)

    def token(self, execution: ExecutionId) -> int:
        """Return the token that rows of an execution prove; 0: this process has no claim."""
        return self.tokens.get(execution, 0)

    def effect_token(self, execution: ExecutionId) -> int:
        """Return the token that effects prove: below 0 for a runtime that performs a step for the owner."""
        held = self.tokens.get(execution, 0)
        return -self.me if not held and self.me is not None and self.steps.performs(execution) else held

    async def identity(self) -> str:
        ((text,),) = await self.ask(IDENTITY)
        return blake2s(text.encode(), digest_size=8).hexdigest()

    async def register(self, name: str) -> None:
        async with self._registering:
            if self.me is None:
                self._name = name
                ((self.me,),) = await self.ask(REGISTER, name, *self._stated)

    async def announce(self, facts: RuntimeFacts) -> None:
        self._facts = replace(facts, version=VERSION)
        if self.me is not None:
            await self.renew()

    @property
    def _stated(self) -> tuple[list[str], str]:
        return [*self._facts.queues], msgspec.json.encode(self._facts).decode()

    async def runtimes(self) -> list[RuntimeEntry]:
        return [
            RuntimeEntry(name, msgspec.json.decode(facts, type=RuntimeFacts), *more)
            for name, facts, *more in await self.ask(RUNTIMES)
        ]

    async def owned(self, limit: int) -> list[tuple[ExecutionId, str]]:
        return [(execution, name) for execution, name in await self.ask(OWNED, limit)]

    def begin(self, execution: ExecutionId) -> int:
        return self.tokens.setdefault(execution, 1)

    def begins(self, execution: ExecutionId) -> None:
        """Note that the first row is being written; `begun` notes its outcome."""
        self._beginning.add(execution)

    def begun(self, execution: ExecutionId, *, refused: bool = False) -> None:
        """Note the outcome of the first row. `refused`: another process had begun the execution, and owns it."""
        if execution in self._beginning:
            self._beginning.discard(execution)
            if refused:
                self.tokens.pop(execution, None)

    async def claim(self, execution: ExecutionId) -> int | None:
        rows = await self.ask(CLAIM, self.me, execution, self.me)
        if not rows:
            self.counts.refused += 1
            return None
        ((token, former),) = rows
        self.counts.claimed += 1
        self.counts.taken_over += former not in (None, self.me)
        self.tokens[execution] = token
        return token

    def drop(self, execution: ExecutionId) -> None:
        self.counts.lost += self.tokens.pop(execution, None) is not None

    async def release(self, claims: Sequence[ReleasedClaim]) -> list[ReleasedClaim]:
        early = [claim for claim in claims if claim.execution in self._beginning]
        claims = [claim for claim in claims if claim.execution not in self._beginning]
        if not claims:
            return early
        tokens = [(claim.execution, claim.token) for claim in claims]
        entries = [(claim.execution, claim.entry) for claim in claims if claim.entry is not None]
        names, wakes = [name for name, _ in entries], [entry.wakes for _, entry in entries]
        awaits = [names_text(entry.awaits) for _, entry in entries]
        await self.ask(RELEASE, *columns(tokens), self.me, names, wakes, awaits)
        for execution, token in tokens:
            if self.tokens.get(execution) == token:
                del self.tokens[execution]
        return early

    async def renew(self) -> None:
        await self.ask(RENEW, self.me, self._name, *self._stated)

    async def retire(self, runtime: int | None = None) -> None:
        released = self.me if runtime is None else runtime
        if released is not None:
            await self.ask(RETIRE, released)

    async def owner(self, execution: ExecutionId) -> tuple[int, str] | None:
        rows = await self.ask(OWNER, execution)
        return (rows[0][0], rows[0][1]) if rows else None

    async def lost(self) -> list[ExecutionId]:
        claims = [*self.tokens.items()]
        return [execution for (execution,) in await self.ask(LOST, *columns(claims), self.me)]

    async def orphans(self) -> list[ExecutionId]:
        return [execution for (execution,) in await self.ask(ORPHANS)]

    async def shares(self, executions: Sequence[ExecutionId]) -> dict[ExecutionId, str]:
        return dict(await self.ask(SHARES, [*executions]))

    async def post(self, execution: ExecutionId, key: str, report: bytes) -> int:
        ((no,),) = await self.ask(POST, execution, key, report, self.me, execution)
        return no

    async def mail(self) -> list[Mail]:
        return [Mail(*row) for row in await self.ask(MAIL, self.me)]

    async def answer(self, mail: int, outcome: MailOutcome) -> None:
        await self.ask(ANSWER, outcome.seq, outcome.refusal, mail)

    async def outcomes(self, mail: Sequence[int]) -> dict[int, MailOutcome | None]:
        rows = await self.ask(OUTCOMES, [*mail])
        return {no: None if seq is None else MailOutcome(seq, refusal) for no, seq, refusal in rows}

    async def forget(self) -> None:
        await self.ask(FORGET)

    def stop_waiting(self) -> None:
        self._connections.patience_s = 0.0

    async def listen(self, notify: Callable[[], None]) -> None:
        """Call `heard` for each notification, until cancelled; reconnect after a broken connection."""
        while True:
            try:
                async with await self._connections.open() as connection:
                    with limited(connection, STATEMENT_S_MAX):
                        result = await connection.execute(f"SELECT {CHANNEL} %s::int8", (self.me,))
                        ((channel,),) = await result.fetchall()
                        await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                    notify()
                    async for _ in connection.notifies():
                        notify()
            except psycopg.Error:
                await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        await self._sender.close()

    async def ask(self, statement: LiteralString, *values: object) -> Sequence[TupleRow]:
        """Send a statement of claims; return its rows."""
        self._connections.check_open()
        async with self._turn:
            return (await self._sender.send(statement, values)).rows


def columns(claims: Sequence[tuple[ExecutionId, int]]) -> tuple[list[ExecutionId], list[int]]:
    return [execution for execution, _ in claims], [token for _, token in claims]


PLACE: Final = f"""
    WITH placed AS (
        INSERT INTO placed_steps AS p (execution, step, attempt, queue, share)
        SELECT g.execution, g.step, g.attempt, g.queue, coalesce(s.owner || '/' || s.workflow, '')
        FROM (VALUES (%b::text, %b::text, %b::int4, %b::text)) AS g (execution, step, attempt, queue)
        LEFT JOIN summaries AS s ON s.execution = g.execution
        ON CONFLICT (execution, step) DO UPDATE SET attempt = excluded.attempt, queue = excluded.queue,
            version = p.version + 1, owner = CASE WHEN p.attempt = excluded.attempt THEN p.owner END
        RETURNING p.no
    ), told AS (
        SELECT pg_notify({CHANNEL} r.no, '')::text AS notified FROM runtimes AS r
        WHERE %b::text = ANY (r.queues) AND {BEATS}
    )
    SELECT (SELECT count(notified) FROM told) FROM placed
"""
WITHDRAW: Final = "DELETE FROM placed_steps WHERE execution = %b::text AND step = %b::text RETURNING no"
UNSERVED: Final = f"""
    SELECT p.execution, p.step, p.attempt, p.queue FROM placed_steps AS p JOIN executions AS e ON e.id = p.execution
    WHERE e.owner = %b::int8 AND NOT EXISTS (SELECT FROM runtimes AS r WHERE p.queue = ANY (r.queues) AND {BEATS})
"""
TAKE: Final = f"""
    WITH running AS (
        SELECT e.share, count(*) AS steps FROM placed_steps AS e WHERE e.owner IS NOT NULL AND EXISTS ({ALIVE})
        GROUP BY e.share
    ), free AS (
        SELECT e.no, coalesce(n.steps, 0) + row_number() OVER (PARTITION BY e.share ORDER BY e.no) AS turn
        FROM placed_steps AS e LEFT JOIN running AS n USING (share)
        WHERE e.queue = ANY (%b::text[]) AND (e.owner IS NULL OR NOT EXISTS ({ALIVE}))
            AND (e.no, e.version) NOT IN (SELECT g.no, g.version FROM unnest(%b::int8[], %b::int4[]) AS g (no, version))
    ), chosen AS (SELECT no FROM free ORDER BY turn, no LIMIT %b::int8)
    UPDATE placed_steps AS e SET owner = %b::int8 FROM chosen
    WHERE e.no = chosen.no AND (e.owner IS NULL OR NOT EXISTS ({ALIVE}))
    RETURNING e.no, e.execution, e.step, e.attempt, e.version
"""
"""Of two workers that choose the same step, the second one finds it owned and takes fewer."""
HELD: Final = """
    SELECT p.no, s.status NOT IN ('completed', 'failed', 'cancelled')
    FROM placed_steps AS p JOIN summaries AS s ON s.execution = p.execution WHERE p.owner = %b::int8
"""
GIVE_BACK: Final = "UPDATE placed_steps SET owner = NULL WHERE no = %b::int8 AND owner = %b::int8 RETURNING no"
FINISH: Final = """
    DELETE FROM placed_steps WHERE no = %b::int8 AND attempt = %b::int4 AND owner = %b::int8 RETURNING no
"""
QUEUES: Final = f"""
    SELECT e.queue, count(*) FILTER (WHERE NOT live), count(*) FILTER (WHERE live),
        coalesce(extract(epoch FROM clock_timestamp() - min(placed) FILTER (WHERE NOT live)), 0)::float8
    FROM (SELECT e.queue, e.placed, e.owner IS NOT NULL AND EXISTS ({ALIVE}) AS live FROM placed_steps AS e) AS e
    GROUP BY e.queue ORDER BY e.queue
"""


class PostgresStepQueues:
    """The queues of one opened store; implements `StepQueues`."""

    def __init__(self, claims: PostgresClaims) -> None:
        self._claims = claims
        self._taken: dict[int, ExecutionId] = {}

    def performs(self, execution: ExecutionId) -> bool:
        """Return whether this runtime performs a step of an execution."""
        return bool(self._taken) and execution in self._taken.values()

    async def place(self, execution: ExecutionId, step: str, attempt: int, queue: str) -> bool:
        ((served,),) = await self._claims.ask(PLACE, execution, step, attempt, queue, queue)
        return served > 0

    async def withdraw(self, execution: ExecutionId, step: str) -> None:
        await self._claims.ask(WITHDRAW, execution, step)

    async def unserved(self) -> list[OwnPlacedStep]:
        return [OwnPlacedStep(*one) for one in await self._claims.ask(UNSERVED, self._claims.me)]

    async def take(self, queues: Sequence[str], *, most: int, but: Sequence[tuple[int, int]]) -> list[PlacedStep]:
        numbers, versions = [no for no, _ in but], [version for _, version in but]
        rows = await self._claims.ask(TAKE, [*queues], numbers, versions, most, self._claims.me)
        taken = [PlacedStep(*row) for row in rows]
        self._taken.update((one.no, one.execution) for one in taken)
        return taken

    async def held(self) -> dict[int, bool]:
        return {row[0]: row[1] for row in await self._claims.ask(HELD, self._claims.me)}

    async def give_back(self, no: int) -> None:
        await self._claims.ask(GIVE_BACK, no, self._claims.me)
        self._taken.pop(no, None)

    async def finish(self, step: PlacedStep) -> None:
        await self._claims.ask(FINISH, step.no, step.attempt, self._claims.me)
        self._taken.pop(step.no, None)

    async def queues(self) -> list[QueueEntry]:
        return [QueueEntry(*one) for one in await self._claims.ask(QUEUES)]
