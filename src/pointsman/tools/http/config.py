"""Settings of HTTP tools, in the settings or in a file: one request with placeholders for arguments.

url = "https://api.example.org/v1/{city}"        arguments in the path are encoded as one segment
query = {days = "{days}"}                        `{name}` alone keeps its type; left out if missing
headers = {Authorization = "Bearer {secret.WEATHER}"}
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pointsman.values import Json, JsonObject

PLACE: Final = re.compile(r"\{(secret\.)?([A-Za-z_][\w.-]*)\}")
NAME: Final = r"^[A-Za-z_][\w-]{0,63}$"
"""The tool names that model providers accept."""

_ORIGIN: Final = re.compile(r"https?://[^/?#{}\s]+(?=[/?#]|$)")


def _object(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return cast("object", value)


AnObject = Annotated[dict[str, object], BeforeValidator(_object)]


class HttpToolDescription(BaseModel):
    """One tool."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    description: str = ""
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str
    """Its scheme and host are fixed: no argument leads elsewhere."""
    query: AnObject = Field(default_factory=dict[str, object])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    body: object = None
    """A JSON tree; `"{name}"` is the argument itself."""
    parameters: AnObject = Field(default_factory=dict[str, object])
    """JSON Schema of the arguments. Absent: a text for each place."""
    requires_approval: bool = False
    idempotent: bool | None = None
    """Absent: GET, HEAD, PUT and DELETE are."""

    @model_validator(mode="after")
    def _leads_to_one_place(self) -> HttpToolDescription:
        if _ORIGIN.match(self.url) is None:
            raise ValueError("`url` must begin with http(s)://host, without arguments in it")
        return self

    @property
    def schema_of_arguments(self) -> JsonObject:
        if self.parameters:
            return cast("JsonObject", self.parameters)
        names = list(dict.fromkeys(_places([self.url, self.query, self.headers, self.body])))
        in_path: list[Json] = [*dict.fromkeys(_places([self.url]))]
        return {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": in_path,
            "additionalProperties": False,
        }

    @property
    def may_be_repeated(self) -> bool:
        return self.method in ("GET", "HEAD", "PUT", "DELETE") if self.idempotent is None else self.idempotent


def _places(tree: object) -> list[str]:
    """Return the names of all arguments in a tree."""
    match tree:
        case str():
            return [name for secret, name in PLACE.findall(tree) if not secret]
        case list():
            return [name for one in cast("list[object]", tree) for name in _places(one)]
        case dict():
            return [name for one in cast("dict[str, object]", tree).values() for name in _places(one)]
        case _:
            return []
