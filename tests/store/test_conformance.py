"""Every store that ships obeys every rule."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from pointsman.testing.journals import DURABLE_KEEPER_RULES, DURABLE_RULES, JOURNAL_RULES, Rule
from pointsman.testing.stores import DURABLE_FOLLOWER_RULES, STORE_RULES

ALL_RULES: Final = [*JOURNAL_RULES, *DURABLE_RULES, *DURABLE_KEEPER_RULES, *DURABLE_FOLLOWER_RULES, *STORE_RULES]


def name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", repr(rule))


@pytest.mark.requirement("S1-71", "S2-64", "X-6")
@pytest.mark.parametrize("rule", [*JOURNAL_RULES, *STORE_RULES], ids=name_of)
async def test_a_store_in_memory(rule: Rule) -> None:
    await rule("memory:")


@pytest.mark.integration
@pytest.mark.requirement("S1-71", "S1-110", "S1-118", "S1-161", "S2-64", "S4-53", "X-6")
@pytest.mark.parametrize("rule", ALL_RULES, ids=name_of)
async def test_a_store_in_sqlite(rule: Rule, tmp_path: Path) -> None:
    await rule(f"sqlite:///{tmp_path}/store.db")


@pytest.mark.requirement("S1-71", "S1-110", "S1-118", "S1-161", "S2-64", "X-6")
@pytest.mark.parametrize("rule", ALL_RULES, ids=name_of)
async def test_a_store_in_postgresql(rule: Rule, postgres_url: str) -> None:
    await rule(postgres_url)
