"""Large values are stored once, by their content, wherever they are; what comes back is what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.engine.events.steps import StepStarted, StepSucceeded
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.store.codec import encode_json
from pointsman.store.compression import Form, blobs_behind, large_values, pack, unpack
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.values import ExecutionId, Json

DOCUMENT = Random(1).randbytes(60_000).hex()
LARGE = st.sampled_from(
    [DOCUMENT, DOCUMENT[::-1], [7] * 40_000, {"a": [*range(20_000)]}, "\x00" * 20_000, "é" * 40_000]
)
VALUES = st.recursive(
    LARGE | st.none() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


@contextmanager
def tables(path: Path) -> Generator[sqlite3.Connection, None, None]:
    connection = sqlite3.connect(path / "store.db", isolation_level=None)
    yield connection
    connection.close()


@given(VALUES)
def test_what_is_packed_in_pieces_comes_back_byte_for_byte(value: Json) -> None:
    plain = encode_json(value)
    packed = pack(plain, large_values((value,)))
    assert unpack(packed.form, packed.data, packed.blobs.__getitem__) == plain
    assert set(blobs_behind(packed.form, packed.data)) == set(packed.blobs)
    assert packed.form is Form.PIECES or len(packed.data) <= 64 * 1024


def test_of_nested_values_the_innermost_large_one_is_kept_by_itself() -> None:
    many: list[Json] = ["x" * 1000] * 100
    wrapped: Json = {"deep": [{"document": DOCUMENT, "more": many}], "again": DOCUMENT}
    kept = [encode_json(DOCUMENT), encode_json(many), encode_json(DOCUMENT)]
    assert large_values((wrapped,)) == kept
    assert len(pack(encode_json(wrapped), kept).blobs) == 2


def test_many_small_values_that_are_large_together_are_kept_as_one() -> None:
    wide: dict[str, Json] = {f"field{number}": "x" * 300 for number in range(1000)}
    assert large_values(({"result": wide},)) == [encode_json(wide)]


@pytest.mark.integration
@pytest.mark.requirement("S1-101", "T1-19")
async def test_a_document_that_goes_through_ten_steps_is_stored_once(tmp_path: Path) -> None:
    rows = [
        Row(
            seq,
            float(seq),
            (
                StepStarted(step=Step("work", (), seq), input={"text": DOCUMENT, "round": seq}),
                StepSucceeded(step=Step("work", (), seq), result={"said": [seq, {"document": DOCUMENT}]}),
            ),
        )
        for seq in range(1, 11)
    ]
    async with opened(f"sqlite:///{tmp_path}/store.db") as store:
        for row in rows:
            await store.journal.append(ONE, row)
        await store.effects.record(ONE, "work:1", 1, {"answer": DOCUMENT})
    async with opened(f"sqlite:///{tmp_path}/store.db") as store:
        assert await rows_in(store.journal, ONE) == rows
        assert await store.effects.recorded(ONE, "work:1") == {1: {"answer": DOCUMENT}}
        assert await store.verify() == []
    with tables(tmp_path) as connection:
        assert connection.execute("SELECT count(*) FROM blobs").fetchone() == (1,)
        assert connection.execute("SELECT max(length(data)) < 1000 FROM rows").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM blob_uses").fetchone() == (1,)


@pytest.mark.integration
async def test_a_piece_that_is_missing_or_changed_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1, {"a": DOCUMENT, "b": DOCUMENT[::-1]}))
        await store.journal.append(ExecutionId("exec-two"), row_of(1, DOCUMENT))
        assert await store.verify() == []
    with tables(tmp_path) as connection:
        connection.execute("DELETE FROM blobs WHERE rowid = 1")
    async with opened(url) as store:
        assert await store.verify() == ["the blobs of 2 rows are missing"]
