"""Parameters: trees of templates, and secrets that never become data."""

from __future__ import annotations

import pytest

from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import BadTemplate, ExpressionTooDeep, MissingValue, SecretNotAllowed
from pointsman.expressions.templates import compile_parameters
from pointsman.values import Json


def test_a_tree_is_filled_in_and_keeps_types() -> None:
    tree: Json = {
        "to": "{user.mail}",
        "n": "{n}",
        "xs": ["{xs}", "n={n}", 1, None],
        "fixed": {"a": [True]},
        "b": "\\{n}",
    }
    parameters = compile_parameters(tree)
    env = Environment({"user": {"mail": "a@b"}, "n": 3, "xs": [1]})
    filled = parameters.evaluate(env)
    assert filled == {"to": "a@b", "n": 3, "xs": [[1], "n=3", 1, None], "fixed": {"a": [True]}, "b": "{n}"}
    assert isinstance(tree, dict)
    assert tree["to"] == "{user.mail}"
    assert {(at, read.path) for at, read in parameters.reads} == {
        ("/to", ("user", "mail")),
        ("/n", ("n",)),
        ("/xs/0", ("xs",)),
        ("/xs/1", ("n",)),
    }


def test_a_tree_without_paths_is_returned_unchanged() -> None:
    tree: Json = {"a": [1, "x", {"b": None}]}
    assert compile_parameters(tree).evaluate(Environment({})) is tree


def test_missing_values_are_collected_or_fail_with_their_pointer() -> None:
    missing: list[str] = []
    parameters = compile_parameters({"a": "{{nope}}", "b": "$.gone"}, spelling="double")
    assert parameters.evaluate(Environment({}), missing=missing) == {"a": None, "b": None}
    assert missing == ["nope", "$.gone"]
    with pytest.raises(MissingValue) as failed:
        compile_parameters({"a/b": [0, "x {nope}"]}).evaluate(Environment({}))
    assert (failed.value.pointer, failed.value.offset) == ("/a~1b/1", 3)


def test_a_malformed_text_is_refused_with_its_pointer() -> None:
    with pytest.raises(BadTemplate) as refused:
        compile_parameters({"a": ["ok", "{{#if x}}"]}, spelling="double")
    assert refused.value.pointer == "/a/1"


def test_a_secret_is_returned_by_position_and_never_read_from_data() -> None:
    tree: Json = {"headers": {"Authorization": "Bearer {secret.TOKEN}!"}, "key": "secret.KEY", "q": "{q}"}
    parameters = compile_parameters(tree)
    filled = parameters.evaluate(Environment({"q": "{secret.KEY} secret.KEY"}))
    assert filled == {
        "headers": {"Authorization": "Bearer {secret.TOKEN}!"},
        "key": "secret.KEY",
        "q": "{secret.KEY} secret.KEY",
    }
    assert {text.pointer: text.revealed(str.lower) for text in parameters.secrets} == {
        ("headers", "Authorization"): "Bearer token!",
        ("key",): "key",
    }
    assert parameters.reads == (("/q", parameters.reads[0][1]),)


def test_a_secret_beside_data_is_refused() -> None:
    with pytest.raises(SecretNotAllowed) as refused:
        compile_parameters({"a": "{secret.KEY}-{user}"})
    assert refused.value.pointer == "/a"
    with pytest.raises(SecretNotAllowed):
        compile_parameters({"a": "{secret.KEY.x}"})
    with pytest.raises(SecretNotAllowed):
        compile_parameters("{{#if secret.KEY}}x{{/if}}", spelling="double")


def test_the_word_secret_alone_is_a_string() -> None:
    assert compile_parameters("a secret.KEY in a sentence").evaluate(Environment({})) == "a secret.KEY in a sentence"


def test_deep_trees_are_refused() -> None:
    tree: Json = "x"
    for _ in range(40):
        tree = [tree]
    with pytest.raises(ExpressionTooDeep):
        compile_parameters(tree)
