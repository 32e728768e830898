"""Reads of state, and the writes before them."""

from __future__ import annotations

import pytest

from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, the

CLOSED: JsonObject = {"type": "object", "properties": {"goal": {"type": "string"}}}


def write(path: str) -> JsonObject:
    return {"outputs": {path: "1"}}


def read(expression: str) -> JsonObject:
    return {"inputs": {"it": expression}}


@pytest.mark.requirement("T2-18", "S4-O7")
def test_a_field_that_is_never_written_is_an_error_if_the_input_is_declared() -> None:
    problem = the(drawn("start -> a; a -> end", configs={"a": read("nowhere.b")}, input=CLOSED), "never-written")
    assert (problem.severity, problem.pointer) == ("error", "/nodes/1/inputs/it")


def test_a_misspelt_field_has_a_fix() -> None:
    problem = the(drawn("start -> a; a -> end", configs={"a": read("len(gaol) > 1")}, input=CLOSED), "never-written")
    assert problem.fix == ({"op": "replace", "path": "/nodes/1/inputs/it", "value": "len(goal) > 1"},)


@pytest.mark.requirement("T4-7")
def test_without_a_declared_input_one_fix_declares_all_missing_fields() -> None:
    configs: Configs = {"a": read("goal"), "b": read("goal.x + tone")}
    problems = drawn("start -> a; a -> b; b -> end", configs=configs, input=None)
    assert codes(problems) == ["undeclared-input", "undeclared-input"]
    schema: Json = {"type": "object", "properties": {"goal": {}, "tone": {}}}
    assert {repr(p.fix) for p in problems} == {repr(({"op": "add", "path": "/input", "value": schema},))}


def test_imported_documents_get_warnings() -> None:
    problem = the(
        drawn("start -> a; a -> end", configs={"a": read("no.b")}, input=CLOSED, dialect="steps"), "never-written"
    )
    assert problem.severity == "warning"


@pytest.mark.parametrize("expression", ["late ?? 1", "exists(late)", "default(late, 2)"])
def test_a_guarded_read_of_a_missing_field_is_valid(expression: str) -> None:
    assert codes(drawn("start -> a; a -> end", configs={"a": read(expression)}, input=CLOSED)) == []


@pytest.mark.requirement("S2-60", "T2-22")
def test_a_read_before_the_write_is_an_error() -> None:
    configs: Configs = {"a": read("late"), "b": write("late")}
    problem = the(drawn("start -> a; a -> b; b -> end", configs=configs, input=CLOSED), "read-before-written")
    assert (problem.severity, "'b'" in problem.message) == ("error", True)


@pytest.mark.requirement("T4-13")
def test_a_read_in_a_cycle_sees_writes_of_later_steps() -> None:
    configs: Configs = {"a": read("late"), "b": write("late")}
    assert codes(drawn("start -> a; a -> b; b -goal != ''-> a; b -> end", configs=configs, input=CLOSED)) == []


def test_a_read_of_another_branch_is_reported() -> None:
    configs: Configs = {"a": write("note"), "b": read("note")}
    drawing = "start -> fan; fan -> a, b; a -> join; b -> join; join -> end"
    assert codes(drawn(drawing, configs=configs, input=CLOSED)) == ["read-before-written"]


def test_an_edge_condition_sees_writes_of_its_node() -> None:
    drawing = "start -> a; a -score > 3-> b; a -default-> end; b -> end"
    assert codes(drawn(drawing, configs={"a": write("score")}, input=CLOSED)) == []


def test_writes_and_reads_of_overlapping_paths_match() -> None:
    configs: Configs = {"a": write("report"), "b": read("report.parts[0].text"), "c": read("report")}
    assert codes(drawn("start -> a; a -> b; b -> c; c -> end", configs=configs, input=CLOSED)) == []
    configs = {"a": write("report.title"), "b": read("report.body")}
    problem = the(drawn("start -> a; a -> b; b -> end", configs=configs, input=CLOSED), "never-written")
    assert "'report.title'" in problem.hint


