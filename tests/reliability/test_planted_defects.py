"""Every row of the scorecard can fail: a planted defect of its kind is detected."""

from __future__ import annotations

import asyncio
import functools
import math
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from msgspec.structs import replace

from pointsman import Pointsman, redaction
from pointsman.auth import policy
from pointsman.auth import redaction as redacting
from pointsman.auth.callers import Caller
from pointsman.auth.keys import Keys
from pointsman.auth.sharing import Sharing
from pointsman.engine.commands import Command
from pointsman.engine.decide import dispatch as decide_dispatch
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.events.steps import Event
from pointsman.engine.fold import dispatch as fold_dispatch
from pointsman.engine.plan import Plan
from pointsman.engine.reports import WorkDone
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.steps import Step
from pointsman.executions import verbs as execution_verbs
from pointsman.executions.execution import Execution
from pointsman.executors.secrets import MaskedListener
from pointsman.models import transport
from pointsman.models.key_pool import KeyPool
from pointsman.operations import model_catalogue
from pointsman.ports import Row
from pointsman.runtime.commits import Commits, RowOwner
from pointsman.runtime.driver import Driver
from pointsman.server import problems
from pointsman.settings import Settings
from pointsman.store.errors import JournalMoved
from pointsman.store.postgres.journal import PostgresJournal
from pointsman.store.records import EffectRecord, Summary
from pointsman.store.sqlite import SqliteStore, connection, writer
from pointsman.store.sqlite import transfer as damage
from pointsman.store.sqlite.journal import SqliteJournal
from pointsman.store.sqlite.leader import SqliteLeader
from pointsman.testing import simulation as world
from pointsman.testing.clock import run_virtually
from pointsman.tools.functions import FunctionTool
from pointsman.tools.tool import ToolContext
from pointsman.triggers.notifications import Notifier
from pointsman.values import ExecutionId, Json, JsonObject
from tests.postgres import Cluster
from tests.reliability import (
    access_matrix,
    bombs,
    canaries,
    cancelling,
    disk_faults,
    flipped_bits,
    floods,
    fuzzing,
    gate_races,
    large_state,
    long_loop,
    lost_workers,
    odd_values,
    old_journals,
    paced_calls,
    power_cut,
    random_servers,
    requests,
    restarts,
    secret_encodings,
    simulation,
    stopping,
    subscribers,
    takeover,
)
from tests.reliability.findings import NotHere
from tests.reliability.killing import KillExperiment
from tests.reliability.large_state import Report
from tests.reliability.servers import server
from tests.reliability.tenants import KINDS
from tests.reliability.workload import EFFECT_S

AMID_THE_AGENT = 6
"""Effects: the chain of four, and two of the agent's three."""


def nothing_outstanding(plan: Plan, state: ExecutionState) -> list[Command]:
    return []


async def nothing(*_: object, **__: object) -> None:
    """Acknowledge without doing anything."""


async def nothing_found(_: SqliteStore) -> list[str]:
    return []


def no_question_asked(_: writer.WriterThread) -> None:
    """Write without a check."""


def looks_unchanged(_: SqliteLeader, _file: int) -> bool:
    return True


def no_seals(_: sqlite3.Connection) -> list[str]:
    return []


def nothing_stopped(self: Driver, step: Step) -> None:
    """Let the step run."""


def no_keys(keys: Iterable[str]) -> redaction.Redaction:
    return redaction.NOTHING


def nothing_folded(state: ExecutionState, event: Event) -> None:
    """Ignore the event."""


def any_attempt(ctx: DecisionContext, report: WorkDone) -> StepState | None:
    return ctx.state.steps.get(report.step)


def test_the_simulation_detects_a_crash_that_loses_outstanding_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "outstanding", nothing_outstanding)
    assert any("seed 1" in line for line in simulation.examine(1, 1).violations)


def test_the_simulation_detects_a_step_that_settles_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide_dispatch, "_open", any_attempt)
    assert not simulation.examine(4, 1).holds


