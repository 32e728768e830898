"""Work and tool calls that need an approval, in whole apps that are opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.engine.actions import CallVerdict
from pointsman.engine.commands import Execute
from pointsman.engine.decide.human_task_answers import AnswerInvalid
from pointsman.engine.digests import digest_of_call
from pointsman.engine.events.steps import StepFailed
from pointsman.engine.reports import ToolCall
from pointsman.engine.steps import Step
from pointsman.executors.tool_calls import Approvals, CallsNeedApproval
from pointsman.ports import Clock
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.tools.client_tools import ClientTool, ClientToolDescription
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

pytestmark = pytest.mark.integration

AGENT = """\
pointsman: 1
id: cashier
output: {said: said}
config: {approval: {approvers: {groups: [finance]}, ON_TIMEOUT}}
nodes:
  - {id: pay, type: agent, config: {prompt: "Pay {who}", tools: [transfer, look]}, outputs: {said: result}}
edges: []
"""
EXECUTOR = """\
pointsman: 1
id: desk
entry: pay
config: {approval: {approvers: {groups: [finance]}}}
nodes:
  - {id: pay, type: agent, config: {prompt: "Pay {who}", tools: [transfer, look]}, outputs: {said: result}}
  - {id: run, type: tool_executor}
  - {id: done, type: end}
edges:
  - {source: pay, target: run}
  - {source: run, target: pay}
  - {source: pay, target: done, condition: {type: label, label: done}}
"""
SCRIPT = """\
rules:
  - {call: 1, toolCalls: [{name: look, arguments: {}}]}
  - call: 2
    toolCalls:
      - {name: transfer, arguments: {to: ada, amount: 5}}
      - {name: transfer, arguments: {to: ben, amount: 7}}
  - {text: Done.}
"""


VISITS = """\
rules:
  - {visit: 1, toolCalls: [{name: look, arguments: {}}]}
  - visit: 2
    toolCalls:
      - {name: transfer, arguments: {to: ada, amount: 5}}
      - {name: transfer, arguments: {to: ben, amount: 7}}
  - {text: Done., next: done}
