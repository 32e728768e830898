"""The meaning of names, and the data that an expression is known to read."""

from __future__ import annotations

import pytest

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment, Names
from pointsman.expressions.failures import SecretNotAllowed
from pointsman.expressions.operators import equals, same_label
from pointsman.values import Json, JsonObject
from tests.expressions.worlds import value


def test_a_bare_name_resolves_to_the_nearest_scope() -> None:
    state: dict[str, Json] = {"x": "state", "item": "field", "xs": [1]}
    names: dict[str, Json] = {"x": "engine", "item": "reserved", "section": "as"}
    config: dict[str, Json] = {"x": "setting", "y": "setting"}
    env = Environment(state, names=names, config=config)
    at = compile_expression
    assert at("map(xs, x => x)").evaluate(env) == [1]
    assert at("map(xs, item => item)").evaluate(env) == [1]
    assert at("section", names=Names(as_names=frozenset({"section"}))).evaluate(env) == "as"
    assert at("x", names=Names(as_names=frozenset({"x"}))).evaluate(env) == "engine"
    assert at("item").evaluate(env) == "reserved"
    assert at("item", names=Names(fields_first=frozenset({"item"}))).evaluate(env) == "field"
    assert at("state.item").evaluate(env) == "field"
    assert at("x").evaluate(env) == "state"
    assert at("y").evaluate(env) == "setting"
    assert at("map(xs, x => $.x)").evaluate(env) == ["state"]


@pytest.mark.requirement("T3-18")
def test_settings_are_readable_beside_the_state() -> None:
    env = Environment({"use": True}, config={"agent_id_aisearch_sql": "a-7", "use": False})
    assert compile_expression("agent_id_aisearch_sql is not None and use").holds(env)
    assert compile_expression("config.agent_id_aisearch_sql == 'a-7' and not settings.use").holds(env)


def test_an_engine_name_is_found_after_the_state() -> None:
    assert value("_loopIndex + 1", {}, names={"_loopIndex": 2}) == 3
    assert value("_loopIndex", {"_loopIndex": 9}, names={"_loopIndex": 2}) == 9


@pytest.mark.parametrize("root", ["input", "result", "index", "key", "loop", "execution", "session", "next"])
def test_reserved_roots_come_from_their_own_place(root: str) -> None:
    assert value(root, {root: "field"}, names={root: "root"}) == "root"
    assert value(root, {root: "field"}) is None
    assert value(f"$.{root}", {}, names={root: "root"}) == "root"


def test_the_state_has_several_spellings() -> None:
    state: dict[str, Json] = {"a b": 1, "x": 2}
    assert value("[$['a b'], state.x, data.x, $.data.x, $.state['x'], $.x, $['x']]", state) == [1, 2, 2, 2, 2, 2, 2]
    assert value("$ == state and data == $", state) is True
    assert value("keys($)", state) == ["a b", "x"]


class AskedOnly(dict[str, Json]):
    """A mapping that allows lookups but no iteration."""

    def __iter__(self) -> object:  # pyright: ignore[reportIncompatibleMethodOverride] - it must not be called
        raise AssertionError("went through all nodes")


def test_a_constant_node_id_is_read_by_key() -> None:
    env = Environment({"which": "b"}, nodes=AskedOnly({"init-coverage": {"n": 1}, "b": 2}))
    assert compile_expression('nodes["init-coverage"].n').evaluate(env) == 1
    assert compile_expression("$.nodeOutputs.b + outputs.b").evaluate(env) == 4
    assert compile_expression("nodes[which]").evaluate(env) == 2
    assert compile_expression("nodes.nope.x").evaluate(env) is None


def test_all_nodes_can_be_iterated() -> None:
    env = Environment({}, nodes={"a": {"n": 1}, "b": {"n": 2}})
    assert compile_expression("sum(nodes.*.n) + len(nodes)").evaluate(env) == 5


def test_next_is_available_on_the_edges_of_its_step() -> None:
    assert value("state.next", {"next": "field"}, names={"next": "Writer"}) == "Writer"
    assert value("state.next", {"next": "field"}) == "field"


@pytest.mark.requirement("T3-4")
def test_the_item_of_a_branch_has_a_value_and_a_key() -> None:
    state: dict[str, Json] = {"drafts": {"intro": ["a", "b"], "current_fanout_item": "literal"}}
    env = Environment(state, names={"item": {"id": "intro"}}, item_key="intro")
    assert compile_expression("drafts.current_fanout_item[-1]").evaluate(env) == "b"
    assert compile_expression("current_fanout_item.id").evaluate(env) == "intro"
    assert compile_expression("drafts['current_fanout_item']").evaluate(env) == "literal"
    assert compile_expression("drafts.current_fanout_item").evaluate(Environment(state)) is None


@pytest.mark.parametrize("source", ["secret.KEY", "$.secret.KEY", "len(secret)", "a or secret['KEY']"])
def test_secrets_are_not_data(source: str) -> None:
    with pytest.raises(SecretNotAllowed):
        compile_expression(source)


def test_reads_list_every_path_with_its_position() -> None:
    source = "$.a.b[0] > input.n and nodes['x-1'].ok and (c ?? d) and xs[i].z and any(xs, x => x.f) and e.*.g.length"
    reads = {(r.root, r.path): (source[r.offset :][: r.length], r.guarded) for r in compile_expression(source).reads}
    assert reads == {
        ("state", ("a", "b", 0)): ("$.a.b[0]", False),
        ("input", ("n",)): ("input.n", False),
        ("nodes", ("x-1", "ok")): ("nodes['x-1'].ok", False),
        ("state", ("c",)): ("c", True),
        ("state", ("d",)): ("d", False),
        ("state", ("xs", None, "z")): ("xs[i].z", False),
        ("state", ("i",)): ("i", False),
        ("state", ("xs",)): ("xs", False),
        ("state", ("e", None, "g")): ("e.*.g.length", False),
    }
    assert [r.guarded for r in compile_expression("exists(a) and empty(b) and default(c, 1) and f").reads] == [
        True,
        True,
        True,
        False,
    ]


def test_equality_is_strict_except_for_labels() -> None:
    assert equals([1, {"a": None}], [1.0, {"a": None}])
    assert not equals(True, 1)
    assert not equals("true", True)
    assert same_label(True, "true")
    assert same_label(2, "2")
    assert not same_label(None, "null")
    assert not same_label(None, None)
    assert not same_label("True", True)


@pytest.mark.parametrize(
    ("source", "state", "value"),
    [
        ("state.data.x", {"x": 1}, 1),
        ("$.state.data.x.y", {"x": {"y": 2}}, 2),
        ("state.data.x", {"data": {"x": 3}, "x": 1}, 3),
        ("state.data", {"x": 1}, None),
    ],
)
def test_state_data_is_the_state_unless_a_field_data_exists(source: str, state: JsonObject, value: Json) -> None:
    assert compile_expression(source).evaluate(Environment(state)) == value