@pytest.mark.parametrize("level", ["NORMAL", "OFF"])
def test_the_power_cut_row_detects_commits_that_do_not_reach_the_disk(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = connection.connect_writer

    def lax(path: Path) -> sqlite3.Connection:
        made = real(path)
        made.execute(f"PRAGMA synchronous = {level}")
        return made

    monkeypatch.setattr(writer, "connect_writer", lax)
    assert not power_cut.examine(10, 1).holds


@pytest.mark.parametrize(
    ("defect", "noticed"),
    [
        ("writes no rows", "acknowledged and lost"),
        ("asks for no recorded effects", ": recorded, and paid again"),
        ("goes on before it has recorded", "not recorded, and the execution went on behind it"),
    ],
)
async def test_the_kill_row_detects_lost_and_repeated_effects(defect: str, noticed: str, tmp_path: Path) -> None:
    victim = ("tests.reliability.defective_victim", defect)
    experiment = KillExperiment(f"sqlite:///{tmp_path}/store", tmp_path / "world", "sequential", 2, victim=victim)
    experiment.kill_in(AMID_THE_AGENT, EFFECT_S["sequential"] / 2)
    await experiment.look()
    await experiment.end()
    assert any(noticed in line for line in experiment.violations), experiment.violations


def test_the_takeover_row_detects_an_owner_that_writes_after_unknown_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    async def append_again(
        self: Commits, owner: RowOwner, row: Row, summary: Summary | None, effects: Sequence[EffectRecord]
    ) -> None:
        execution, ledger = ExecutionId(vars(self)["_execution"]), owner.journal
        try:
            await ledger.append(execution, row, summary=summary, effects=effects)
        except JournalMoved:
            row = replace(row, seq=await ledger.last(execution) + 1)
            await ledger.append(execution, row, summary=summary, effects=effects)
        owner.committed(row)

    monkeypatch.setattr(Commits, "now", append_again)
    assert not takeover.examine(2, 1).holds


def test_the_takeover_row_detects_a_leader_that_writes_in_another_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer.WriterThread, "_check_epoch", no_question_asked)
    # The leader also checks its lock file every two seconds, which must not hide the missing check of the epoch.
    monkeypatch.setattr(SqliteLeader, "_is_in_place", looks_unchanged)
    violations = run_virtually(takeover.take_over(2, 1))
    assert any("wrote a row in the epoch of the new one" in line for line in violations)
    assert any("was not told" in line for line in violations)


def test_the_disk_row_detects_rows_acknowledged_without_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteJournal, "append", nothing)
    assert not disk_faults.examine(1, 1).holds


def test_the_bits_row_detects_a_verification_that_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteStore, "verify", nothing_found)
    assert not flipped_bits.examine(60, 1).holds


def test_the_bits_row_detects_unverified_values_outside_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "find_broken_seals", no_seals)
    told = {line.partition(":")[0] for line in flipped_bits.examine(10, 1).violations}
    assert {"effects", "memory", "sessions", "entries"} <= told


def test_the_gates_row_detects_answers_that_are_all_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Execution, "answer", nothing)
    assert any("told that their answer counts" in line for line in gate_races.examine(2, 1).violations)


def test_the_cancel_row_detects_work_that_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Driver, "_stop", nothing_stopped)
    assert any("effects afterwards" in line for line in cancelling.examine(1, 1).violations)


def test_the_values_row_detects_silent_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FunctionTool[[], object].run

    async def as_doubles(self: FunctionTool[[], object], arguments: JsonObject, context: ToolContext) -> Json:
        result = await real(self, arguments, context)
        return float(result) if isinstance(result, int) else result

    monkeypatch.setattr(FunctionTool, "run", as_doubles)
    assert any("30-digit" in line for line in odd_values.examine(1, 1).violations)


def test_the_state_row_detects_duplicated_changed_or_accepted_values() -> None:
    right = large_state.digest(large_state.value(1))
    waits, ends = Report("waiting", "", "", 4.0, "exec-a"), Report("completed", "", right, 4.0, "exec-a")
    refused = Report("failed", "state-too-large", "", 4.0, "exec-b")
    judged = functools.partial(large_state.judged, 2)
    assert judged(waits, ends, ends, refused).holds
    assert not judged(waits._replace(peak_mb=8.0), ends, ends, refused).holds
    assert not judged(waits, ends, ends._replace(digest="other"), refused).holds
    assert not judged(waits, ends, ends, refused._replace(status="waiting", failure="")).holds
    assert not judged(waits, ends._replace(status="broke"), ends, refused).holds


def test_the_fuzz_row_detects_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(source: str, state: object) -> None:
        raise KeyError(source)

    monkeypatch.setattr(fuzzing, "value", crash)
    assert not fuzzing.examine(20, 1).holds


