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
from typing import Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from pointsman.store.coordination import Mail, MailOutcome, ReleasedClaim
from pointsman.store.postgres.connections import STATEMENT_S_MAX, Connections, limited
from pointsman.store.postgres.write_batcher import StatementSender
from pointsman.store.sql.executions import names_text
from pointsman.values import ExecutionId

CHANNEL: Final[LiteralString] = "'pointsman_mail_' || md5(current_schema()) || '_' || "
ALIVE: Final[LiteralString] = (
    "SELECT FROM runtimes AS r WHERE r.no = e.owner AND (r.beat > clock_timestamp() - interval '12 s'"
    " OR (r.beat > '-infinity' AND pg_postmaster_start_time() > clock_timestamp() - interval '15 s'))"
)
"""A runtime renews its row every `CLAIM_BEAT_S`. While the server was down none could; each gets 15 s."""
REGISTER: Final = "INSERT INTO runtimes (name, beat) VALUES (%b::text, clock_timestamp()) RETURNING no"
RENEW: Final = """
    INSERT INTO runtimes (no, name, beat) OVERRIDING SYSTEM VALUE VALUES (%b::int8, %b::text, clock_timestamp())
    ON CONFLICT (no) DO UPDATE SET beat = excluded.beat RETURNING no
"""
"""A runtime that was stopped for days finds its row deleted."""
RETIRE: Final = "UPDATE runtimes SET beat = '-infinity' WHERE no = %b::int8 RETURNING no"
CLAIM: Final = f"""
    UPDATE executions AS e SET owner = %b::int8, token = token + 1
    WHERE id = %b::text AND (owner IS NULL OR owner = %b::int8 OR NOT EXISTS ({ALIVE})) RETURNING token
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
        self.me: int | None = None
        """The number of this runtime; None: it has no row yet."""
        self.tokens: dict[ExecutionId, int] = {}
        """Held by this process."""

    def token(self, execution: ExecutionId) -> int:
        """Return the token that rows of an execution prove; 0: this process has no claim."""
        return self.tokens.get(execution, 0)

    async def register(self, name: str) -> None:
        async with self._registering:
            if self.me is None:
                self._name = name
                ((self.me,),) = await self._ask(REGISTER, name)

    def begin(self, execution: ExecutionId) -> int:
        return self.tokens.setdefault(execution, 1)

    async def claim(self, execution: ExecutionId) -> int | None:
        found = await self._ask(CLAIM, self.me, execution, self.me)
        if not found:
            return None
        ((token,),) = found
        self.tokens[execution] = token
        return token

    def drop(self, execution: ExecutionId) -> None:
        self.tokens.pop(execution, None)

    async def release(self, claims: Sequence[ReleasedClaim]) -> None:
        given = [(one.execution, one.token) for one in claims]
        entries = [(one.execution, one.entry) for one in claims if one.entry is not None]
        names, wakes = [name for name, _ in entries], [entry.wakes for _, entry in entries]
        awaits = [names_text(entry.awaits) for _, entry in entries]
        await self._ask(RELEASE, *columns(given), self.me, names, wakes, awaits)
        for execution, token in given:
            if self.tokens.get(execution) == token:
                del self.tokens[execution]

    async def renew(self) -> None:
        await self._ask(RENEW, self.me, self._name)

    async def retire(self, runtime: int | None = None) -> None:
        ended = self.me if runtime is None else runtime
        if ended is not None:
            await self._ask(RETIRE, ended)

    async def owner(self, execution: ExecutionId) -> tuple[int, str] | None:
        found = await self._ask(OWNER, execution)
        return (found[0][0], found[0][1]) if found else None

    async def lost(self) -> list[ExecutionId]:
        claims = [*self.tokens.items()]
        return [execution for (execution,) in await self._ask(LOST, *columns(claims), self.me)]

    async def orphans(self) -> list[ExecutionId]:
        return [execution for (execution,) in await self._ask(ORPHANS)]

    async def post(self, execution: ExecutionId, key: str, report: bytes) -> int:
        ((no,),) = await self._ask(POST, execution, key, report, self.me, execution)
        return no

    async def mail(self) -> list[Mail]:
        return [Mail(*one) for one in await self._ask(MAIL, self.me)]

    async def answer(self, mail: int, outcome: MailOutcome) -> None:
        await self._ask(ANSWER, outcome.seq, outcome.refusal, mail)

    async def outcomes(self, mail: Sequence[int]) -> dict[int, MailOutcome | None]:
        found = await self._ask(OUTCOMES, [*mail])
        return {no: None if seq is None else MailOutcome(seq, refusal) for no, seq, refusal in found}

    async def forget(self) -> None:
        await self._ask(FORGET)

    async def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` for each notification, until cancelled; reconnect after a broken connection."""
        while True:
            try:
                async with await self._connections.open() as connection:
                    with limited(connection, STATEMENT_S_MAX):
                        found = await connection.execute(f"SELECT {CHANNEL} %s::int8", (self.me,))
                        ((channel,),) = await found.fetchall()
                        await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                    heard()
                    async for _ in connection.notifies():
                        heard()
            except psycopg.Error:
                await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        await self._sender.close()

    async def _ask(self, statement: LiteralString, *values: object) -> Sequence[TupleRow]:
        self._connections.check_open()
        async with self._turn:
            return (await self._sender.send(statement, values)).rows


def columns(claims: Sequence[tuple[ExecutionId, int]]) -> tuple[list[ExecutionId], list[int]]:
    return [execution for execution, _ in claims], [token for _, token in claims]
