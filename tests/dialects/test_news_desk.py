"""The sequential news desk: triage, one search, reporters, reviews; and its events."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pointsman.values import Json, JsonObject
from tests.dialects.small_graphs import agent, edge, graph
from tests.scenarios import RunResult, installation, play, written

DESK = """
id: desk
input: {type: object, required: [goal], properties: {goal: {type: string}}}
config: {settings: {agent_id_aisearch_sql: sql-agent, use_neo4j_search: false, multi_route_always: false}}
nodes:
  - {id: triage, type: agent, outputs: {triage: result}, config: {prompt: "{goal}", result: json}}
  - id: choose
    type: decision
    config:
      cases:
        - {when: 'triage.preferred_agent == "sql" and config.agent_id_aisearch_sql != null', label: sql}
        - {when: config.use_neo4j_search, label: neo4j}
      default: text
  - {id: search_sql, type: agent, outputs: {news: result}, config: {prompt: "{goal}"}}
  - {id: search_neo4j, type: agent, outputs: {news: result}, config: {prompt: "{goal}"}}
  - {id: search_text, type: agent, outputs: {news: result}, config: {prompt: "{goal}"}}
  - id: desks
    type: parallel
    config: {items: 'config.multi_route_always or "multi" in triage.intents ? ["web", "radio"] : ["web"]', as: desk}
  - {id: reporter, type: agent, inputs: {desk: desk, news: news}, config: {prompt: "{desk}: {news}"}}
  - {id: stitch, type: join, outputs: {draft: result}, config: {aggregate: concat}}
  - {id: rounds, type: loop, config: {maxIterations: 3, while: 'verdict != "accept"'}}
  - {id: reviewer, type: agent, outputs: {verdict: result}, config: {prompt: "{draft} {loop.iteration}"}}
edges:
  - {source: triage, target: choose}
  - {source: choose, target: search_sql, condition: {type: label, label: sql}}
  - {source: choose, target: search_neo4j, condition: {type: label, label: neo4j}}
  - {source: choose, target: search_text, condition: {type: label, label: text}}
  - {source: search_sql, target: desks}
  - {source: search_neo4j, target: desks}
  - {source: search_text, target: desks}
  - {source: desks, target: reporter}
  - {source: reporter, target: stitch}
  - {source: stitch, target: rounds}
  - {source: rounds, target: reviewer}
  - {source: reviewer, target: rounds}
