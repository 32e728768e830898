"""Costs of calls with the operator's prices, and with those of the price list."""

from __future__ import annotations

import pytest

from pointsman.engine.reports import Usage
from pointsman.models.prices import Price, Prices, list_day, list_version
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest
from pointsman.testing.clock import run_virtually
from tests.models.test_calling import Service, house

OWN = Price(input=2.0, output=10.0)


def test_a_configured_price_overrides_the_list_and_a_model_price_its_providers() -> None:
    prices = Prices({"house:*": Price(input=0.0), "house:small": OWN, "openai:gpt-4o": Price(input=1.0)})
    asked = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    assert prices.cost_usd("house", "small", **asked) == pytest.approx(3.0)
    assert prices.cost_usd("house", "another", **asked) == 0.0, "nothing is a price, too"
    assert prices.cost_usd("openai", "gpt-4o", **asked) == pytest.approx(1.0)
    assert prices.cost_usd("elsewhere", "another", **asked) is None
    assert Prices().cost_usd("openai", "gpt-4o", input_tokens=1_000_000, output_tokens=0) == pytest.approx(2.5)


def test_cached_input_has_its_own_price() -> None:
    usage = Usage(input_tokens=1000, cache_read_tokens=600, cache_write_tokens=100, output_tokens=10)
    assert Price(input=1.0, output=1.0).of(usage) == pytest.approx(1010 / 1_000_000)
    kept = Price(input=1.0, output=1.0, cache_read=0.1, cache_write=2.0)
    assert kept.of(usage) == pytest.approx((300 + 60 + 200 + 10) / 1_000_000)


def test_a_call_has_the_operators_price_and_the_name_of_the_provider() -> None:
    service = Service(lambda key, number: None)

    async def story(prices: Prices) -> ModelReply:
        models = PydanticModels(providers={"house": house(service)}, prices=prices)
        try:
            return await models.ask(ModelRequest(model="house:small", messages=[user_message("hello")]))
        finally:
            await models.close()

    known, unknown = run_virtually(story(Prices({"house:*": OWN}))), run_virtually(story(Prices()))
    assert known.usage.cost_usd == pytest.approx((10 * 2 + 2 * 10) / 1_000_000)
    assert unknown.usage.cost_usd is None
    assert (known.provider, known.key) == ("house", 0)


def test_the_price_list_has_its_version_and_date() -> None:
    assert (list_version() or "")[0].isdigit()
    day = list_day()
    assert day is None or day.year >= 2025
