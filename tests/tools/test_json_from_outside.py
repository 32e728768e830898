"""JSON from outside is measured before it is decoded: digits of numbers, values, levels."""

from __future__ import annotations

import pytest

from pointsman.engine.reports import ToolCall
from pointsman.json_meter import DIGITS_MAX, VALUES_MAX, JsonUnreadable, TooMuchJson, decode_json
from pointsman.models.repair import read_json
from pointsman.tools.egress.addresses import AnswerUnreadable
from pointsman.tools.egress.http_calls import HttpResponse
from pointsman.tools.functions import tool
from pointsman.tools.http.messages import data_of
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.sandbox.interpreter import ResultMeter, ResultUnusable
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json

LONG = "7" * (DIGITS_MAX + 1)
EXCESSES = {
    "digits": f'{{"a": [{LONG}]}}',
    "fraction": f'{{"a": 0.{LONG}}}',
    "values": "[" + "1," * VALUES_MAX + "1]",
    "levels": "[" * 300 + "]" * 300,
}


@pytest.mark.parametrize("text", EXCESSES.values(), ids=EXCESSES)
def test_text_over_a_limit_is_refused_with_the_limit(text: str) -> None:
    with pytest.raises(TooMuchJson, match=r"more than \d+"):
        decode_json(text)


@pytest.mark.parametrize("text", ["", "{", "nul", "\ud800", b"\xff", '{"a": 1} x'])
def test_text_that_is_not_json_is_unreadable(text: str | bytes) -> None:
    with pytest.raises(JsonUnreadable):
        decode_json(text)


def test_long_digits_inside_texts_are_read() -> None:
    assert decode_json(f'["{LONG}", {"7" * DIGITS_MAX}]') == [LONG, int("7" * DIGITS_MAX)]


@pytest.mark.parametrize("text", EXCESSES.values(), ids=EXCESSES)
def test_a_model_answer_over_a_limit_is_not_json(text: str) -> None:
    assert read_json(text) is None
    assert read_json(f"Here it is:\n```json\n{text}\n```") is None


@pytest.mark.parametrize("text", EXCESSES.values(), ids=EXCESSES)
def test_a_web_response_over_a_limit_is_unreadable(text: str) -> None:
    answer = HttpResponse(
        status=200, url="https://example.com", headers={"content-type": "application/json"}, body=text.encode()
    )
    with pytest.raises(AnswerUnreadable, match=r"the answer .* more than"):
        data_of(answer, None)
    assert data_of(answer, "text") == text


@pytest.mark.parametrize("value", [[int(LONG)], [1] * (VALUES_MAX + 1)], ids=["digits", "values"])
async def test_a_tool_result_over_a_limit_fails_the_call(value: list[Json]) -> None:
    @tool
    def many() -> list[Json]:
        """Return many values."""
        return value

    registry = ToolRegistry([many], plugins=False)
    with pytest.raises(ToolFailed) as caught:
        await registry.call(ToolCall(id="c1", name="many", arguments={}), key="k1")
    assert caught.value.failure.code == "tool-output-too-large"
    assert "more than" in caught.value.failure.message


def test_result_of_code_with_a_long_number_is_refused() -> None:
    with pytest.raises(ResultUnusable, match=f"a number with more than {DIGITS_MAX} digits"):
        ResultMeter(1_000_000).read(int(LONG), 0)
    assert ResultMeter(1_000_000).read(10**DIGITS_MAX - 1, 0) == 10**DIGITS_MAX - 1
