"""Conformance suite of the tables of a store beside the journal, as functions for any address. See `journals`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final, get_args

import msgspec
from msgspec.structs import replace

from pointsman.store.api import Store
from pointsman.store.errors import EntryMoved, JournalMoved, RevisionMoved, SessionClosed, SessionMoved, UnstorableValue
from pointsman.store.records import (
    ANYONE,
    OF_EXECUTIONS,
    About,
    AnswerEntry,
    AnswersQuery,
    BudgetUsage,
    EffectRecord,
    ExecutionQuery,
    GateEntry,
    InboxQuery,
    Spenders,
    SpendingQuery,
    Summary,
    UsageAmounts,
    UsageName,
    UsagePosition,
    UsageQuery,
    UsageRecord,
    WorkflowDraft,
    added_up,
)
from pointsman.testing.journals import LEADER_RULES, ONE, REMOVAL_RULES, Rule, opened, refused, row_of
from pointsman.testing.memories import MEMORY_RULES, VECTOR_RULES
from pointsman.values import ExecutionId, Instant, Json, JsonObject, WorkflowId

PATIENCE_S: Final = 60.0


async def until_it_has(store: Store, execution: ExecutionId, seq: int, woken: asyncio.Event) -> None:
    """Read, wait, and read again, like every follower."""
    async with asyncio.timeout(PATIENCE_S):
        while await store.journal.last(execution) < seq:
            await woken.wait()
            woken.clear()


async def rows_written_here_are_followed(url: str) -> None:
    async with opened(url) as store:
        woken, ended = asyncio.Event(), asyncio.Event()
        store.follow(ONE, woken.set)
        leave = store.follow(ONE, ended.set)
        for seq in range(1, 4):
            await store.journal.append(ONE, row_of(seq))
            await until_it_has(store, ONE, seq, woken)
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        leave()
        leave()
        ended.clear()
        woken.clear()
        await store.journal.append(ONE, row_of(4))
        await asyncio.wait_for(woken.wait(), PATIENCE_S)
        assert not ended.is_set(), "who has left is told nothing"


FOLLOWER_RULES: Final[tuple[Rule, ...]] = (rows_written_here_are_followed,)


async def rows_written_elsewhere_are_followed(url: str) -> None:
    other = ExecutionId("exec-other")
    async with opened(url) as here, opened(url) as elsewhere:
        woken = {execution: asyncio.Event() for execution in (ONE, other)}
        for execution, event in woken.items():
            here.follow(execution, event.set)
        for seq in range(1, 6):
            await elsewhere.journal.append(ONE, row_of(seq))
            await until_it_has(here, ONE, seq, woken[ONE])
        await elsewhere.journal.append(other, row_of(1))
        await until_it_has(here, other, 1, woken[other])


async def many_rows_written_elsewhere_at_once_are_followed(url: str) -> None:
    executions = [ExecutionId(f"exec-{number:030}") for number in range(400)]
    async with opened(url) as here, opened(url) as elsewhere:
        woken = asyncio.Event()
        here.follow(executions[-1], woken.set)
        await asyncio.gather(*(elsewhere.journal.append(execution, row_of(1)) for execution in executions))
        await until_it_has(here, executions[-1], 1, woken)


DURABLE_FOLLOWER_RULES: Final[tuple[Rule, ...]] = (
    rows_written_elsewhere_are_followed,
    many_rows_written_elsewhere_at_once_are_followed,
)


DESK: Final = WorkflowId("desk")


def summary_of(number: int, status: str = "completed", *, session: str | None = None) -> Summary:
    return Summary(
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=DESK if number % 2 else WorkflowId("other"),
        revision=number,
        status=status,
        started=Instant(number // 2),
        updated=Instant(number),
        parent=ExecutionId("exec-000") if number == 7 else None,
        session=session,
        owner="ann" if number < 5 else "bob",
    )


def numbers(found: list[Summary]) -> list[int]:
    return [int(summary.execution.removeprefix("exec-")) for summary in found]


async def summary_of_an_earlier_row_does_not_replace_a_later_one(url: str) -> None:
    async with opened(url) as store:
        execution = summary_of(1).execution
        await store.journal.append(execution, row_of(1), summary=summary_of(1, "running"))
        await store.journal.append(execution, row_of(2, "done"), summary=summary_of(1, "completed"))
        await store.executions.put(summary_of(1, "running"), seq=1)
        assert await store.executions.find(execution) == summary_of(1, "completed")
        await store.executions.put(summary_of(1, "waiting"), seq=2)
        assert await store.executions.find(execution) == summary_of(1, "waiting")
        await store.executions.put(summary_of(1, "failed"), seq=3)
        assert await store.executions.find(execution) == summary_of(1, "failed")


async def executions_are_listed_newest_first(url: str) -> None:
    async with opened(url) as store:
        for number in (3, 0, 9, 6, 1, 8, 2, 7, 5, 4):
            await store.executions.put(summary_of(number))
        everything = await store.executions.list()
        assert numbers(everything) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
        assert everything[0] == summary_of(9)
        page = await store.executions.list(ExecutionQuery(limit=3))
        last = page[-1]
        following = ExecutionQuery(limit=3, before=(last.started, last.execution))
        assert numbers(page) == [9, 8, 7]
        assert numbers(await store.executions.list(following)) == [6, 5, 4]
        oldest = await store.executions.list(ExecutionQuery(limit=3, oldest_first=True))
        behind = (oldest[-1].started, oldest[-1].execution)
        assert numbers(oldest) == [0, 1, 2]
        ahead = ExecutionQuery(limit=4, before=behind, oldest_first=True)
        assert numbers(await store.executions.list(ahead)) == [3, 4, 5, 6]


async def list_of_executions_obeys_each_filter(url: str) -> None:
    async with opened(url) as store:
        for number in range(10):
            status = "running" if number in (2, 3) else "waiting" if number == 4 else "completed"
            await store.executions.put(summary_of(number, status, session="talk" if number == 6 else None))

        async def found(query: ExecutionQuery) -> list[int]:
            return numbers(await store.executions.list(query))

        assert await found(ExecutionQuery(statuses=frozenset({"running", "waiting"}))) == [4, 3, 2]
        assert await found(ExecutionQuery(workflow=DESK)) == [9, 7, 5, 3, 1]
        assert await found(ExecutionQuery(parent=ExecutionId("exec-000"))) == [7]
        assert await found(ExecutionQuery(session="talk")) == [6]
        assert await found(ExecutionQuery(since=Instant(8))) == [9, 8], "changed at or after a time"
        assert await found(ExecutionQuery(since=Instant(8), workflow=DESK)) == [9]
        assert await found(ExecutionQuery(owner="ann", workflow=DESK, statuses=frozenset({"completed"}))) == [1]
        assert await found(ExecutionQuery(owner="' OR 1=1 --")) == []
        assert await store.executions.find(ExecutionId("exec-none")) is None


async def last_turn_of_each_session_is_found(url: str) -> None:
    sessions = {1: "a", 2: "b", 3: "a", 4: "b", 6: "c", 7: "c"}  # 7 is a child execution, and not a turn
    async with opened(url) as store:
        for number in (3, 0, 6, 1, 2, 7, 5, 4):
            await store.executions.put(summary_of(number, session=sessions.get(number)))

        async def found(query: ExecutionQuery) -> list[int]:
            return numbers(await store.executions.list(replace(query, last_of_session=True)))

        assert await found(ExecutionQuery()) == [6, 4, 3]
        assert await found(ExecutionQuery(limit=2)) == [6, 4]
        assert await found(ExecutionQuery(before=(2.0, ExecutionId("exec-004")))) == [3]
        assert await found(ExecutionQuery(workflow=DESK)) == [3]
        assert await found(ExecutionQuery(owner="bob")) == [6]
        assert await found(ExecutionQuery(session="b")) == [4]


async def list_without_trials_excludes_partial_runs(url: str) -> None:
    names = [*map(ExecutionId, ("try-001", "exec-002", "try-003", "tryst-004", "exec-try-005", "try"))]
    async with opened(url) as store:
        for number, name in enumerate(names, start=1):
            await store.executions.put(replace(summary_of(number), execution=name, started=Instant(number)))

        async def found(query: ExecutionQuery) -> list[str]:
            return [one.execution for one in await store.executions.list(query)]

        assert await found(ExecutionQuery()) == [*reversed(names)]
        assert await found(without := ExecutionQuery(trials=False)) == ["try", "exec-try-005", "tryst-004", "exec-002"]
        assert await found(replace(without, limit=4)) == await found(without), "they take nobody's place on a page"
        assert await found(replace(without, workflow=DESK)) == ["exec-try-005"]
        assert await found(replace(without, before=(4.0, ExecutionId("tryst-004")))) == ["exec-002"]
        assert await found(replace(without, oldest_first=True, limit=2)) == ["exec-002", "tryst-004"]


async def executions_are_found_by_the_beginning_of_their_ids(url: str) -> None:
    names = [*map(ExecutionId, ("exec-a1", "exec-a2", "exec-b1", "EXEC-a3", "exec_a4", "exec-%1"))]
    async with opened(url) as store:
        for number, name in enumerate(names, start=1):
            await store.executions.put(replace(summary_of(number), execution=name, started=Instant(number)))

        async def found(prefix: str) -> list[str]:
            return [one.execution for one in await store.executions.list(ExecutionQuery(prefix=prefix))]

        assert await found("exec-a") == ["exec-a2", "exec-a1"]
        assert await found("exec-%") == ["exec-%1"], "patterns of LIKE have no meaning"
        assert await found("exec-b1") == ["exec-b1"]
        assert await found("a") == []


async def executions_are_found_by_wake_time_and_awaited_event(url: str) -> None:
    def parked(number: int, wakes: float | None, *awaits: str) -> Summary:
        found = summary_of(number, "waiting")
        return replace(found, wakes=None if wakes is None else Instant(wakes), awaits=awaits)

    async with opened(url) as store:
        for one in (parked(1, 30.0), parked(2, None, "paid"), parked(3, 10.0, "paid", "sent"), parked(4, 20.0)):
            await store.executions.put(one)

        async def found(query: ExecutionQuery) -> list[int]:
            return numbers(await store.executions.list(query))

        assert await found(ExecutionQuery(due=Instant(20.0))) == [3, 4]
        assert await found(ExecutionQuery(due=Instant(99.0), limit=1)) == [3], "the one that wakes first comes first"
        assert await found(ExecutionQuery(awaits="paid")) == [3, 2]
        assert await found(ExecutionQuery(awaits="pai")) == []
        assert await store.executions.find(ExecutionId("exec-003")) == parked(3, 10.0, "paid", "sent")
        await store.executions.put(parked(3, None, "sent"))
        assert await found(ExecutionQuery(due=Instant(20.0))) == [4]
        assert await found(ExecutionQuery(awaits="paid")) == [2]
        assert await found(ExecutionQuery(awaits="sent")) == [3]


def gate_of(number: int, gate: str, **asks: tuple[str, ...]) -> GateEntry:
    return GateEntry(
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=summary_of(number).workflow,
        gate=gate,
        node=gate,
        message=f"May {gate}?",
        opened=Instant(10 - number),
        users=asks.get("users", ()),
        groups=asks.get("groups", ()),
        without=asks.get("without", ()),
    )


def answer_of(number: int, by: str, action: str = "approve", *, at: float = 5.0) -> AnswerEntry:
    return AnswerEntry(
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=summary_of(number).workflow,
        gate="gate",
        node="gate",
        message="May it?",
        by=by,
        action=action,
        at=Instant(at),
    )


async def summary_with_an_unstorable_text_is_refused_with_its_rows(url: str) -> None:
    gate = replace(gate_of(7, "gate", users=("ada",), groups=("editors",), without=("ben",)), about="call")
    gate = replace(gate, item="one", messages={"de": "Darf es?"}, called={"de": "Schranke"}, digest="abc")
    waiting = summary_of(7, "waiting", session="talk")
    answer = replace(answer_of(7, "ada"), comment="Yes.", item="one", messages={"de": "Darf es?"}, called={"de": "Tor"})
    waiting = replace(waiting, awaits=("paid",), needs=("model",), worker="host-1", gates=(gate,), answers=(answer,))
    async with opened(url) as store:
        await store.journal.append(waiting.execution, row_of(1), summary=waiting)
        document = msgspec.to_builtins(waiting)
        for place, changed in [*spoiled(document, "\0"), *spoiled(document, "\ud800")]:
            bad = msgspec.convert(changed, Summary)
            assert await refused(store.executions.put(bad), UnstorableValue), place
            rows = store.journal.append(waiting.execution, row_of(2), summary=bad)
            assert await refused(rows, UnstorableValue), place
        (found,) = await store.executions.list()
        assert replace(found, gates=waiting.gates, answers=waiting.answers) == waiting
        assert await store.executions.inbox() == [gate]
        assert await store.executions.answers() == [answer]
        assert await store.journal.last(waiting.execution) == 1
    fields = [(name, getattr(one, name)) for one in (waiting, gate, answer) for name in one.__struct_fields__]
    empty = [name for name, value in fields if value in (None, "", (), {})]
    assert empty == ["wakes", "deadline", "round", "round"], (
        "give every text of a summary, gate and answer a value above"
    )


def spoiled(value: Json, character: str, place: str = "") -> Iterator[tuple[str, Json]]:
    """Yield copies of a value, each with the character in another of its texts, with the place of that text."""
    if isinstance(value, str):
        yield place, f"{value}{character}"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from ((at, {**value, key: changed}) for at, changed in spoiled(item, character, f"{place}/{key}"))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            for at, changed in spoiled(item, character, f"{place}/{number}"):
                yield at, [*value[:number], changed, *value[number + 1 :]]


def draft_of(text: str, version: str = "1.0.0", name: WorkflowId = DESK) -> WorkflowDraft:
    native: dict[str, Json] = {"pointsman": 1, "id": name, "text": text}
    return WorkflowDraft(
        id=name,
        name=f"The {name}",
        version=version,
        dialect="rows",
        text=text,
        native=native,
        created=Instant(1.5),
        author="ann",
    )


async def inbox_lists_open_gates_of_a_person(url: str) -> None:
    async with opened(url) as store:
        anyone = gate_of(1, "anyone", users=(ANYONE,))
        voted = gate_of(2, "voted", users=("ada", "ben"), groups=("editors",), without=("ada",))
        grouped = gate_of(3, "grouped", groups=("editors",))
        for number, gates in ((1, (anyone,)), (2, (voted,)), (3, (grouped,))):
            await store.executions.put(replace(summary_of(number, "waiting"), gates=gates))

        async def seen(**filters: object) -> list[str]:
            query = msgspec.convert(filters, InboxQuery)
            return [entry.gate for entry in await store.executions.inbox(query)]

        assert await store.executions.inbox() == [grouped, voted, anyone]
        assert await seen(user="ada") == ["anyone"]
        assert await seen(user="ben") == ["voted", "anyone"]
        assert await seen(user="cleo", groups=["editors"]) == ["grouped", "voted", "anyone"]
        assert await seen(groups=["editors"]) == ["grouped", "voted", "anyone"]
        assert await seen(user="ben", limit=1) == ["voted"]
        page = [voted.opened, voted.execution, voted.gate]
        assert await seen(user="ben", after=page, workflow="desk") == ["anyone"]
        assert await seen(workflow="other") == ["voted"]


async def inbox_changes_with_the_summary(url: str) -> None:
    async with opened(url) as store:
        gates = (gate_of(1, "a", users=("ada",)), gate_of(1, "b", users=("ben",)))
        await store.executions.put(replace(summary_of(1, "waiting"), gates=gates))
        await store.executions.put(summary_of(1, "running"))
        assert len(await store.executions.inbox()) == 2, "a summary that does not say keeps them"
        await store.executions.put(replace(summary_of(1, "running"), gates=gates[1:]))
        assert await store.executions.inbox() == [gates[1]]
        await store.executions.put(replace(summary_of(1), gates=()))
        assert await store.executions.inbox() == []


async def answers_are_listed_by_person_newest_first(url: str) -> None:
    async with opened(url) as store:
        first, voted = answer_of(1, "ada", at=1.0), answer_of(2, "ben", "reject", at=2.0)
        changed = replace(voted, action="approve", at=Instant(3.0), closed=True)
        other = answer_of(3, "ada", at=2.0)
        await store.journal.append(first.execution, row_of(1), summary=replace(summary_of(1), answers=(first,)))
        name = voted.execution
        await store.journal.append(name, row_of(1), summary=replace(summary_of(2), answers=(voted,)))
        assert await store.executions.answers() == [voted, first]
        await store.journal.append(name, row_of(2), summary=replace(summary_of(2), answers=(changed,)))
        await store.journal.append(name, row_of(3), summary=summary_of(2))
        await store.executions.put(replace(summary_of(3), answers=(other,)))

        async def found(**filters: object) -> list[AnswerEntry]:
            return await store.executions.answers(msgspec.convert(filters, AnswersQuery))

        assert await found() == [changed, other, first], "an answer replaces the vote before it, and stays"
        assert await found(by="ada") == [other, first]
        assert await found(by="ada", limit=1) == [other]
        assert await found(by="ada", before=[*other.place]) == [first]
        assert await found(workflow=other.workflow, by="ben") == []
        assert await found(by="cleo") == []
        await store.removal.remove(name, at=3)
        assert await found() == [other, first], "it is deleted with its execution"


async def saved_revision_never_changes(url: str) -> None:
    async with opened(url) as store:
        first = await store.workflows.save(draft_of("one\r\n\ttwo"))
        again = await store.workflows.save(draft_of("one\r\n\ttwo"))
        second = await store.workflows.save(draft_of("two"))
        third = await store.workflows.save(draft_of("two", "2.0.0"))
        assert (first.revision, again, second.revision, third.revision) == (1, first, 2, 3)
        assert await store.workflows.find("desk") == third
        assert await store.workflows.find("desk@1") == first
        assert await store.workflows.find("desk@1.0.0") == second
        assert await store.workflows.find("desk@9") is None
        assert await store.workflows.find("desk@9.9.9") is None
        assert await store.workflows.find("nobody") is None
        found = await store.workflows.find("desk@1")
        assert found is not None
        assert found.draft == draft_of("one\r\n\ttwo"), "the author's document is kept byte for byte"


async def revision_is_saved_only_on_top_of_the_one_read(url: str) -> None:
    async with opened(url) as store:
        save = store.workflows.save
        assert await refused(save(draft_of("one"), after=1), RevisionMoved)
        assert await store.workflows.find("desk") is None, "nothing is written"
        await save(draft_of("one"), after=0)
        assert await refused(save(draft_of("two"), after=0), RevisionMoved)
        both = await asyncio.gather(
            *(save(draft_of(f"text {number}"), after=1) for number in range(8)), return_exceptions=True
        )
        won = [one for one in both if not isinstance(one, BaseException)]
        assert [one.revision for one in won] == [2]
        assert [type(one) for one in both if isinstance(one, BaseException)] == [RevisionMoved] * 7
        assert await store.workflows.find("desk") == won[0]


async def concurrent_saves_number_revisions_without_gaps(url: str) -> None:
    async with opened(url) as store:
        saved = await asyncio.gather(*(store.workflows.save(draft_of(f"text {number}")) for number in range(20)))
        assert sorted(one.revision for one in saved) == list(range(1, 21))


async def deleted_workflow_is_unlisted_but_readable_by_revision(url: str) -> None:
    async with opened(url) as store:
        await store.workflows.save(draft_of("one"))
        await store.workflows.save(draft_of("else", name=WorkflowId("aside")))
        assert [await refused(store.workflows.delete(DESK, after=at), RevisionMoved) for at in (0, 2)] == [True, True]
        assert await store.workflows.delete(DESK, after=1)
        assert not await store.workflows.delete(DESK)
        assert not await store.workflows.delete(WorkflowId("nobody"))
        assert [entry.id for entry in await store.workflows.list()] == ["aside"]
        assert await store.workflows.find("desk") is None
        pinned = await store.workflows.find("desk@1")
        assert pinned is not None
        assert pinned.draft.text == "one"
        back = await store.workflows.save(draft_of("one"))
        assert back.revision == 2
        assert [entry.revision for entry in await store.workflows.list(DESK)] == [2, 1]


async def list_of_workflows_contains_description_and_tags(url: str) -> None:
    async with opened(url) as store:
        fields: JsonObject = {
            "description": {"en": "Mail \u2709", "de": "Post"},
            "tags": ["mail", "daily"],
            "enabled": False,
        }
        await store.workflows.save(replace(draft_of("one"), native={"id": "desk", "name": {"de": "Pult"}, **fields}))
        await store.workflows.save(draft_of("else", name=WorkflowId("aside")))
        aside, desk = await store.workflows.list()
        assert (aside.description, aside.tags, aside.enabled, aside.names) == (None, (), True, None)
        assert (desk.description, desk.tags, desk.names) == (fields["description"], ("mail", "daily"), {"de": "Pult"})
        assert (desk.enabled, await store.workflows.list(DESK)) == (False, [desk])


async def conversation_turn_is_stored_once(url: str) -> None:
    async with opened(url) as store:
        sessions = store.sessions
        hello: tuple[Json, ...] = ({"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"})
        more: tuple[Json, ...] = ({"role": "user", "content": "more"},)
        assert (await sessions.load("talk")).messages == ()
        await sessions.append("talk", hello, after=0)
        await sessions.append("talk", hello, after=0)
        assert (await sessions.load("talk")).messages == hello
        assert await refused(sessions.append("talk", more, after=0), SessionMoved)
        assert await refused(sessions.append("talk", more, after=9), SessionMoved)
        await sessions.append("talk", more, after=2)
        assert (await sessions.load("talk")).messages == (*hello, *more)
        await sessions.append("talk", hello, after=0)
        assert len((await sessions.load("talk")).messages) == 3


async def closed_session_refuses_turns_until_reopened(url: str) -> None:
    async with opened(url) as store:
        sessions = store.sessions
        await sessions.append("talk", ("a",), after=0)
        await sessions.close("talk")
        await sessions.close("talk")
        assert (await sessions.load("talk")).closed
        assert await refused(sessions.append("talk", ("b",), after=1), SessionClosed)
        await sessions.append("talk", ("a",), after=0)
        await sessions.close("talk", closed=False)
        await sessions.append("talk", ("b",), after=1)
        assert (await sessions.load("talk")).messages == ("a", "b")


async def first_result_of_an_effect_wins(url: str) -> None:
    async with opened(url) as store:
        one, other = ExecutionId("exec-one"), ExecutionId("exec-two")
        await store.effects.record(one, "write#1", 2, {"text": "x" * 100_000})
        await store.effects.record(one, "write#1", 1, None)
        await store.effects.record(one, "write#1", 1, "paid twice")
        await store.effects.record(one, "write#2", 1, "second attempt")
        await store.effects.record(other, "write#1", 1, "other")
        assert await store.effects.recorded(one, "write#1") == {1: None, 2: {"text": "x" * 100_000}}
        assert await store.effects.recorded(one, "write#2") == {1: "second attempt"}
        assert await store.effects.recorded(other, "read#1") == {}
        assert await store.effects.attempts(one) == ["write#1", "write#2"]
        assert await store.effects.attempts(ExecutionId("exec-none")) == []


async def effects_are_stored_with_their_row_or_not_at_all(url: str) -> None:
    async with opened(url) as store:
        large: Json = {"text": "y" * 100_000}
        first = [EffectRecord("write#1", 1, "paid"), EffectRecord("write#1", 2, large)]
        await store.journal.append(ONE, row_of(1), effects=first)
        assert await store.effects.recorded(ONE, "write#1") == {1: "paid", 2: large}
        late = [EffectRecord("write#2", 1, "too late")]
        assert await refused(store.journal.append(ONE, row_of(1), effects=late), JournalMoved)
        assert await refused(store.journal.append(ONE, row_of(3), row_of(4), effects=late), JournalMoved)
        assert await store.effects.recorded(ONE, "write#2") == {}
        again = [EffectRecord("write#1", 1, "paid twice"), EffectRecord("write#1", 3, None)]
        await store.journal.append(ONE, row_of(2), row_of(3), effects=again)
        assert await store.effects.recorded(ONE, "write#1") == {1: "paid", 2: large, 3: None}
        others = [ExecutionId(f"exec-{number}") for number in range(20)]
        effects = [EffectRecord("write#1", 1, large)]
        await asyncio.gather(*(store.journal.append(one, row_of(1), effects=effects) for one in others))
        for one in others:
            assert await store.effects.recorded(one, "write#1") == {1: large}


async def configuration_entries_are_found_by_kind_and_key(url: str) -> None:
    async with opened(url) as store:
        value: Json = {"cron": "0 7 * * *", "größe": [1, None, True]}
        await store.entries.put("schedule", "b", 1)
        await store.entries.put("schedule", "a", value)
        await store.entries.put("webhook", "a", 2)
        found = await store.entries.find("schedule", "a")
        assert found is not None
        assert found.value == value
        assert [(entry.key, entry.value) for entry in await store.entries.list("schedule")] == [("a", value), ("b", 1)]
        assert await store.entries.delete("schedule", "a")
        assert not await store.entries.delete("schedule", "a")
        assert await store.entries.find("schedule", "a") is None
        assert await store.entries.list("nothing") == []
        assert [entry.value for entry in await store.entries.list("webhook")] == [2]


async def configuration_entry_changes_only_from_its_current_version(url: str) -> None:
    async with opened(url) as store:
        first = await store.entries.put("schedule", "a", "one", after=0)
        assert await refused(store.entries.put("schedule", "a", "other", after=0), EntryMoved)
        second = await store.entries.put("schedule", "a", "two", after=first)
        assert second > first
        assert await refused(store.entries.put("schedule", "a", "late", after=first), EntryMoved)
        assert await refused(store.entries.delete("schedule", "a", after=first), EntryMoved)
        assert await refused(store.entries.delete("schedule", "b", after=second), EntryMoved)
        assert await store.entries.delete("schedule", "a", after=second)
        again = await store.entries.put("schedule", "a", "three", after=0)
        assert await refused(store.entries.put("schedule", "a", "very late", after=first), EntryMoved)
        assert again > second, "an entry made again is not the one that was deleted"


async def one_of_many_concurrent_writers_changes_an_entry(url: str) -> None:
    async with opened(url) as store:
        version = await store.entries.put("schedule", "a", "begin")
        puts = [refused(store.entries.put("schedule", "a", n, after=version), EntryMoved) for n in range(20)]
        outcomes = await asyncio.gather(*puts)
        assert outcomes.count(False) == 1
        found = await store.entries.find("schedule", "a")
        assert found is not None
        assert found.value == outcomes.index(False)


async def equal_blobs_are_stored_once(url: str) -> None:
    async with opened(url) as store:
        contents = [b"", b"\x00\xff", b"x" * 1_000_000, bytes(range(256)) * 40]
        digests = [await store.blobs.put(content) for content in contents]
        assert [await store.blobs.put(content) for content in contents] == digests
        assert [await store.blobs.get(digest) for digest in digests] == contents
        assert await store.blobs.get("00" * 32) is None
        assert await store.verify() == []


DAYS: Final = ("2026-11-20", "2026-11-21", "2026-11-22")
NAMES: Final[tuple[UsageName, ...]] = get_args(UsageName)
SUMMED: Final[tuple[UsageName, ...]] = tuple(one for one in NAMES if one not in OF_EXECUTIONS)


def taking(number: int, day: str = DAYS[0], **about: str) -> UsageRecord:
    """Return one model call that costs a thousand nanodollars times its number."""
    amounts = UsageAmounts(model_calls=1, nanos=1000 * number, priced_calls=1)
    return UsageRecord(
        day=day,
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=about.get("workflow", "desk"),
        revision=1,
        owner=about.get("owner", ""),
        entries=((UsagePosition(about.get("node", "ask"), "gpt-5", "openai/1"), amounts),),
    )


def random_usage_record(chance: random.Random) -> UsageRecord:
    """Draw from few executions and names, so that they repeat often."""
    places = {
        UsagePosition(chance.choice("abc"), chance.choice(("", "gpt-5", "größe")), chance.choice(("", "openai/1")))
        for _ in range(chance.randrange(4))
    }
    amounts = UsageAmounts.__struct_fields__
    return UsageRecord(
        day=chance.choice(DAYS),
        execution=ExecutionId(f"exec-{chance.randrange(6)}"),
        workflow=chance.choice(("desk", "other")),
        revision=chance.randrange(3),
        owner=chance.choice(("", "ann")),
        entries=tuple((place, UsageAmounts(*(chance.randrange(1 << 40) for _ in amounts))) for place in sorted(places)),
    )


def sorted_sums(found: Iterable[tuple[About, UsageAmounts]]) -> list[tuple[list[str], UsageAmounts]]:
    return sorted((([str(one) for one in about], taken) for about, taken in found), key=lambda one: one[0])


async def usage_sums_equal_the_records(url: str) -> None:
    """Put random usage records, some of them again with other values."""
    chance = random.Random(152)
    some: list[tuple[UsageName, ...]] = [by for count in (1, 2, 3) for by in combinations(SUMMED, count)]
    queries = [UsageQuery(by=by) for by in some]
    queries += [UsageQuery(by=("owner",)), UsageQuery(by=("execution", "node"), of={"owner": "ann"})]
    queries += [
        UsageQuery(by=("node", "workflow"), since=DAYS[1]),
        UsageQuery(by=("day",), until=DAYS[1], of={"model": "größe"}),
        UsageQuery(by=("key",), since=DAYS[1], until=DAYS[1], of={"workflow": "desk", "node": "a"}),
    ]
    latest: dict[tuple[str, str], UsageRecord] = {}
    async with opened(url) as store:
        for _ in range(6):
            for _ in range(12):
                one = random_usage_record(chance)
                await store.usage.put(one)
                latest[one.day, one.execution] = one
            for query in queries:
                expected = sorted_sums(added_up(latest.values(), query))
                assert sorted_sums(await store.usage.sums(query)) == expected, query
            assert await store.verify() == []


async def concurrent_usage_records_are_all_summed(url: str) -> None:
    async with opened(url) as store:
        for _ in range(2):
            await asyncio.gather(*(store.usage.put(taking(number)) for number in range(1, 21)))
            ((_, total),) = await store.usage.sums(UsageQuery(by=("workflow",)))
            assert (total.model_calls, total.nanos) == (20, 210_000), "nothing is counted twice either"
        await asyncio.gather(*(store.usage.put(taking(1, node=node)) for node in "abcdefgh"))
        found = await store.usage.sums(UsageQuery(by=("node",)))
        assert sum(taken.nanos for _, taken in found) == 210_000, "one of those who took it in is the last"


async def long_and_unusual_names_stay_distinct(url: str) -> None:
    async with opened(url) as store:
        names = ["ö" * 2000 + end for end in ("a", "b")] + ["?", "%s", "'; DROP TABLE usage; --"]
        for number, name in enumerate(names, start=1):
            await store.usage.put(taking(number, node=name))
        found = {about[0]: taken.nanos for about, taken in await store.usage.sums(UsageQuery(by=("node",)))}
        assert found == {name: 1000 * number for number, name in enumerate(names, start=1)}
        ((about, _),) = await store.usage.sums(UsageQuery(by=("execution",), of={"node": names[-1]}))
        assert about == ("exec-005",)


USAGE_RULES: Final[tuple[Rule, ...]] = (
    usage_sums_equal_the_records,
    concurrent_usage_records_are_all_summed,
    long_and_unusual_names_stay_distinct,
)


TOKENS: Final = SpendingQuery(workflow=DESK, measure="tokens", near=50, most=100)


def desk(number: int, tokens: int, **more: object) -> Summary:
    """Return a summary that ended at its number."""
    one = Summary(
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=DESK,
        revision=1,
        status="completed",
        started=Instant(0),
        updated=Instant(number),
        spent=BudgetUsage(tokens=tokens, model_calls=number, cost_usd=tokens / 1000),
    )
    return replace(one, **more)


async def spending_of_executions_is_summed(url: str) -> None:
    async with opened(url) as store:
        assert await store.executions.spending(TOKENS) == []
        spent = (0, 49, 50, 99, 100, 250)
        for number, tokens in enumerate(spent):
            await store.executions.put(desk(number, tokens))
        await store.executions.put(desk(7, 900, workflow=WorkflowId("other")))
        await store.executions.put(desk(8, 900, revision=0))
        dearest = ExecutionId("exec-005")
        assert await store.executions.spending(TOKENS) == [
            Spenders(executions=6, near=2, over=2, highest=250, dearest=dearest)
        ], "of the saved revisions of this workflow"
        (calls,) = await store.executions.spending(replace(TOKENS, measure="modelCalls", near=0, most=0))
        assert (calls.near, calls.over, calls.highest) == (0, 5, 5), "nothing spent is no budget spent"
        (cost,) = await store.executions.spending(replace(TOKENS, measure="costUsd", near=0.05, most=0.1))
        assert (cost.near, cost.over, cost.highest) == (2, 2, 0.25)
        (tools,) = await store.executions.spending(replace(TOKENS, measure="toolCalls"))
        assert (tools.executions, tools.highest) == (6, 0)


async def period_filters_only_ended_executions(url: str) -> None:
    async with opened(url) as store:
        for number in range(6):
            await store.executions.put(desk(number, 10, status="waiting" if number == 0 else "failed"))

        async def count_of(since: float | None, until: float | None) -> int:
            found = await store.executions.spending(
                replace(
                    TOKENS,
                    since=None if since is None else Instant(since),
                    until=None if until is None else Instant(until),
                )
            )
            return sum(one.executions for one in found)

        assert [
            await count_of(2, 4),
            await count_of(None, 2),
            await count_of(5, None),
            await count_of(9, None),
        ] == [3, 2, 2, 1]


async def spending_is_grouped_by_visibility(url: str) -> None:
    async with opened(url) as store:
        for number, more in enumerate(
            (
                {"owner": "ann"},
                {"owner": "ann"},
                {"owner": "bob"},
                {"owner": "bob", "session": "talk"},
                {"owner": "bob", "parent": ExecutionId("exec-000")},
                {"owner": "bob", "revision": 2},
            )
        ):
            await store.executions.put(desk(number, number * 20, **more))
        found = await store.executions.spending(replace(TOKENS, apart=True))
        groups = {(one.revision, one.owner, one.session, one.parent): (one.executions, one.highest) for one in found}
        assert groups == {
            (1, "ann", None, None): (2, 20),
            (1, "bob", None, None): (1, 40),
            (1, "bob", "talk", None): (1, 60),
            (1, "bob", None, "exec-000"): (1, 80),
            (2, "bob", None, None): (1, 100),
        }


async def summary_with_new_spending_replaces_the_previous_one(url: str) -> None:
    async with opened(url) as store:
        first = desk(1, 10, status="running", awaits=("door",))
        for one in (first, replace(first, spent=BudgetUsage(tokens=20), updated=Instant(7), awaits=("bell",))):
            await store.executions.put(one)
        assert await store.executions.find(first.execution) == replace(
            first, spent=BudgetUsage(tokens=20), updated=Instant(7), awaits=("bell",)
        )
        moved = replace(first, spent=BudgetUsage(tokens=30), session="talk", wakes=Instant(9))
        await store.executions.put(moved)
        assert await store.executions.list() == [moved]


SPENDING_RULES: Final[tuple[Rule, ...]] = (
    spending_of_executions_is_summed,
    period_filters_only_ended_executions,
    spending_is_grouped_by_visibility,
    summary_with_new_spending_replaces_the_previous_one,
    *USAGE_RULES,
)


STORE_RULES: Final[tuple[Rule, ...]] = (
    executions_are_listed_newest_first,
    summary_of_an_earlier_row_does_not_replace_a_later_one,
    list_of_executions_obeys_each_filter,
    last_turn_of_each_session_is_found,
    list_without_trials_excludes_partial_runs,
    executions_are_found_by_the_beginning_of_their_ids,
    executions_are_found_by_wake_time_and_awaited_event,
    summary_with_an_unstorable_text_is_refused_with_its_rows,
    inbox_lists_open_gates_of_a_person,
    inbox_changes_with_the_summary,
    answers_are_listed_by_person_newest_first,
    saved_revision_never_changes,
    revision_is_saved_only_on_top_of_the_one_read,
    concurrent_saves_number_revisions_without_gaps,
    deleted_workflow_is_unlisted_but_readable_by_revision,
    list_of_workflows_contains_description_and_tags,
    conversation_turn_is_stored_once,
    closed_session_refuses_turns_until_reopened,
    first_result_of_an_effect_wins,
    effects_are_stored_with_their_row_or_not_at_all,
    configuration_entries_are_found_by_kind_and_key,
    configuration_entry_changes_only_from_its_current_version,
    one_of_many_concurrent_writers_changes_an_entry,
    equal_blobs_are_stored_once,
    *MEMORY_RULES,
    *VECTOR_RULES,
    *REMOVAL_RULES,
    *LEADER_RULES,
    *FOLLOWER_RULES,
    *SPENDING_RULES,
)
