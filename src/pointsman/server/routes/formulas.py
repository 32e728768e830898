"""Operations for editors of expressions and templates: check, evaluate, list functions."""

from __future__ import annotations

from typing import Final, Literal

from fastapi import Response
from pydantic import Field

from pointsman.expressions.failures import TEMPLATE_CHARS_MAX
from pointsman.server.context import CallerSession, CurrentCaller
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.server.schemas.views import example
from pointsman.workflows.formulas import (
    CheckedFormula,
    EvaluatedFormula,
    Formula,
    FormulaProblem,
    FunctionView,
    LanguageFunctions,
    functions_of_language,
)
from pointsman.workflows.verbs import WorkflowVerbs

router = Operations(prefix="/api/expressions", tags=["workflows"])

UNKNOWN: Final[FormulaProblem] = {
    "severity": "warning",
    "code": "unknown-path",
    "message": "nothing is called 'scor' here: the value is always null",
    "hint": "Did you mean 'score'?",
    "offset": 0,
    "length": 4,
}
LEN: Final[FunctionView] = {
    "name": "len",
    "aliases": ["length"],
    "signature": "len(x)",
    "about": "How many characters, elements or keys; 0 of null.",
}


class FormulaBody(Body):
    """A formula, and what is known of the place where it stands."""

    model_config = sample(text="scor >= 80", kind="condition", schemas={"state": {"properties": {"score": {}}}})
    text: str = Field(max_length=TEMPLATE_CHARS_MAX, description="The formula.")
    kind: Literal["expression", "condition", "template", "path", "jsonpath"] = Field(
        default="expression", description="What it is written in; of a condition only the truth counts."
    )
    dialect: Literal["native", "rows", "graph", "steps", "plan"] = Field(
        default="native", description="That of the workflow: how names and braces are read."
    )
    names: list[str] = Field(default_factory=list, max_length=100, description="`as` names around its place.")
    schemas: dict[str, dict[str, JsonValue]] = Field(
        default_factory=dict[str, dict[str, JsonValue]],
        max_length=50,
        description="JSON Schemas of the data by root: `state`, `input`, `result` …",
    )

    def formula(self) -> Formula:
        return Formula(self.text, self.kind, self.dialect, frozenset(self.names), self.schemas)


class EvaluateBody(FormulaBody):
    """A formula, and data to try it with."""

    model_config = sample(text="score >= 80", values={"score": 81})
    values: dict[str, JsonValue] = Field(
        default_factory=dict, description="What bare names mean: fields of the state, `result`, `nodes`, `item` …"
    )


example(
    CheckedFormula,
    {
        "ok": True,
        "problems": [UNKNOWN],
        "types": ["boolean"],
        "reads": [{"root": "state", "path": ["scor"], "offset": 0, "length": 4}],
    },
)
example(EvaluatedFormula, {"ok": True, "value": True, "missing": [], "failure": None})
example(FunctionView, LEN)
example(LanguageFunctions, {"functions": [LEN]})


@router.get("/functions", responses=answers(LanguageFunctions), summary="List functions")
async def list_functions(caller: CurrentCaller) -> Response:
    """How each is called, and what it gives."""
    return JsonReply(functions_of_language())


@router.post(
    "/check",
    verb=WorkflowVerbs.check_formula,
    responses=answers(CheckedFormula, "document-too-expensive", body=True),
    summary="Check an expression",
)
async def check_expression(session: CallerSession, body: FormulaBody) -> Response:
    """What is wrong with one formula, where, and what it reads: for its author."""
    return JsonReply(await session.workflows.check_formula(body.formula()))


@router.post(
    "/evaluate",
    verb=WorkflowVerbs.evaluate_formula,
    responses=answers(EvaluatedFormula, "document-too-expensive", body=True),
    summary="Evaluate an expression",
)
async def evaluate_expression(session: CallerSession, body: EvaluateBody) -> Response:
    """What one formula gives over the values that come with it, within the bounds of the language."""
    return JsonReply(await session.workflows.evaluate_formula(body.formula(), body.values))
