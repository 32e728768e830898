"""The laws, over random graphs and random schedules. `POINTSMAN_LONG=1` tests many more."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.engine.plan import Plan
from pointsman.engine.state import Timer
from pointsman.testing.simulation import are_alike, describe, refolded, stored
from tests.engine.laws import (
    must_come_to_the_same_in_every_trial,
    must_come_to_the_same_when_retried,
    must_decide_alike_in_parts,
    must_end,
    must_go_on_as_it_was,
    must_keep_to_its_budget,
    must_not_depend_on_the_schedule,
    must_settle_once,
    must_survive_a_pause,
    must_undo,
    must_undo_when_cancelled,
    net_for,
    outcome_of,
    plan_for,
    run,
)
from tests.engine.replays import must_fork_anywhere, must_replay, must_run_any_step_again

EXAMPLES = 1_000 if os.environ.get("POINTSMAN_LONG") else 30

law = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=not os.environ.get("POINTSMAN_LONG"),
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
graphs, schedules = st.integers(0, 100_000), st.integers(1, 100_000)


def some(plan: Plan | None) -> Plan:
    """Skip graphs that the checker refuses."""
    assume(plan is not None)
    assert plan is not None
    return plan


@pytest.mark.requirement("S1-59", "S3-92")
@law
@given(graphs, schedules, st.booleans())
def test_folding_rows_gives_the_state_and_outstanding_lists_unanswered_commands(
    graph: int, schedule: int, unruly: bool
) -> None:
    run(some(plan_for(graph, 6, unruly=unruly)), schedule, wild=True, checked=True)


@pytest.mark.requirement("S1-63", "S1-67", "T3-14")
@law
@given(graphs, schedules)
def test_the_outcome_does_not_depend_on_schedule_crashes_duplicates_or_zombies(graph: int, schedule: int) -> None:
    must_not_depend_on_the_schedule(some(plan_for(graph, 9)), schedule)


def test_random_graphs_run_every_type_of_node() -> None:
    plans = [plan for seed in range(EXAMPLES) if (plan := plan_for(seed, 9)) is not None]
    ran = {plan.nodes[node].type for plan in plans for node in run(plan, 1, wild=False, checked=False).path}
    assert {*CONFIG_OF} - ran == {"note"}, "let `random_workflow` in testing/graphs.py draw it; a note never runs"


@law
@given(graphs, schedules, st.booleans())
def test_a_decision_in_parts_has_the_same_events_as_one_at_once(graph: int, schedule: int, unruly: bool) -> None:
    must_decide_alike_in_parts(some(plan_for(graph, 9, unruly=unruly)), schedule)


@law
@given(graphs, schedules)
def test_the_outcome_of_unstructured_graphs_does_not_depend_on_the_schedule(graph: int, schedule: int) -> None:
    plan = some(net_for(graph))
    assume(run(plan, 0, wild=False, checked=False).status == "completed")
    must_not_depend_on_the_schedule(plan, schedule)


@law
@given(graphs)
def test_an_execution_continued_after_a_limit_ends_as_without_the_limit(graph: int) -> None:
    must_go_on_as_it_was(graph)


@pytest.mark.parametrize("graph", [280, 290, 455, 493])
def test_steps_that_start_together_are_stopped_together(graph: int) -> None:
    must_go_on_as_it_was(graph)


@law
@given(graphs)
def test_an_execution_with_a_raised_budget_continues_unchanged(graph: int) -> None:
    must_keep_to_its_budget(graph)


@law
@given(graphs)
def test_a_retried_execution_has_the_same_outcome(graph: int) -> None:
    must_come_to_the_same_when_retried(graph)


@law
@given(graphs, schedules, st.booleans())
def test_every_execution_ends_and_every_step_settles_once(graph: int, schedule: int, unruly: bool) -> None:
    outcome = run(some(plan_for(graph, 8, unruly=unruly)), schedule, wild=True, checked=False)
    must_end(outcome)
    must_settle_once(outcome)


@pytest.mark.requirement("S0-52", "S3-22", "S1-69")
@law
@given(graphs, schedules)
def test_every_graph_ends_under_a_step_limit(graph: int, schedule: int) -> None:
    outcome = run(some(net_for(graph)), schedule, wild=True, checked=True)
    must_end(outcome)
    must_settle_once(outcome)
    assert outcome.state.counters.steps <= 60


@law
@given(graphs, schedules, st.booleans())
def test_compensation_runs_once_in_reverse_order_under_any_disturbance(graph: int, schedule: int, unruly: bool) -> None:
    plan = some(plan_for(graph, 6, unruly=unruly, undone=True))
    outcome = run(plan, schedule, wild=True, checked=True)
    must_end(outcome)
    must_settle_once(outcome)
    must_undo(outcome)
    must_replay(plan, outcome)


@law
@given(graphs, schedules)
def test_the_outcome_of_compensation_does_not_depend_on_the_schedule(graph: int, schedule: int) -> None:
    must_not_depend_on_the_schedule(some(plan_for(graph, 6, undone=True)), schedule)


@law
@given(graphs, schedules)
def test_a_cancel_after_any_row_compensates_the_finished_steps(graph: int, schedule: int) -> None:
    must_undo_when_cancelled(some(plan_for(graph, 6, undone=True)), schedule)


@law
@given(graphs, schedules)
def test_a_pause_after_any_row_does_not_change_the_outcome(graph: int, schedule: int) -> None:
    must_survive_a_pause(some(plan_for(graph, 8)), schedule)


@law
@given(graphs, schedules)
def test_a_partial_run_has_the_same_outcome_under_disturbance_and_runs_only_its_nodes(
    graph: int, schedule: int
) -> None:
    must_come_to_the_same_in_every_trial(some(plan_for(graph, 8)), schedule)


@law
@given(graphs, schedules, st.floats(0, 1))
def test_rows_can_be_folded_in_any_number_of_batches(graph: int, schedule: int, share: float) -> None:
    outcome = run(some(plan_for(graph, 6, unruly=True)), schedule, wild=False, checked=False)
    cut = int(share * len(outcome.rows))
    again = [stored(row) for row in (*outcome.rows[:cut], *outcome.rows[cut:])]
    assert describe(refolded("simulated", again)) == describe(outcome.state)


@law
@given(graphs, schedules, st.integers(0, 5))
def test_two_states_are_equal_exactly_when_all_their_parts_are(graph: int, schedule: int, place: int) -> None:
    outcome = run(some(plan_for(graph, 6, unruly=True)), schedule, wild=True, checked=False)
    state, again = outcome.state, refolded("simulated", list(outcome.rows))
    assert are_alike(again, state)
    match place:
        case 0:
            again.counters.steps += 1
        case 1:
            again.root.nodes = {**again.root.nodes, "tool1": {"other": [1]}}
        case 2:
            again.root.data.root = {**again.root.data.root, "log": [again.root.data.root.get("log"), None]}
        case 3:
            again.root.visits["tool1", ()] = 99
        case 4:
            again.usage = replace(again.usage, model_calls=again.usage.model_calls + 1)
        case _:
            again.timers["ring"] = Timer(1.0, "wait", None)
    assert not are_alike(again, state)
    assert describe(again) != describe(state)


@law
@given(graphs, schedules)
def test_one_seed_gives_one_execution(graph: int, schedule: int) -> None:
    plan = some(plan_for(graph, 6, unruly=True))
    one, other = (run(plan, schedule, wild=True, checked=False) for _ in range(2))
    assert (one.rows, outcome_of(one)) == (other.rows, outcome_of(other))


@pytest.mark.requirement("S1-133")
@law
@given(graphs, schedules, st.booleans())
def test_deciding_a_journal_again_gives_the_same_journal(graph: int, schedule: int, unruly: bool) -> None:
    plan = some(plan_for(graph, 7, unruly=unruly))
    must_replay(plan, run(plan, schedule, wild=True, checked=False))


@law
@given(graphs, schedules)
def test_deciding_a_journal_of_an_unstructured_graph_again_gives_the_same(graph: int, schedule: int) -> None:
    plan = some(net_for(graph))
    must_replay(plan, run(plan, schedule, wild=True, checked=False))


@law
@given(graphs, schedules)
def test_a_fork_without_changes_at_any_row_has_the_same_outcome(graph: int, schedule: int) -> None:
    must_fork_anywhere(some(plan_for(graph, 8)), schedule)


@law
@given(graphs, schedules)
def test_any_step_that_runs_again_unchanged_has_the_same_outcome(graph: int, schedule: int) -> None:
    must_run_any_step_again(some(plan_for(graph, 8)), schedule)
