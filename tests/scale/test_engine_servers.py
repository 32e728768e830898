"""The servers of the engines, as the tests of the scale tier use them: killed, stopped and started again."""

from __future__ import annotations

import pytest

from tests.engine_servers import EngineProcess


@pytest.mark.scale
def test_a_killed_engine_starts_again_with_its_data(engine_server: EngineProcess) -> None:
    engine_server.kill()
    assert not engine_server.server.is_ready()
    engine_server.start()
    assert engine_server.server.is_ready()


@pytest.mark.scale
def test_a_stopped_engine_does_not_answer_until_it_continues(engine_server: EngineProcess) -> None:
    engine_server.stop()
    assert not engine_server.server.is_ready()
    engine_server.go_on()
    assert engine_server.server.is_ready()
