"""Code nodes: inputs, results, and reports of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pointsman.engine.actions import WorkSpec
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.executors.work_without_models import CodeExecutor
from pointsman.tools.sandbox.interpreter import CodeLimits, Interpreter
from pointsman.values import Bytes, Json, JsonObject, Seconds
from tests.executors.stage import StagedRun, agent, work
from tests.sandboxes import needs_box, take_boxes_away

pytestmark = pytest.mark.integration

LIMITS = CodeLimits(seconds=Seconds(5.0), memory_bytes=Bytes(64_000_000), result_bytes=Bytes(10_000))


@pytest.fixture
async def interpreter() -> AsyncIterator[Interpreter]:
    made = Interpreter(LIMITS)
    yield made
    await made.close()


def code(source: str) -> WorkSpec:
    return agent(kind="code", source=source)


async def done(
    interpreter: Interpreter, source: str, inputs: JsonObject | None = None, run: StagedRun | None = None
) -> Json:
    command = work("code", {"inputs": inputs or {}})
    report = await CodeExecutor(interpreter).execute(command, code(source), run or StagedRun())
    assert isinstance(report, WorkDone), report
    return report.result


async def failure(interpreter: Interpreter, source: str) -> Failure:
    report = await CodeExecutor(interpreter).execute(work("code", {"inputs": {}}), code(source), StagedRun())
    assert isinstance(report, WorkFailed), report
    return report.failure


@pytest.mark.requirement("T1-5", "S1-162")
async def test_code_is_refused_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    take_boxes_away(monkeypatch)
    refused = await failure(Interpreter(LIMITS), "1 + 1")
    assert (refused.code, refused.retryable) == ("sandbox-missing", False)
    assert "bubblewrap: it was taken away; landlock: it was taken away" in refused.message
    assert "doctor" in refused.hint


@needs_box
@pytest.mark.requirement("S1-08", "S1-144")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("price * count", 12.5),
        ("total = price * count\ntotal", 12.5),
        ("result = {'total': price * count}", {"total": 12.5}),
        ("if count > 3: result = 'many'", "many"),
        ("price * count\nresult = 1", 1),
        ("nothing = 1", None),
        ("import json\njson.loads('[1, null]')", [1, None]),
        ("(count, (1, 2))", [5, [1, 2]]),
        ("[word.upper() for word in words]", ["A", "ß".upper(), "日本"]),
        ("2 ** 70", 2**70),
        ("{}", {}),
    ],
)
async def test_the_result_is_the_last_expression_or_the_variable_result(
    interpreter: Interpreter, source: str, result: Json
) -> None:
    inputs: JsonObject = {"price": 2.5, "count": 5, "words": ["a", "ß", "日本"]}
    assert await done(interpreter, source, inputs) == result


@needs_box
@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("1 +", "code-failed", "SyntaxError: Expected an expression (line 1)"),
        ("def f(x):\n    raise ValueError('no ' + x)\n\nf('way')", "code-failed", "ValueError: no way (line 2)"),
        ("unknown", "code-failed", "NameError: name 'unknown' is not defined (line 1)"),
        ("{1, 2}", "code-result", "the result contains a set, which is not JSON"),
        ("{'a': [b'x']}", "code-result", "the result contains a bytes, which is not JSON"),
        ("{1: 2}", "code-result", "the result has the key 1"),
        ("float('nan')", "code-result", "the result contains the number nan, which is not JSON"),
        ("class A: pass\nA()", "code-result", "the result contains an instance of a class, which is not JSON"),
        ("'x' * 20_000", "code-result", "the result has more than 10000 bytes"),
    ],
)
async def test_errors_of_code_have_a_line_number(
    interpreter: Interpreter, source: str, code: str, message: str
) -> None:
    told = await failure(interpreter, source)
    assert (told.code, told.message, told.retryable) == (code, message, False)


DEEP = """\
def inner(order):
    return order["date"]

def outer(order):
    return inner(order)

outer({})
"""


@needs_box
async def test_a_failure_of_code_has_its_traceback_with_the_lines_of_the_author(interpreter: Interpreter) -> None:
    told = await failure(interpreter, DEEP)
    details = told.details or {}
    assert details["where"] == "line 2 of the code, in inner"
    assert details["traceback"] == (
        "Traceback (most recent call last):\n"
        "  line 7 of the code\n"
        "    outer({})\n"
        "  line 5 of the code, in outer\n"
        "    return inner(order)\n"
        "  line 2 of the code, in inner\n"
        '    return order["date"]\n'
        "KeyError: 'date'"
    )


@needs_box
async def test_the_traceback_of_deep_code_is_bounded(interpreter: Interpreter) -> None:
    told = await failure(interpreter, "def f(n):\n    return 1 / 0 if n == 0 else f(n - 1)\nf(200)")
    traceback = str((told.details or {})["traceback"])
    assert "… 182 frames …" in traceback
    assert len(traceback.splitlines()) < 50
    assert traceback.endswith("ZeroDivisionError: division by zero")


@needs_box
async def test_printed_output_is_shown_and_included_in_failures(interpreter: Interpreter) -> None:
    run = StagedRun()
    assert await done(interpreter, "print('so', 'far')\n7", run=run) == 7
    assert run.deltas == [{"kind": "text", "text": "so far\n"}]
    told = await failure(interpreter, "print('so far')\n1 / 0")
    assert (told.details or {})["output"] == "so far\n"


@needs_box
async def test_code_keeps_no_state_between_runs(interpreter: Interpreter) -> None:
    await done(interpreter, "secret = 'told'\nimport math\nimport random\nrandom.seed(7)")
    assert (await failure(interpreter, "secret")).message == "NameError: name 'secret' is not defined (line 1)"
    assert (await failure(interpreter, "math")).message == "NameError: name 'math' is not defined (line 1)"
    numbers = [await done(interpreter, "import random\nrandom.random()") for _ in range(2)]
    assert numbers[0] != numbers[1]
