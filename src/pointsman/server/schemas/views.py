"""Answers in the OpenAPI document, generated from the types that the domains return.

    class SavedRevision(TypedDict): …     a view: the domain's function returns it, the server serialises it
    answers(SavedRevision, …)             documents an operation by it
    example(SavedRevision, {…})           adds an example, which the type checker compares with the view

The docstrings of a view and of its keys become descriptions. Views use the `TypedDict` of `typing_extensions`, which
pydantic requires before Python 3.12.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from types import GenericAlias
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import get_original_bases, is_typeddict

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
    every: Any = GenericAlias(tuple, (*_VIEWS.values(),))  # One tuple: each schema is generated once.
    whole = TypeAdapter[object](every)
    made = cast("dict[str, dict[str, Any]]", whole.json_schema(ref_template=REFERENCE).get("$defs", {}))
    for name, schema in made.items():
        if schema.get("type") == "object":
            schema["additionalProperties"] = True  # Answers may have more members than described.
        if name in _EXAMPLES:
            schema["examples"] = _EXAMPLES[name]
    for view in _typed_dicts_in(every):
        for key, text in _descriptions(view).items():
            made[view.__name__]["properties"][key]["description"] = text
    return made


def _typed_dicts_in(annotation: object) -> Iterator[type]:
    """Iterate over the views in an annotation, and over those inside them, each once."""
    known, left = set[object](), [annotation]
    while left:
        one = left.pop()
        if is_typeddict(one) and one not in known:
            known.add(one)
            left += get_type_hints(one).values()
            yield cast("type", one)
        elif not is_typeddict(one):
            left += get_args(one)


def _descriptions(view: type) -> dict[str, str]:
    """Return the docstrings of the keys of a view. pydantic would omit those of its bases."""
    found: dict[str, str] = {}
    for base in get_original_bases(view):
        if is_typeddict(base):
            found |= _descriptions(cast("type", base))
    return found | _docstrings_in(view.__module__).get(view.__qualname__, {})


@cache
def _docstrings_in(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of attributes by class, from the source of a module."""
    classes = (one for one in ast.parse(inspect.getsource(sys.modules[module])).body if isinstance(one, ast.ClassDef))
    return {one.name: dict(_docstrings_of(one.body)) for one in classes}


def _docstrings_of(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for member, text in pairwise(body):
        match member, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())
            case _:
                pass