"""


class Till:
    """The effects of the tools."""

    def __init__(self, script: str = SCRIPT) -> None:
        self.script = script
        self.paid: list[tuple[str, int]] = []
        self.looked = 0
        self.clock: Clock | None = None

    def open(self, url: str) -> Pointsman:
        """Open an app like another process."""

        @tool(requires_approval=True)
        async def transfer(to: str, amount: int) -> str:
            """Transfer money."""
            self.paid.append((to, amount))
            return f"paid {to}"

        @tool
        async def look() -> str:
            """Look into the till."""
            self.looked += 1
            return "full"

        return Pointsman(url, tools=[transfer, look], script=parse_script(self.script), clock=self.clock)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


async def waiting(till: Till, url: str, flow: str = AGENT, extra: str = "timeout: 1h") -> str:
    async with till.open(url) as app:
        execution = await app.start(Workflow.parse(flow.replace("ON_TIMEOUT", extra), name="flow"), {"who": "all"})
        assert await execution.settled() == "waiting"
        (gate,) = execution.gates
        assert gate.at.gate is not None
        assert [call.name for call in gate.at.gate.calls] == ["transfer", "transfer"]
        assert till.paid == []
        return execution.id


@pytest.mark.parametrize(
    ("action", "data", "paid"),
    [
        ("approve", None, [("ada", 5), ("ben", 7)]),
        ("reject", None, []),
        ("edit", [False, True], [("ben", 7)]),
        ("edit", [True, {"to": "ben", "amount": 1}], [("ada", 5), ("ben", 1)]),
    ],
)
async def test_dangerous_calls_wait_for_a_person_and_are_paid_once(
    url: str, action: str, data: list[Json] | None, paid: list[tuple[str, int]]
) -> None:
    till = Till()
    name = await waiting(till, url)
    async with till.open(url) as app:
        execution = await app.open(name)
        (gate,) = execution.gates
        assert gate.at.gate is not None
        calls = [str(call.number) for call in gate.at.gate.calls]
        said: Json = None if data is None else dict(zip(calls, data, strict=True))
        await execution.answer(gate.id, action, said, comment="too much", by="fay", groups=["finance"])
        assert await execution.settled() == "completed"
        assert await execution.output() == {"said": "Done."}
        usage = execution.state.usage
    assert (sorted(till.paid), till.looked) == (sorted(paid), 1)
    assert (usage.model_calls, usage.tool_calls) == (3, 3)


async def test_the_model_receives_the_reason_of_a_rejected_call(url: str) -> None:
    till = Till()
    name = await waiting(till, url)
    async with till.open(url) as app:
        execution = await app.open(name)
        await execution.answer("pay", "reject", comment="too much", by="fay", groups=["finance"])
        await execution.settled()
        recorded = await app.store.effects.recorded(execution.id, "pay:1")
    told = [value for value in recorded.values() if "call-rejected" in str(value)]
    assert len(told) == 2
    assert all("too much" in str(value) for value in told)


async def test_only_approvers_may_approve_a_call(url: str) -> None:
    till = Till()
    name = await waiting(till, url)
    async with till.open(url) as app:
        execution = await app.open(name)
        with pytest.raises(Exception, match="may not answer"):
            await execution.answer("pay", "approve", by="eve", groups=["sales"])
    assert till.paid == []


async def test_pending_calls_of_an_agent_wait_for_approval_in_the_tool_executor(url: str) -> None:
    till = Till(VISITS)
    name = await waiting(till, url, EXECUTOR)
    async with till.open(url) as app:
        execution = await app.open(name)
        await execution.answer("run", "approve", by="fay", groups=["finance"])
        await execution.settled()
    assert sorted(till.paid) == [("ada", 5), ("ben", 7)]


@pytest.mark.parametrize(("then", "status", "paid"), [("approve", "completed", 2), ("fail", "failed", 0)])
def test_the_approval_terms_define_the_result_of_a_timeout(then: str, status: str, paid: int) -> None:
    till = Till()
    till.clock = clock = VirtualClock()

    async def wait_in_vain() -> str:
        async with till.open("memory:") as app:
            flow = AGENT.replace("ON_TIMEOUT", f"timeout: 1h, onTimeout: {then}")
            execution = await app.start(Workflow.parse(flow, name="flow"), {"who": "all"})
            assert await execution.settled() == "waiting"
            await clock.sleep_until(clock.now() + 3601.0)
            return await execution.settled()

    assert (run_virtually(wait_in_vain()), len(till.paid)) == (status, paid)


STEP = """\
pointsman: 1
id: step
nodes:
  - id: send
    type: tool
    requiresApproval: true
    approval: {message: "Send to {who}?", approvers: {users: [ada]}}
    config: {tool: look, parameters: {}}
