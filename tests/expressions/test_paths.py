"""The paths to which a step writes."""

from __future__ import annotations

import pytest

from pointsman.expressions.environment import Environment, Names
from pointsman.expressions.failures import BadPath, ExpressionError, NoItem
from pointsman.expressions.paths import ITEM_KEY, ItemKey, compile_path


@pytest.mark.requirement("S3-58", "S3-59")
@pytest.mark.parametrize(
    ("source", "segments"),
    [
        ("drafts", ("drafts",)),
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("a.b[-1]", ("a", "b", -1)),
        ("items.0.name", ("items", 0, "name")),
        ("$.data.x", ("x",)),
        ("$.x", ("x",)),
        ("state.x.y", ("x", "y")),
        ("$.state.x", ("x",)),
        ("data.x", ("x",)),
        ("data", ("data",)),
        ("state.state", ("state",)),
        ("nodes.x", ("nodes", "x")),
        ("init-coverage.text", ("init-coverage", "text")),
        ('a["b c"][\'d"\']', ("a", "b c", 'd"')),
        ('$["my key"]', ("my key",)),
        (" a.b ", ("a", "b")),
        ("drafts.current_fanout_item", ("drafts", ITEM_KEY)),
        ("drafts['current_fanout_item']", ("drafts", "current_fanout_item")),
        ("größe.größer", ("größe", "größer")),
    ],
)
def test_a_path_is_a_sequence_of_keys_of_the_state(source: str, segments: tuple[str | int | ItemKey, ...]) -> None:
    assert compile_path(source).segments == segments


def test_a_declared_field_wins_over_the_word_for_the_state() -> None:
    names = Names(fields_first=frozenset({"data"}))
    assert compile_path("data.x", names=names).segments == ("data", "x")


@pytest.mark.parametrize(
    "source",
    ["", "$", "state", "a.", "a..b", "a b", "a[b]", "a.*", "a[*]", ".a", "a[0", "1a", "a + b", "a()", "a['x]", "@a"],
)
def test_an_invalid_path_is_refused(source: str) -> None:
    with pytest.raises(BadPath) as refused:
        compile_path(source)
    assert refused.value.hint
    assert 0 <= refused.value.offset <= len(source)


def test_an_oversized_path_is_refused() -> None:
    with pytest.raises(ExpressionError):
        compile_path("a" * 5_000)


@pytest.mark.requirement("T3-4")
def test_the_item_key_is_resolved_when_writing() -> None:
    path = compile_path("drafts.current_fanout_item.text")
    assert path.resolve(Environment({}, item_key="intro")) == ("drafts", "intro", "text")
    assert compile_path("a[0]").resolve(Environment({})) == ("a", 0)
    with pytest.raises(NoItem):
        path.resolve(Environment({}))