def test_the_loop_row_detects_memory_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_loop, "GROWTH_MB_MAX", -1_000)
    assert any("memory grew" in line for line in long_loop.examine(100, 1).violations)


@contextmanager
def server_or_skip() -> Generator[Cluster, None, None]:
    try:
        with server() as cluster:
            yield cluster
    except NotHere as why:
        pytest.skip(str(why))


async def test_the_restart_row_detects_rows_that_are_only_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresJournal, "append", nothing)
    with server_or_skip() as cluster:
        violations, _ = await restarts.restart(cluster, 1, 1)
    assert any("it is" in line for line in violations)


def test_the_histories_row_detects_a_history_that_does_not_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_dispatch, "_fold_course", nothing_folded)
    assert not old_journals.examine(1, 1).holds


def no_models(_: object) -> JsonObject:
    return {"models": 0}


def test_the_requests_row_detects_server_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_verbs, "executions_page", None)
    violations = requests.examine(60, 1, only="GET /api/workflows/executions").violations
    assert any("GET /api/workflows/executions: 500" in line for line in violations)


def test_the_requests_row_detects_answers_of_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_catalogue, "list_models", no_models)
    violations = requests.examine(60, 1, only="GET /api/models").violations
    assert any("/api/models: 200 has another shape" in line for line in violations)


def test_the_requests_row_detects_undocumented_statuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(problems.STATUS_OF, "unknown-memory", HTTPStatus.IM_A_TEAPOT)
    violations = requests.examine(60, 1, only="GET /api/memory/{scope}").violations
    assert any("418 is not announced" in line for line in violations)


def no_secrets(settings: Settings) -> Iterator[str]:
    return iter(())


def test_the_canaries_row_detects_a_leaked_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "key_redaction", no_keys)
    monkeypatch.setattr(redacting, "secrets_of", no_secrets)
    assert any("the store" in line for line in canaries.examine(1, 1).violations)


def test_the_encodings_row_detects_an_encoding_that_redaction_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_VIEWS", redaction._VIEWS[:2])  # pyright: ignore[reportPrivateUsage] - the defect
    redaction.redaction_of.cache_clear()
    try:
        violations = secret_encodings.seen_at(asyncio.run(secret_encodings.typed_places()))
    finally:
        redaction.redaction_of.cache_clear()
    assert any(line.startswith("PASSWORD, percent in") for line in violations)


def at_once(self: KeyPool, key: int) -> float:
    return -math.inf


def any_key(self: KeyPool, index: int | None) -> int | None:
    return None


@pytest.mark.parametrize(
    ("part", "defect", "told"), [("_ready_at", at_once, "too early"), ("_wanted", any_key, "served")]
)
def test_the_crowd_row_detects_calls_without_pacing_and_with_any_key(
    part: str, defect: object, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyPool, part, defect)
    assert any(told in line for line in paced_calls.in_virtual_time(30)[1])


def test_the_crowd_row_detects_early_calls_on_a_machine_of_any_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyPool, "_ready_at", at_once)
    an_hour = 3600.0  # Real time of an hour: the defect is that calls do not wait.
    assert any("before their time" in line for line in paced_calls.in_real_time(30, an_hour)[1])


def test_the_stop_row_detects_a_process_that_ends_badly() -> None:
    violations = list[str]()
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    asyncio.run(stopping.stop(process, violations))
    assert violations == ["it ended with -15: "]


def test_the_subscribers_row_detects_repeated_events() -> None:
    violations, _ = asyncio.run(subscribers.crowd(10, defect="repeats"))
    assert any("heard twice" in line for line in violations)


def test_the_streams_row_detects_streams_that_are_cut_off() -> None:
    violations, _ = asyncio.run(subscribers.stopped(6, defect="deaf"))
    assert any("not told that the server stops" in line for line in violations)


def test_the_subscribers_row_detects_clients_that_never_read_and_stay() -> None:
    violations, _ = asyncio.run(subscribers.crowd(4, defect="patient", frees_s=3))
    assert any("never read" in line for line in violations)


WORKFLOW, CANCEL, LIST = (
    "GET /api/workflows/{id}",
    "POST /api/workflows/executions/{eid}/cancel",
    "GET /api/workflows",
)


async def without_keys(self: Keys) -> bool:
    return False


