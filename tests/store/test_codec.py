"""Events become bytes and come back exactly, or not at all; old shapes are lifted, never rewritten."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from pointsman.engine.causes import Cause
from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import Event
from pointsman.engine.reports import EventReceived
from pointsman.json_meter import LEVELS_MAX, SLICE_BYTES
from pointsman.store.codec import Codec, RowContent, Upcaster, decode_json, encode_json
from pointsman.store.compression import Form, pack, unpack
from pointsman.store.errors import RowUnreadable, StoreDamaged, UnstorableValue
from pointsman.values import Json, JsonObject


class Began(Struct, frozen=True, tag_field="kind", tag="began"):
    """An event of today."""

    input: Json = None


class Ended(Struct, frozen=True, tag_field="kind", tag="ended"):
    """Another one."""

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
def test_events_come_back_as_they_were(one: Json, other: Json) -> None:
    events = (Began(one), Ended(other, attempt=3))
    assert CODEC.decode(CODEC.encode(events, CAUSE), CODEC.shape) == RowContent(events, CAUSE)


@given(JSON)
def test_json_comes_back_as_it_was(value: Json) -> None:
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
def test_what_would_not_come_back_is_refused_and_named(value: Json, told: str) -> None:
    with pytest.raises(UnstorableValue) as refused:
        encode_json(value)
    assert told in str(refused.value)
    assert "finite" in refused.value.hint


def nested(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_nesting_is_refused_before_it_could_not_be_read() -> None:
    assert decode_json(encode_json(nested(LEVELS_MAX))) == nested(LEVELS_MAX)
    for levels in (LEVELS_MAX + 1, 900, 5_000, 100_000):
        with pytest.raises(UnstorableValue, match=r"nested|Recursion"):
            encode_json(nested(levels))


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
def test_nothing_outside_the_closed_set_is_ever_built(stored: bytes) -> None:
    with pytest.raises(RowUnreadable):
        CODEC.decode(stored, CODEC.shape)


def attempts_begin(raw: JsonObject) -> JsonObject:
    return {**raw, "attempt": 1} if raw["kind"] == "done" else raw


def done_is_called_ended(raw: JsonObject) -> JsonObject:
    return {**raw, "kind": "ended"} if raw["kind"] == "done" else raw


LIFTS: tuple[Upcaster, ...] = (attempts_begin, done_is_called_ended)


def test_old_rows_are_lifted_step_by_step() -> None:
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
def test_a_value_that_is_damaged_is_told(stored: bytes) -> None:
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decode_json(stored)


def test_a_row_of_the_future_says_so() -> None:
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
def test_bytes_are_packed_by_their_size(plain: bytes, form: Form) -> None:
    packed = pack(plain)
    assert packed.form is form
    assert unpack(packed.form, packed.data, packed.blobs.__getitem__) == plain


def test_damaged_and_unknown_packing_is_told() -> None:
    with pytest.raises(StoreDamaged):
        unpack(Form.ZSTD, b"no such frame", lambda _: b"")
    with pytest.raises(RowUnreadable, match="unknown form 9"):
        unpack(9, b"", lambda _: b"")
