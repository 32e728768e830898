"""The published JSON Schema and the models accept the same documents."""

from __future__ import annotations

import functools
import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.definition.model.schema import native_schema
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL, SMALL
from tests.definition.test_workflow import JUNK, PLACES, replaced


@functools.cache
def validator() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(native_schema())


def test_the_schema_is_a_valid_json_schema() -> None:
    assert jsonschema_rs.meta.is_valid(native_schema())


@pytest.mark.parametrize("document", [SMALL, FULL])
def test_good_documents_satisfy_the_schema(document: JsonObject) -> None:
    assert [error.message for error in validator().iter_errors(document)] == []


def test_every_field_has_a_description_or_a_clear_name() -> None:
    definitions = native_schema()["$defs"]
    assert isinstance(definitions, dict)
    silent = {name for name, made in definitions.items() if isinstance(made, dict) and not made.get("description")}
    assert silent == set()


def test_callers_receive_their_own_copy_of_the_schema() -> None:
    native_schema()["properties"] = {}
    assert native_schema()["properties"] != {}


def test_string_fields_declare_their_syntax() -> None:
    text = json.dumps(native_schema())
    for kind in ("expression", "path", "template", "jsonpath", "node", "agent", "tool", "workflow", "model"):
        assert f'"x-kind": "{kind}"' in text


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_schema_and_models_agree_about_any_document(place: tuple[str | int, ...], junk: Json) -> None:
    document = replaced(place, junk)
    workflow, problems = WorkflowDefinition.from_document(document)
    errors = [error.message for error in validator().iter_errors(document)]
    assert (workflow is not None) == (not errors), (problems, errors)
