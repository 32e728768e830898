"""Hostile texts for small parsers: schedules, durations, sizes, dates, patterns, templates."""

from __future__ import annotations

import json
from typing import Final

import pytest

from pointsman.definition.model.base import read_duration, read_size
from pointsman.definition.model.cron import cron_fault
from pointsman.definition.reading.documents import read_document
from pointsman.engine.instants import seconds_of
from pointsman.values import Json, JsonObject
from tests.checking import check_document
from tests.growth import check_linear


def codes(document: str | JsonObject) -> set[str]:
    text = document if isinstance(document, str) else json.dumps(document)
    return {one.code for one in check_document(read_document(text.encode()), name="x").problems}


def workflow(config: JsonObject, kind: str = "agent", **more: Json) -> JsonObject:
    nodes: list[Json] = [{"id": "a", "type": kind, "config": config}, {"id": "e", "type": "end"}]
    return {"pointsman": 1, "id": "x", "nodes": nodes, "edges": [{"source": "a", "target": "e"}], **more}


@pytest.mark.parametrize(
    "text",
    ["1e309s", "-5s", "nan", "inf", "٣s", "９s", "1.5.5s", "5 seconds", "", "9" * 400 + "s", "1s" * 100_000, "+5s"],
)
def test_a_text_that_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must (be|not be longer than)"):
        read_duration(text)
    assert codes(workflow({"duration": text}, "wait")) == {"bad-value"}


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, None, [], 1e15])
def test_a_number_that_is_not_a_duration_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"must (be|not be longer than)"):
        read_duration(value)


@pytest.mark.parametrize("value", ["٣KB", "-1B", "1e9B", "999999999999999GB", "1" * 300 + "B", -1, 1.5, True])
def test_a_value_that_is_not_a_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"must (be|not be larger than)"):
        read_size(value)


@pytest.mark.parametrize(
    "text",
    [
        *("*/0 * * * *", "60 * * * *", "0-99999999999/1 * * * *", "* * * * * *", "@every 5s", "@reboot", "٣ * * * *"),
        *("*/99999999999999 * * * *", "*/61 * * * *", "0 */25 * * *", "0 0 */32 * *", "0 0 * * */8", "0 0 0 0 *"),
        *("* * * * *\n* * * * *", "1-" * 50_000, "x" * 100_000, ""),
    ],
)
def test_a_text_that_is_not_a_schedule_is_refused(text: str) -> None:
    assert cron_fault(text) is not None


@pytest.mark.parametrize("text", ["*/5 * * * *", "0 */12 * * *", "0 0 */10 * *", "0-59/15 7-19 * JAN-MAR MON,FRI"])
def test_a_schedule_with_steps_is_read(text: str) -> None:
    assert cron_fault(text) is None


@pytest.mark.parametrize(
    "value",
    [
        *("2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00+10:60", "٢٠٢٦-01-01", "2026-02-30", "2026-13-01"),
        *("2026-01-01T24:00", "never", "", 1e300, -1e300, 1_770_000_000_000, True, None, []),
    ],
)
def test_a_value_that_is_not_an_instant_has_no_seconds(value: Json) -> None:
    assert seconds_of(value) is None


def test_an_instant_is_read_with_its_offset() -> None:
    assert seconds_of("1970-01-01T01:00:00+01:00") == 0
    assert seconds_of("9999-12-31T23:59:59Z") == 253_402_300_799


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("id: x\nnodes: !!python/object/apply:os.system ['id']", "yaml-tag"),
        ("id: x\nnodes: !!binary aGk=", "yaml-tag"),
        ("id: x\nnodes: !include other.yaml", "yaml-tag"),
        ("a: &a [*a]", "unreadable"),
        ("--- a\n--- b\n", "several-documents"),
        ("a: " + "[" * 3000 + "]" * 3000, "too-deep"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "too-deep"),
        ('{"id":"x","nodes":[],"n":1e999}', "number-too-large"),
        ('{"id":"x","nodes":[],"n":' + "9" * 5000 + "}", "number-too-large"),
        ('{"id":"x","nodes":[],"n":NaN}', "not-a-number"),
        ('{"id":"\\ud800","nodes":[]}', "lone-surrogate"),
    ],
)
def test_a_harmful_document_is_refused_with_a_code(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize("pattern", ["(?=a)", "(a)\\1", "(a{1000}){1000}", "[", "(?<n>a)(?P=n)"])
def test_a_pattern_beyond_the_linear_engine_is_refused(pattern: str) -> None:
    source = f"matches(goal, {json.dumps(pattern)})"
    found = codes(workflow({"cases": [{"when": source, "label": "a"}], "default": "b"}, "decision"))
    assert found & {"expression-pattern", "expression-syntax"}


PIECES: Final = (
    *("{", "{{ ", "{{ x | ", "{x|", "{% if ", "{#", "{{#if x}}", "{{#each x}}", "{{ '", '{{ "', "$.", "${", "${$."),
    *("{x:", "{x!r", "{a b}", "{a ", "import {", "\\{", "```\n{x y", "{x.", "{{x}", "{a-", "{{../", "{ ", "a: {b "),
    *("{{", "{ x }", "{a b", '{{"', "$.x ", "${x ", "{{ $.x", "{x ", "{{x|", "$x.", "{{-x"),
)


@pytest.mark.parametrize("piece", PIECES)
def test_a_long_template_of_one_piece_is_checked_in_linear_time(piece: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"x": {}}}

    check_linear(lambda chars: codes(workflow({"prompt": piece * (chars // len(piece))}, input=schema)), 8_000)


@pytest.mark.parametrize(
    "query", ["$" + "..a" * 40, "$" + "[0]" * 1000, "$[" + "0," * 5000 + "0]", "$" + "[" * 2000, "$[?@.a =~ /(a+)+$/]"]
)
def test_a_query_beyond_the_bounds_is_refused(query: str) -> None:
    assert codes(workflow({"jsonpath": query}, "transform")) & {"jsonpath-syntax", "expression-too-long"}
