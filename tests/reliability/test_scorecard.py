"""Every row of the scorecard holds, at most in the size of the `pr` tier; `test_planted_defects` proves that each can
fail."""

from __future__ import annotations

from typing import Final

import pytest

from tests.reliability.findings import SEED, NotHere, Row
from tests.reliability.scorecard import ROWS

PROVES: Final = {"access matrix": pytest.mark.requirement("S1-85")}
PARAMETERS: Final = [
    pytest.param(row, marks=pytest.mark.scale("full") if row.is_scale else PROVES.get(row.name, ())) for row in ROWS
]


@pytest.mark.parametrize("row", PARAMETERS, ids=[row.name for row in ROWS])
def test_a_row_of_the_scorecard_holds(row: Row) -> None:
    try:
        finding = row.examine(row.test_size or row.sizes["pr"], SEED)
    except NotHere as why:
        pytest.skip(str(why))
    assert list(finding.violations) == [], finding.figure