edges: []
"""


async def test_a_step_that_needs_approval_starts_after_it(url: str) -> None:
    till = Till()
    async with till.open(url) as app:
        execution = await app.start(Workflow.parse(STEP, name="step"), {"who": "ben"})
        assert await execution.settled() == "waiting"
        assert [gate.at.gate.message for gate in execution.gates if gate.at.gate] == ["Send to ben?"]
    assert till.looked == 0
    async with till.open(url) as app:
        execution = await app.open(execution.id)
        await execution.answer("send", "approve", by="ada")
        assert await execution.settled() == "completed"
    assert till.looked == 1


async def test_a_rejected_step_fails_and_a_retry_needs_approval_again(url: str) -> None:
    till = Till()
    async with till.open(url) as app:
        execution = await app.start(Workflow.parse(STEP, name="step"), {"who": "ben"})
        await execution.settled()
        await execution.answer("send", "reject", by="ada", comment="not now")
        assert await execution.settled() == "failed"
        failures = [
            event.failure for row in await execution.rows() for event in row.events if type(event) is StepFailed
        ]
        assert [failure.code for failure in failures] == ["not-approved"]
        await execution.retry()
        assert await execution.settled() == "waiting"
        assert till.looked == 0
        await execution.answer("send", "approve", by="ada")
        assert await execution.settled() == "completed"


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"to": "ben", "amuont": 1}, "amuont"),
        ({"to": "ben", "amount": "1"}, "amount"),
        ({"to": None, "amount": 1}, "to"),
        ({"to": "ben"}, "amount"),
        ({}, "to"),
    ],
)
async def test_invalid_edited_arguments_are_refused_and_the_gate_stays_open(
    url: str, data: dict[str, Json], place: str
) -> None:
    till = Till()
    name = await waiting(till, url)
    async with till.open(url) as app:
        execution = await app.open(name)
        (gate,) = execution.gates
        assert gate.at.gate is not None
        first, second = (str(call.number) for call in gate.at.gate.calls)
        with pytest.raises(AnswerInvalid, match=place):
            await execution.answer(gate.id, "edit", {first: True, second: data}, by="fay", groups=["finance"])
        with pytest.raises(AnswerInvalid):
            await execution.answer(gate.id, "approve", {second: False}, by="fay", groups=["finance"])
        with pytest.raises(AnswerInvalid):
            await execution.answer(gate.id, "reject", {second: False}, by="fay", groups=["finance"])
        assert (len(execution.gates), till.paid) == (1, [])


def test_an_approval_covers_only_its_call() -> None:
    of = digest_of_call("transfer", {"to": "ada", "amount": 5})
    verdict = CallVerdict(number=2, approved=True, of=of)
    command = Execute(step=Step("pay"), attempt=1, work="agent", input={}, verdicts=(verdict,))

    @tool(requires_approval=True)
    async def transfer(to: str, amount: int) -> str:
        """Transfer money."""
        return f"{to} {amount}"

    approvals = Approvals(command, ToolRegistry([transfer], plugins=False))
    seen = ToolCall(id="1", name="transfer", arguments={"to": "ada", "amount": 5})
    other = ToolCall(id="1", name="transfer", arguments={"to": "eve", "amount": 5_000})
    approvals.must_cover([(2, seen)])
    assert approvals.decided(2, seen) == seen
    with pytest.raises(CallsNeedApproval) as caught:
        approvals.must_cover([(2, other)])
    assert [call.arguments for call in caught.value.calls] == [other.arguments]


def test_edited_arguments_do_not_cover_another_tool() -> None:
    """A repeated attempt may call another tool with exactly the arguments that a person gave for the first one."""
    of = digest_of_call("transfer", {"to": "ada", "amount": 5})
    verdict = CallVerdict(number=2, approved=True, arguments={"to": "ben", "amount": 1}, of=of, tool="transfer")
    command = Execute(step=Step("pay"), attempt=1, work="agent", input={}, verdicts=(verdict,))

    @tool(requires_approval=True)
    async def transfer(to: str, amount: int) -> str:
        """Transfer money."""
        return f"{to} {amount}"

    @tool(requires_approval=True)
    async def close_account(to: str, amount: int) -> str:
        """Close an account."""
        return f"{to} {amount}"

    approvals = Approvals(command, ToolRegistry([transfer, close_account], plugins=False))
    edited: JsonObject = {"to": "ben", "amount": 1}
    approvals.must_cover([(2, ToolCall(id="1", name="transfer", arguments=edited))])
    with pytest.raises(CallsNeedApproval) as caught:
        approvals.must_cover([(2, ToolCall(id="1", name="close_account", arguments=edited))])
    assert [call.name for call in caught.value.calls] == ["close_account"]


def test_edited_arguments_of_a_client_tool_must_match_its_schema() -> None:
    """A person corrects a wrong call of the model; the corrected call goes to the caller."""
    wrong: JsonObject = {"to": "ada"}
    verdict = CallVerdict(
        number=2,
        approved=True,
        arguments={"to": "ada", "amount": 5},
        of=digest_of_call("transfer", wrong),
        tool="transfer",
    )
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["to", "amount"],
    }
    command = Execute(step=Step("pay"), attempt=1, work="agent", input={}, verdicts=(verdict,))
    spec = ClientToolDescription(description="Transfer money.", parameters=schema, requires_approval=True)
    approvals = Approvals(command, ToolRegistry([ClientTool("transfer", spec)], plugins=False))
    with pytest.raises(CallsNeedApproval) as caught:
        approvals.must_cover([(2, ToolCall(id="1", name="transfer", arguments=wrong))])
    assert [(call.wants, call.arguments) for call in caught.value.calls] == [("result", {"to": "ada", "amount": 5})]
