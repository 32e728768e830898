"""The frozen histories contain every kind of event, so that the meaning of a kind cannot change unnoticed."""

from __future__ import annotations

from typing import get_args

from pointsman.engine.events.steps import Event
from tests.histories.frozen import histories, read_history


def test_every_kind_of_event_is_in_a_frozen_history() -> None:
    kinds = {kind.__name__ for kind in get_args(Event)}
    seen = {type(event).__name__ for path in histories() for row in read_history(path).rows for event in row.events}
    assert kinds - seen == set(), (
        "let `random_workflow` in testing/graphs.py draw a node that causes it, then run: "
        "python -m tests.histories.freeze RELEASE"
    )
