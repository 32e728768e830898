"""Every row stores the report that caused it, so that a replay needs no inference."""

from __future__ import annotations

from pointsman.engine.causes import CHILD_ENDED, STARTED, WORK_DONE, Cause, cause_of, report_of
from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.events.steps import StepSucceeded
from pointsman.engine.events.waits import GateClosed, WarningRaised
from pointsman.engine.reports import ChildEnded, GateAnswered, PauseRequested, Start, WorkDone
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.values import JsonObject

STEP = Step("work")


def test_the_cause_of_a_row_has_its_kind_actor_and_key() -> None:
    answer = GateAnswered(step=STEP, action="approve", by="ada", key="k-1")
    assert cause_of(answer, ()) == Cause(kind="gate_answered", by="ada", key="k-1", report=answer)
    assert cause_of(PauseRequested(by="ada"), (ExecutionPaused(by="ada"),)).by == "ada"


def test_results_and_inputs_are_stored_once() -> None:
    result: JsonObject = {"text": "long"}
    done = (WarningRaised(code="work", message="slow"), StepSucceeded(step=STEP, result=result))
    assert cause_of(WorkDone(step=STEP, attempt=1, result=result), done) is WORK_DONE
    assert cause_of(ChildEnded(step=STEP, attempt=1, output=result), done) is CHILD_ENDED
    assert cause_of(Start(input=result), ()) is STARTED


def test_a_row_stores_the_report_when_its_events_lack_the_result() -> None:
    advice = WorkDone(step=STEP, attempt=1, result={"choice": "substitute", "value": 7})
    assert cause_of(advice, (StepSucceeded(step=STEP, result=7),)).report is advice
    late = (GateClosed(step=STEP, action="approve"), StepSucceeded(step=STEP, result=7))
    assert cause_of(WorkDone(step=STEP, attempt=1, result=7), late).report is not None


def test_a_row_of_an_older_format_has_no_report() -> None:
    assert report_of(ExecutionState("e"), None, (ExecutionPaused(by="ada"),)) is None
