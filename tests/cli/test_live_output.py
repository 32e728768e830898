"""Live output of models in the terminal; discarded text is marked."""

from __future__ import annotations

import pytest

from pointsman.cli.chat import LiveOutput
from pointsman.values import JsonObject


def delta(**said: str) -> JsonObject:
    return {"kind": "delta", "execution": "e", "step": "say.1", "node": "say", "delta": {**said}}


def test_discarded_text_is_interrupted_and_new_text_starts_on_a_new_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    voice = LiveOutput(frozenset(), {"say": "Bot"})
    for event in (
        delta(kind="thought", text="Hm."),
        delta(kind="text", text="Once"),
        delta(kind="discarded"),
        delta(kind="text", text="There"),
        delta(kind="text", text=" was"),
        JsonObject({"kind": "step_succeeded", "execution": "e", "step": "say.1", "node": "say"}),
    ):
        voice.see(event)
    assert capsys.readouterr().out == "Bot: Once … (interrupted)\nBot: There was\n"
    assert voice.last == "There was"
