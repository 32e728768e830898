"""Times at the prompt."""

from __future__ import annotations

import time
from datetime import datetime

import click
import pytest

from pointsman.cli.times import TIME, TIME_CHARS, distance, when
from tests.cli import flows
from tests.cli.conftest import Prompt
from tests.cli.flows import written

NOW = 1_800_000_000.0


@pytest.fixture
def in_kathmandu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "NPT-05:45")
    time.tzset()


@pytest.mark.usefixtures("in_kathmandu")
def test_an_instant_is_shown_in_local_time_with_its_offset() -> None:
    assert when(NOW) == "2027-01-15 13:45:00+05:45"
    assert len(when(NOW)) == TIME_CHARS
    assert datetime.fromisoformat(when(NOW)).timestamp() == NOW


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (-0.9, "now"),
        (-59, "59 s ago"),
        (-60, "1 min ago"),
        (-7199, "1 h ago"),
        (90_000, "in 1 d"),
        (-86_400 * 400, "400 d ago"),
    ],
)
def test_a_distance_is_in_its_largest_unit(seconds: float, text: str) -> None:
    assert distance(NOW + seconds, NOW) == text


@pytest.mark.usefixtures("in_kathmandu")
@pytest.mark.parametrize("text", ["2027-01-15T13:45", "2027-01-15T08:00Z", "2027-01-15T09:00+01:00"])
def test_a_typed_time_is_local_unless_it_names_its_zone(text: str) -> None:
    assert TIME.convert(text, None, None) == NOW


def test_a_typed_duration_is_before_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    assert TIME.convert("2h", None, None) == NOW - 7200


@pytest.mark.parametrize("text", ["yesterday", "", "-2h", "2027-13-01", "nan"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="2h for two hours ago"):
        TIME.convert(text, None, None)


@pytest.mark.integration
def test_executions_are_listed_by_the_time_of_their_start(prompt: Prompt) -> None:
    prompt("run", written("chain.yaml", flows.CHAIN))
    line = prompt("list").out
    assert datetime.fromisoformat(" ".join(line.split()[2:4])).tzinfo is not None
    assert len(prompt("list", "--since", "1h", "--json").json["executions"]) == 1
    assert prompt("list", "--until", "1h", "--json").json["executions"] == []
    assert prompt("list", "--since", "soon").code == 2
