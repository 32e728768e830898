"""Texts in several languages, durations, sizes, and the order and shape of problems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.definition.model.base import (
    Duration,
    Size,
    Text,
    read_duration,
    read_size,
    read_text,
    write_duration,
    write_size,
)
from pointsman.definition.problems import (
    JsonPatchOp,
    check_report,
    did_you_mean,
    error,
    note,
    placed,
    pointer_parts,
    pointer_to,
    sort_problems,
    warning,
)
from pointsman.values import Bytes, Seconds


@pytest.mark.requirement("S1-17", "S1-18")
def test_a_text_falls_back_from_region_to_language_to_english_to_the_first() -> None:
    text = Text({"de": "Hallo", "en": "Hello", "fr": "Salut"})
    assert [text.in_(language) for language in ("fr", "de-AT", "it", "en")] == ["Salut", "Hallo", "Hello", "Hello"]
    assert Text({"fr": "Salut", "de": "Hallo"}).in_("it") == "Salut"
    assert Text("plain").in_("xx") == str(Text("plain")) == "plain"
    assert Text({}).in_("en") == ""


@pytest.mark.parametrize("value", [3, None, ["a"], {"en": 3}, {"en": ["a"]}])
def test_an_invalid_localized_text_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="language"):
        read_text(value)


@pytest.mark.requirement("T1-20")
@pytest.mark.parametrize(
    ("written", "seconds", "canonical"),
    [
        (300000, 300.0, "5m"),
        (1500, 1.5, "1500ms"),
        (0, 0.0, "0s"),
        (0.5, 0.0005, "0.5ms"),
        ("30s", 30.0, "30s"),
        ("300000ms", 300.0, "5m"),
        ("90s", 90.0, "90s"),
        ("1h30m", 5400.0, "90m"),
        ("1.5h", 5400.0, "90m"),
        (" 2 min ", 120.0, "2m"),
        ("2d", 172800.0, "2d"),
    ],
)
def test_durations_are_read_and_written_with_a_unit(written: object, seconds: float, canonical: str) -> None:
    duration = read_duration(written)
    assert duration.seconds == pytest.approx(seconds)
    assert write_duration(duration) == canonical
    assert read_duration(canonical) == duration


@pytest.mark.parametrize(
    "written",
    [-1, True, None, "", "30", "s", "30 seconds", "-5s", "1e3s", "5m and", float("nan"), float("inf"), 10**20],
)
def test_an_invalid_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must"):
        read_duration(written)


@given(st.integers(0, 10**11))
def test_durations_of_whole_milliseconds_are_written_exactly(ms: int) -> None:
    duration = Duration(Seconds(ms / 1000))
    assert read_duration(str(duration)) == duration


@pytest.mark.parametrize(
    ("written", "size", "canonical"),
    [
        ("50MB", 50_000_000, "50MB"),
        ("64KiB", 65536, "64KiB"),
        (1000, 1000, "1KB"),
        ("0.5 GB", 500_000_000, "500MB"),
        (0, 0, "0B"),
        ("7B", 7, "7B"),
    ],
)
def test_sizes_are_read_and_written_with_a_unit(written: object, size: int, canonical: str) -> None:
    assert read_size(written) == Size(Bytes(size))
    assert write_size(read_size(written)) == canonical
    assert read_size(canonical) == Size(Bytes(size))


@pytest.mark.parametrize("written", [-1, 1.5, True, "50", "MB", "50 Mb", None, "1" * 30 + "B", 10**30])
def test_an_invalid_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must"):
        read_size(written)


def test_problems_are_sorted_by_position_and_severity_without_duplicates() -> None:
    late = placed(error("b", "/z", "late"), line=9, column=1)
    early = placed(note("a", "/y", "early"), line=2, column=5)
    assert sort_problems([late, early, early]) == (early, late)


def test_positions_are_sorted_numerically() -> None:
    ten, nine, worse = warning("w", "/nodes/10", "x"), warning("w", "/nodes/9", "x"), error("e", "/nodes/9", "y")
    assert sort_problems([ten, nine, worse]) == (worse, nine, ten)


def test_problems_print_as_documented_for_the_command_line() -> None:
    fix: tuple[JsonPatchOp, ...] = ({"op": "remove", "path": "/a"},)
    problem = placed(error("unknown-key", "/a", "has no key", hint="Remove it.", fix=fix), line=1, column=2)
    assert check_report([problem], dialect="native") == {
        "ok": False,
        "dialect": "native",
        "problems": [
            {
                "code": "unknown-key",
                "severity": "error",
                "pointer": "/a",
                "line": 1,
                "column": 2,
                "message": "has no key",
                "hint": "Remove it.",
                "fix": [{"op": "remove", "path": "/a"}],
            }
        ],
    }
    assert check_report([warning("w", "", "x")], dialect=None)["ok"] is True


@pytest.mark.parametrize(
    ("word", "answer"), [("promt", "prompt"), ("max_iterations", "maxIterations"), ("MODEL", "model")]
)
def test_the_nearest_word_is_suggested(word: str, answer: str) -> None:
    assert did_you_mean(word, ["maxIterations", "model", "prompt"]) == f"Did you mean {answer!r}?"


def test_a_distant_word_gets_no_suggestion() -> None:
    assert did_you_mean("zzz", ["prompt"]) == ""
    assert did_you_mean("x" * 100_000, ["prompt"]) == ""


@given(st.lists(st.text(max_size=5), max_size=4))
def test_pointers_escape_special_characters(parts: list[str]) -> None:
    assert pointer_parts(pointer_to(*parts)) == tuple(parts)
