"""What a call costs, from the price list that ships with `genai-prices`. Offline. Unknown is None, never zero."""

from __future__ import annotations


def cost_usd(
    provider: str,
    model: str,
    *,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
) -> float | None:
    """The price in dollars, or None where the list does not have this model. Cached tokens are of the input's."""
    from genai_prices import Usage, calc_price  # half a second: only once a real model has answered

    if not model:
        return None
    try:
        usage = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
        )
        return float(calc_price(usage, model, provider_id=provider or None).total_price)
    except LookupError:
        return None
