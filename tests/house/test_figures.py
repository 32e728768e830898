"""The figures of structure and prose only improve: each has a bound that a change may lower, never raise."""

from __future__ import annotations

import pytest

from tests.house.figures import DOCS_BOUNDS, STILTED, STRUCTURE, docs_rates, rates, structure

PLACES = 'rename or rewrite one of: python -m tests.house.figures "{}"'


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure_gets_no_worse(name: str) -> None:
    assert len(structure()[name]) <= STRUCTURE[name].most, PLACES.format(name)


@pytest.mark.parametrize("name", STILTED)
def test_prose_gets_no_worse(name: str) -> None:
    assert rates()[name] <= STILTED[name][1].most, PLACES.format(name)


@pytest.mark.parametrize("name", DOCS_BOUNDS)
def test_prose_of_documentation_meets_its_bounds(name: str) -> None:
    assert docs_rates()[name] <= DOCS_BOUNDS[name], PLACES.format(name)
