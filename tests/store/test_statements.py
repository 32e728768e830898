"""The number of statements that frequent operations of the SQL stores need."""

from __future__ import annotations

import pytest

from pointsman.store.sql.tables import RevisionKey, find_revision
from pointsman.store.sql.work import Result


@pytest.mark.parametrize("reference", ["letter", "letter@3", "letter@1.2.0"])
def test_workflow_is_found_by_one_statement(reference: str) -> None:
    work = find_revision(reference)
    next(work)
    with pytest.raises(StopIteration) as found:
        work.send(Result([("letter", 3, "digest")]))
    assert found.value.value == RevisionKey("letter", 3, "digest")
