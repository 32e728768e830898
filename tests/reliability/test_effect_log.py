"""Effects in flight when a process died, according to the log, and how often each must then have happened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.reliability.effect_log import Deed, Verb, deeds_in, in_flight_of, write_down, wrong_repeats


def deed(verb: Verb, step: str, *, number: int = 1, life: int = 7, execution: str = "exec-a") -> Deed:
    return Deed(verb, f"{execution}:{step}:{number}:abc", life)


def done(*steps: str) -> list[Deed]:
    return [deed(verb, step) for step in steps for verb in ("begins", "happened")]


def test_only_the_last_effect_of_a_row_is_in_flight() -> None:
    assert in_flight_of(done("a", "b"), 7) == {"exec-a:b:1:abc"}
    assert in_flight_of([*done("a", "b"), deed("begins", "c")], 7) == {"exec-a:c:1:abc"}
    assert in_flight_of(done("a"), 8) == set()


def test_branches_are_in_flight_together_until_their_join() -> None:
    branches = done("each[1.0]/work", "each[1.1]/work")
    assert in_flight_of(branches, 7) == {"exec-a:each[1.0]/work:1:abc", "exec-a:each[1.1]/work:1:abc"}
    assert in_flight_of([*branches, deed("begins", "sum")], 7) == {"exec-a:sum:1:abc"}


def test_calls_of_an_agent_follow_one_another_and_executions_do_not() -> None:
    calls = [deed("begins", "clerk"), deed("begins", "clerk", number=2), deed("begins", "a", execution="exec-b")]
    assert in_flight_of(calls, 7) == {"exec-a:clerk:2:abc", "exec-b:a:1:abc"}


def test_each_effect_happens_once_and_once_more_for_each_flight() -> None:
    happened, flown = Counter({"a": 1, "b": 2, "c": 3}), Counter({"b": 1, "c": 2})
    assert wrong_repeats(happened, flown, {"a"}) == []
    assert wrong_repeats(happened + Counter({"a": 1}), flown, {"a"}) == ["a: recorded, and paid again"]
    assert wrong_repeats(happened + Counter({"b": 1}), flown, {"a"}) == ["b: not in flight, and paid again"]
    lost = "c: its answer was lost in flight, and it was not asked for again"
    assert wrong_repeats(happened - Counter({"c": 1}), flown, set()) == [lost]


def test_recorded_effects_are_read_again(tmp_path: Path) -> None:
    write_down(tmp_path / "world", "begins", "exec-a:each[1.0]/work:1:abc")
    write_down(tmp_path / "world", "happened", "exec-a:each[1.0]/work:1:abc")
    first, second = deeds_in(tmp_path / "world")
    assert (first.verb, second.verb, first.step, first.number) == ("begins", "happened", "each[1.0]/work", 1)
    assert deeds_in(tmp_path / "nothing") == []
