"""Keys that a provider repeats in its answer are masked."""

from __future__ import annotations

import pytest

from pointsman.engine.failures import Failure
from pointsman.models.failures import key_redaction, redacted

KEY = "sk-0123456789"


def test_keys_are_masked_at_every_position() -> None:
    failure = Failure(code="model-unauthorized", message=f"Bearer {KEY} is wrong: {KEY}", hint=f"Not {KEY}.")
    found = redacted(failure, key_redaction([KEY]))
    assert (found.message, found.hint) == ("Bearer *** is wrong: ***", "Not ***.")
    assert found.code == failure.code


def test_the_longer_of_two_keys_with_a_common_prefix_is_masked_completely() -> None:
    found = redacted(Failure(code="c", message=f"{KEY}-longer"), key_redaction([KEY, f"{KEY}-longer"]))
    assert found.message == "***"


def test_placeholders_are_not_keys_and_environment_keys_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODY_API_KEY", "from-the-environment")
    failure = Failure(code="c", message="none of from-the-environment")
    assert redacted(failure, key_redaction(["none"])).message == "none of ***"