async def always(app: Pointsman, caller: Caller, reference: str) -> bool:
    return True


def grants(*_: object) -> bool:
    return True


def refuses_nothing(self: Caller, role: str, what: str) -> None:
    """Let every role in."""


def only_admins(self: Caller, role: str) -> bool:
    return self.role == "admin"


@pytest.mark.parametrize(
    ("place", "attribute", "defect", "kind", "told"),
    [
        (Keys, "are_made", without_keys, 0, f"{WORKFLOW} with no key: 404"),
        (Caller, "must_have", refuses_nothing, 2, f"{CANCEL} as viewer-desk at "),
        (Caller, "has", only_admins, 2, f"{CANCEL} as operator-desk at "),
        (Sharing, "lets_in", grants, 0, f"{WORKFLOW} as viewer at a workflow for private, "),
        (Caller, "is_among", grants, 1, f"{CANCEL} as operator at a workflow for everyone within desk, "),
        (Sharing, "is_of", grants, 0, "DELETE /api/workflows/{id} as editor-desk at "),
        (policy, "visible", always, 0, f"{LIST} as viewer: told of word1"),
    ],
    ids=["ajar", "lax", "strict", "unshared", "ungrouped", "ownerless", "indiscreet"],
)
async def test_the_access_row_detects_operations_open_or_closed_against_the_table(
    place: object, attribute: str, defect: object, kind: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, attribute, defect)
    looked_at = (WORKFLOW, CANCEL, LIST, "DELETE /api/workflows/{id}")
    async with access_matrix.experiment(1) as trial:
        trial.least = {one: least for one, least in trial.least.items() if one in looked_at}
        await trial.create_object([KINDS[kind]])
        await trial.without_valid_key()
        await trial.roles()
        await trial.visits()
    assert any(line.startswith(told) for line in trial.wrong), trial.wrong


def test_the_floods_row_detects_a_server_that_reads_endless_headers() -> None:
    [found] = asyncio.run(floods.measured(50, "many_headers", defect="unlimited"))
    assert any("the server grew by" in why for why in found.wrong), found


def untouched(self: object, value: Json) -> Json:
    return value


def publish_unmasked(self: MaskedListener, text: str) -> None:
    self._on_text(text)  # pyright: ignore[reportPrivateUsage] - the defect


TYPED_SINKS = (
    "notifications, typed",
    "the feed, typed",
    "live events, typed",
    "GET /api/workflows/executions/{eid}, typed",
)


def test_the_encodings_row_detects_every_sink_that_does_not_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacting.Redactor, "json", untouched)
    monkeypatch.setattr(Notifier, "_without_secrets", untouched)
    violations = secret_encodings.seen_at(asyncio.run(secret_encodings.typed_places()))
    assert [sink for sink in TYPED_SINKS if not any(line.endswith(f" in {sink}") for line in violations)] == []


def test_the_encodings_row_detects_unmasked_words_of_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(MaskedListener, "__call__", publish_unmasked)
    monkeypatch.setattr(redacting.Redactor, "json", untouched)
    violations = secret_encodings.seen_at(asyncio.run(secret_encodings.places(tmp_path)))
    assert any(line.endswith(" in live texts") for line in violations)


def test_the_bombs_row_detects_a_server_that_reads_documents_on_its_event_loop() -> None:
    """20 000 nodes take 2 s and more."""
    [found] = asyncio.run(bombs.measured(400, "chain", defect="workless"))
    assert any("an answer took" in why for why in found.late), found


@pytest.mark.scale("full")
def test_servers_that_take_executions_of_live_owners_are_detected(cluster: Cluster, tmp_path: Path) -> None:
    cluster.sql(f"CREATE ROLE {random_servers.USER} LOGIN")
    found = asyncio.run(random_servers.round_of("crowd", cluster, tmp_path, "tests.server.greedy"))
    assert any("began twice" in line for line in found.violations), found


@pytest.mark.scale("full")
def test_workers_whose_repeated_calls_have_new_keys_are_detected(cluster: Cluster, tmp_path: Path) -> None:
    engine = lost_workers.engines(tmp_path)[1]
    store, program = lost_workers.store_of(cluster, engine), "tests.server.unkeyed"
    found = asyncio.run(lost_workers.loss_on(engine, store, tmp_path, 12, program))
    assert any("a key of their own" in line for line in found.violations), found
