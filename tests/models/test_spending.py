"""Daily spending limits of keys."""

from __future__ import annotations

import pytest

from pointsman.engine.reports import Usage
from pointsman.models.failures import ModelFailed
from pointsman.models.key_pool import DayLimit, Days, KeySpending
from pointsman.models.provider import Provider, ProviderSettings
from pointsman.models.providers import Providers
from pointsman.models.transcript import user_message
from pointsman.models.transport import ModelCaller, TextListener
from pointsman.ports import ModelReply, ModelRequest
from pointsman.testing.clock import run_virtually
from tests.models.test_calling import Service


class Calendar:
    """A clock whose days a test changes."""

    def __init__(self) -> None:
        self.now = 20_000

    def __call__(self) -> int:
        return self.now


def ask(service: Service, limit: DayLimit, calls: list[int | None], *, turns: int = 0) -> list[ModelReply | str]:
    """Return the replies or the codes of failures; a day passes before the last `turns` calls."""

    async def story() -> list[ModelReply | str]:
        days, providers = (
            Calendar(),
            Providers(
                {"house": Provider(base_url="http://house.test/v1", keys=("first", "second"), http=service, day=limit)}
            ),
        )
        caller = ModelCaller(providers, days=Days(today=days))
        found: list[ModelReply | str] = []
        for number, index in enumerate(calls):
            if number == len(calls) - turns:
                days.now += 1
                await providers.close()  # A resting key is tried again after ten minutes, or by a new process.
            request = ModelRequest(model="house:small", messages=[user_message("hello")], key_index=index)
            try:
                found.append(await caller.call(providers.line("house", "small"), request, TextListener(None)))
            except ModelFailed as why:
                found.append(why.failure.code)
        await providers.close()
        return found

    return run_virtually(story())


@pytest.mark.parametrize("limit", [DayLimit(calls=2), DayLimit(tokens=13)])
def test_a_key_over_its_daily_limit_is_replaced_until_all_are_spent(limit: DayLimit) -> None:
    service = Service(lambda key, number: None)
    found = ask(service, limit, [0] * 5)
    assert service.keys == ["first", "first", "second", "second"]
    assert found[4] == "model-key-budget-spent"
    third = found[2]
    assert isinstance(third, ModelReply)
    assert "has used its budget" in third.warnings[0]


def test_a_spent_key_is_available_the_next_day() -> None:
    service = Service(lambda key, number: None)
    found = ask(service, DayLimit(calls=1), [0, 0, 0, 0], turns=1)
    assert [one if isinstance(one, str) else "" for one in found] == ["", "", "model-key-budget-spent", ""]
    assert service.keys == ["first", "second", "first"]


def test_cost_limits_count_known_prices_and_warn_about_unknown_ones() -> None:
    spent = KeySpending(usd=0.5).with_(Usage(input_tokens=10, output_tokens=5, model_calls=1, cost_usd=0.75))
    assert spent == KeySpending(calls=1, tokens=15, usd=1.25)
    assert DayLimit(usd=1.25).reached(spent) == "$1.2500 of $1.25"
    assert DayLimit(usd=1.26).reached(spent) == ""
    (reply,) = ask(Service(lambda key, number: None), DayLimit(usd=1), [0])
    assert isinstance(reply, ModelReply)
    assert "the price of 'small-1' is unknown" in reply.warnings[0]


def test_daily_limits_come_from_the_settings() -> None:
    said = ProviderSettings.model_validate({"base_url": "http://h.test", "day": {"tokens": 5}})
    assert said.provider("own").day == DayLimit(tokens=5)
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        ProviderSettings.model_validate({"day": {"usd": -1}})
