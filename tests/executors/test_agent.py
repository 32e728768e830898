"""Agents: one attempt, from the prompt to the report, with the scripted model on the real wire format."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from pointsman.engine.reports import ToolCallsProposed, WorkFailed
from pointsman.ports import ModelRequest
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from pointsman.workflows.tools import OffTool
from tests.executors.stage import Stage, StagedRun, agent, calls_of, execute

SCORE: JsonObject = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "integer", "maximum": 100}},
    "additionalProperties": False,
}
SEARCH = """
tools:
  web_search: {results: [{when: {q: port}, result: [harbour]}, {result: []}]}
  weather: {result: sunny}
"""


def last_text(request: ModelRequest) -> str:
    return cast("str", cast("JsonObject", request.messages[-1])["content"])


async def test_an_agent_answers_its_prompt() -> None:
    stage, run = Stage('rules: [{text: "Two ships wait at the pier."}]'), StagedRun()
    report = await stage.done(execute(system="You write.", prompt="Write about the port."), agent(), run)
    assert report.result == "Two ships wait at the pier."
    assert report.messages == ({"role": "assistant", "content": "Two ships wait at the pier.", "name": "writer"},)
    assert report.usage is not None
    assert (report.usage.model_calls, report.usage.cost_usd) == (1, None)
    (asked,) = stage.models.requests
    assert (asked.system, asked.messages) == ("You write.", [{"role": "user", "content": "Write about the port."}])
    assert "".join(cast("str", delta["text"]) for delta in run.deltas) == "Two ships wait at the pier."


@pytest.mark.parametrize(
    ("inputs", "messages", "asked"),
    [
        ({"message": "hello"}, None, "hello"),
        ({"goal": "port", "n": 2}, None, '{"goal": "port", "n": 2}'),
        ({"goal": "port"}, [{"role": "user", "content": "hi"}], "hi"),
    ],
)
async def test_an_agent_without_a_prompt_receives_the_conversation_or_its_inputs(
    inputs: JsonObject, messages: list[Json] | None, asked: str
) -> None:
    stage = Stage()
    await stage.done(execute(prompt=None, inputs=inputs, messages=messages), agent())
    assert last_text(stage.models.requests[0]) == asked


@pytest.mark.parametrize(("prompt", "inputs"), [(None, {}), (None, None), ("", {}), (" ", None)])
async def test_an_agent_with_an_empty_request_fails(prompt: str | None, inputs: JsonObject | None) -> None:
    stage = Stage()
    failure = await stage.failure(execute(prompt=prompt, inputs=inputs, messages=None), agent())
    assert (failure.code, failure.retryable, stage.models.requests) == ("agent-without-prompt", False, [])


async def test_a_correction_is_the_last_message_to_the_agent() -> None:
    stage = Stage()
    await stage.done(execute(prompt="Go.", correction="no edge takes 'X'. Legal values: A."), agent(routes=("A",)))
    assert last_text(stage.models.requests[0]) == "no edge takes 'X'. Legal values: A."


@pytest.mark.requirement("S0-O6", "S0-48")
async def test_the_valid_labels_are_offered_as_a_router_tool_and_in_the_prompt() -> None:
    stage = Stage()
    await stage.done(execute(system="Route.", prompt="x"), agent(routes=("RC2", "DM2", "END")))
    (asked,) = stage.models.requests
    (router,) = asked.tools
    assert router.name == "router"
    assert router.parameters["properties"] == {"next": {"type": "string", "enum": ["RC2", "DM2", "END"]}}
    assert "`RC2`, `DM2`, `END`" in asked.system
    assert asked.system.startswith("Route.")
    await stage.done(execute(prompt="x"), agent())
    assert stage.models.requests[1].tools == ()


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        ("{toolCalls: [{name: router, arguments: {next: DM2}}], text: Over to you.}", None),
        ("{json: {next: DM2, score: 3}}", {"type": "object", "properties": {"next": {"type": "string"}}}),
        ('{text: \'{"next": "DM2"}\'}', None),
    ],
)
@pytest.mark.requirement("T0-3", "S0-25")
async def test_an_agent_can_set_next_in_three_ways(answer: str, schema: JsonObject | None) -> None:
    stage = Stage(f"rules: [{answer}]")
    spec = agent(routes=("RC2", "DM2")) if schema is None else agent(routes=("RC2", "DM2"), outputSchema=schema)
    report = await stage.done(execute(prompt="x"), spec)
    assert report.next == "DM2"
    assert report.pending == ()


@pytest.mark.requirement("T0-14")
async def test_the_word_end_in_a_text_has_no_effect() -> None:
    stage = Stage('rules: [{text: "END. We go to END now, next: END."}]')
    report = await stage.done(execute(prompt="Say END"), agent(routes=("A", "END"), conversational=True))
    assert report.next is None


@pytest.mark.requirement("S0-31", "S0-32", "S0-33")
async def test_in_a_conversation_the_end_tool_is_offered_and_intercepted() -> None:
    stage = Stage('rules: [{text: "Bye.", end: true}]')
    report = await stage.done(
        execute(messages=[{"role": "user", "content": "bye"}]), agent(conversational=True, leaves_calls=True)
    )
    assert (report.next, report.result, report.pending) == ("END", "Bye.", ())
    assert [offered.name for offered in stage.models.requests[0].tools] == ["end"]
    assert "`end`" in stage.models.requests[0].system
    assert report.messages == ({"role": "assistant", "content": "Bye.", "name": "writer"},)


@pytest.mark.requirement("S0-34")
async def test_the_end_tool_is_absent_outside_a_conversation() -> None:
    stage = Stage()
    await stage.done(execute(prompt="x"), agent())
    assert stage.models.requests[0].tools == ()
    assert stage.models.requests[0].system == ""


@pytest.mark.parametrize("name", ["router", "end", "final_result"])
@pytest.mark.requirement("T0-4")
async def test_a_tool_with_a_reserved_name_is_an_error(name: str) -> None:
    failure = await Stage().failure(execute(prompt="x"), agent(tools=[name]))
    assert (failure.code, failure.retryable) == ("tool-name-reserved", False)


async def test_an_unknown_tool_is_a_failure_before_any_model_call() -> None:
    stage = Stage()
    failure = await stage.failure(execute(prompt="x"), agent(tools=["web_search"]))
    assert (failure.code, failure.retryable, stage.models.requests) == ("unknown-tool", False, [])


@pytest.mark.requirement("S0-38", "S0-O8")
async def test_calls_stay_pending_for_a_tool_executor() -> None:
    stage = Stage(
        "rules: [{text: I look., toolCalls: [{name: web_search, arguments: {q: port}}, {name: weather}], next: A}]"
        + SEARCH
    )
    spec = agent(tools=["web_search", "weather"], leaves_calls=True, routes=("A",))
    run = StagedRun()
    report = await stage.done(execute(prompt="x"), spec, run)
    assert calls_of(report) == [("web_search", {"q": "port"}), ("weather", {})]
    assert report.next is None
    assert report.warnings[0].startswith("the model decided and called tools in one answer")
    (message,) = cast("list[JsonObject]", list(report.messages))
    assert [one["name"] for one in cast("list[JsonObject]", message["toolCalls"])] == ["web_search", "weather"]
    assert run.effects.paid == [(1, "model")]


async def test_after_the_tool_executor_the_prompt_precedes_the_exchange() -> None:
    stage = Stage('rules: [{contains: harbour, text: "Harbour."}]' + SEARCH)
    exchange: list[Json] = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "",
            "name": "writer",
            "toolCalls": [{"id": "c1", "name": "web_search", "arguments": {}}],
        },
        {"role": "tool", "content": '["harbour"]', "toolCallId": "c1", "tool": "web_search", "name": "writer"},
    ]
    report = await stage.done(
        execute(prompt="Write.", messages=exchange), agent(leaves_calls=True, tools=["web_search"])
    )
    assert report.result == "Harbour."
    roles = [cast("JsonObject", message)["role"] for message in stage.models.messages[0]]
    assert roles == ["user", "user", "assistant", "tool"]


async def test_turns_of_other_agents_are_remarks_and_unanswered_calls_are_omitted() -> None:
    stage = Stage()
    said: list[Json] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Ask RC2.", "name": "Router"},
        {
            "role": "assistant",
            "content": "",
            "name": "RC2",
            "toolCalls": [{"id": "c1", "name": "web_search", "arguments": {}}],
        },
        {"role": "tool", "content": "found", "toolCallId": "c1", "tool": "web_search", "name": "RC2"},
        {
            "role": "assistant",
            "content": "Mine.",
            "name": "writer",
            "toolCalls": [{"id": "c9", "name": "web_search", "arguments": {}}],
        },
    ]
    await stage.done(execute(messages=said), agent())
    assert stage.models.messages[0] == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "[Router] Ask RC2."},
        {"role": "user", "content": "[RC2] web_search answered: found"},
        {"role": "assistant", "content": "Mine.", "name": "writer"},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.requirement("S1-88")
async def test_the_tool_loop_runs_calls_concurrently_and_returns_results_in_order() -> None:
    first_done = asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for the other call."""
        await first_done.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Release the other call."""
        first_done.set()
        return "fast"

    stage = Stage("rules: [{call: 1, toolCalls: [{name: slow}, {name: fast}]}, {call: 2, text: done}]", slow, fast)
    run = StagedRun()
    report = await stage.done(execute(prompt="x"), agent(tools=["slow", "fast"]), run)
    assert report.result == "done"
    assert [
        (one["tool"], one["content"]) for one in cast("list[JsonObject]", report.messages) if one["role"] == "tool"
    ] == [
        ("slow", "slow"),
        ("fast", "fast"),
    ]
    assert [delta["kind"] for delta in run.deltas] == ["tool_call", "tool_call", "tool_result", "tool_result", "text"]
    assert report.usage is not None
    assert (report.usage.model_calls, report.usage.tool_calls) == (2, 2)


@pytest.mark.requirement("S1-104", "T1-5")
async def test_a_call_of_an_unlisted_tool_is_refused_to_the_model() -> None:
    stage = Stage(
        "rules: [{call: 1, toolCalls: [{name: weather}, {name: web_search, arguments: {q: port}}]}, {text: fine}]"
        + SEARCH
    )
    run = StagedRun()
    report = await stage.done(execute(prompt="x"), agent(tools=["web_search"]), run)
    told = [str(one["content"]) for one in cast("list[JsonObject]", report.messages) if one["role"] == "tool"]
    assert "tool-not-allowed" in told[0]
    assert told[1] == '["harbour"]'
    assert run.effects.paid == [(1, "model"), (2, "tool"), (3, "model")]


async def test_a_failing_tool_is_reported_to_the_model_and_does_not_fail_the_step() -> None:
    stage = Stage(
        "rules: [{call: 1, toolCalls: [{name: down}]}, {contains: tool-failed, text: I go on without.}]\n"
        "tools: {down: {fail: the index is down}}"
    )
    assert (await stage.done(execute(prompt="x"), agent(tools=["down"]))).result == "I go on without."


@pytest.mark.requirement("S0-46")
async def test_calls_of_client_tools_are_returned_and_not_executed() -> None:
    @tool(side="client", timeout_s=60)
    async def pick_file(kind: str) -> None:
        """Let the person choose a file."""
        raise AssertionError("client tools are never run here")

    rules = "rules: [{call: 1, toolCalls: [{name: pick_file, arguments: {kind: pdf}}, {name: weather}]}, {text: done}]"
    stage = Stage(rules + SEARCH, pick_file)
    for leaves_calls in (False, True):  # A tool executor never receives them.
        spec = agent(tools=["pick_file", "weather"], leaves_calls=leaves_calls)
        report = await stage.perform(execute(prompt="x"), spec)
        assert isinstance(report, ToolCallsProposed)
        (call,) = report.calls
        assert (call.name, call.arguments, call.wants, call.timeout_s) == ("pick_file", {"kind": "pdf"}, "result", 60)


async def test_an_agent_with_a_disabled_tool_fails_with_the_setting_that_enables_it() -> None:
    stage = Stage("rules: [{text: x}]", OffTool("sql", "Read a database.", because="Name a database."))
    failure = await stage.failure(execute(prompt="x"), agent(tools=["sql"]))
    assert (failure.code, failure.hint) == ("tool-disabled", "Name a database.")


async def test_an_invalid_call_of_a_client_tool_is_returned_to_the_model() -> None:
    @tool(side="client")
    async def pick_file(kind: str) -> None:
        """Let the person choose a file."""

    called = "{call: 1, toolCalls: [{name: pick_file, arguments: {kind: 5}}]}"
    rules = f"rules: [{called}, {{contains: tool-arguments, text: sorry}}]"
    assert (await Stage(rules, pick_file).done(execute(prompt="x"), agent(tools=["pick_file"]))).result == "sorry"


async def test_a_tool_that_needs_approval_does_not_run_before_it() -> None:
    @tool(requires_approval=True)
    async def pay() -> None:
        """Pay."""
        raise AssertionError("nobody approved")

    stage = Stage("rules: [{call: 1, toolCalls: [{name: pay}]}, {text: asked}]", pay)
    report = await stage.perform(execute(prompt="x"), agent(tools=["pay"]))
    assert isinstance(report, ToolCallsProposed)
    assert [(call.name, call.number) for call in report.calls] == [("pay", 2)]


@pytest.mark.parametrize(("most", "asked"), [(None, 10), (3, 3)])
@pytest.mark.requirement("S1-37")
async def test_the_tool_loop_is_bounded(most: int | None, asked: int) -> None:
    calls = ", ".join(f"{{toolCalls: [{{name: weather, arguments: {{day: {day}}}}}]}}" for day in range(12))
    stage = Stage(f"rules: [{{answers: [{calls}]}}]" + SEARCH)
    spec = agent(tools=["weather"]) if most is None else agent(tools=["weather"], maxIterations=most)
    report = await stage.perform(execute(prompt="x"), spec)
    assert isinstance(report, WorkFailed)
    assert report.failure.code == "max-iterations"
    assert len(stage.models.requests) == asked
    assert report.usage is not None
    assert (report.usage.model_calls, report.usage.tool_calls) == (asked, asked - 1)
