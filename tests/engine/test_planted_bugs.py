"""Planted bugs: the laws or a scenario must detect each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from pointsman.engine.actions import BranchResult
from pointsman.engine.commands import Command, Publish, SetTimer, StopChild
from pointsman.engine.data import Data, LoggedPath
from pointsman.engine.decide import (
    completion,
    context,
    dispatch,
    enter_node,
    exit_step,
    failure_handling,
    limits,
    loops,
    outputs,
    parallels,
    waits,
)
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.decide.waits import EventReceiver
from pointsman.engine.events.steps import BranchSettled, ScopesClosed
from pointsman.engine.failures import Failure
from pointsman.engine.fold import scopes
from pointsman.engine.plan import Plan
from pointsman.engine.reports import EventReceived, WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState, ParallelFrame, ScopeState, StepState
from pointsman.engine.steps import Lineage, Reducer
from pointsman.testing import simulation
from pointsman.values import Json, JsonObject
from tests.engine import (
    test_data,
    test_events,
    test_failures,
    test_joins,
    test_lifecycle,
    test_limits,
    test_loops,
    test_parallel,
)
from tests.engine.laws import hunt

HUNTED = range(40)
"""Maximum number of random graphs; most bugs are found in the first few."""


class Bug(NamedTuple):
    """A replacement in the engine, and the check that must detect it."""

    place: object
    name: str
    bug: Callable[..., object]
    hunter: Callable[[], object] | None = None
    """None: the laws."""


def without_orders(plan: Plan, state: ExecutionState) -> list[Command]:
    """Lose the outstanding commands after a crash."""
    return [command for command in outstanding(plan, state) if not isinstance(command, Publish | StopChild)]


def always(*_: object, **__: object) -> bool:
    return True


def never(*_: object, **__: object) -> bool:
    return False


def nothing(*_: object, **__: object) -> None:
    return None


def no_nodes(*_: object, **__: object) -> set[str]:
    return set()


def no_wait(*_: object, **__: object) -> float:
    return 0.0


def waits_for_nobody_at_all(node: str, before: dict[str, set[str] | None]) -> bool:
    return before[node] == set()


def sees_only_the_state(ctx: DecisionContext, scope: ScopeState) -> bool:
    return scope.tokens == 0


real_proceed = completion.undo_next
real_receive = waits.receive
real_results = parallels.results
real_add = LoggedPath.add
real_close = scopes.close_scopes
real_settle_branch = scopes.settle_branch


def in_order_of_arrival(ctx: DecisionContext, opening: ParallelFrame) -> list[BranchResult]:
    place = {branch: number for number, branch in enumerate(opening.settled)}
    return sorted(real_results(ctx, opening), key=lambda one: place[one.branch])


def at_the_end(trail: LoggedPath, thread: Lineage, node: str, reduce: Reducer, value: Json) -> bool:
    real_add(trail, thread, node, reduce, value)
    return True


def unsplit(thread: Lineage, node: str, edge: int, *, apart: bool) -> Lineage:
    return thread


def unsaid(data: Data) -> JsonObject:
    return data.root


def any_attempt(ctx: DecisionContext, report: WorkDone | WorkFailed) -> StepState | None:
    return ctx.state.steps.get(report.step)


def without_timers(plan: Plan, state: ExecutionState) -> list[Command]:
    return [command for command in outstanding(plan, state) if not isinstance(command, SetTimer)]


def forgets_late_branches(state: ExecutionState, event: ScopesClosed) -> None:
    real_close(state, event)
    state.parallel_frames.pop(event.step, None)


def takes_failures_for_ends(state: ExecutionState, event: BranchSettled) -> None:
    real_settle_branch(state, replace(event, outcome="ended") if event.outcome == "failed" else event)


def counts_all_time(state: ExecutionState) -> None:
    state.counters.worked_s += state.at - state.counters.working_since
    state.counters.working_since = state.at


def first_done_first(ctx: DecisionContext) -> None:
    ctx.state.undo_log.sort(key=lambda owed: owed.step, reverse=True)
    real_proceed(ctx)


def says_nothing(undoing: object, failure: Failure, left_undone: object) -> Failure:
    return failure


def hears_everything(state: ExecutionState, report: EventReceived) -> bool:
    return not state.ended


def keeps_nothing(ctx: DecisionContext, report: EventReceived) -> None:
    real_receive(ctx, replace(report, keeps=False))


def takes_whatever_was_kept(ctx: DecisionContext, at: StepState, data: Json) -> EventReceiver:
    return EventReceiver(at)


BUGS: dict[str, Bug] = {
    "an event that comes again is another event": Bug(context, "is_news", hears_everything),
    "an event that comes too early is lost": Bug(
        waits, "receive", keeps_nothing, test_events.test_an_event_sent_before_its_wait_opens_is_buffered
    ),
    "a wait takes events that do not match": Bug(
        waits,
        "_taker",
        takes_whatever_was_kept,
        test_events.test_a_buffered_event_that_does_not_match_stays_for_another_wait,
    ),
    "what was done is undone in another order": Bug(completion, "undo_next", first_done_first),
    "nobody says what could not be undone": Bug(completion, "_with_outcome", says_nothing),
    "a node never waits": Bug(DecisionContext, "alone", always),
    "a node does not wait for what moves": Bug(enter_node, "_waits_for", no_nodes),
    "nodes that wait for each other wait for ever": Bug(
        enter_node,
        "_is_ready",
        waits_for_nobody_at_all,
        test_joins.test_mutually_waiting_nodes_start_together_while_other_steps_run,
    ),
    "what is on its way is not counted": Bug(
        DecisionContext, "alone", sees_only_the_state, test_joins.test_a_node_waits_for_instant_steps_too
    ),
    "a round begins while its body moves": Bug(
        loops, "body_moves", never, test_loops.test_a_round_ends_when_no_step_of_the_body_is_active
    ),
    "a join sees its branches in order of arrival": Bug(parallels, "results", in_order_of_arrival),
    "writes are applied in order of arrival": Bug(LoggedPath, "add", at_the_end),
    "lines that split are one line": Bug(exit_step, "split_lineage", unsplit),
    "who hands out data does not say so": Bug(
        Data, "shared", unsaid, test_data.test_a_copied_list_does_not_grow_with_its_original
    ),
    "stale attempts are believed": Bug(dispatch, "_open", any_attempt),
    "a crash forgets timers": Bug(simulation, "outstanding", without_timers),
    "branches that are late are forgotten": Bug(
        scopes,
        "close_scopes",
        forgets_late_branches,
        test_parallel.test_late_arrivals_at_a_join_are_dropped_and_write_nothing,
    ),
    "siblings of a failed branch run on": Bug(
        completion, "cancel_branches", nothing, test_failures.test_a_failed_branch_cancels_its_siblings
    ),
    "what arrives during a pause is lost": Bug(limits, "hold_arrival", nothing),
    "limits are not asked": Bug(
        limits,
        "before_step",
        nothing,
        test_limits.test_the_step_limit_interrupts_the_execution_keeps_its_state_and_can_be_raised,
    ),
    "conflicts are not seen": Bug(
        outputs, "check_conflicts", nothing, test_data.test_a_step_conflicts_with_a_concurrent_step_that_ended_earlier
    ),
    "a failed branch gives what it wrote": Bug(
        scopes,
        "settle_branch",
        takes_failures_for_ends,
        test_data.test_a_failed_or_cancelled_branch_contributes_no_writes,
    ),
    "retries do not wait": Bug(
        failure_handling,
        "retry_wait",
        no_wait,
        test_failures.test_a_failed_attempt_is_retried_with_growing_waits_until_no_attempt_is_left,
    ),
    "branches that had to wait never begin": Bug(
        parallels, "start_branches", nothing, test_parallel.test_at_most_max_parallel_branches_run_at_a_time_in_order
    ),
    "time counts while nothing may work": Bug(
        scopes, "tick", counts_all_time, test_lifecycle.test_execution_time_does_not_count_during_a_pause
    ),
    "what is cancelled runs on": Bug(
        completion,
        "stop_step",
        nothing,
        test_parallel.test_cancel_rest_stops_running_branches_and_refuses_their_late_results,
    ),
    "what others were to be told is lost in a crash": Bug(simulation, "outstanding", without_orders),
    "others are told for ever": Bug(context, "delivered", nothing),
    "a failed round fails the execution": Bug(
        loops, "skip_round", never, test_loops.test_a_failed_round_ends_and_the_next_one_begins
    ),
}


def by_laws() -> None:
    hunt(HUNTED)


@pytest.fixture(autouse=True)
def short() -> Iterator[None]:
    """Lower the limits, so that an endless loop is found sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "DECISIONS_MAX", 3_000)
        yield


def test_the_laws_hold_without_a_planted_bug() -> None:
    hunt(range(15))


@pytest.mark.parametrize("name", BUGS)
def test_the_laws_find_a_planted_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    hunter = bug.hunter or by_laws
    monkeypatch.setattr(bug.place, bug.name, bug.bug)
    with pytest.raises(Exception):  # noqa: B017, PT011 - a bug may raise anything
        hunter()
