"""Fixtures of the scale tier."""

from __future__ import annotations

import pytest

from tests.engine_servers import EngineProcess


@pytest.fixture(params=["temporal_server", "restate_server"], ids=["temporal", "restate"])
def engine_server(request: pytest.FixtureRequest) -> EngineProcess:
    """Each of the engines in turn: a server of this test, which may kill, stop and restart it."""
    return request.getfixturevalue(request.param)
