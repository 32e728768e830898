"""Background work that fails and is retried logs the reason, unless the store is only unreachable."""

from __future__ import annotations

import logging

import pytest

from pointsman.background import retried
from pointsman.store.errors import StoreDamaged, StoreUnreachable


def test_failures_of_background_work_are_logged_and_outages_are_reported_elsewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        with retried("to look"):
            raise StoreUnreachable("away")
        assert caplog.messages == []
        with retried("to look"):
            raise StoreDamaged("torn")
    assert caplog.messages == ["to look cannot be done now, and is tried again: [store-damaged] torn"]
    with pytest.raises(ValueError, match="a bug"), retried("to look"):
        raise ValueError("a bug")