output: {draft: draft, verdict: verdict}
"""


def desk(*, preferred: str = "text", intents: str = "[]", accepted: int = 1, **settings: Json) -> RunResult:
    document = DESK
    for name, value in settings.items():
        document = document.replace(f"{name}: false", f"{name}: {value}").replace(
            f"{name}: sql-agent", f"{name}: {value}"
        )
    rules = f"""
        rules:
          - {{node: triage, json: {{preferred_agent: {preferred}, intents: {intents}}}}}
          - {{node: reporter, item: web, text: W}}
          - {{node: reporter, text: R}}
          - {{node: reviewer, visit: {accepted}, text: accept}}
          - {{node: reviewer, contains: "1", text: revise once}}
          - {{node: reviewer, contains: "2", text: revise twice}}
          - {{text: found}}
        """
    return play(document, {"goal": "strike"}, script=rules)


@pytest.mark.requirement("S3-05")
@pytest.mark.parametrize(("accepted", "reviews"), [(1, 1), (2, 2), (9, 3)])
def test_triage_search_report_and_at_most_three_reviews_follow_one_another(accepted: int, reviews: int) -> None:
    played = desk(accepted=accepted)
    agents = [event["node"] for event in played.told("step_succeeded")]
    assert agents == ["triage", "search_text", "reporter", *["reviewer"] * reviews]
    assert played.status == "completed"


@pytest.mark.requirement("S3-06")
@pytest.mark.parametrize(
    ("preferred", "sql_agent", "neo4j", "search"),
    [
        ("sql", "one", "true", "search_sql"),
        ("sql", "null", "true", "search_neo4j"),
        ("sql", "null", "false", "search_text"),
        ("text", "one", "true", "search_neo4j"),
        ("text", "one", "false", "search_text"),
    ],
)
def test_the_first_wanted_and_configured_search_is_used(
    preferred: str, sql_agent: str, neo4j: str, search: str
) -> None:
    played = desk(preferred=preferred, agent_id_aisearch_sql=sql_agent, use_neo4j_search=neo4j)
    assert [node for node in played.path if str(node).startswith("search")] == [search]


@pytest.mark.requirement("S3-07")
@pytest.mark.parametrize(
    ("intents", "always", "draft"), [("[]", "false", "W"), ("[multi]", "false", "W\nR"), ("[]", "true", "W\nR")]
)
def test_several_reporters_work_if_triage_or_settings_request_them(intents: str, always: str, draft: str) -> None:
    output = cast(JsonObject, desk(intents=intents, multi_route_always=always).view["output"])
    assert str(output["draft"]).split() == draft.split()


@pytest.mark.integration
@pytest.mark.requirement("S3-13", "S3-21", "S3-93")
async def test_an_execution_resumes_with_its_state_after_a_restart(tmp_path: Path) -> None:
    nodes = [agent("one", "a", goal="goal"), agent("two", "b", a="a"), agent("three", "final", b="b")]
    document = graph(nodes, [edge("one", "two"), edge("two", "three")])
    store = f"sqlite:///{tmp_path / 'a.db'}"
    before = "rules: [{node: two, fail: 400}, {node: one, text: A}]"
    after = "rules: [{node: two, contains: A, text: B}, {node: three, text: C}]"
    async with installation(before, store=store) as app:
        execution = await app.start(written(document), "g")
        await execution.settled()
    async with installation(after, store=store) as app:
        kept = await app.view(execution.id)
        assert (cast(JsonObject, kept["state"])["a"], kept["workflowId"], kept["status"]) == ("A", "graph", "failed")
        again = await app.open(execution.id)
        await again.retry()
        await again.settled()
        ended = await again.view()
    assert (ended["output"], ended["path"]) == ("C", ["one", "two", "two", "three"])


@pytest.mark.requirement("S3-82")
def test_each_phase_of_an_execution_can_be_watched() -> None:
    nodes = [agent("one", "a", goal="goal"), agent("two", "final", a="a")]
    played = play(
        graph(nodes, [edge("one", "two")]),
        "g",
        script="rules: [{node: one, attempt: 2, text: A}, {node: one, fail: 503}, {text: B}]",
    )
    assert [event["kind"] for event in played.events if event["kind"] not in ("timer_set", "timer_rang")] == [
        "started",
        "step_started",
        "step_failed",
        "attempt_started",
        "step_succeeded",
        "step_started",
        "step_succeeded",
        "token_ended",
        "completed",
    ]
    started, *_ = played.events
    assert (started["workflow"], started["input"]) == ("graph", {"goal": "g"})
    assert (played.data["a"], played.view["output"]) == ("A", "B")


@pytest.mark.requirement("S3-23")
@pytest.mark.parametrize("chosen", ["left", "right"])
def test_a_step_may_choose_the_next_node(chosen: str) -> None:
    document = """
        id: fork
        nodes:
          - {id: ask, type: agent, routing: label, config: {prompt: where to}}
          - {id: l, type: agent, config: {prompt: l}}
          - {id: r, type: agent, config: {prompt: r}}
        edges:
          - {source: ask, target: l, condition: {type: label, label: left}}
          - {source: ask, target: r, condition: {type: label, label: right}}
        """
    played = play(document, {}, script=f"rules: [{{node: ask, text: there, next: {chosen}}}, {{text: x}}]")
    assert played.path == ["ask", chosen[0]]
