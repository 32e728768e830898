"""Events are encoded to bytes and decoded exactly, or refused; old shapes are upgraded on reading, never rewritten."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from pointsman.engine.causes import Cause
from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import Event, StepStarted, StepSucceeded
from pointsman.engine.reports import EventReceived
from pointsman.engine.steps import Step
from pointsman.json_meter import LEVELS_MAX, SLICE_BYTES
from pointsman.ports import Row
from pointsman.store.codec import Codec, RowContent, Upcaster, decode_json, encode_exactly, encode_json
from pointsman.store.compression import Form, blobs_behind, large_values, pack, unpack
from pointsman.store.errors import RowUnreadable, StoreDamaged, UnstorableValue
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.values import ExecutionId, Json, JsonObject


class Began(Struct, frozen=True, tag_field="kind", tag="began"):
    """A current event."""

    input: Json = None


class Ended(Struct, frozen=True, tag_field="kind", tag="ended"):
    """Another current event."""

    output: Json = None
    attempt: int = 1
    status: Literal["good", "bad"] = "good"


CODEC = Codec[Began | Ended](Began | Ended)
CAUSE = Cause(kind="event_received", by="ada", key="k", report=EventReceived(name="paid", data=[None, 1]))

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
    max_leaves=30,
)


@given(JSON, JSON)
@pytest.mark.requirement("S1-59", "S1-154")
def test_events_are_decoded_as_they_were_encoded(one: Json, other: Json) -> None:
    events = (Began(one), Ended(other, attempt=3))
    assert CODEC.decode(CODEC.encode(events, CAUSE), CODEC.shape) == RowContent(events, CAUSE)


@given(JSON)
def test_json_is_decoded_as_it_was_encoded(value: Json) -> None:
    assert decode_json(encode_json(value)) == value


@pytest.mark.parametrize("value", [10**29, -(10**29), 2**64, 5e-324, "\U0010ffff\x00", [None, {"a": None}], [10**4000]])
def test_unusual_values_are_storable(value: Json) -> None:
    assert decode_json(encode_json(value)) == value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": [1, math.nan]}, "nan at '/a/1'"),
        (math.inf, "inf at '/'"),
        ([None, -math.inf], "-inf at '/1'"),
        ({"text": "half \ud83d"}, "half a character (a lone surrogate) at '/text'"),
        ({"\udc00": 1}, "half a character"),
        pytest.param(10**5000, "4300 digits", id="huge"),
    ],
)
def test_a_value_that_cannot_be_decoded_is_refused_by_name(value: Json, told: str) -> None:
    with pytest.raises(UnstorableValue) as refused:
        encode_json(value)
    assert told in str(refused.value)
    assert "finite" in refused.value.hint


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_nesting_that_could_not_be_decoded_is_refused() -> None:
    assert decode_json(encode_json(nested(LEVELS_MAX))) == nested(LEVELS_MAX)
    for levels in (LEVELS_MAX + 1, 900, 5_000, 100_000):
        with pytest.raises(UnstorableValue, match=r"nested|Recursion"):
            encode_json(nested(levels))


def test_a_large_value_is_decoded_only_where_a_number_may_have_become_null() -> None:
    decoded: list[bytes] = []

    def decode(data: bytes) -> object:
        decoded.append(data)
        return msgspec.json.decode(data)

    many: list[Json] = [{"id": number, "tags": ["a"]} for number in range(1_000)]
    encode_exactly(many, decode)
    assert not decoded
    encode_exactly([*many, None], decode)
    assert len(decoded) == 1


def test_long_numbers_do_not_hide_nesting() -> None:
    deep: Json = [10**200, "x" * SLICE_BYTES, nested(LEVELS_MAX)]
    with pytest.raises(UnstorableValue, match="more than 500 levels"):
        encode_json(deep)


def test_a_value_within_an_event_is_named_by_its_field() -> None:
    with pytest.raises(UnstorableValue, match="nan at '/0/output/x'"):
        CODEC.encode((Ended({"x": math.nan}),))


@pytest.mark.parametrize(
    "stored",
    [
        b'[{"kind":"exploded"}]',
        b'[{"kind":"ended","attempt":"many"}]',
        b'[{"kind":"ended","status":"ugly"}]',
        b'[{"output":1}]',
        b'{"kind":"ended"}',
        b'{"events":[{"kind":"ended"}],"cause":{"kind":"k","report":{"type":"exploded"}}}',
        b"[",
        b"\xff\xfe",
        b'[{"kind":"done","output":"\xb9"}]',
        b"",
    ],
)
def test_decoding_builds_only_types_of_the_closed_set(stored: bytes) -> None:
    with pytest.raises(RowUnreadable):
        CODEC.decode(stored, CODEC.shape)


def attempts_begin(raw: JsonObject) -> JsonObject:
    return {**raw, "attempt": 1} if raw["kind"] == "done" else raw


def done_is_called_ended(raw: JsonObject) -> JsonObject:
    return {**raw, "kind": "ended"} if raw["kind"] == "done" else raw


LIFTS: tuple[Upcaster, ...] = (attempts_begin, done_is_called_ended)


def test_old_rows_are_upcast_step_by_step() -> None:
    codec = Codec[Began | Ended](Began | Ended, LIFTS)
    assert codec.shape == 2
    assert codec.decode(b'[{"kind":"began"},{"kind":"done","output":7}]', 0).events == (Began(), Ended(7))
    assert codec.decode(b'[{"kind":"done","output":7,"attempt":4}]', 1).events == (Ended(7, attempt=4),)
    assert codec.decode(codec.encode((Ended(7),)), codec.shape).events == (Ended(7),)


def test_upcasters_keep_the_cause_of_a_row() -> None:
    codec = Codec[Began | Ended](Began | Ended, LIFTS)
    row = b'{"events":[{"kind":"done","output":7}],"cause":{"kind":"pause_requested","by":"ada"}}'
    assert codec.decode(row, 0) == RowContent((Ended(7),), Cause(kind="pause_requested", by="ada"))


def test_rows_without_a_cause_are_lists_of_events() -> None:
    assert CODEC.encode((Ended(7),)).startswith(b"[")
    assert CODEC.decode(b'[{"kind":"ended","output":7}]', CODEC.shape) == RowContent((Ended(7),))


@pytest.mark.parametrize("stored", [b"{", b'"\xb9"', b""])
def test_a_damaged_value_is_reported(stored: bytes) -> None:
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decode_json(stored)


def test_a_row_of_a_newer_version_is_reported() -> None:
    with pytest.raises(RowUnreadable, match="future shape 3") as refused:
        CODEC.decode(b"[]", 3)
    assert "upgrade" in refused.value.hint


def test_the_events_of_the_engine_are_a_closed_set() -> None:
    codec = Codec[Event](Event)
    started = ExecutionStarted(workflow="desk", version="1", input={"goal": "g", "big": 10**29})
    assert codec.decode(codec.encode((started,)), codec.shape).events == (started,)


@pytest.mark.parametrize(
    ("plain", "form"),
    [
        (b"x" * 2048, Form.PLAIN),
        (b"x" * 2049, Form.ZSTD),
        (b"x" * 65_536, Form.ZSTD),
        (b"x" * 65_537, Form.BLOB),
        (bytes((number * 7919 + number // 3) % 256 for number in range(256)) * 8, Form.PLAIN),
    ],
)
@pytest.mark.requirement("S1-101", "T1-19")
def test_bytes_are_compressed_by_size(plain: bytes, form: Form) -> None:
    packed = pack(plain)
    assert packed.form is form
    assert unpack(packed.form, packed.data, packed.blobs.__getitem__) == plain


def test_damaged_and_unknown_compression_is_reported() -> None:
    with pytest.raises(StoreDamaged):
        unpack(Form.ZSTD, b"no such frame", lambda _: b"")
    with pytest.raises(RowUnreadable, match="unknown form 9"):
        unpack(9, b"", lambda _: b"")


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
def test_a_value_compressed_in_pieces_is_restored_exactly(value: Json) -> None:
    plain = encode_json(value)
    packed = pack(plain, large_values((value,)))
    assert unpack(packed.form, packed.data, packed.blobs.__getitem__) == plain
    assert set(blobs_behind(packed.form, packed.data)) == set(packed.blobs)
    assert packed.form is Form.PIECES or len(packed.data) <= 64 * 1024


def test_the_innermost_large_value_is_stored_separately() -> None:
    many: list[Json] = ["x" * 1000] * 100
    wrapped: Json = {"deep": [{"document": DOCUMENT, "more": many}], "again": DOCUMENT}
    kept = [encode_json(DOCUMENT), encode_json(many), encode_json(DOCUMENT)]
    assert large_values((wrapped,)) == kept
    assert len(pack(encode_json(wrapped), kept).blobs) == 2


def test_many_small_values_that_are_large_together_are_stored_as_one() -> None:
    wide: dict[str, Json] = {f"field{number}": "x" * 300 for number in range(1000)}
    assert large_values(({"result": wide},)) == [encode_json(wide)]


@pytest.mark.integration
@pytest.mark.requirement("S1-101", "T1-19")
async def test_a_document_passed_through_ten_steps_is_stored_once(tmp_path: Path) -> None:
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
async def test_a_missing_or_changed_blob_is_detected(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1, {"a": DOCUMENT, "b": DOCUMENT[::-1]}))
        await store.journal.append(ExecutionId("exec-two"), row_of(1, DOCUMENT))
        assert await store.verify() == []
    with tables(tmp_path) as connection:
        connection.execute("DELETE FROM blobs WHERE rowid = 1")
    async with opened(url) as store:
        assert await store.verify() == ["the blobs of 2 rows are missing"]
