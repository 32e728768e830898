"""Formulas over HTTP while they are written: checks, types, previews."""

from __future__ import annotations

from typing import Any

from pointsman.expressions.functions import FUNCTIONS, SPECIAL
from tests.server.conftest import Served

CLOSED = {"type": "object", "properties": {"score": {"type": "number"}}, "additionalProperties": False}


async def ask(served: Served, verb: str, *, expect: int = 200, **body: Any) -> Any:
    reply = await served.client.post(f"/api/expressions/{verb}", json=body)
    assert reply.status_code == expect, reply.text
    return reply.json()


async def test_a_formula_error_has_its_column(served: Served) -> None:
    told = await ask(served, "check", text="score >= and 3")
    assert told["ok"] is False
    (problem,) = told["problems"]
    assert (problem["severity"], problem["code"], problem["offset"]) == ("error", "expression-syntax", 9)
    assert (await ask(served, "check", text="lne(score)"))["problems"][0]["code"] == "expression-unknown-function"
    assert (await ask(served, "check", text="{{#if x}}", kind="template"))["problems"][0]["code"] == "template-syntax"
    assert (await ask(served, "check", text="a..b", kind="path"))["ok"] is False
    assert (await ask(served, "check", text="$[", kind="jsonpath"))["ok"] is False


async def test_a_formula_check_returns_types_read_paths_and_unknown_names(served: Served) -> None:
    told = await ask(served, "check", text="scor > 3", kind="condition", schemas={"state": CLOSED})
    assert (told["ok"], told["types"]) == (True, ["boolean"])
    assert told["reads"] == [{"root": "state", "path": ["scor"], "offset": 0, "length": 4}]
    assert [(one["code"], one["hint"]) for one in told["problems"]] == [("unknown-path", "Did you mean 'score'?")]
    number = await ask(served, "check", text="score", kind="condition", schemas={"state": CLOSED})
    assert [one["code"] for one in number["problems"]] == ["condition-not-boolean"]
    prompt = await ask(served, "check", text="Hi {scor} {score}", kind="template", schemas={"state": CLOSED})
    assert [(one["code"], one["offset"]) for one in prompt["problems"]] == [("unknown-path", 4)]
    loop = await ask(served, "check", text="row.score", names=["row"], schemas={"state": CLOSED})
    assert (loop["problems"], loop["reads"][0]["root"], loop["types"]) == ([], "row", None)


async def test_a_formula_is_evaluated_over_given_values(served: Served) -> None:
    values = {"score": 81, "result": {"ok": True}, "nodes": {"a": 1}, "state": {"item": "of the state"}, "item": 2}
    for text, value in (
        ("score >= 80 and result.ok", True),
        ("nodes.a + item", 3),
        ("state.item", "of the state"),
        ("nothing ?? 'none'", "none"),
    ):
        assert (await ask(served, "evaluate", text=text, values=values))["value"] == value
    assert (await ask(served, "evaluate", text="score", kind="condition", values=values))["value"] is True
    shown = await ask(served, "evaluate", text="{{score}} of {{most}}", kind="template", values=values)
    assert (shown["value"], shown["missing"]) == ("81 of ", ["most"])
    single = await ask(served, "evaluate", text="{{score}}", kind="template", dialect="graph", values=values)
    assert single["value"] == "81"
    queried = await ask(served, "evaluate", text="$.rows[*].n", kind="jsonpath", values={"rows": [{"n": 1}, {"n": 2}]})
    assert queried["value"] == [1, 2]
    path = await ask(served, "evaluate", text="drafts[0].text", kind="path")
    assert path["value"] == ["drafts", 0, "text"]


async def test_a_failing_formula_is_a_result_and_hostile_formulas_are_bounded(served: Served) -> None:
    failed = await ask(served, "evaluate", text="'a' < 3")
    assert (failed["ok"], failed["failure"]["code"], failed["failure"]["offset"]) == (False, "expression-types", 0)
    rows = [0] * 2000
    for text, code in (
        ("map(rows, x => count(rows, y => y == x))", "expression-too-many-visits"),
        ("rows.__class__.__mro__[1]", None),
        ("9" * 500, "expression-number-too-large"),
        ("(" * 500, "expression-too-deep"),
        ("a+" * 3000 + "a", "expression-too-long"),
        ("secret.KEY", "secret-not-allowed"),
    ):
        told = await ask(served, "evaluate", text=text, values={"rows": rows})
        assert (told["failure"] and told["failure"]["code"]) == code, told
        assert told["value"] is None
    for body in ({"text": 3}, {"text": "x", "kind": "python"}, {"text": "x", "names": ["a"] * 101}, {}):
        assert (await ask(served, "check", expect=422, **body))["code"] == "request-invalid"


async def test_every_function_of_the_language_is_in_the_manual(served: Served) -> None:
    told = (await served.client.get("/api/expressions/functions")).json()["functions"]
    assert {one["name"] for one in told} == {*FUNCTIONS, *SPECIAL}
    assert [one["name"] for one in told] == sorted((one["name"] for one in told), key=str.lower)
    for one in told:
        assert one["signature"].startswith(f"{one['name']}(")
        assert one["about"]
    assert next(one for one in told if one["name"] == "len")["aliases"] == ["length", "size"]