def test_a_prompt_with_a_possibly_missing_value_is_a_warning() -> None:
    configs: Configs = {"a": write("text"), "agent1": {"prompt": "Shorten {text}"}}
    skips = "start -> dec; dec -goal != ''-> a; dec -> agent1; a -> agent1; agent1 -> end"
    assert codes(drawn(skips, configs=configs, input=CLOSED)) == ["maybe-missing"]
    both = "start -> dec; dec -goal != ''-> a; dec -> b; a -> agent1; b -> agent1; agent1 -> end"
    assert codes(drawn(both, configs={**configs, "b": write("text")}, input=CLOSED)) == []
    optional: Configs = {**configs, "agent1": {"prompt": "Shorten {text?}"}}
    assert codes(drawn(skips, configs=optional, input=CLOSED)) == []


def test_a_write_in_one_joined_branch_is_enough() -> None:
    configs: Configs = {"a": write("text"), "agent1": {"prompt": "Shorten {text}"}}
    for drawing in (
        "start -> fan; fan -> a, b; a -> join; b -> join; join -> agent1; agent1 -> end",
        "start -> s; s -> a, b; a -> m; b -> m; m -> agent1; agent1 -> end",
    ):
        assert codes(drawn(drawing, configs=configs, input=CLOSED)) == []


def test_each_alternative_path_must_write() -> None:
    configs: Configs = {"a": write("text"), "agent1": {"prompt": "Shorten {text}"}}
    drawing = "start -> s; s -goal == 'x'-> a; s -default-> b; a -> m; b -> m; m -> agent1; agent1 -> end"
    assert codes(drawn(drawing, configs=configs, input=CLOSED)) == ["maybe-missing"]


def test_an_until_loop_runs_at_least_once() -> None:
    drawing = "start -> loop; loop -> a; a -> loop; loop -> agent1; agent1 -> end"
    configs: Configs = {"a": write("text"), "agent1": {"prompt": "Shorten {text}"}, "loop": {"until": "goal != ''"}}
    assert codes(drawn(drawing, configs=configs, input=CLOSED)) == []
    assert codes(drawn(drawing, configs={**configs, "loop": {"while": "goal != ''"}}, input=CLOSED)) == [
        "maybe-missing"
    ]


def test_results_of_nodes_are_available_only_afterwards() -> None:
    assert codes(drawn("start -> a; a -> b; b -> end", configs={"b": read("nodes.a")}, input=CLOSED)) == []
    assert codes(drawn("start -> a; a -> b; b -> end", configs={"a": read("nodes.b")}, input=CLOSED)) == [
        "read-before-written"
    ]
    problem = the(drawn("start -> alpha; alpha -> b; b -> end", configs={"b": read("nodes.alpa")}), "unknown-node-read")
    assert problem.fix == ({"op": "replace", "path": "/nodes/2/inputs/it", "value": "nodes.alpha"},)


def test_item_is_available_only_inside_parallels_and_loops() -> None:
    assert codes(drawn("start -> a; a -> end", configs={"a": read("item")})) == ["outside-of-items"]
    drawing = "start -> fan; fan -> a; a -> join; join -> end"
    configs: Configs = {"fan": {"items": "x", "as": "topic"}, "a": read("[item, index, key, topic]")}
    assert codes(drawn(drawing, configs=configs)) == []
    assert codes(drawn(drawing, configs={**configs, "a": read("loop.iteration")})) == ["outside-of-items"]


@pytest.mark.parametrize("closed", [True, False])
def test_item_is_not_available_on_edges_of_its_own_parallel(closed: bool) -> None:
    drawing = "start -> fan; fan -it == 2-> a; a -> join; join -> end"
    configs: Configs = {"fan": {"items": "goal", "as": "it"}, "a": {}}
    code = "never-written" if closed else "undeclared-input"
    found = drawn(drawing, configs=configs, input=CLOSED if closed else None)
    problem = next(one for one in found if one.code == code and "'it'" in one.message)
    assert "'it' of parallel 'fan'" in problem.hint
    assert problem.fix is None


