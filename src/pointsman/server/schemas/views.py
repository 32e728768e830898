"""Answers in the OpenAPI document, generated from the types that the domains return.

    class SavedRevision(TypedDict): …     a view: the domain's function returns it, the server serialises it
    answers(SavedRevision, …)             documents an operation by it
    example(SavedRevision, {…})           adds an example, which the type checker compares with the view

The docstrings of a view and of its keys become descriptions. Views use the `TypedDict` of `typing_extensions`, which
pydantic requires before Python 3.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Any, Final, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter

from pointsman.values import Json

View = TypeVar("View", bound=Mapping[str, object])
REFERENCE: Final = "#/components/schemas/{model}"
_VIEWS: Final[dict[str, type[Any]]] = {}
"""Documented views by name."""
_EXAMPLES: Final[dict[str, list[Json]]] = {}
"""Examples by the name of their view."""


def example(view: type[View], shown: View) -> None:
    """Add an example to the documentation of a view."""
    _EXAMPLES.setdefault(view.__name__, []).append(cast("Json", shown))


def reference_to(view: type[Any]) -> dict[str, Any]:
    """Return the schema that refers to a view; the document then contains the view."""
    _VIEWS[view.__name__] = view
    return {"$ref": REFERENCE.format(model=view.__name__)}


def view_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of all documented views, and of the views inside them, by name."""
    # One tuple of all views: the config applies to every view in it, and each schema is generated once.
    every: Any = GenericAlias(tuple, (*_VIEWS.values(),))
    whole = TypeAdapter[object](every, config=ConfigDict(use_attribute_docstrings=True))
    made = cast("dict[str, dict[str, Any]]", whole.json_schema(ref_template=REFERENCE).get("$defs", {}))
    for name, schema in made.items():
        if schema.get("type") == "object":
            schema["additionalProperties"] = True  # Answers may have more members than described.
        if name in _EXAMPLES:
            schema["examples"] = _EXAMPLES[name]
    return made
