"""A refusal of the outgoing policy names the setting that would allow the call."""

from __future__ import annotations

import pytest

from pointsman.tools.egress.addresses import EVERYWHERE, AddressRefused, AddressUnreachable
from pointsman.tools.egress.http_calls import EgressPolicy, HttpCall, Outgoing


@pytest.mark.parametrize(
    ("url", "rules", "setting"),
    [
        ("http://127.0.0.1/", EgressPolicy(), '`[http] networks = ["127.0.0.1/32"]`'),
        ("http://[::1]/", EgressPolicy(), '`[http] networks = ["::1/128"]`'),
        ("http://example.org:8081/", EgressPolicy(), "`[http] ports = [8081]`"),
        ("http://127.0.0.1:8081/", EgressPolicy(), '`[http] ports = [8081]` and `networks = ["127.0.0.1/32"]`'),
        ("http://example.org/", EgressPolicy(plain=False), "`[http] plain = true`"),
    ],
)
async def test_a_refusal_names_the_setting(url: str, rules: EgressPolicy, setting: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        await Outgoing(rules).send(HttpCall(method="GET", url=url))
    assert setting in caught.value.hint


@pytest.mark.integration
async def test_an_unanswered_call_has_a_plain_reason() -> None:
    with pytest.raises(AddressUnreachable, match="the connection was refused"):
        await Outgoing(EgressPolicy(networks=EVERYWHERE, ports=None)).send(
            HttpCall(method="GET", url="http://127.0.0.1:9/")
        )