def test_item_on_an_edge_of_a_parallel_is_that_of_the_outer_one() -> None:
    configs: Configs = {"fan": {"items": "x"}, "a": {}}
    alone = drawn("start -> fan; fan -item == 2-> a; a -> join; join -> end", configs=configs)
    problem = the(alone, "outside-of-items")
    assert "parallel 'fan'" in problem.hint


@pytest.mark.requirement("T3-8")
def test_loops_without_progress_are_found() -> None:
    drawing = "start -> loop; loop -> agent1; agent1 -> loop; loop -> end"
    loop: JsonObject = {"while": "verdict != 'ok'", "maxIterations": 3}
    review: JsonObject = {"inputs": {"text": "goal"}, "outputs": {"verdict": "result"}, "prompt": "{text}"}
    problems = drawn(drawing, configs={"loop": loop, "agent1": review}, input=CLOSED)
    assert the(problems, "loop-changes-nothing").pointer == "/nodes/1"
    revises: JsonObject = {**review, "outputs": {"verdict": "result", "goal": "result.better"}}
    assert codes(drawn(drawing, configs={"loop": loop, "agent1": revises}, input=CLOSED)) == []


@pytest.mark.requirement("T3-13")
def test_a_join_must_merge_written_fields() -> None:
    drawing = "start -> fan; fan -> a, b; a -> join; b -> join; join -> end"
    configs: Configs = {"a": write("drafts.one"), "b": write("drafts.two"), "join": {"mergeKey": "final"}}
    assert "merge-key-unwritten" in codes(drawn(drawing, configs=configs))
    assert codes(drawn(drawing, configs={**configs, "join": {"mergeKey": "drafts"}})) == []


def edited(*paths: str, state: JsonObject | None = None) -> list[str]:
    drawing = "start -> tool; tool -> ask; ask -#approve-> end; ask -#edit-> end"
    gate: JsonObject = {"actions": ["approve", "edit"], "editable": [*paths], "message": "Send {{y}}?"}
    problems = drawn(drawing, configs={"tool": write("letter.text"), "ask": gate}, state=state or {})
    return [one.message for one in problems if one.code == "editable-field-unused"]


def test_editable_fields_must_be_written_or_read() -> None:
    assert edited("letter", "letter.text", "letter.title", "x", "y") == []
    assert edited("mood", state={"mood": {"schema": {"type": "string"}}}) == []
    assert edited("letter", "leter") == ["people may edit 'leter' at human 'ask', but no node writes or reads it"]


@pytest.mark.requirement("T3-25")
def test_a_write_to_an_undeclared_field_is_reported() -> None:
    configs: Configs = {"a": write("draft"), "b": write("darft.text")}
    drawing = "start -> a; a -> b; b -> end"
    problem = the(drawn(drawing, configs=configs, state={"draft": {"reduce": "set"}}), "undeclared-field")
    assert (problem.severity, problem.pointer) == ("note", "/nodes/2/outputs/darft.text")
    assert "'draft'" in problem.hint
    assert [one.code for one in drawn(drawing, configs=configs)] == [], "a state that is not declared is any state"


def operations(*some: JsonObject) -> JsonObject:
    return {"operations": [*some]}


def test_a_transform_operation_sees_writes_of_earlier_operations() -> None:
    wrote: JsonObject = {"lengthOf": "list", "to": "count"}
    reads: JsonObject = {"evaluate": "count + 1", "to": "more"}
    fine = drawn("start -> a; a -> end", configs={"a": operations(wrote, reads)}, input=CLOSED)
    assert "read-before-written" not in codes(fine)
    wrong = drawn("start -> a; a -> end", configs={"a": operations(reads, wrote)}, input=CLOSED)
    assert "read-before-written" in codes(wrong)
